"""How a dialog begins: with a trained model and tuning samples, or with a table only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from margrave import _labels
from margrave._asking import classes_of, columns_for, named_members, rows_of
from margrave._committee import Committee
from margrave._typing import Codes, Floats
from margrave.preference import Preference
from margrave.steer._checks import (
    check_all_there,
    check_sizes,
    checked_positive,
    codes_of,
    labels_of,
    one_each,
)
from margrave.steer._columns import TableEncoder
from margrave.steer._combining import Alone, combined
from margrave.steer._issue import name_of
from margrave.steer._material import Material
from margrave.steer._members import (
    PROGRAM,
    Progress,
    cross_fitted,
    default_members,
    members_by_name,
    trained_apart,
)
from margrave.steer._panel import Panel, Scorer, columns_of, decimals_for
from margrave.steer._parts import Parts, blocks_of, certify_share, folds_of, parted
from margrave.steer._rows import Rows

_TO_TUNE = 0.4  # of what a program is built on


@dataclass(frozen=True, eq=False)
class CertifyPart:
    """Samples that no step has seen, as the members see them.

    Attributes
    ----------
    X : Rows
        The samples.
    codes : ndarray
        Their classes.
    name : str
        What tells them from other samples.
    at : ndarray or None
        Their positions in the table that the dialog began with; None if they are not from it.
    """

    X: Rows
    codes: Codes
    name: str
    at: Codes | None = None

    @classmethod
    def of(cls, X: Any, codes: Codes, panel: Panel, at: Codes | None = None) -> CertifyPart:
        """The part, named by what a panel says about its samples."""
        return cls(Rows(X), codes, name_of(panel.raw(X), codes), at)


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
    """A table, checked, and who sees which of its samples; "program" tunes on its usual share."""
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
    committee: Any,
    levels: int,
    tune: float | None,
    certify: Any,
    promise: Preference | None,
    delta: float,
    positive: Any,
    groups: ArrayLike | None,
    time: ArrayLike | None,
    n_jobs: int | None,
    random_state: Any,
    callback: Callable[[Progress], Any] | None,
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
        trained, raw = cross_fitted(members, rows, labels, parts.folds, n_jobs, callback)
        panel = Panel(names, trained, made.classes, encoder, columns_of(X))
        return panel, rows_of(rows, parts.held), raw[parts.held]
    trained = trained_apart(members, rows, labels, n_jobs, callback)
    panel = Panel(names, trained, made.classes, encoder, columns_of(X))
    rows = panel.encoded(rows_of(X, made.tuning))
    return panel, rows, panel.raw(rows, n_jobs)


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
        members = members_by_name(names, smallest, levels, random_state)
        return members, TableEncoder().fit(rows_of(X, learned))
    if committee is None:
        encoder = TableEncoder().fit(rows_of(X, learned))
        return default_members(smallest, random_state), encoder
    alone = not isinstance(committee, list | tuple | dict)
    return named_members([committee] if alone else committee, "Dialog.from_data"), None


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


def certify_part(X: Any, y: ArrayLike, panel: Panel, owner: str) -> CertifyPart:
    """Certify samples that a user brings."""
    codes = codes_of(X, y, panel.classes, owner)
    return CertifyPart.of(panel.encoded(X), codes, panel)


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
