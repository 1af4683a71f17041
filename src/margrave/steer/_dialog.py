"""The dialog: the user says which errors are tolerable, and the dialog shows what that costs.

After "Interactive Martingale Boosting" (Kulkarni et al., 2016), figures 1 to 3: the user edits the
confusion matrix, the system replies with a model that meets it, and so on until the user accepts.
Here every reply is measured on samples that its model was not fitted on, and an accepted model is
certified on samples that no step has used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from margrave._errors import MargraveError, ParameterError
from margrave._extensions import load_extension
from margrave._indexing import select_rows
from margrave._json import SCHEMA_VERSION, json_ready
from margrave._messages import format_count, missing_extra
from margrave._parallel import limit_threads
from margrave._validation import MOST_LEVELS, is_count, is_number
from margrave.committee import Progress
from margrave.confusion import Confusion, Goal, Preference, PreferenceError, parse_goal
from margrave.martingale import NotMetWarning, Program, Step, Tuning
from margrave.steer._acceptance import Acceptances, Accepted
from margrave.steer._alternatives import Alternative, find_alternatives
from margrave.steer._certificate import warn_if_useless
from margrave.steer._certify import check_confidence
from margrave.steer._copies import has_few_values
from margrave.steer._expected import ExpectedCertificate
from margrave.steer._files import Saved
from margrave.steer._frontier import Frontier, dialog_frontier
from margrave.steer._ledger import Account, Ledger, RowSample
from margrave.steer._order_statistic import forbids_rejecting, is_trivial
from margrave.steer._planned_split import SplitPlan
from margrave.steer._program import SteeredProgram, Votes
from margrave.steer._reply import Reply, dialog_html
from margrave.steer._row_hashes import INDEPENDENT
from margrave.steer._rows import CellRows, Comparison, describe_rows, select_rows_of_cell
from margrave.steer._split import SplitSizes
from margrave.steer._start import (
    DialogStart,
    default_tune,
    start_from_model,
    start_from_table,
)
from margrave.steer._steered import SteeredClassifier
from margrave.steer._steps import dump_step, load_step
from margrave.steer._strategies import Found, Search, StoppedError, Strategy, get_strategies
from margrave.steer._table_split import check_positive, split_table
from margrave.steer._tuning_data import Candidate, TuningData

NODES, GROW = "nodes", "grow"
NOTHING_CHANGES = (
    "Nothing changes: the current step has this preference, and no better model was found"
)


@dataclass
class History:
    """The replies of a dialog, as a tree: a request at an earlier step starts a new branch.

    Attributes
    ----------
    replies : list of Reply
        All replies in order, the start first.
    parents : list of int
        For each reply, the number of the step at which the request was made.
    at : int
        Number of the current step.
    undone : list of int
        Numbers of the steps that were undone, the last one last.
    """

    replies: list[Reply]
    parents: list[int] = field(default_factory=lambda: [0])
    at: int = 0
    undone: list[int] = field(default_factory=list)

    @property
    def reply(self) -> Reply:
        """The reply of the current step."""
        return self.replies[self.at]

    def add(self, reply: Reply, parent: int) -> None:
        """Add the reply to a request made at the step `parent`, and make it the current step."""
        self.replies.append(reply)
        self.parents.append(parent)
        self.at, self.undone = len(self.replies) - 1, []

    def undo(self) -> None:
        """Return to the step at which the current request was made."""
        if self.at == 0:
            message = "Dialog.undo has nothing to undo: the dialog is at its start."
            raise MargraveError(message, code="nothing_to_undo")
        self.undone.append(self.at)
        self.at = self.parents[self.at]

    def redo(self) -> None:
        """Reverse the last undo."""
        if not self.undone:
            message = "Dialog.redo has nothing to redo: no step was undone."
            raise MargraveError(message, code="nothing_to_redo")
        self.at = self.undone.pop()

    def goto(self, step: Any) -> None:
        """Make a step the current one; by undo or redo, if they lead there."""
        target, path = self.number(step, "goto"), [self.at]
        while path[-1]:
            path.append(self.parents[path[-1]])
        if target in self.undone:
            undone = self.undone[: self.undone.index(target)]
        elif target in path:
            undone = [*self.undone, *path[: path.index(target)]]
        else:
            undone = []
        self.at, self.undone = target, undone

    def number(self, step: Any, method: str) -> int:
        """Return the number of a step that exists."""
        is_integer = isinstance(step, int | np.integer) and not isinstance(step, bool)
        if not is_integer or not 0 <= step < len(self.replies):
            allowed = f"a step from 0 to {len(self.replies) - 1}"
            raise ParameterError(
                f"Dialog.{method} needs {allowed}; got {step!r}.",
                parameter="step",
                allowed=allowed,
                received=step,
            )
        return int(step)


class Dialog(Saved):
    r"""A dialog about the confusion matrix of a fitted classifier or committee.

    The user requests a confusion matrix with :meth:`prefer`, and each :class:`Reply` shows how near
    the model comes to it on the tuning set. :meth:`accept` then returns the model of the current
    step with a certificate for new samples. :meth:`from_data` starts a dialog from a table, without
    a fitted model.

    Parameters
    ----------
    model : classifier, or list of classifiers or of (name, classifier)
        Fitted classifiers. A list is a committee, whose weights are fitted on the tuning set.
    X_tune : array-like or data frame of shape (n_samples, n_features)
        The tuning set: samples that no member was trained on.
    y_tune : array-like of shape (n_samples,)
        Labels of the tuning set.
    positive : label, default=None
        The positive class, to which ``fp`` and ``fn`` refer. None is the second of two classes.
    groups : array-like of shape (n_samples,), default=None
        The group of each sample of the tuning set. Samples of a group are in the same fold.
    duplicates : {"auto", "group", "near", "independent"}, default="auto"
        What rows are that are equal or nearly equal, as in :meth:`from_data`. Unless they are
        independent, rows of the tuning set are copies if they are equal, and are in the same fold.
        A certification set is searched as in :meth:`from_data`,
        and may not contain copies of rows of the tuning set.
    ledger : Ledger, default=None
        Knows which certification data are used up. None is a ledger of this dialog alone.

    Attributes
    ----------
    history : tuple of Reply
        All replies, the start first.
    position : int
        Number of the current step in the history.

    See Also
    --------
    SteeredClassifier : The model that a dialog returns; it can also be fitted in one call.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.steer import Dialog
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import train_test_split
    >>> X, y = datasets.load("pima", return_X_y=True)
    >>> X, X_tune, y, y_tune = train_test_split(X, y, test_size=0.5, random_state=0)
    >>> dialog = Dialog(LogisticRegression(max_iter=1000).fit(X, y), X_tune, y_tune)
    >>> print(dialog.confusion)
    pos is positive  predicted neg  predicted pos  rejected
    true neg                   227             26         0
    true pos                    56             75         0
    >>> reply = dialog.prefer("fn <= 30")
    >>> reply.met, reply.strategy
    (True, 'move')
    >>> print(*reply.changes, sep="\n")
    neg predicted pos: 26 -> 68 (+42)
    pos predicted neg: 56 -> 30 (-26)
    """

    _given: Any = None  # the table as the user passed it, to show its rows
    _path: str | None = None  # where autosave writes; a file that names one is not obeyed

    def __init__(
        self,
        model: Any,
        X_tune: Any,
        y_tune: ArrayLike,
        *,
        positive: Any = None,
        groups: ArrayLike | None = None,
        duplicates: str = "auto",
        ledger: Ledger | None = None,
    ) -> None:
        start = start_from_model(model, X_tune, y_tune, positive, groups, duplicates)
        self._begin(start, None, ledger)

    def _begin(self, start: DialogStart, rows: RowSample | None, ledger: Ledger | None) -> None:
        """Begin the history with the model at the start."""
        self._data = start.data
        self._sizes = start.sizes
        self._acceptances = Acceptances(start.certify, rows, start.estimator, ledger or Ledger())
        matrix = start.confusion
        first = Reply(None, True, matrix, matrix, "start", 0.0, 1, True, candidate=start.candidate)
        self._history = History([first])

    @classmethod
    def from_data(
        cls,
        X: Any,
        y: ArrayLike,
        *,
        committee: Any = None,
        levels: int = 3,
        tune: float | None = None,
        certify: Any = "auto",
        guarantee: Preference | str | None = None,
        confidence: float = 0.95,
        positive: Any = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        duplicates: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[Progress], Any] | None = None,
        stop: Callable[[], bool] | None = None,
        enough: Callable[[], bool] | None = None,
        ledger: Ledger | None = None,
        table: Any = None,
    ) -> Self:
        """Start a dialog from a table, without a fitted model.

        The samples are split: the certification set is kept apart for :meth:`accept`, and a
        committee or a martingale program is fitted on the rest. The tuning set is this rest, with
        out-of-fold predictions, or the part of it that `tune` sets aside.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Samples. The columns of a data frame may be numbers, categories, dates and texts.
        y : array-like of shape (n_samples,)
            Labels.
        committee : classifier, str or list, default=None
            The members to fit. A classifier, or a list of classifiers or of (name, classifier), is
            fitted on X as it is. A name in the catalogue or a list of names, such as
            ``["logistic", "svm"]``, is fitted on encoded columns. A list may have both, as in
            ``["logistic", ("mine", model)]``. None is logistic, logistic-quantile, extra-trees,
            gradient-boosting, qda and, up to 10,000 samples, svm.
            ``"martingale"`` is a martingale program, whose nodes can be tuned with
            :meth:`tune_nodes`.
        levels : int, default=3
            Number of levels of the martingale program, at most 1000.
        tune : float in (0, 1), default=None
            Fraction of the samples outside the certification set that is the tuning set, on which
            no member is trained. None uses out-of-fold predictions for all of these samples, or
            for a fifth of them if they are 20,000 or more, with 5,000 or more of each class, and
            without groups or a time; for ``committee="martingale"``, None is 0.4.
        certify : "auto", float in (0, 1), (X, y) or None, default="auto"
            Fraction of the samples in the certification set, or a certification set of your own.
            "auto" plans the numbers of samples for `guarantee` (see :meth:`plan`); without one, it
            is 0.2. None keeps nothing apart.
        guarantee : str or Preference, default=None
            The preference that you plan to certify. State it here if you know it: the certification
            set then costs as little recall as possible.
        confidence : float, default=0.95
            The confidence at which you plan to certify it.
        positive : label, default=None
            The positive class, to which ``fp`` and ``fn`` refer. None is the second of two classes.
        groups : array-like of shape (n_samples,), default=None
            The group of each sample, such as its patient. The split keeps groups together, and the
            certification set has one sample of each of its groups; if it is planned for limits on
            rates within a class, one of each group and class.
        time : array-like of shape (n_samples,), default=None
            The time of each sample. The certification set holds the latest samples, and the
            predictions for the tuning set come from members trained on earlier samples only. With
            `groups`, it has the groups with the latest samples, whose earlier samples are not used.
        duplicates : {"auto", "group", "near", "independent"}, default="auto"
            What rows are that are equal, also if only an identifier, a time or the like differs, or
            that are nearly equal. Copies of one observation would break a guarantee: with "group"
            and "near" the split keeps them together, and the certification set has one of each, so
            that the guaranteed rates are over different rows. If a quarter of the rows are such
            copies that are not equal, "group" raises an error, so that you decide. "independent"
            counts each row. "auto" is "independent" if the columns have so few values that rows are
            equal by chance, such as a coarse score, and else "group". The certificate says so.
        n_jobs : int, default=None
            Number of models to fit in parallel, in threads; -1 uses all cores.
        random_state : int, RandomState or None, default=None
            Seed of the split and of the members.
        callback : callable, default=None
            Called with a :class:`Progress` after each fit. From the first finished member on, its
            ``confusion`` is the provisional matrix: that of the members finished so far.
        stop : callable, default=None
            Called without arguments after each fit. If it returns a true value, the training stops
            with a `StoppedError` error; another thread may set it.
        enough : callable, default=None
            Called without arguments after each fit, once a member is finished. If it returns a true
            value, the training ends: the dialog has the members that are finished by then.
        ledger : Ledger, default=None
            Knows which certification data are used up. None is a ledger of this dialog alone: then
            another dialog on the same table does not know what this one has certified.
        table : array-like or data frame with n_samples rows, default=None
            The complete table that X was taken from, without the labels. The ledger then knows the
            data also if other columns are left out of X. None is X.

        Returns
        -------
        Dialog
            A dialog at its start.

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        SplitError
            If a class has too few samples for the split.
        StoppedError
            If `stop` returns a true value.

        Warns
        -----
        GroupsWarning
            If rows seem to belong together, such as those of a patient, and `groups` is None.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee=["logistic", "qda"], random_state=0)
        >>> dialog.members
        ('logistic', 'qda')
        >>> dialog.prefer("fn <= 30%", strategies=["move"]).met
        True
        >>> model = dialog.accept()
        >>> print(model.certificate_.guarantees[0].sentence)
        at most 30% of pos predicted neg
        """
        check_confidence(confidence, "Dialog.from_data")
        preference = None if guarantee is None else Preference(guarantee)
        start = start_from_table(
            X,
            y,
            committee=committee,
            levels=levels,
            tune=tune,
            certify=certify,
            guarantee=preference,
            delta=1 - confidence,
            positive=positive,
            groups=groups,
            time=time,
            duplicates=duplicates,
            n_jobs=n_jobs,
            random_state=random_state,
            callback=_with_stop(callback, stop),
            enough=enough,
        )
        rows, independent = None, start.data.used.duplicates == INDEPENDENT
        counted = independent or has_few_values(X, encoded=True)  # so that both are the same data
        if isinstance(certify, tuple):
            rows = RowSample.of(certify[0], counted=counted)
        elif start.certify is not None:
            rows = RowSample.of(*([X] if table is None else [X, table]), counted=counted)
        dialog = cls.__new__(cls)
        dialog._begin(start, rows, ledger)
        dialog._given = X
        return dialog

    @staticmethod
    def plan_split(
        X: Any,
        y: ArrayLike,
        *,
        committee: Any = None,
        tune: float | None = None,
        certify: Any = "auto",
        guarantee: Preference | str | None = None,
        confidence: float = 0.95,
        positive: Any = None,
        groups: ArrayLike | None = None,
        time: ArrayLike | None = None,
        duplicates: str = "auto",
        random_state: Any = None,
    ) -> SplitSizes:
        """Compute the sizes of the split that :meth:`from_data` makes, without training members.

        With a guarantee, planning trains a few logistic regressions, in about a second.

        Parameters
        ----------
        X, y, committee, tune, certify, guarantee, confidence, positive, groups, time, \
        duplicates, random_state
            As in :meth:`from_data`; `certify` cannot be a certification set of your own.

        Returns
        -------
        SplitSizes
            The number of samples for training, tuning and certification.

        Raises
        ------
        ParameterError
            If a parameter is invalid.
        SplitError
            If a class has too few samples for the split.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> sizes = Dialog.plan_split(X, y, random_state=0)
        >>> sizes.tune, sizes.certify
        (614, 154)
        >>> sizes.smallest_limits(confidence=0.9)
        {'neg': 0.0228, 'pos': 0.0418}
        """
        check_confidence(confidence, "Dialog.plan_split")
        return split_table(
            X,
            y,
            certify=certify,
            guarantee=None if guarantee is None else Preference(guarantee),
            delta=1 - confidence,
            positive=positive,
            groups=groups,
            time=time,
            tune=default_tune(committee, tune),
            duplicates=duplicates,
            random_state=random_state,
        ).sizes

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a file: without the table, which the user has, and the path."""
        return _without(vars(self), "_given", "_path")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state; autosave is off, whatever a file says."""
        self.__dict__.update(_without(state, "_given", "_path"))

    def _for_file(self) -> Self:
        """Return the dialog with the accounts of its ledger: a file names no other file."""
        if type(self.ledger) is Ledger:
            return self
        dialog = copy(self)
        dialog._acceptances = replace(self._acceptances, ledger=self.ledger.snapshot())
        return dialog

    @property
    def classes(self) -> tuple[Any, ...]:
        """The classes."""
        return self._data.labels

    @property
    def members(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(self._data.committee.names)

    def __repr__(self) -> str:
        n, members = len(self._data.codes), ", ".join(self.members)
        return (
            f"Dialog({n:,} samples in the tuning set, {len(self.classes)} classes, "
            f"members: {members}; step {self.position} of {len(self.history) - 1})"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.reply}"

    def _repr_html_(self) -> str:
        """Show the current confusion matrix and the last steps."""
        return dialog_html(self)

    def open(self, *, browser: bool = True) -> str:
        """Open the studio on this dialog.

        Steps taken in the studio are steps of this dialog, and the reverse. This process serves the
        page to users of this machine, until it ends.

        Parameters
        ----------
        browser : bool, default=True
            Whether to open the page in a browser.

        Returns
        -------
        str
            The address of the page.

        Raises
        ------
        ImportError
            If the studio is not installed.
        """
        try:
            view = load_extension("studio")
        except ModuleNotFoundError as error:
            raise ImportError(missing_extra("Dialog.open", "the studio", "studio")) from error
        address: str = view(self, browser=browser)
        return address

    # The history

    @property
    def history(self) -> tuple[Reply, ...]:
        """All replies, the start first."""
        return tuple(self._history.replies)

    @property
    def position(self) -> int:
        """Number of the current step in the history."""
        return self._history.at

    @property
    def parents(self) -> tuple[int, ...]:
        """For each step, the number of the step at which it was requested; 0 for the start."""
        return tuple(self._history.parents)

    @property
    def undone(self) -> tuple[int, ...]:
        """Numbers of the steps that :meth:`redo` returns to, the next one last."""
        return tuple(self._history.undone)

    @property
    def reply(self) -> Reply:
        """The reply of the current step."""
        return self._history.reply

    @property
    def confusion(self) -> Confusion:
        """The confusion matrix of the current model on the tuning set."""
        return self.reply.after

    @property
    def model(self) -> SteeredClassifier:
        """The model of the current step, without a certificate."""
        return self.reply.model

    def undo(self) -> Reply:
        """Return to the step at which the current request was made.

        Returns
        -------
        Reply
            The reply of that step.

        Raises
        ------
        ValueError
            If the dialog is at its start.
        """
        self._history.undo()
        return self.reply

    def redo(self) -> Reply:
        """Reverse the last :meth:`undo`.

        Returns
        -------
        Reply
            The reply of the step that was undone.

        Raises
        ------
        ValueError
            If there is nothing to redo.
        """
        self._history.redo()
        return self.reply

    def goto(self, step: int) -> Reply:
        """Go to a step of the history; the next request starts a new branch there.

        To go back to a step on the path to the current one is to undo the steps after it, so
        :meth:`redo` leads forward again.

        Parameters
        ----------
        step : int
            Number of the step; 0 is the start.

        Returns
        -------
        Reply
            The reply of that step.

        Raises
        ------
        ValueError
            If there is no such step.
        """
        self._history.goto(step)
        return self.reply

    def compare(self, a: int, b: int) -> Comparison:
        """Compare two steps on the tuning set.

        Parameters
        ----------
        a, b : int
            Numbers of the steps; 0 is the start.

        Returns
        -------
        Comparison
            Changes of the confusion matrix, and the samples whose predictions differ.

        Raises
        ------
        ValueError
            If there is no such step.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee=["logistic", "qda"], random_state=0)
        >>> reply = dialog.prefer("fp <= 5%")
        >>> compared = dialog.compare(0, 1)
        >>> compared.n_changed == len(compared.rows_second)
        True
        >>> set(compared.rows_first.predicted), set(compared.rows_second.predicted)
        ({'pos'}, {'neg'})
        """
        steps = [self._history.number(step, "compare") for step in (a, b)]
        first, second = (self._history.replies[step] for step in steps)
        changed = np.flatnonzero(first.candidate.predictions != second.candidate.predictions)
        rows_first, rows_second = (
            describe_rows(changed, self._history.replies[step], self._data, self._base_data(step))
            for step in steps
        )
        return Comparison(first, second, rows_first, rows_second)

    def rows(self, true: Any = None, predicted: Any = None, *, rejected: bool = False) -> CellRows:
        """Select the samples of the tuning set behind a cell of the confusion matrix.

        Parameters
        ----------
        true : label, default=None
            The true class; None is any.
        predicted : label, default=None
            The class that the current model predicts; None is any, rejected samples included.
        rejected : bool, default=False
            Whether to select the rejected samples instead of those with a prediction.

        Returns
        -------
        CellRows
            Their positions, true and predicted classes, margins, and the members' predictions.

        Raises
        ------
        ParameterError
            If there is no such class.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee=["logistic", "qda"], random_state=0)
        >>> rows = dialog.rows(true="pos", predicted="neg")
        >>> len(rows) == dialog.confusion.fn
        True
        >>> bool((y[rows.at] == "pos").all())
        True
        """
        position = self.position  # read once: another thread may add a step
        reply, votes_data = self._history.replies[position], self._base_data(position)
        return select_rows_of_cell(reply, self._data, votes_data, true, predicted, rejected)

    def tuning_samples(self) -> Any:
        """Return the samples of the tuning set, in the order of :attr:`CellRows.positions`.

        Returns
        -------
        array-like or data frame of shape (n_samples, n_features)
            The samples as the user passed them. If :meth:`from_data` got them and the dialog was
            loaded from a file, or has forgotten its table, they are encoded as the members take
            them.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True, as_frame=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> dialog.tuning_samples().equals(X.iloc[dialog.rows().at])
        True
        """
        at = self._data.at
        return self._data.X.X if self._given is None or at is None else select_rows(self._given, at)

    def forget_table(self) -> None:
        """Release the table that :meth:`from_data` got; only :meth:`tuning_samples` uses it."""
        self._given = None

    def to_dict(self) -> dict[str, Any]:
        """Describe the dialog in values that JSON can hold.

        Returns
        -------
        dict
            With the keys ``schema_version``, ``classes``, ``positive``, ``members``, ``position``;
            ``sizes``, the number of samples for train, tune, certify and unused; ``steps``, the
            replies as in :meth:`Reply.to_dict` with their number and parent; and ``accepted``, a
            dictionary for each accepted model with the keys step and certificate.
        """
        sizes = self._sizes
        return {
            "schema_version": SCHEMA_VERSION,
            "classes": json_ready(self.classes),
            "positive": json_ready(self.confusion.positive),
            "members": list(self.members),
            "sizes": {
                "train": sizes.train,
                "tune": sizes.tune,
                "certify": sizes.certify,
                "unused": sizes.unused,
            },
            "position": self.position,
            "steps": [
                {"number": number, "parent": parent, **reply.to_dict()}
                for number, (reply, parent) in enumerate(
                    zip(self.history, self.parents, strict=True)
                )
            ],
            "accepted": [
                {"step": one.step, "certificate": one.certificate.to_dict()}
                for one in self.accepted
            ],
        }

    # Requests

    def check_request(
        self,
        *wants: Preference | str,
        then: Goal | str | None = None,
        keep: bool = False,
        strategies: Sequence[str | Strategy] | None = None,
        at: int | None = None,
    ) -> Preference:
        """Check a request without a search.

        Parameters
        ----------
        *wants, then, keep, strategies, at
            As in :meth:`prefer`.

        Returns
        -------
        Preference
            The preference that :meth:`prefer` would search for.

        Raises
        ------
        PreferenceError, ParameterError
            As :meth:`prefer` raises them.
        """
        get_strategies(strategies, "Dialog.prefer")
        return self._wanted(wants, then, keep, self._history.replies[self._step(at)])

    def _step(self, at: int | None) -> int:
        """Return the number of the step at which a request is made."""
        return self.position if at is None else self._history.number(at, "prefer")

    def prefer(
        self,
        *wants: Preference | str,
        then: Goal | str | None = None,
        keep: bool = False,
        strategies: Sequence[str | Strategy] | None = None,
        at: int | None = None,
        callback: Callable[[Reply], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Request a confusion matrix that meets a preference.

        A limit is an allowance. Among the candidates that meet the preference, the reply is the one
        with the fewest errors that no limit counts, unless `then` states another goal; then the
        one with the fewest errors in total, then the fewest rejected samples. A candidate that
        never predicts a class is chosen only if no other meets the preference. If none meets it,
        the reply is the nearest one: it misses the limits by the fewest samples in total.

        A candidate of a slow strategy ("retune") replaces the best fast one only if it is better
        by two standard errors of the difference.

        Parameters
        ----------
        *wants : str or Preference
            The errors that you can tolerate, such as ``"fp <= 5"`` or
            ``dialog.confusion.edit(...)``.
        then : str or Goal, default=None
            What to minimise among the decisions that meet the limits: ``"fewest errors"`` in total,
            ``"fewest fn"``, ``"lowest cost of fp + 20 fn"``, or ``"fewest other errors"``, the
            errors that `wants` does not limit. None is what `wants` states; else the goal of the
            current step, if its limits are kept; else the fewest other errors.
        keep : bool, default=False
            Whether the limits and the goal of the current step still hold, except for the
            quantities that `wants` limits.
        strategies : list of str or Strategy, default=None
            Strategies to try: "move", "reject", "retune", or your own. None tries "move" and
            "reject"; "retune" is slow.
        at : int, default=None
            Number of the step at which the request is made. None is the current step.
        callback : callable, default=None
            Called with each better :class:`Reply`. If it returns a true value, the search stops and
            the best reply so far is kept. Ctrl-C does the same.
        stop : callable, default=None
            Called without arguments between long steps. If it returns a true value, the search
            stops likewise; another thread may set it.

        Returns
        -------
        Reply
            The best reply, which is the new current step. If neither the preference nor the model
            changes, no step is added, and ``note`` says so.

        Raises
        ------
        PreferenceError
            If the preference cannot be parsed, contradicts itself, or refers to unknown classes or
            to more samples than there are; or if no strategy proposes a candidate.
        ValueError
            If a strategy is unknown.
        StoppedError
            If `stop` returns a true value before the first candidate.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> dialog.prefer("fp <= 10%", strategies=["move"]).met
        True
        >>> reply = dialog.prefer("fn <= 10%", keep=True, strategies=["move"])
        >>> print(reply.preference)
        fp <= 10%, fn <= 10%, then fewest fn
        >>> reply.met, str(reply.binding)
        (False, 'fn <= 10%')
        """
        n_before = len(self.history)
        replies = self.replies(
            *wants, then=then, keep=keep, strategies=strategies, at=at, stop=stop
        )
        try:
            for reply in replies:
                if callback is not None and callback(reply):
                    break
            if reply.note is not None:
                return reply  # nothing changes
        except KeyboardInterrupt:
            replies.close()
            if len(self.history) == n_before:
                raise
        finally:
            replies.close()
        return self.reply

    def replies(
        self,
        *wants: Preference | str,
        then: Goal | str | None = None,
        keep: bool = False,
        strategies: Sequence[str | Strategy] | None = None,
        at: int | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Generator[Reply]:
        """Yield the replies to a request as they are found, each better than the one before.

        The fast strategies give the first reply at once; the last reply is final. If you leave the
        loop early, the best reply so far is kept.

        Parameters
        ----------
        *wants, then, keep, strategies, at, stop
            As in :meth:`prefer`.

        Yields
        ------
        Reply
            The best reply so far.
        """
        parent = self._step(at)
        search = self._search(wants, then, keep, strategies, parent, stop)
        return self._search_replies(search, parent)

    def preview(
        self,
        *wants: Preference | str,
        then: Goal | str | None = None,
        keep: bool = False,
        at: int | None = None,
    ) -> Reply:
        """Compute the reply to a request without adding a step to the history.

        The strategies are those that :meth:`prefer` tries by default, "move" and "reject", so a
        request for the same preference gives the same matrix.

        Parameters
        ----------
        *wants, then, keep, at
            As in :meth:`prefer`.

        Returns
        -------
        Reply
            The reply, which has no alternatives and is not a step.

        Raises
        ------
        PreferenceError
            As :meth:`prefer` raises it.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> preview = dialog.preview("fp <= 10%")
        >>> dialog.position
        0
        >>> dialog.prefer("fp <= 10%").after == preview.after
        True
        """
        parent = self._step(at)
        current = self._history.replies[parent]
        search = self._search(wants, then, keep, None, parent)
        return self._make_reply(search, current, next(search.run()))

    def _search(
        self,
        wants: Sequence[Preference | str],
        then: Goal | str | None,
        keep: bool,
        strategies: Sequence[str | Strategy] | None,
        parent: int,
        stop: Callable[[], bool] | None = None,
    ) -> Search:
        """Prepare the search of a request at a step."""
        allowed, reply = get_strategies(strategies, "Dialog.prefer"), self._history.replies[parent]
        preference = self._wanted(wants, then, keep, reply)
        data, known = self._base_data(parent), self._known(parent)
        settled = strategies is None and reply.settles(preference)
        return Search(preference, data, known, allowed, stop, reply.candidate, settled)

    def _search_replies(self, search: Search, parent: int) -> Generator[Reply]:
        """Yield the replies of a search; if it is stopped, add the best so far as a step."""
        current = self._history.replies[parent]
        pending = False  # whether the last reply is not in the history yet

        def end(reply: Reply) -> Reply:
            if reply.note is None:
                self._add_step(reply, parent)
            else:
                self._history.goto(parent)
            return reply

        try:
            for found in search.run():
                reply = self._make_reply(search, current, found)
                pending = not found.final
                yield end(reply) if found.final else reply
        except (GeneratorExit, KeyboardInterrupt):
            if pending:
                best = search.found(final=True, cancelled=True)
                end(self._make_reply(search, current, best))
            raise

    def _make_reply(self, search: Search, current: Reply, found: Found) -> Reply:
        """Make the reply for the best candidate of a search, with a note if nothing changes."""
        preference, candidate = search.wanted, found.candidate
        after = self._data.matrix(candidate.predictions)
        met = preference.met(after)
        alternatives: tuple[Alternative, ...] = ()
        if found.final and not met:
            alternatives = find_alternatives(
                search.objective, preference, candidate, search.request.may_reject
            )
        before = current.preference
        same = (
            before is not None
            and set(preference.bounds) == set(before.bounds)
            and preference.goal(after) == before.goal(after)
            and candidate.same_as(current.candidate)
        )
        return Reply(
            preference,
            met,
            current.after,
            after,
            candidate.strategy,
            found.seconds,
            found.n_candidates,
            found.final,
            found.cancelled,
            NOTHING_CHANGES if same and found.final else None,
            alternatives=alternatives,
            candidate=candidate,
        )

    def _wanted(
        self, wants: Sequence[Preference | str], then: Goal | str | None, keep: bool, current: Reply
    ) -> Preference:
        """Parse the preference of a request, and check it against the tuning set."""
        if not wants:
            raise PreferenceError(
                "Dialog.prefer needs a preference such as 'fp <= 5'; got none.",
                code="no_preference",
            )
        kept, matrix = current.preference if keep else None, current.after
        preference = Preference(*wants, classes=matrix.classes, positive=matrix.positive)
        if then is not None:
            preference = Preference.of(preference.bounds, parse_goal(then))
        preference = preference.keeping(kept, matrix)
        preference.check_counts(matrix)
        plan = self.plan()
        if plan is not None and plan.by_class and not _are_within_classes(preference, matrix):
            raise PreferenceError(
                f"'{preference}' depends on the class proportions, and the split that was planned "
                f"for '{plan.guarantee}' has changed them. Start a dialog with this preference as "
                "its guarantee, or without a guarantee.",
                code="proportions",
                preference=str(preference),
                guarantee=plan.guarantee,
            )
        return preference

    # What is achievable

    def frontier(self, positive: Any = None) -> Frontier:
        """Compute which rates of false positives and false negatives are achievable.

        The frontier includes the start, each member alone, and the steps of this dialog.

        Parameters
        ----------
        positive : label, default=None
            The class that the frontier compares with all others. By default the positive class of
            the dialog.

        Returns
        -------
        Frontier
            The best trade-offs on the tuning set, for decisions that do not reject.

        Raises
        ------
        ParameterError
            If there is no such class.
        MargraveError
            If `positive` is None, and there are more than two classes and no positive one.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from margrave.steer import Dialog
        >>> X, y = load_iris(return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee=["logistic", "qda"], random_state=0)
        >>> dialog.frontier(positive=2).positive
        2
        """
        data, label = self._data, self._data.positive
        if positive is not None:
            label = check_positive(positive, data.committee.classes, "Dialog.frontier")
        if label is None:
            raise MargraveError(
                "Dialog.frontier needs a positive class; got more than two classes and no positive "
                "one. Name a class with positive=...",
                code="no_positive",
                classes=self.classes,
            )
        candidates = [reply.candidate for reply in self.history]
        known = [self._known(step) for step in range(len(candidates))]
        return dialog_frontier(data, candidates, known, label)

    def plan(self) -> SplitPlan | None:
        """Return how the certification set was planned; None if no guarantee was stated.

        Returns
        -------
        SplitPlan or None
            The numbers of samples that were set aside, the expected cost, and the alternatives.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(
        ...     X, y, committee="logistic", guarantee="fn <= 10%", random_state=0
        ... )
        >>> dialog.plan().chosen.allowed_errors
        {'pos': 10}
        """
        return self.sizes.plan

    def support(self, confidence: float = 0.95) -> str:
        """Describe which limits the certification set is large enough to guarantee.

        Parameters
        ----------
        confidence : float, default=0.95
            Confidence of the guarantee.

        Returns
        -------
        str
            The smallest limit for the errors of each class.
        """
        check_confidence(confidence, "Dialog.support")
        return self._acceptances.support(self.classes, confidence)

    @property
    def sizes(self) -> SplitSizes:
        """The number of samples for training, tuning and certification."""
        return self._sizes

    @property
    def duplicates(self) -> str:
        """What equal or nearly equal rows are: "group", "near" or "independent"; never "auto"."""
        return self._data.used.duplicates

    # The certified model

    @property
    def accepted(self) -> tuple[Accepted, ...]:
        """The accepted models, in order."""
        return tuple(self._acceptances.accepted)

    @property
    def certification(self) -> Account | None:
        """The account of the certification set that was set aside; None if there is none."""
        return self._acceptances.account()

    @property
    def table_rows(self) -> RowSample | None:
        """Identifies the data of the certification set for a ledger; None if there is no set."""
        return self._acceptances.rows

    @property
    def ledger(self) -> Ledger:
        """The ledger, which knows the certification data that are used up; it can be replaced.

        The file of a dialog holds the accounts as they are when it is saved, and not where a
        :class:`FileLedger` or a ledger of your own keeps them. After :meth:`load`, connect it
        again: ``dialog.ledger = FileLedger(path)``.
        """
        return self._acceptances.ledger

    @ledger.setter
    def ledger(self, ledger: Ledger) -> None:
        self._acceptances.ledger = ledger

    def accept(
        self,
        X_certify: Any = None,
        y_certify: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
        reserve: bool = False,
        anyway: bool = False,
    ) -> SteeredClassifier:
        """Certify the model of the current step, and return it.

        The guarantee is the preference of the current step; limits on counts become limits on
        rates. The decision is computed again on the certification set, so that the guarantee holds
        for new samples. This uses up the certification set, unless `reserve` is true: choosing the
        best of several certificates on the same samples would break the guarantee too often. The
        :attr:`ledger` records the use before the labels are used. It belongs to the rows: a dialog
        with the same ledger on the same table, or on a large part of it, is refused as well.
        Accepting the same step again returns the same model.

        Parameters
        ----------
        X_certify : array-like or data frame of shape (n_samples, n_features), default=None
            A certification set of samples that no step has used. None is the one that
            :meth:`from_data` kept apart.
        y_certify : array-like of shape (n_samples,), default=None
            Labels of `X_certify`.
        groups : array-like of shape (n_samples,), default=None
            The group of each of these samples, none of them a group that was trained or tuned on.
            One sample of each group counts, or of each group and class if all limits are on rates
            within a class.
        confidence : float, default=0.95
            1 minus the probability that a request ends in a certificate of which a guarantee is
            false.
        reserve : bool, default=False
            Whether to use only half of the error probability (delta) that is left, so that another
            model can be accepted on the same certification set later.
        anyway : bool, default=False
            Whether to certify also if :meth:`expected_certificate` says that the probability of a
            certificate for a useful model is below 0.5. By default this is an error, and the
            certification set is not used.

        Returns
        -------
        SteeredClassifier
            The model, with its ``certificate_``. If :attr:`Certificate.useless` is not empty, it is
            certified, but not worth using.

        Raises
        ------
        GuaranteeError
            If there is no preference yet; if the certification set is missing, too small (the
            message says how many samples are needed) or used up; if a useful model is probably not
            certified; or if the guarantee does not hold on the certification set, which only then
            is used up.

        Warns
        -----
        UselessWarning
            If the model is certified, but useless.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> reply = dialog.prefer("fn <= 30%", strategies=["move"])
        >>> model = dialog.accept(confidence=0.9)
        >>> print(model.certificate_.preference)
        fn <= 30%
        """
        check_confidence(confidence, "Dialog.accept")
        model = self._acceptances.model(
            self.reply,
            self.position,
            self.history[0].candidate,
            self._data,
            X_certify,
            y_certify,
            groups,
            confidence,
            reserve,
            anyway,
        )
        if self._path is not None:
            self.save(self._path)
        warn_if_useless(model.certificate_, "Dialog.accept")
        return model

    def expected_certificate(
        self,
        X_certify: Any = None,
        y_certify: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        confidence: float = 0.95,
        reserve: bool = False,
    ) -> ExpectedCertificate:
        """Simulate what :meth:`accept` will certify, without using the certification set.

        Only the class sizes of the certification set are used, with what is left of its error
        probability. The :attr:`ledger` records nothing.

        Parameters
        ----------
        X_certify, y_certify, groups, confidence, reserve
            As in :meth:`accept`.

        Returns
        -------
        ExpectedCertificate
            The probability that the preference of the current step is certified, the expected
            rates with their ranges and, where a certificate is improbable, the nearest limits that
            can be certified.

        Raises
        ------
        GuaranteeError
            If there is no preference yet, or if the certification set is missing or used up.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> reply = dialog.prefer("fn <= 30%", strategies=["move"])
        >>> expected = dialog.expected_certificate()
        >>> expected.probability, expected.route
        (1.0, 'order statistics')
        """
        check_confidence(confidence, "Dialog.expected_certificate")
        return self._acceptances.expect(
            self.reply, self._data, X_certify, y_certify, groups, float(confidence), reserve
        )

    def check_accept(
        self, *, confidence: float = 0.95, reserve: bool = False, anyway: bool = False
    ) -> None:
        """Check whether :meth:`accept` can succeed, without using the certification set.

        This counts only the samples of each class in the certification set that
        :meth:`from_data` kept apart, and simulates certification as :meth:`expected_certificate`
        does. Whether the guarantee holds on them, only :meth:`accept` finds out.

        Parameters
        ----------
        confidence, reserve, anyway
            As in :meth:`accept`.

        Raises
        ------
        GuaranteeError
            As :meth:`accept` would, without using up anything.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog, GuaranteeError
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> reply = dialog.prefer("fn <= 1%", strategies=["move"])
        >>> try:
        ...     dialog.check_accept()
        ... except GuaranteeError as error:
        ...     print(error.code)
        too_few_samples
        """
        check_confidence(confidence, "Dialog.check_accept")
        self._acceptances.check(
            self.reply, self.position, self._data, float(confidence), reserve, anyway
        )

    def autosave(self, path: str | Path) -> None:
        """Save the dialog to a file now, and again after each step.

        The file does not name its path: a dialog that :meth:`load` or a copy returns saves itself
        nowhere until `autosave` is called again.

        Parameters
        ----------
        path : str or Path
            The file. An existing file is replaced.

        See Also
        --------
        Dialog.load : Read the dialog from the file.
        """
        self._path = str(path)
        self.save(path)

    # A store that writes each step

    def dump_start(self) -> bytes:
        """Return the dialog as it was at its start, for a store that writes each step.

        The ledger is not in it. If yours is not in memory, set :attr:`ledger` again after
        :meth:`restore`.

        Returns
        -------
        bytes
            The first argument of :meth:`restore`. The members are in it, so it is large.
        """
        start = copy(self)
        start._history = History([self.history[0]])
        start._acceptances = replace(self._acceptances, ledger=Ledger(), accepted=[])
        return start.to_bytes()

    def dump_step(self, step: int) -> bytes:
        """Return one step, without what the start or an earlier step holds.

        This takes milliseconds where the step has the members of the start.

        Parameters
        ----------
        step : int
            Number of the step, from 1.

        Returns
        -------
        bytes
            One of the steps that :meth:`restore` takes.
        """
        number, history = self._history.number(step, "dump_step"), self._history
        if not number:
            raise ParameterError.of("Dialog.dump_step", "step", "at least 1", step)
        earlier = history.replies[:number]
        return dump_step(history.replies[number], history.parents[number], earlier, self._data)

    def dump_state(self) -> dict[str, Any]:
        """Return what changes between the steps: the position and the use of certification sets.

        Returns
        -------
        dict
            Values that JSON can hold, the last argument of :meth:`restore`: ``schema_version``,
            ``position``, ``undone``; ``accounts``, the accounts of a ledger that is in memory, as
            dictionaries; and ``accepted``, a dictionary for each accepted model with the keys step
            and samples.
        """
        return {
            "schema_version": SCHEMA_VERSION,
            "position": self.position,
            "undone": list(self.undone),
            "accounts": [account.to_dict() for account in self.ledger.in_memory],
            "accepted": [{"step": one.step, "samples": one.samples} for one in self.accepted],
        }

    @classmethod
    def restore(
        cls,
        start: bytes,
        steps: Sequence[bytes] = (),
        models: Sequence[bytes] = (),
        state: Mapping[str, Any] | None = None,
        *,
        trusted: Sequence[str] = (),
    ) -> Self:
        """Restore a dialog from its start, its steps, its accepted models and its state.

        Parameters
        ----------
        start : bytes
            From :meth:`dump_start`.
        steps : sequence of bytes, default=()
            From :meth:`dump_step`, for the steps from 1 on.
        models : sequence of bytes, default=()
            The accepted models in order, from :meth:`SteeredClassifier.to_bytes`.
        state : dict, default=None
            From :meth:`dump_state`. None is the last step, without accepted models.
        trusted : list of str, optional
            Types of your own models to accept, as ``package.module.Class``.

        Returns
        -------
        Dialog
            The dialog.

        Raises
        ------
        FileError
            If some bytes are damaged, or another version of Margrave wrote them.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> start = dialog.dump_start()
        >>> reply = dialog.prefer("fn <= 30%")
        >>> step, state = dialog.dump_step(1), dialog.dump_state()
        >>> len(step) < len(start)
        True
        >>> Dialog.restore(start, [step], state=state).confusion == reply.after
        True
        """
        dialog = cls.from_bytes(start, trusted=trusted)
        dialog.update(steps, models, state, trusted=trusted)
        return dialog

    def update(
        self,
        steps: Sequence[bytes] = (),
        models: Sequence[bytes] = (),
        state: Mapping[str, Any] | None = None,
        *,
        trusted: Sequence[str] = (),
    ) -> None:
        """Add steps and accepted models that were stored elsewhere since this dialog was restored.

        Parameters
        ----------
        steps, models : sequence of bytes, default=()
            The new steps and accepted models, as in :meth:`restore`.
        state : dict, default=None
            The new state, as in :meth:`restore`.
        trusted : list of str, optional
            Types of your own models to accept, as ``package.module.Class``.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
        >>> other = Dialog.restore(dialog.dump_start())
        >>> reply = dialog.prefer("fn <= 30%")
        >>> other.update([dialog.dump_step(1)], state=dialog.dump_state())
        >>> other.confusion == reply.after
        True
        """
        history, accepted = self._history, self._acceptances.accepted
        new = [] if state is None else state["accepted"][len(accepted) :]
        if len(new) != len(models):
            allowed = f"the {len(new)} accepted models that are new in state"
            raise ParameterError.of("Dialog.update", "models", allowed, len(models))
        for step in steps:
            history.add(*load_step(step, history.replies, self._data, trusted))
        if state is not None:
            history.at = history.number(state["position"], "update")
            history.undone = [history.number(step, "update") for step in state["undone"]]
            self.ledger.add([Account.from_dict(account) for account in state["accounts"]])
            accepted.extend(
                Accepted(
                    one["step"], one["samples"], SteeredClassifier.from_bytes(data, trusted=trusted)
                )
                for one, data in zip(new, models, strict=True)
            )

    # Martingale programs

    @property
    def program(self) -> Program | None:
        """The martingale program of the current step, with counts of the tuning set.

        The counts are the local confusion matrices of the nodes. The leaves predict as the current
        model does, with its threshold; where the model rejects, they predict by their votes. None
        if the model is not a martingale program, or if it was trained on the tuning set.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="martingale", random_state=0)
        >>> program = dialog.program
        >>> print(program)
        Program of 3 levels, 10 nodes: 6 learner, 4 leaf
        >>> print(program.confusion(program.at((0, 1))))
        pos is positive  predicted neg  predicted pos  rejected
        true neg                    30             13         0
        true pos                    30             31         0
        """
        steered = SteeredProgram.of(self.reply.candidate, self._data)
        return None if steered is None else steered.program()

    def weak_nodes(self, threshold: float = 0.3) -> tuple[Votes, ...]:
        """List the nodes of the program that are worth tuning first (I-SELECT).

        Parameters
        ----------
        threshold : float, default=0.3
            A node is weak if its advantage, the fraction of correct predictions minus ½, is less
            than this for some class. 1 lists all nodes that can be tuned.

        Returns
        -------
        tuple of tuple of int
            Votes of the nodes, in the order in which the program grows. Only nodes with a learner
            are listed, and only if the tuning set has samples of all their classes there.

        Raises
        ------
        ValueError
            If the model is not a martingale program, or if it was trained on the tuning set.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="martingale", random_state=0)
        >>> dialog.weak_nodes(0.1)
        ((0, 1), (0, 2), (1, 1), (2, 0))
        """
        if not is_number(threshold):
            raise ParameterError.of("Dialog.weak_nodes", "threshold", "a number", threshold)
        return tuple(self._current_program("weak_nodes").weak(threshold))

    def tune_nodes(
        self,
        wants: Mapping[Votes, Preference | str | None],
        *,
        callback: Callable[[Step], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Request local confusion matrices of nodes of the program (I-ALL).

        Each node is tuned on the samples of the tuning set that reach it. The nodes below get other
        samples and are fitted again with their settings. The preference of the current step still
        holds: if its decision was moved, it is moved again, as by the strategy "move"; if not, the
        most votes win.

        Parameters
        ----------
        wants : mapping of votes to Preference or str
            The preference for each node, such as ``{(0, 0): "fp <= 9"}`` for the root.
        callback : callable, default=None
            Called with a :class:`~margrave.martingale.Step` after each node. If it returns a true
            value, the other nodes stay as they are.
        stop : callable, default=None
            Called without arguments after each node. If it returns a true value, the other nodes
            stay as they are.

        Returns
        -------
        Reply
            The reply with the strategy "nodes". ``node_results`` has the result of each node,
            ``note`` describes them, and ``met`` refers to the preference of the current step.

        Raises
        ------
        ValueError
            If the model is not a martingale program or was trained on the tuning set; or if no node
            in `wants` can be tuned.
        TypeError
            If `wants` is not a mapping.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="martingale", random_state=0)
        >>> reply = dialog.tune_nodes({(0, 0): "fn <= 20"})
        >>> print(reply.note)
        (0, 0) fn <= 20: met
        >>> dialog.program.confusion(0).fn
        20
        """
        steered, parent, began = self._current_program("tune_nodes"), self.position, perf_counter()
        requests = _check_wants(wants, steered)
        stopped = stop or (lambda: False)
        with warnings.catch_warnings(), limit_threads(1):  # matrices are small
            warnings.simplefilter("ignore", NotMetWarning)  # the reply says so
            tuned = steered.model.tune(
                requests,
                steered.rows,
                steered.labels,
                granularity="all",
                positive=self._data.positive,
                callback=lambda step: bool(callback and callback(step)) or stopped(),
            )
        tuning = cast(Tuning, tuned.tuning_)
        results = tuning.node_results
        if not results and not tuning.cancelled:
            raise ParameterError(
                "Dialog.tune_nodes needs nodes in wants at which the tuning set has samples of "
                f"every class; got {', '.join(map(str, requests))}. weak_nodes(1) lists the nodes "
                "that can be tuned.",
                parameter="wants",
                allowed="nodes at which the tuning set has samples of every class",
                received=list(map(str, requests)),
            )
        if all(_was_met(node) for _, node in results):
            candidate = replace(steered.candidate, strategy=NODES)
        else:
            candidate = steered.with_program(NODES, tuned, self.reply.preference)
        untuned = () if tuning.cancelled else sorted(requests.keys() - tuning.nodes.keys())
        note = _describe_nodes(results, untuned)
        return self._add_program_step(
            candidate, parent, began, note, cancelled=tuning.cancelled, node_results=results
        )

    def grow(
        self,
        levels: int = 1,
        *,
        callback: Callable[[Progress], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Grow the program by some levels; existing nodes stay, tuned ones included.

        The preference of the current step still holds, as in :meth:`tune_nodes`.

        Parameters
        ----------
        levels : int, default=1
            Number of levels to add.
        callback : callable, default=None
            Called with a :class:`Progress` after each level. If it returns a true value, the
            program grows no further.
        stop : callable, default=None
            Called without arguments after each level. If it returns a true value, the program grows
            no further.

        Returns
        -------
        Reply
            The reply with the strategy "grow".

        Raises
        ------
        ValueError
            If the model is not a martingale program, or if it was trained on the tuning set.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="martingale", random_state=0)
        >>> dialog.grow(2).note
        'grown by 2 levels to 5'
        """
        steered, parent, began = self._current_program("grow"), self.position, perf_counter()
        model, name = steered.model, self.reply.candidate.scorer.committee.names[0]
        most = MOST_LEVELS - model.n_levels
        if not is_count(levels, most):
            allowed = f"a whole number of at least 1, and {MOST_LEVELS} levels in total"
            raise ParameterError.of("Dialog.grow", "levels", allowed, levels)
        done, cancelled = 0, False
        while done < levels and not cancelled:
            with limit_threads(1):  # matrices are small
                model = model.grow()
            done += 1
            wants_stop = callback is not None and callback(Progress(done, levels, name))
            cancelled = done < levels and bool(wants_stop or (stop is not None and stop()))
        candidate = steered.with_program(GROW, model, self.reply.preference)
        note = f"grown by {done} level{'' if done == 1 else 's'} to {model.n_levels}"
        return self._add_program_step(
            candidate, parent, began, note, cancelled=cancelled, levels=done
        )

    def _current_program(self, method: str) -> SteeredProgram:
        """Return the program of the current step; raise an error if there is none."""
        steered = SteeredProgram.of(self.reply.candidate, self._data)
        if steered is None:
            raise MargraveError(
                f"Dialog.{method} needs a dialog about a martingale program that was not trained "
                "on the tuning set. Start one with "
                "Dialog.from_data(X, y, committee='martingale'), or with "
                "Dialog(model, X_tune, y_tune) and a fitted MartingaleBoostClassifier.",
                code="no_program",
            )
        return steered

    def _add_program_step(
        self,
        candidate: Candidate,
        parent: int,
        began: float,
        note: str,
        *,
        cancelled: bool,
        node_results: tuple[tuple[Votes, Tuning], ...] = (),
        levels: int = 0,
    ) -> Reply:
        """Add a step of the program to the history."""
        preference, after = self.reply.preference, self._data.matrix(candidate.predictions)
        reply = Reply(
            preference,
            preference is None or preference.met(after),
            self.confusion,
            after,
            candidate.strategy,
            perf_counter() - began,
            1,
            True,
            cancelled,
            note,
            node_results,
            levels,
            candidate=candidate,
        )
        self._add_step(reply, parent)
        return reply

    def _add_step(self, reply: Reply, parent: int) -> None:
        """Add a step to the history, and save the dialog if autosave is on."""
        self._history.add(reply, parent)
        if self._path is not None:
            self.save(self._path)

    def _known(self, at: int) -> list[Candidate]:
        """Return the candidates whose scores a search at a step tries first."""
        base, current = (self._history.replies[step].candidate for step in (self._base(at), at))
        return [base] if current.scorer is base.scorer else [base, current]

    def _base(self, at: int) -> int:
        """Return the step that a search at a step begins with: the last program, or the start."""
        history = self._history
        while at and history.replies[at].strategy not in (NODES, GROW):
            at = history.parents[at]
        return at

    def _base_data(self, at: int) -> TuningData:
        """Return the tuning set with the committee that a search at a step begins with."""
        base, data = self._base(at), self._data
        if base == 0:
            return data
        committee = self._history.replies[base].candidate.scorer.committee
        return replace(data, committee=committee, raw=committee.raw(data.X.X))


def _without(state: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a state without some of its attributes."""
    return {name: value for name, value in state.items() if name not in names}


def _are_within_classes(preference: Preference, matrix: Confusion) -> bool:
    """Whether no bound that can be violated depends on the class proportions."""
    return all(
        forbids_rejecting(bound)
        or is_trivial(float(bound.limit), bound.at_most)
        or bound.cells(matrix)[1].any(axis=1).sum() == 1
        for bound in preference.in_rates(matrix).all_bounds
    )


def _with_stop(
    callback: Callable[[Progress], Any] | None, stop: Callable[[], bool] | None
) -> Callable[[Progress], Any] | None:
    """Return a callback that ends the training if `stop` says so."""
    if stop is None:
        return callback

    def report(progress: Progress) -> None:
        if callback is not None:
            callback(progress)
        if stop():
            raise StoppedError(
                f"The training was stopped after {progress.done} of {progress.total} fits.",
                code="stopped",
                done=progress.done,
                total=progress.total,
            )

    return report


def _check_wants(
    wants: Mapping[Votes, Preference | str | None], steered: SteeredProgram
) -> dict[Votes, Preference | str]:
    """Return the preferences that are not None, each for a node with a learner."""
    owner = "Dialog.tune_nodes"
    if not isinstance(wants, Mapping):
        raise TypeError(
            f"{owner} needs wants to be a mapping of votes to preferences, such as "
            f"{{(0, 0): 'fp <= 9'}}; got {type(wants).__name__}."
        )
    requests = {votes: preference for votes, preference in wants.items() if preference is not None}
    if not requests:
        raise ParameterError(
            f"{owner} needs wants with a preference for at least one node; got none.",
            parameter="wants",
            allowed="a preference for at least one node",
            received={},
        )
    nodes = steered.model.program_.nodes
    known = [nodes[place].position for place in sorted(steered.model.learners_)]
    for votes in requests:
        if votes not in known:
            shown = ", ".join(str(tuple(map(int, position))) for position in known[:6])
            more = f", ... ({len(known)} in all)" if len(known) > 6 else ""
            raise ParameterError(
                f"{owner} needs the votes of nodes with a learner in wants: {shown}{more}; "
                f"got {votes!r}.",
                parameter="wants",
                allowed=known,
                received=votes,
            )
    return requests


def _was_met(node: Tuning) -> bool:
    """Whether a node met its preference before it was tuned."""
    return node.preference is not None and node.preference.met(node.before)


def _describe_nodes(results: tuple[tuple[Votes, Tuning], ...], untuned: Iterable[Any]) -> str:
    """Describe the result at each node, and name the nodes that could not be tuned."""
    parts = []
    for votes, node in results:
        outcome = f"not met, {format_count(node.shortfall)} short"
        if node.met:
            outcome = "met before" if _was_met(node) else "met"
        parts.append(f"{votes} {node.preference}: {outcome}")
    parts += [
        f"{votes} cannot be tuned: the tuning set has no samples of some class there"
        for votes in untuned
    ]
    return "; ".join(parts) if parts else "no node was tuned"
