"""What a dialog can begin with: labels, classes, groups and times of samples, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from margrave import _labels, catalogue
from margrave._indexing import columns_for, rows_of
from margrave._messages import did_you_mean, near_names
from margrave._typing import Codes, Floats
from margrave._validation import checked_labels, classes_of, is_count, named_members
from margrave.catalogue import default_committee
from margrave.committee import Committee, Panel, Progress, columns_of, fit_members
from margrave.confusion import Preference
from margrave.fuse._log_odds import combined
from margrave.martingale import MartingaleBoostClassifier
from margrave.steer._certify import CertifyPart, certify_part
from margrave.steer._scorer import Alone, Scorer, decimals_for
from margrave.steer._split import Parts, blocks_of, certify_share, folds_of, parted
from margrave.steer._thresholds import plain
from margrave.steer._tuning_data import Material, Option, Rows, codes_of, refuse_dask
from margrave.table._encoder import TableEncoder

_LEAST = 10
PROGRAM = "martingale"


def labels_of(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
    """Labels of at least two classes, one for each sample."""
    refuse_dask(X, y, owner)
    labels = checked_labels(X, y, owner)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs samples of at least two classes; got one class, "
            f"{_labels.plain(classes[0])!r}."
        )
    return labels


def check_sizes(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Refuse too few samples to train, tune and certify on."""
    sizes = np.bincount(codes, minlength=len(classes))
    if sizes.min() < _LEAST:
        label = _labels.plain(classes[sizes.argmin()])
        raise ValueError(
            f"{owner} needs at least {_LEAST} samples of each class to train, tune and certify on; "
            f"got {sizes.min()} of {label!r}."
        )


def check_all_there(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Refuse tuning samples without some class."""
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"{owner} needs tuning samples of every class; got none of "
            f"{_labels.plain(classes[sizes.argmin()])!r}."
        )


def one_each(values: ArrayLike, n: int, name: str, owner: str) -> NDArray[Any]:
    """An entry for each sample."""
    array = np.asarray(values)
    if array.dtype == object and not _labels.has_missing(array):
        array = array.astype(str)  # of whatever kinds
    if array.shape != (n,):
        raise ValueError(
            f"{owner} needs {name} with an entry for each of {n} samples; got shape {array.shape}."
        )
    missing = np.isnat(array) if array.dtype.kind in "mM" else np.array(_labels.has_missing(array))
    if missing.any():
        raise ValueError(f"{owner} needs {name} without missing entries.")
    return array


def checked_positive(positive: Any, classes: NDArray[Any], owner: str) -> Any:
    """The positive class: as given, or the second of two."""
    if positive is None:
        return _labels.plain(classes[1]) if len(classes) == 2 else None
    if positive not in classes.tolist():
        raise ValueError(
            f"{owner} needs positive to be one of {_labels.shown(classes)}; got {positive!r}."
        )
    return classes.tolist()[classes.tolist().index(positive)]


_TO_TUNE = 0.4  # of what a program is built on


@dataclass(frozen=True, eq=False)
class Start:
    """What a dialog begins with.

    Attributes
    ----------
    material : Material
        The tuning samples.
    scorer : Scorer
        Of new samples.
    held : ndarray
        Scores of the tuning samples.
    certify : CertifyPart or None
        What is set aside.
    notes : tuple of str
        What a certificate should say about the samples.
    estimator : classifier, list or None
        What is steered, not trained.
    """

    material: Material
    scorer: Scorer
    held: Floats
    certify: CertifyPart | None = None
    notes: tuple[str, ...] = ()
    estimator: Any = None

    @property
    def option(self) -> Option:
        """The untouched decision on these scores."""
        return Option("start", self.scorer, self.held, plain(self.material.k))


@dataclass(frozen=True, eq=False)
class Layout:
    """A table with its samples' roles.

    Attributes
    ----------
    labels, codes : ndarray
        Labels, and their positions among the classes.
    classes : ndarray
        All classes.
    positive : label or None
        The positive class.
    groups, time : ndarray or None
        Which samples belong together, and when they came.
    parts : Parts
        Who sees which.
    """

    labels: NDArray[Any]
    codes: Codes
    classes: NDArray[Any]
    positive: Any
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    parts: Parts

    @property
    def learned(self) -> Codes:
        """Positions of the samples that are trained on."""
        return self.parts.build[self.parts.training]

    @property
    def tuning(self) -> Codes:
        """Positions of the tuning samples."""
        return self.parts.build[self.parts.held]

    def tuning_folds(self) -> list[tuple[Codes, Codes]]:
        """Folds of the tuning samples."""
        at = self.tuning
        if self.time is not None:
            return blocks_of(self.labels[at], self.time[at])
        return folds_of(self.labels[at], None if self.groups is None else self.groups[at])


def from_model(
    model: Any, X_tune: Any, y_tune: ArrayLike, positive: Any, groups: ArrayLike | None
) -> Start:
    """A trained classifier, or a list of them."""
    owner = "Dialog"
    alone = not isinstance(model, list | tuple | dict)
    pairs = named_members([model] if alone else model, owner)
    classes = _labels.union([(name, classes_of(name, member)) for name, member in pairs])
    codes = codes_of(X_tune, y_tune, classes, owner)
    check_all_there(classes, codes, owner)
    if alone:
        X_tune = columns_for(X_tune, None, pairs[0][0], model)
    together = None if groups is None else one_each(groups, len(codes), "groups", owner)
    folds = folds_of(codes, together)
    columns = columns_of(X_tune)
    given = Panel([name for name, _ in pairs], [one for _, one in pairs], classes, None, columns)
    panel = given
    if alone and isinstance(model, Committee) and model.asks_as_given:
        # Its members may be weighed anew.
        panel = Panel(model.member_names_, model.estimators_, classes, None, columns)
    positive = checked_positive(positive, classes, owner)
    material = Material(panel, panel.raw(X_tune), codes, positive, folds, Rows(X_tune), False)
    start = _scored(material, given, X_tune) if alone else _scored(material)
    return replace(start, estimator=untrained(model))


def layout(
    X: Any,
    y: ArrayLike,
    *,
    certify: Any = "auto",
    promise: Preference | None = None,
    delta: float = 0.05,
    positive: Any = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    tune: Any = None,
    random_state: Any = None,
) -> Layout:
    """Check a table and split its rows; with tune="martingale" a program keeps its usual part."""
    owner = "Dialog.from_data"
    labels = labels_of(X, y, owner)
    classes, codes = np.unique(labels, return_inverse=True)
    check_sizes(classes, codes, owner)
    positive = checked_positive(positive, classes, owner)
    together = None if groups is None else one_each(groups, len(labels), "groups", owner)
    when = None if time is None else one_each(time, len(labels), "time", owner)
    if together is not None and when is not None:
        raise ValueError(f"{owner} needs groups or time; got both.")
    own = isinstance(certify, tuple) and len(certify) == 2
    sized = codes
    if together is not None and isinstance(certify, str):  # one sample of each group certifies
        sized = codes[np.unique(together, return_index=True)[1]]
    share = certify_share(
        None if own else certify, promise, sized, tuple(classes.tolist()), positive, delta
    )
    kept = _TO_TUNE if isinstance(tune, str) and tune == PROGRAM else tune
    if kept is not None and (not isinstance(kept, float) or not 0 < kept < 1):
        raise ValueError(f"{owner} needs tune to be None or a share in (0, 1); got {tune!r}.")
    parts = parted(labels, share, together, when, random_state, kept)
    return Layout(labels, codes, classes, positive, together, when, parts)


def from_table(
    X: Any,
    y: ArrayLike,
    *,
    committee: Any = None,
    levels: int = 3,
    tune: float | None = None,
    certify: Any = "auto",
    promise: Preference | None = None,
    delta: float = 0.05,
    positive: Any = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callable[[Progress], Any] | None = None,
) -> Start:
    """A table: samples are set aside, and a committee is trained on the rest."""
    names = _names(committee)
    made = layout(
        X,
        y,
        certify=certify,
        promise=promise,
        delta=delta,
        positive=positive,
        groups=groups,
        time=time,
        tune=PROGRAM if names == [PROGRAM] and tune is None else tune,
        random_state=random_state,
    )
    members, encoder = _to_train(committee, names, levels, X, made, random_state)
    panel, rows, raw = _trained(X, made, members, encoder, n_jobs, callback)
    at, apart = made.tuning, made.parts.apart is not None
    material = Material(
        panel,
        raw,
        made.codes[at],
        made.positive,
        made.tuning_folds(),
        Rows(rows),
        trained_on=not apart,
        in_time=made.time is not None and not apart,  # else all that is trained on came before
        at=at,
    )
    return replace(
        _scored(material),
        certify=_set_aside(X, certify, made, panel),
        notes=_notes(made.groups, made.time),
        estimator=untrained(committee if names is None else _on_columns(members)),
    )


def _trained(
    X: Any,
    made: Layout,
    members: list[tuple[str, Any]],
    encoder: TableEncoder | None,
    n_jobs: int | None,
    callback: Callable[[Progress], Any] | None,
) -> tuple[Panel, Any, Floats]:
    """Trained members, the tuning samples as they see them, and what is said about those."""
    parts, learned = made.parts, made.learned
    rows, labels = rows_of(X, learned), made.labels[learned]
    rows = rows if encoder is None else encoder.transform(rows)
    names = [name for name, _ in members]
    if parts.apart is None:
        trained, scores = fit_members(
            members, rows, labels, parts.folds, n_jobs=n_jobs, callback=callback
        )
        panel = Panel(names, trained, made.classes, encoder, columns_of(X))
        at = np.concatenate([held for _, held in parts.folds])
        raw = np.concatenate([one.raw() for one in scores])[np.argsort(at)]
        return panel, rows_of(rows, parts.held), raw
    trained = _trained_apart(members, rows, labels, n_jobs, callback)
    panel = Panel(names, trained, made.classes, encoder, columns_of(X))
    rows = panel.encoded(rows_of(X, made.tuning))
    return panel, rows, panel.raw(rows, n_jobs)


def _trained_apart(
    members: list[tuple[str, Any]],
    X: Any,
    y: NDArray[Any],
    n_jobs: int | None = None,
    callback: Callable[[Progress], Any] | None = None,
) -> list[Any]:
    """Members trained on all samples, where others are kept to tune on.

    Of a program by itself the progress is by level.
    """
    ((name, member), *others) = members
    if others or not isinstance(member, MartingaleBoostClassifier):
        return fit_members(members, X, y, n_jobs=n_jobs, callback=callback)[0]
    program = clone(member)

    def told(level: int) -> None:
        if callback is not None:
            callback(Progress(level, program.n_levels, name))

    return [program._fit(X, y, told=told)]


def _set_aside(X: Any, certify: Any, made: Layout, panel: Panel) -> CertifyPart | None:
    """The certify samples: a user's own, or those of the table."""
    at = made.parts.certify
    if isinstance(certify, tuple):
        return certify_part(certify[0], certify[1], panel, "Dialog.from_data")
    if not len(at):
        return None
    return CertifyPart.of(panel.encoded(rows_of(X, at)), made.codes[at], panel, at)


def _names(committee: Any) -> list[str] | None:
    """Names of default members; None if it is not by names."""
    listed = [committee] if isinstance(committee, str) else committee
    named = isinstance(listed, list | tuple) and all(isinstance(one, str) for one in listed)
    return list(listed) if named and len(listed) else None


def _on_columns(members: list[tuple[str, Any]]) -> Any:
    """Members that take any table by themselves."""
    whole = [(name, make_pipeline(TableEncoder(), member)) for name, member in members]
    return whole if len(whole) > 1 else whole[0][1]


def _to_train(
    committee: Any,
    names: list[str] | None,
    levels: int,
    X: Any,
    made: Layout,
    random_state: Any,
) -> tuple[list[tuple[str, Any]], TableEncoder | None]:
    """Members to be trained, and what samples pass before: a user's on samples as they are."""
    folds, learned = made.parts.folds, made.learned
    smallest = min((len(training) for training, _ in folds), default=len(learned))
    if names is not None:
        members = _members_by_name(names, smallest, levels, random_state)
        return members, TableEncoder().fit(rows_of(X, learned))
    if committee is None:
        encoder = TableEncoder().fit(rows_of(X, learned))
        return default_committee(smallest, random_state=random_state), encoder
    alone = not isinstance(committee, list | tuple | dict)
    return named_members([committee] if alone else committee, "Dialog.from_data"), None


def _members_by_name(
    names: list[str], n_samples: int, levels: int, random_state: Any
) -> list[tuple[str, Any]]:
    """Members of the catalogue, a martingale program with so many levels."""
    owner = "Dialog.from_data"
    if not is_count(levels):
        raise ValueError(
            f"{owner} needs levels to be a whole number of at least 1; got {levels!r}."
        )
    known = catalogue.names()
    for name in names:
        if name not in known:
            raise ValueError(
                f"{owner} needs the names in committee to be in the catalogue: "
                f"{', '.join(known)}; got {name!r}.{did_you_mean(near_names(name, known))}"
            )
        if names.count(name) > 1:
            raise ValueError(f"{owner} needs each member of committee once; {name!r} repeats.")
    members = default_committee(n_samples, names, random_state=random_state)
    for name, member in members:
        if name == PROGRAM:
            member.set_params(n_levels=levels)
    return members


def untouched(model: Any, X: Any, y: ArrayLike, positive: Any) -> Scorer:
    """The scores of a classifier that is trained on all samples and not steered."""
    labels = labels_of(X, y, "SteeredClassifier")
    trained = clone(model).fit(X, labels)
    ((name, _),) = named_members([trained], "SteeredClassifier")
    panel = Panel([name], [trained], classes_of(name, trained), None, columns_of(X))
    checked_positive(positive, panel.classes, "SteeredClassifier")
    return _alone(panel, panel.raw(X))


def untrained(model: Any) -> Any:
    """A classifier, or a list of them, without what was learned; None where that cannot be."""
    try:
        if isinstance(model, list | tuple | dict):
            return [(name, clone(one)) for name, one in named_members(model, "Dialog")]
        return None if model is None else clone(model)
    except TypeError:  # no parameters to make it again from
        return None


def _scored(material: Material, model: Panel | None = None, X_tune: Any = None) -> Start:
    """How the samples are scored at the start: by the model itself, or by the committee weighed."""
    panel, raw = material.panel, material.raw
    if model is not None or len(panel.members) == 1:
        said = raw if model is None else model.raw(X_tune)
        scorer = _alone(model or panel, said)
        return Start(material, scorer, scorer.of_raw(said))
    heard = panel.probabilities
    scorer, held = material.cross_fitted(
        lambda at: combined(raw[at], heard, material.codes[at], material.k)
    )
    return Start(material, scorer, held)


def _alone(panel: Panel, said: Floats) -> Scorer:
    """The scores of a single classifier."""
    combine = Alone(bool(panel.probabilities[0]))
    return Scorer(panel, combine, decimals_for(combine(said)))


def _notes(groups: Any, time: Any) -> tuple[str, ...]:
    """What a certificate should say about the samples."""
    notes = []
    if groups is not None:
        notes.append(
            "groups were kept together; one sample of each certifies, so shares are over groups."
        )
    if time is not None:
        notes.append("the certify samples are the latest; it speaks of the time they are from.")
    return tuple(notes)
