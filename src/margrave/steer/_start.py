"""The start of a dialog: from a fitted model with a tuning set, or from a table."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from margrave import _labels, catalogue
from margrave._errors import ParameterError
from margrave._indexing import select_columns, select_rows
from margrave._messages import did_you_mean, name_class, near_names
from margrave._typing import Codes, Floats
from margrave._validation import fitted_classes, is_count, name_members
from margrave.committee import (
    Committee,
    FittedMembers,
    Progress,
    TrainedMember,
    describe_columns,
    train_members,
)
from margrave.confusion import Confusion, Preference
from margrave.fuse import fit_log_odds
from margrave.martingale import MartingaleBoostClassifier
from margrave.steer._certify import (
    CertificationSet,
    describe_groups,
    find_used_copies,
    make_certification_set,
    refuse_used_rows,
)
from margrave.steer._copies import Copies, has_few_values
from margrave.steer._default_committee import default_committee
from margrave.steer._row_hashes import AUTO, GROUP, INDEPENDENT, UsedRows
from margrave.steer._scorer import Scorer, SingleMember, decimals_for
from margrave.steer._split import SplitError, SplitSizes, tuning_folds
from margrave.steer._table_split import (
    GroupsWarning,
    TableSplit,
    check_class_labels,
    check_duplicates,
    check_one_per_sample,
    check_positive,
    split_table,
)
from margrave.steer._thresholds import default_decision
from margrave.steer._tuning_data import Candidate, Rows, TuningData, encode_labels
from margrave.table import TableEncoder

PROGRAM = "martingale"
PROGRAM_TUNE = 0.4  # default of `tune` for a martingale program


def check_every_class(classes: NDArray[Any], codes: Codes, owner: str) -> None:
    """Raise an error if the tuning set has no samples of some class."""
    sizes = np.bincount(codes, minlength=len(classes))
    if not sizes.all():
        missing = _labels.plain(classes[sizes.argmin()])
        raise SplitError(
            f"{owner} needs samples of every class in the tuning set; got none of "
            f"{name_class(missing)}.",
            code="too_few_samples",
            label=missing,
            n=0,
            needed=1,
        )


@dataclass(frozen=True, eq=False)
class DialogStart:
    """The start of a dialog.

    Attributes
    ----------
    data : TuningData
        The tuning set, with the members and their out-of-fold predictions.
    scorer : Scorer
        Computes the scores of new samples.
    scores : ndarray
        Scores of the tuning set.
    sizes : SplitSizes
        The number of samples in each set.
    certify : CertificationSet or None
        The certification set, if there is one.
    estimator : classifier, list of classifiers or None
        The model that is steered, unfitted.
    """

    data: TuningData
    scorer: Scorer
    scores: Floats
    sizes: SplitSizes
    certify: CertificationSet | None = None
    estimator: Any = None

    @property
    def candidate(self) -> Candidate:
        """The scores with the default decision."""
        return Candidate("start", self.scorer, self.scores, default_decision(self.data.k))

    @property
    def confusion(self) -> Confusion:
        """The confusion matrix of this decision on the tuning set."""
        return self.data.matrix(self.candidate.predictions)


def start_from_model(
    model: Any,
    X_tune: Any,
    y_tune: ArrayLike,
    positive: Any,
    groups: ArrayLike | None,
    duplicates: str = AUTO,
) -> DialogStart:
    """Start from a fitted classifier, or from a list of them."""
    owner = "Dialog"
    alone = not isinstance(model, list | tuple | dict)
    pairs = name_members([model] if alone else model, owner)
    classes = _labels.union([(name, fitted_classes(name, member)) for name, member in pairs])
    codes = encode_labels(X_tune, y_tune, classes, owner)
    check_every_class(classes, codes, owner)
    if alone:
        X_tune = select_columns(X_tune, None, pairs[0][0], model)
    groups = None if groups is None else check_one_per_sample(groups, len(codes), "groups", owner)
    if check_duplicates(duplicates, owner) == AUTO:
        duplicates = INDEPENDENT if has_few_values(X_tune) else GROUP
    used = UsedRows.none_of(X_tune, duplicates)
    rows = used.hash(X_tune)
    used, equal = used.with_rows(rows), Copies.equal(rows.exact).sets_if_any
    folds = tuning_folds(codes, groups, equal if used.together else None)
    columns = describe_columns(X_tune)
    names, members = [name for name, _ in pairs], [member for _, member in pairs]
    whole = committee = FittedMembers(names, members, classes, None, columns)
    if alone and isinstance(model, Committee) and model.uses_all_columns:
        # A strategy may retune the members of a committee.
        committee = FittedMembers(model.member_names_, model.estimators_, classes, None, columns)
    positive = check_positive(positive, classes, owner)
    data = TuningData(
        committee,
        committee.raw(X_tune),
        codes,
        positive,
        folds,
        Rows(X_tune),
        trained_on=False,
        used=used,
    )
    start = _score_start(data, whole, X_tune) if alone else _score_start(data)
    return replace(start, estimator=clone_untrained(model))


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
    duplicates: str = AUTO,
    n_jobs: int | None = None,
    random_state: Any = None,
    callback: Callable[[Progress], Any] | None = None,
    enough: Callable[[], bool] | None = None,
) -> DialogStart:
    """Start from a table: split its rows, and fit a committee."""
    names = _catalogue_names(committee)
    split = split_table(
        X,
        y,
        certify=certify,
        guarantee=guarantee,
        delta=delta,
        positive=positive,
        groups=groups,
        time=time,
        tune=default_tune(committee, tune),
        duplicates=duplicates,
        encoded=committee is None or names is not None,
        random_state=random_state,
    )
    # What is wrong or doubtful is reported before minutes of training.
    for finding in split.findings:
        if finding.kind == "entity":
            use = f"groups=X[{finding.column!r}] in Dialog.from_data, without it in X"
            warnings.warn(finding.advise(use), GroupsWarning, stacklevel=3)
    if isinstance(certify, tuple):
        owner = "Dialog.from_data"
        codes = encode_labels(certify[0], certify[1], split.classes, owner)
        refuse_used_rows(split.used, split.used.hash(certify[0]), owner)
        find_used_copies(split.used, X, certify[0], codes, owner)
    members, encoder = _members_to_fit(committee, names, levels, X, split, random_state)
    start = _fit_committee(X, split, members, encoder, n_jobs, callback, enough)
    fitted = start.data.committee
    certification_set, sizes = _certification_set(X, certify, split, fitted), split.sizes
    if isinstance(certify, tuple) and certification_set is not None:  # the user's own samples
        by_class = np.bincount(certification_set.codes, minlength=len(split.classes)).tolist()
        own = dict(zip(split.classes.tolist(), by_class, strict=True))
        sizes = replace(sizes, certify=len(certification_set.codes), certify_by_class=own)
    return replace(
        start,
        sizes=sizes,
        certify=certification_set,
        estimator=_estimator_of(committee, members, fitted.names),
    )


def _estimator_of(committee: Any, members: list[tuple[str, Any]], trained: list[str]) -> Any:
    """Return what was trained, unfitted; None for the whole default committee."""
    if committee is None and len(trained) == len(members):
        return None
    members = [(name, member) for name, member in members if name in trained]
    if committee is None or _catalogue_names(committee) is not None:
        members = _with_encoder(members)
        return clone_untrained(members if len(members) > 1 else members[0][1])
    return clone_untrained(members if isinstance(committee, list | tuple | dict) else committee)


def _fit_committee(
    X: Any,
    split: TableSplit,
    members: list[tuple[str, Any]],
    encoder: TableEncoder | None,
    n_jobs: int | None,
    callback: Callable[[Progress], Any] | None,
    enough: Callable[[], bool] | None,
) -> DialogStart:
    """Fit the members, all of them or until it is enough, and score the tuning set.

    The progress of a single martingale program is reported level by level.
    """
    rows, labels = select_rows(X, split.learned), split.labels[split.learned]
    rows = rows if encoder is None else encoder.transform(rows)
    growing = _GrowingCommittee(X, rows, split, members, encoder, n_jobs)
    (name, member), *others = members
    if split.parts.tuning is not None and not others and _is_program(member):
        growing.add(TrainedMember(0, _fit_program(name, member, rows, labels, callback), []))
        return growing.start()
    confusion: Confusion | None = None
    scored: tuple[str, ...] = ()
    next_start = 0.0
    with closing(train_members(members, rows, labels, split.parts.folds, n_jobs=n_jobs)) as news:
        for progress, trained in news:
            if trained is not None:
                growing.add(trained)
            if callback is not None:
                is_last = progress.done == progress.total
                if is_last or (trained is not None and perf_counter() >= next_start):
                    before = perf_counter()
                    confusion, scored = growing.start().confusion, progress.finished
                    next_start = perf_counter() + _PAUSE * (perf_counter() - before)
                callback(replace(progress, confusion=confusion, scored=scored))
            if enough is not None and growing.trained and enough():
                break
    return growing.start()


# The time between two provisional matrices, as a multiple of the time that one takes: they slow the
# training down by a few percent.
_PAUSE = 20


def _is_program(member: Any) -> bool:
    return isinstance(member, MartingaleBoostClassifier)


def _fit_program(
    name: str,
    member: MartingaleBoostClassifier,
    X: Any,
    y: NDArray[Any],
    callback: Callable[[Progress], Any] | None,
) -> Any:
    """Fit a martingale program, and report each level."""
    program = clone(member)

    def report_level(level: int) -> None:
        if callback is not None:
            callback(Progress(level, program.n_levels, name))

    return program._fit(X, y, callback=report_level)


class _GrowingCommittee:
    """The members that are trained so far, and their predictions for the tuning set.

    Parameters
    ----------
    X, rows
        The table, and the encoded training samples.
    split : TableSplit
        The split of the table.
    members : list of (name, classifier)
        All members, unfitted.
    encoder : TableEncoder or None
        Encodes the samples for the members.
    n_jobs : int or None
        Number of jobs of a prediction.
    """

    def __init__(
        self,
        X: Any,
        rows: Any,
        split: TableSplit,
        members: list[tuple[str, Any]],
        encoder: TableEncoder | None,
        n_jobs: int | None,
    ) -> None:
        self.trained: dict[int, tuple[Any, Floats]] = {}  # by position: the model, its predictions
        self._split, self._members, self._encoder = split, members, encoder
        self._columns, self._n_jobs = describe_columns(X), n_jobs
        self._start: DialogStart | None = None  # of the members so far
        self._folds, self._apart = split.tuning_folds(), split.parts.tuning is not None
        if self._apart:
            rows = select_rows(X, split.tuning)
            self._rows = rows if encoder is None else encoder.transform(rows)
        else:
            self._rows = select_rows(rows, split.parts.held)

    def add(self, trained: TrainedMember) -> None:
        """Add a member, with its predictions: out-of-fold where it is trained on the tuning set."""
        if self._apart:
            raw = self._fitted([trained.position], [trained.model]).raw(self._rows, self._n_jobs)
        else:
            at = np.concatenate([held for _, held in self._split.parts.folds])
            raw = np.concatenate([of_fold.raw() for of_fold in trained.out_of_fold])[np.argsort(at)]
        self.trained[trained.position] = trained.model, raw
        self._start = None

    def _fitted(self, positions: list[int], models: list[Any]) -> FittedMembers:
        names = [self._members[j][0] for j in positions]
        return FittedMembers(names, models, self._split.classes, self._encoder, self._columns)

    def start(self) -> DialogStart:
        """Return the start of a dialog with the members so far."""
        if self._start is None:
            self._start = _score_start(self._data())
        return self._start

    def _data(self) -> TuningData:
        split, positions = self._split, sorted(self.trained)
        models, raw = zip(*(self.trained[j] for j in positions), strict=True)
        return TuningData(
            self._fitted(positions, list(models)),
            np.concatenate(raw, axis=1),
            split.codes[split.tuning],
            split.positive,
            self._folds,
            Rows(self._rows),
            trained_on=not self._apart,
            used=split.used,
            # If apart, all training samples are earlier.
            in_time=split.time is not None and not self._apart,
            at=split.tuning,
        )


def _certification_set(
    X: Any, certify: Any, split: TableSplit, committee: FittedMembers
) -> CertificationSet | None:
    """Make the certification set, from the user's own samples or from rows of the table."""
    at = split.parts.certify
    if isinstance(certify, tuple):
        own, y = certify
        return make_certification_set(own, y, committee, split.used, X, "Dialog.from_data")
    if not len(at):
        return None
    encoded, rows, notes = committee.encode(select_rows(X, at)), split.rows[at], _notes(split)
    return CertificationSet.of(encoded, split.codes[at], committee, rows, notes, at, split.one_of)


def _catalogue_names(committee: Any) -> list[str] | None:
    """Return the catalogue's names if the committee is given by names, else None."""
    listed = [committee] if isinstance(committee, str) else committee
    named = isinstance(listed, list | tuple) and all(isinstance(item, str) for item in listed)
    return list(listed) if named and len(listed) else None


def default_tune(committee: Any, tune: float | None) -> float | None:
    """Return `tune`, or its default for a martingale program."""
    alone = _catalogue_names(committee) == [PROGRAM]
    return PROGRAM_TUNE if alone and tune is None else tune


def _with_encoder(members: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Put an encoder before each member, so that it can be fitted on any table."""
    return [(name, make_pipeline(TableEncoder(), member)) for name, member in members]


def _members_to_fit(
    committee: Any,
    names: list[str] | None,
    levels: int,
    X: Any,
    split: TableSplit,
    random_state: Any,
) -> tuple[list[tuple[str, Any]], TableEncoder | None]:
    """Return the unfitted members, and their fitted encoder; None if some are the user's own."""
    folds, learned = split.parts.folds, split.learned
    smallest = min((len(training) for training, _ in folds), default=len(learned))
    if names is not None:
        members = _members_by_name(names, smallest, levels, random_state)
        return members, TableEncoder().fit(select_rows(X, learned))
    if committee is None:
        encoder = TableEncoder().fit(select_rows(X, learned))
        return default_committee(smallest, random_state=random_state), encoder
    owner = "Dialog.from_data"
    listed = committee if isinstance(committee, list | tuple | dict) else [committee]
    if not isinstance(listed, dict) and (names := [one for one in listed if isinstance(one, str)]):
        made = iter(_with_encoder(_members_by_name(names, smallest, levels, random_state)))
        own = iter(name_members([one for one in listed if not isinstance(one, str)], owner))
        listed = [next(made if isinstance(one, str) else own) for one in listed]
    return name_members(listed, owner), None


def _members_by_name(
    names: list[str], n_samples: int, levels: int, random_state: Any
) -> list[tuple[str, Any]]:
    """Make members by their names in the catalogue; a martingale program has `levels` levels."""
    owner = "Dialog.from_data"
    if not is_count(levels):
        raise ParameterError.of(owner, "levels", "a whole number of at least 1", levels)
    known = catalogue.names()
    for name in names:
        if name not in known:
            raise ParameterError(
                f"{owner} needs names in committee that are in the catalogue: "
                f"{', '.join(known)}; got {name!r}.{did_you_mean(near_names(name, known))}",
                parameter="committee",
                allowed=known,
                received=name,
            )
        if names.count(name) > 1:
            raise ParameterError(
                f"{owner} needs each name in committee once; got {name!r} twice.",
                parameter="committee",
                allowed="each name once",
                received=name,
            )
    members = default_committee(n_samples, names, random_state=random_state)
    for name, member in members:
        if name == PROGRAM:
            member.set_params(n_levels=levels)
    return members


def fit_unsteered(model: Any, X: Any, y: ArrayLike, positive: Any) -> Scorer:
    """Fit a classifier on all samples, without steering it."""
    labels = check_class_labels(X, y, "SteeredClassifier")
    trained = clone(model).fit(X, labels)
    ((name, _),) = name_members([trained], "SteeredClassifier")
    committee = FittedMembers(
        [name], [trained], fitted_classes(name, trained), None, describe_columns(X)
    )
    check_positive(positive, committee.classes, "SteeredClassifier")
    return _single_scorer(committee, committee.raw(X))


def clone_untrained(model: Any) -> Any:
    """Clone a classifier, or a list of them; None if one of them cannot be cloned."""
    try:
        if isinstance(model, list | tuple | dict):
            return [(name, clone(member)) for name, member in name_members(model, "Dialog")]
        return None if model is None else clone(model)
    except TypeError:  # no scikit-learn estimator
        return None


def _score_start(
    data: TuningData, model: FittedMembers | None = None, X_tune: Any = None
) -> DialogStart:
    """Score the tuning set: with the model itself, or with the members' weighted scores."""
    committee, raw = data.committee, data.raw
    sizes = SplitSizes(0, len(data.codes), 0, 0, {})  # of a tuning set alone
    if model is not None or len(committee.members) == 1:
        raw = raw if model is None else model.raw(X_tune)
        scorer = _single_scorer(model or committee, raw)
        return DialogStart(data, scorer, scorer.score_raw(raw), sizes)
    proba = committee.gives_probabilities
    scorer, held = data.cross_fit(lambda at: fit_log_odds(raw[at], proba, data.codes[at]))
    return DialogStart(data, scorer, held, sizes)


def _single_scorer(committee: FittedMembers, raw: Floats) -> Scorer:
    """Make the scorer of a single classifier."""
    combine = SingleMember(bool(committee.gives_probabilities[0]))
    return Scorer(committee, combine, decimals_for(combine(raw)))


def _notes(split: TableSplit) -> tuple[str, ...]:
    """Describe, for the certificate, how the certification set was determined."""
    notes = list(split.notes)
    if split.groups is not None:
        notes.append(f"groups were kept together; {describe_groups(split.one_of)}")
    if split.time is not None:
        notes.append(
            "the certification set holds the latest samples by time; the guarantee holds for later "
            "samples as long as they resemble these."
        )
    return tuple(notes)
