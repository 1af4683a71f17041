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
from margrave._indexing import select_columns, select_rows
from margrave._messages import did_you_mean, near_names
from margrave._typing import Codes, Floats
from margrave._validation import check_labels, fitted_classes, is_count, name_members
from margrave.catalogue import default_committee
from margrave.committee import Committee, FittedMembers, Progress, describe_columns, fit_members
from margrave.confusion import Preference
from margrave.fuse._log_odds import fit_log_odds
from margrave.martingale import MartingaleBoostClassifier
from margrave.steer._certify import CertificationSet, make_certification_set
from margrave.steer._scorer import Scorer, SingleMember, decimals_for
from margrave.steer._split import Split, _certify_share, split_rows, time_folds, tuning_folds
from margrave.steer._thresholds import default_decision
from margrave.steer._tuning_data import Candidate, Rows, TuningData, encode_labels, refuse_dask
from margrave.table._encoder import TableEncoder

_LEAST = 10
PROGRAM = "martingale"


def check_class_labels(X: Any, y: ArrayLike, owner: str) -> NDArray[Any]:
    """Labels of at least two classes, one for each sample."""
    refuse_dask(X, y, owner)
    labels = check_labels(X, y, owner)
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


def check_every_class(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Refuse tuning samples without some class."""
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        raise ValueError(
            f"{owner} needs tuning samples of every class; got none of "
            f"{_labels.plain(classes[sizes.argmin()])!r}."
        )


def check_one_per_sample(values: ArrayLike, n: int, name: str, owner: str) -> NDArray[Any]:
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


def check_positive(positive: Any, classes: NDArray[Any], owner: str) -> Any:
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
class DialogStart:
    """What a dialog begins with.

    Attributes
    ----------
    data : TuningData
        The tuning samples.
    scorer : Scorer
        Of new samples.
    scores : ndarray
        Scores of the tuning samples.
    certify : CertifyPart or None
        What is set aside.
    notes : tuple of str
        What a certificate should say about the samples.
    estimator : classifier, list or None
        What is steered, not trained.
    """

    data: TuningData
    scorer: Scorer
    scores: Floats
    certify: CertificationSet | None = None
    notes: tuple[str, ...] = ()
    estimator: Any = None

    @property
    def candidate(self) -> Candidate:
        """The untouched decision on these scores."""
        return Candidate("start", self.scorer, self.scores, default_decision(self.data.k))


@dataclass(frozen=True, eq=False)
class TableSplit:
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
    parts: Split

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
            return time_folds(self.labels[at], self.time[at])
        return tuning_folds(self.labels[at], None if self.groups is None else self.groups[at])


def start_from_model(
    model: Any, X_tune: Any, y_tune: ArrayLike, positive: Any, groups: ArrayLike | None
) -> DialogStart:
    """A trained classifier, or a list of them."""
    owner = "Dialog"
    alone = not isinstance(model, list | tuple | dict)
    pairs = name_members([model] if alone else model, owner)
    classes = _labels.union([(name, fitted_classes(name, member)) for name, member in pairs])
    codes = encode_labels(X_tune, y_tune, classes, owner)
    check_every_class(classes, codes, owner)
    if alone:
        X_tune = select_columns(X_tune, None, pairs[0][0], model)
    together = None if groups is None else check_one_per_sample(groups, len(codes), "groups", owner)
    folds = tuning_folds(codes, together)
    columns = describe_columns(X_tune)
    given = FittedMembers(
        [name for name, _ in pairs], [one for _, one in pairs], classes, None, columns
    )
    committee = given
    if alone and isinstance(model, Committee) and model.asks_as_given:
        # Its members may be weighed anew.
        committee = FittedMembers(model.member_names_, model.estimators_, classes, None, columns)
    positive = check_positive(positive, classes, owner)
    data = TuningData(committee, committee.raw(X_tune), codes, positive, folds, Rows(X_tune), False)
    start = _score_start(data, given, X_tune) if alone else _score_start(data)
    return replace(start, estimator=clone_untrained(model))


def split_table(
    X: Any,
    y: ArrayLike,
    *,
    certify: Any = "auto",
    guarantee: Preference | None = None,
    delta: float = 0.05,
    positive: Any = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    tune: Any = None,
    random_state: Any = None,
) -> TableSplit:
    """Check a table and split its rows; with tune="martingale" a program keeps its usual part."""
    owner = "Dialog.from_data"
    labels = check_class_labels(X, y, owner)
    classes, codes = np.unique(labels, return_inverse=True)
    check_sizes(classes, codes, owner)
    positive = check_positive(positive, classes, owner)
    together = (
        None if groups is None else check_one_per_sample(groups, len(labels), "groups", owner)
    )
    when = None if time is None else check_one_per_sample(time, len(labels), "time", owner)
    if together is not None and when is not None:
        raise ValueError(f"{owner} needs groups or time; got both.")
    own = isinstance(certify, tuple) and len(certify) == 2
    sized = codes
    if together is not None and isinstance(certify, str):  # one sample of each group certifies
        sized = codes[np.unique(together, return_index=True)[1]]
    share = _certify_share(
        None if own else certify, guarantee, sized, tuple(classes.tolist()), positive, delta
    )
    kept = _TO_TUNE if isinstance(tune, str) and tune == PROGRAM else tune
    if kept is not None and (not isinstance(kept, float) or not 0 < kept < 1):
        raise ValueError(f"{owner} needs tune to be None or a share in (0, 1); got {tune!r}.")
    parts = split_rows(labels, share, together, when, random_state, kept)
    return TableSplit(labels, codes, classes, positive, together, when, parts)


def start_from_table(
    X: Any,
    y: ArrayLike,
    *,
    committee: Any = None,
    levels: int = 3,
    tune: float | None = None,
    certify: Any = "auto",
    guarantee: Preference | None = None,
    delta: float = 0.05,
    positive: Any = None,
    groups: ArrayLike | None = None,
    time: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callable[[Progress], Any] | None = None,
) -> DialogStart:
    """A table: samples are set aside, and a committee is trained on the rest."""
    names = _catalogue_names(committee)
    made = split_table(
        X,
        y,
        certify=certify,
        guarantee=guarantee,
        delta=delta,
        positive=positive,
        groups=groups,
        time=time,
        tune=PROGRAM if names == [PROGRAM] and tune is None else tune,
        random_state=random_state,
    )
    members, encoder = _members_to_fit(committee, names, levels, X, made, random_state)
    committee, rows, raw = _fit_committee(X, made, members, encoder, n_jobs, callback)
    at, apart = made.tuning, made.parts.apart is not None
    data = TuningData(
        committee,
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
        _score_start(data),
        certify=_certification_set(X, certify, made, committee),
        notes=_notes(made.groups, made.time),
        estimator=clone_untrained(committee if names is None else _with_encoder(members)),
    )


def _fit_committee(
    X: Any,
    made: TableSplit,
    members: list[tuple[str, Any]],
    encoder: TableEncoder | None,
    n_jobs: int | None,
    callback: Callable[[Progress], Any] | None,
) -> tuple[FittedMembers, Any, Floats]:
    """Trained members, the tuning samples as they see them, and what is said about those."""
    parts, learned = made.parts, made.learned
    rows, labels = select_rows(X, learned), made.labels[learned]
    rows = rows if encoder is None else encoder.transform(rows)
    names = [name for name, _ in members]
    if parts.apart is None:
        trained, scores = fit_members(
            members, rows, labels, parts.folds, n_jobs=n_jobs, callback=callback
        )
        committee = FittedMembers(names, trained, made.classes, encoder, describe_columns(X))
        at = np.concatenate([held for _, held in parts.folds])
        raw = np.concatenate([one.raw() for one in scores])[np.argsort(at)]
        return committee, select_rows(rows, parts.held), raw
    trained = _fit_apart(members, rows, labels, n_jobs, callback)
    committee = FittedMembers(names, trained, made.classes, encoder, describe_columns(X))
    rows = committee.encode(select_rows(X, made.tuning))
    return committee, rows, committee.raw(rows, n_jobs)


def _fit_apart(
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


def _certification_set(
    X: Any, certify: Any, made: TableSplit, committee: FittedMembers
) -> CertificationSet | None:
    """The certify samples: a user's own, or those of the table."""
    at = made.parts.certify
    if isinstance(certify, tuple):
        return make_certification_set(certify[0], certify[1], committee, "Dialog.from_data")
    if not len(at):
        return None
    return CertificationSet.of(committee.encode(select_rows(X, at)), made.codes[at], committee, at)


def _catalogue_names(committee: Any) -> list[str] | None:
    """Names of default members; None if it is not by names."""
    listed = [committee] if isinstance(committee, str) else committee
    named = isinstance(listed, list | tuple) and all(isinstance(one, str) for one in listed)
    return list(listed) if named and len(listed) else None


def _with_encoder(members: list[tuple[str, Any]]) -> Any:
    """Members that take any table by themselves."""
    whole = [(name, make_pipeline(TableEncoder(), member)) for name, member in members]
    return whole if len(whole) > 1 else whole[0][1]


def _members_to_fit(
    committee: Any,
    names: list[str] | None,
    levels: int,
    X: Any,
    made: TableSplit,
    random_state: Any,
) -> tuple[list[tuple[str, Any]], TableEncoder | None]:
    """Members to be trained, and what samples pass before: a user's on samples as they are."""
    folds, learned = made.parts.folds, made.learned
    smallest = min((len(training) for training, _ in folds), default=len(learned))
    if names is not None:
        members = _members_by_name(names, smallest, levels, random_state)
        return members, TableEncoder().fit(select_rows(X, learned))
    if committee is None:
        encoder = TableEncoder().fit(select_rows(X, learned))
        return default_committee(smallest, random_state=random_state), encoder
    alone = not isinstance(committee, list | tuple | dict)
    return name_members([committee] if alone else committee, "Dialog.from_data"), None


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


def fit_unsteered(model: Any, X: Any, y: ArrayLike, positive: Any) -> Scorer:
    """The scores of a classifier that is trained on all samples and not steered."""
    labels = check_class_labels(X, y, "SteeredClassifier")
    trained = clone(model).fit(X, labels)
    ((name, _),) = name_members([trained], "SteeredClassifier")
    committee = FittedMembers(
        [name], [trained], fitted_classes(name, trained), None, describe_columns(X)
    )
    check_positive(positive, committee.classes, "SteeredClassifier")
    return _single_scorer(committee, committee.raw(X))


def clone_untrained(model: Any) -> Any:
    """A classifier, or a list of them, without what was learned; None where that cannot be."""
    try:
        if isinstance(model, list | tuple | dict):
            return [(name, clone(one)) for name, one in name_members(model, "Dialog")]
        return None if model is None else clone(model)
    except TypeError:  # no parameters to make it again from
        return None


def _score_start(
    data: TuningData, model: FittedMembers | None = None, X_tune: Any = None
) -> DialogStart:
    """How the samples are scored at the start: by the model itself, or by the committee weighed."""
    committee, raw = data.committee, data.raw
    if model is not None or len(committee.members) == 1:
        said = raw if model is None else model.raw(X_tune)
        scorer = _single_scorer(model or committee, said)
        return DialogStart(data, scorer, scorer.score_raw(said))
    heard = committee.gives_probabilities
    scorer, held = data.cross_fit(lambda at: fit_log_odds(raw[at], heard, data.codes[at], data.k))
    return DialogStart(data, scorer, held)


def _single_scorer(committee: FittedMembers, said: Floats) -> Scorer:
    """The scores of a single classifier."""
    combine = SingleMember(bool(committee.gives_probabilities[0]))
    return Scorer(committee, combine, decimals_for(combine(said)))


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
