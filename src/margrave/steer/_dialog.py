"""The dialog: a user says which mistakes can be afforded, and is shown what that costs.

"Interactive Martingale Boosting", figures 1 to 3: the user edits the confusion matrix, the system
answers with a model that keeps to it, and so on until it is accepted. Here every answer is held
against samples that what it was learned from does not include, and what is accepted is certified
on samples that no step has seen.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from margrave._extensions import load_extension
from margrave._messages import missing_extra
from margrave._validation import is_count, is_number
from margrave.committee import Progress
from margrave.confusion import Confusion, Preference, PreferenceError
from margrave.martingale import NotMetWarning, Program, Step, Tuning
from margrave.steer._certify import check_confidence
from margrave.steer._files import Saved
from margrave.steer._frontier import Frontier, dialog_frontier, offer_candidates
from margrave.steer._ledger import Ledger
from margrave.steer._program import SteeredProgram, Votes
from margrave.steer._reply import Comparison, Reply, dialog_html
from margrave.steer._start import DialogStart, start_from_model, start_from_table
from margrave.steer._steered import SteeredClassifier
from margrave.steer._strategies import Found, Search, Strategy, get_strategies
from margrave.steer._tuning_data import Candidate, TuningData

NODES, GROW = "nodes", "grow"


@dataclass
class History:
    """Replies as a tree: a request from an earlier step branches off.

    Attributes
    ----------
    replies : list of Reply
        In the order they were given, the start first.
    parents : list of int
        From which step each was asked.
    at : int
        Where the dialog stands.
    undone : list of int
        Steps that were left by undoing, the last one last.
    """

    replies: list[Reply]
    parents: list[int] = field(default_factory=lambda: [0])
    at: int = 0
    undone: list[int] = field(default_factory=list)

    @property
    def reply(self) -> Reply:
        """The reply where the dialog stands."""
        return self.replies[self.at]

    def add(self, reply: Reply, parent: int) -> None:
        """Keep a reply to a request that was made at a step, and stand there."""
        self.replies.append(reply)
        self.parents.append(parent)
        self.at, self.undone = len(self.replies) - 1, []

    def undo(self) -> None:
        """Stand where the request was made."""
        if self.at == 0:
            raise ValueError("Dialog.undo has nothing to undo: the dialog is at its start.")
        self.undone.append(self.at)
        self.at = self.parents[self.at]

    def redo(self) -> None:
        """Take back an undo."""
        if not self.undone:
            raise ValueError("Dialog.redo has nothing to redo.")
        self.at = self.undone.pop()

    def goto(self, step: Any) -> None:
        """Stand at a step."""
        self.at, self.undone = self.number(step, "goto"), []

    def number(self, step: Any, method: str) -> int:
        """A step that exists."""
        whole = isinstance(step, int | np.integer) and not isinstance(step, bool)
        if not whole or not 0 <= step < len(self.replies):
            raise ValueError(
                f"Dialog.{method} needs a step from 0 to {len(self.replies) - 1}; got {step!r}."
            )
        return int(step)


class Dialog(Saved):
    r"""A conversation over the confusion matrix of a trained classifier or committee.

    Parameters
    ----------
    model : classifier, or list of classifiers or of (name, classifier)
        Trained; a list is a committee, weighed on the tuning samples.
    X_tune, y_tune : array-like
        Labelled samples that no member was trained on.
    positive : label, optional
        The class that ``fp`` and ``fn`` speak of; by default the second of two.
    groups : array-like, optional
        Which tuning samples belong together.

    Attributes
    ----------
    history : tuple of Reply
        All replies, the start first.
    position : int
        Where the dialog stands in it.

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
    pos is positive  called neg  called pos  rejected
    true neg                227          26         0
    true pos                 56          75         0
    >>> reply = dialog.prefer("fn <= 30")
    >>> reply.met, reply.strategy
    (True, 'move')
    >>> print(*reply.changes, sep="\n")
    neg called pos: 26 -> 68 (+42)
    pos called neg: 56 -> 30 (-26)
    """

    _given: Any = None  # the table, for who wants to look at its rows as they were

    def __init__(
        self,
        model: Any,
        X_tune: Any,
        y_tune: ArrayLike,
        *,
        positive: Any = None,
        groups: ArrayLike | None = None,
    ) -> None:
        self._open(start_from_model(model, X_tune, y_tune, positive, groups))

    def _open(self, start: DialogStart) -> None:
        """Begin with a model and its tuning samples."""
        self._path: str | None = None
        self._data = start.data
        self._ledger = Ledger(start.certify, start.notes, start.estimator)
        candidate = start.candidate
        matrix = self._data.matrix(candidate.predictions)
        first = Reply(None, True, matrix, matrix, "start", 0.0, 1, True, candidate=candidate)
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
        n_jobs: int | None = None,
        random_state: Any = None,
        callback: Callable[[Progress], Any] | None = None,
    ) -> Self:
        """A dialog for a user who has a table only.

        A part of the samples is set aside for the certificate; a committee, or a martingale
        program, is trained on the rest, and the dialog is about what it says of samples that it
        was not trained on.

        Parameters
        ----------
        X : array-like or data frame
            Samples; columns of a data frame may be numbers, categories, dates and texts.
        y : array-like of shape (n_samples,)
            Labels.
        committee : classifier, or list of classifiers or of (name, classifier), optional
            What is trained, on X as it is. By default :func:`margrave.catalogue.default_committee`,
            on encoded columns. Names of the catalogue, such as ``["logistic", "svm"]``, are trained
            on encoded columns too; ``"martingale"`` is a program that can be steered node by node.
        levels : int, default=3
            Of that program: its layers of learners.
        tune : float in (0, 1), optional
            The share of the samples not set aside that is kept to tune on, so that nothing is
            trained on it. None shares by cross-fitting; with ``"martingale"`` alone it is 0.4.
        certify : "auto", float in (0, 1), None or (X, y), default="auto"
            The share set aside for the certificate, or samples of its own. "auto" is a fifth, or
            more if `guarantee` needs it; None sets nothing aside.
        guarantee : Preference or str, optional
            What is going to be asked for, so that enough is set aside.
        confidence : float, default=0.95
            At which it is going to be promised.
        positive : label, optional
            The class that ``fp`` and ``fn`` speak of; by default the second of two.
        groups : array-like of shape (n_samples,), optional
            Samples that belong together stay in one part; one of each group certifies.
        time : array-like of shape (n_samples,), optional
            When samples came: the latest certify, and members are judged on what came later than
            what they were trained on.
        n_jobs : int, optional
            Models trained at a time.
        random_state : int, RandomState or None, optional
            How samples are parted, and the members' seed.
        callback : callable, optional
            Called with a :class:`Progress` after each model that is trained.

        Returns
        -------
        Dialog
        """
        check_confidence(confidence, "Dialog.from_data")
        wanted = None if guarantee is None else Preference(guarantee)
        dialog = cls.__new__(cls)
        dialog._open(
            start_from_table(
                X,
                y,
                committee=committee,
                levels=levels,
                tune=tune,
                certify=certify,
                guarantee=wanted,
                delta=1 - confidence,
                positive=positive,
                groups=groups,
                time=time,
                n_jobs=n_jobs,
                random_state=random_state,
                callback=callback,
            )
        )
        dialog._given = X
        return dialog

    def __getstate__(self) -> dict[str, Any]:
        """What a file holds: without the table that its user has already."""
        return {name: value for name, value in vars(self).items() if name != "_given"}

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
            f"Dialog({n} tuning samples, {len(self.classes)} classes, members: {members}; "
            f"step {self.position} of {len(self.history) - 1})"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.reply}"

    def _repr_html_(self) -> str:
        """The matrix where it stands, and the last steps."""
        return dialog_html(self)

    def open(self, *, browser: bool = True) -> str:
        """Open the studio on this dialog: what is done there is done to it, and the reverse.

        It is served by this process, for users of this machine, until the process ends.

        Parameters
        ----------
        browser : bool, default=True
            Whether to open it in a browser; else its address is given only.

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
        """Where the dialog stands in its history."""
        return self._history.at

    @property
    def reply(self) -> Reply:
        """The reply where the dialog stands."""
        return self._history.reply

    @property
    def confusion(self) -> Confusion:
        """The tuning samples by the current model."""
        return self.reply.after

    @property
    def model(self) -> SteeredClassifier:
        """The current model, which promises nothing yet."""
        return self.reply.model

    def undo(self) -> Reply:
        """Go back to where the last request was made.

        Returns
        -------
        Reply
        """
        self._history.undo()
        return self.reply

    def redo(self) -> Reply:
        """Take back an undo.

        Returns
        -------
        Reply
        """
        self._history.redo()
        return self.reply

    def goto(self, step: int) -> Reply:
        """Go to a step of the history; a request from there branches off.

        Parameters
        ----------
        step : int
            Its number; 0 is the start.

        Returns
        -------
        Reply
        """
        self._history.goto(step)
        return self.reply

    def compare(self, a: int, b: int) -> Comparison:
        """Two steps side by side.

        Parameters
        ----------
        a, b : int
            Their numbers.

        Returns
        -------
        Comparison
        """
        steps = [self._history.number(step, "compare") for step in (a, b)]
        first, second = (self._history.replies[step] for step in steps)
        codes = self._data.codes
        one, two = (reply.candidate.predictions for reply in (first, second))
        return Comparison(
            first,
            second,
            int((one != two).sum()),
            int(((one == codes) & (two != codes)).sum()),
            int(((one != codes) & (two == codes)).sum()),
        )

    # Asking

    def prefer(
        self,
        *wants: Preference | str,
        keep: bool = False,
        strategies: Sequence[str | Strategy] | None = None,
        callback: Callable[[Reply], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Ask for a confusion matrix that keeps to a preference.

        Of the options that meet it the one with fewest errors in cells of which it does not speak
        is taken; what it allows is spent. A dear way ("reweight", "select", "retune") has to
        have fewer by two standard errors of the difference, else the moved decision stays. If none
        meets it, the nearest is taken.

        Parameters
        ----------
        *wants : str or Preference
            What can be afforded, such as ``"fp <= 5"`` or ``dialog.confusion.edit(...)``.
        keep : bool, default=False
            Whether what was asked where the dialog stands still holds, except for the words that
            are said anew.
        strategies : list of str, optional
            Among "move", "reject", "reweight", "select" and "retune", or ways of your own; all if
            left out.
        callback : callable, optional
            Called with each better :class:`Reply` as it is found; a true answer stops the search.
            So does Ctrl-C. The best so far is kept.
        stop : callable, optional
            Asked between long steps; a true answer stops the search, from another thread say.

        Returns
        -------
        Reply
        """
        n_before = len(self.history)
        replies = self.replies(*wants, keep=keep, strategies=strategies, stop=stop)
        try:
            for reply in replies:
                if callback is not None and callback(reply):
                    break
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
        keep: bool = False,
        strategies: Sequence[str | Strategy] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Generator[Reply]:
        """Replies as they are found: one at once from the cheap ways, then better ones.

        The last is final. To stop early, leave the loop: the best so far is kept.

        Parameters
        ----------
        *wants, keep, ways, stop
            As in :meth:`prefer`.

        Yields
        ------
        Reply
        """
        allowed = get_strategies(strategies, "Dialog.prefer")
        wanted = self._wanted(wants, keep)
        current, (base, data) = self.reply.candidate, self._base()
        known = [base] if current.scorer is base.scorer else [base, current]
        search = Search(wanted, data, known, allowed, stop)
        return self._replies(search, self.position, self.confusion)

    def _replies(self, search: Search, stand: int, before: Confusion) -> Generator[Reply]:
        """The replies of a search; whatever ends it, the best so far is kept."""
        given = False
        try:
            for found in search.run():
                reply = self._reply(search.wanted, before, found)
                if found.final:
                    self._keep(reply, stand)
                given = not found.final
                yield reply
        except (GeneratorExit, KeyboardInterrupt):
            if given:
                last = search.found(final=True, cancelled=True)
                self._keep(self._reply(search.wanted, before, last), stand)
            raise

    def _reply(self, wanted: Preference, before: Confusion, found: Found) -> Reply:
        """What was found, as a reply."""
        after = self._data.matrix(found.candidate.predictions)
        return Reply(
            wanted,
            wanted.met(after),
            before,
            after,
            found.candidate.strategy,
            found.seconds,
            found.n_candidates,
            found.final,
            found.cancelled,
            candidate=found.candidate,
        )

    def _wanted(self, wants: Sequence[Preference | str], keep: bool) -> Preference:
        """What is asked, checked against the samples."""
        if not wants:
            raise PreferenceError("Dialog.prefer needs a preference such as 'fp <= 5'; got none.")
        wanted = Preference(*wants).keeping(self.reply.preference if keep else None, self.confusion)
        wanted.check_counts(self.confusion)
        return wanted

    # What is possible

    def frontier(self, slow: bool = False) -> Frontier:
        """What is reachable before asking: false positives against false negatives.

        Parameters
        ----------
        slow : bool, default=False
            Whether to try the dear ways for it, for half of either mistake. Without them the answer
            comes at once: the start, each member alone, and what the dialog has found.

        Returns
        -------
        Frontier
            Of the positive class against the rest, for decisions that answer always.
        """
        data = self._data
        if data.positive is None:
            raise ValueError(
                "Dialog.frontier needs a positive class; with more than two classes say which: "
                "Dialog(..., positive=...)."
            )
        candidates = [reply.candidate for reply in self.history]
        if slow:
            tried = [
                strategy for strategy in get_strategies(None, "Dialog.frontier") if strategy.slow
            ]
            base, made = self._base()
            candidates += offer_candidates(made, base, data.matrix(base.predictions), tried)
        return dialog_frontier(data, candidates)

    def support(self, confidence: float = 0.95) -> str:
        """What the certify samples can support.

        Parameters
        ----------
        confidence : float, default=0.95
            Of the promise.

        Returns
        -------
        str
        """
        check_confidence(confidence, "Dialog.support")
        return self._ledger.support(self.classes, confidence)

    # Taking the model away

    def accept(
        self,
        X_certify: Any = None,
        y_certify: ArrayLike | None = None,
        *,
        confidence: float = 0.95,
        reserve: bool = False,
    ) -> SteeredClassifier:
        """The current model with a promise for new samples, set on samples no step has seen.

        Counts of the tuning samples are promised as rates. The decision is set anew, so that the
        promise holds; the certify samples are spent by it.

        Parameters
        ----------
        X_certify, y_certify : array-like, optional
            Fresh samples; by default those that `from_data` set aside.
        confidence : float, default=0.95
            With which probability the promise holds.
        reserve : bool, default=False
            Whether to spend half of what may be spent, so that another model can be accepted on
            the same samples later; else all of it.

        Returns
        -------
        SteeredClassifier

        Raises
        ------
        GuaranteeError
            If the samples cannot support the promise, with how many would; or if they are spent.
        """
        check_confidence(confidence, "Dialog.accept")
        model = self._ledger.model(
            self.reply,
            self.position,
            self.history[0].candidate,
            self._data,
            X_certify,
            y_certify,
            confidence,
            reserve,
        )
        if self._path is not None:
            self.save(self._path)
        return model

    def autosave(self, path: str | Path) -> None:
        """Write the dialog to a file now and after every step, so that it can be loaded again.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced.
        """
        self._path = str(path)
        self.save(path)

    # Martingale programs

    @property
    def program(self) -> Program | None:
        """The martingale program that answers where the dialog stands, on the tuning samples.

        Its counts are the local confusion matrices of the nodes, and its ends answer as the current
        model does, a moved decision included (where that gives no answer: by their votes). None if
        the model is no program, or was trained on the tuning samples.

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
        pos is positive  called neg  called pos  rejected
        true neg                 30          13         0
        true pos                 30          31         0
        """
        steered = SteeredProgram.of(self.reply.candidate, self._data)
        return None if steered is None else steered.program()

    def weak_nodes(self, threshold: float = 0.3) -> tuple[Votes, ...]:
        """Nodes of the program to be asked about first (I-SELECT).

        Parameters
        ----------
        threshold : float, default=0.3
            A node is weak if its advantage, the share of right answers less ½, is smaller for some
            class. With 1 all nodes that can be asked are given.

        Returns
        -------
        tuple of tuple of int
            Their votes, in the order in which the program grows; of nodes with a learner to which
            tuning samples of all its classes come.

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
            raise ValueError(
                f"Dialog.weak_nodes needs threshold to be a number; got {threshold!r}."
            )
        return tuple(self._steered("weak_nodes").weak(threshold))

    def tune_nodes(
        self,
        wants: Mapping[Votes, Preference | str | None],
        *,
        callback: Callable[[Step], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Ask for the local confusion matrices of nodes (I-ALL).

        The nodes are tuned on the tuning samples that come to them; those below get other samples
        and are trained again, with their settings. What was asked of the global matrix where the
        dialog stands still holds: if its decision had been moved for it, that is moved anew, by
        the rule of the way "move"; else most votes win.

        Parameters
        ----------
        wants : mapping from votes to Preference or str
            What is wanted of which node, such as ``{(0, 0): "fp <= 9"}`` for the root.
        callback : callable, optional
            Called with a :class:`~margrave.martingale.Step` after each node; a true answer leaves
            the others as they are.
        stop : callable, optional
            Asked after each node; a true answer likewise.

        Returns
        -------
        Reply
            With way "nodes"; ``asked`` has the account of each node, ``note`` tells of it, and
            ``met`` is about the global preference.

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
        steered, stand, began = self._steered("tune_nodes"), self.position, perf_counter()
        asked = _checked_wants(wants, steered)
        stopped = stop or (lambda: False)
        with warnings.catch_warnings(), threadpool_limits(1):  # matrices are small
            warnings.simplefilter("ignore", NotMetWarning)  # the reply tells
            tuned = steered.model.tune(
                asked,
                steered.rows,
                steered.labels,
                granularity="all",
                positive=self._data.positive,
                callback=lambda step: bool(callback and callback(step)) or stopped(),
            )
        tuning = cast(Tuning, tuned.tuning_)
        told = tuning.asked
        if not told and not tuning.cancelled:
            raise ValueError(
                "Dialog.tune_nodes needs nodes to which tuning samples of every class come that "
                f"they know, to be judged by; to none of {', '.join(map(str, asked))} they do. "
                "weak_nodes(1) gives those that can be asked."
            )
        preference = self.reply.preference
        if all(_met_before(one) for _, one in told):
            candidate = replace(steered.candidate, strategy=NODES)
        else:
            candidate = steered.with_program(NODES, tuned, preference)
        note = _told_nodes(
            told, () if tuning.cancelled else sorted(asked.keys() - tuning.nodes.keys())
        )
        return self._taken(candidate, stand, began, note, cancelled=tuning.cancelled, asked=told)

    def grow(
        self,
        levels: int = 1,
        *,
        callback: Callable[[Progress], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Grow the program by some levels; nodes that are there stay, tuned ones too.

        What was asked of the global matrix still holds, as in :meth:`tune_nodes`.

        Parameters
        ----------
        levels : int, default=1
            How many more.
        callback : callable, optional
            Called with a :class:`Progress` after each level; a true answer stops there.
        stop : callable, optional
            Asked after each level; a true answer stops there.

        Returns
        -------
        Reply
            With way "grow".

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="martingale", random_state=0)
        >>> dialog.grow(2).note
        'grown by 2 levels to 5'
        """
        steered, stand, began = self._steered("grow"), self.position, perf_counter()
        if not is_count(levels):
            raise ValueError(
                f"Dialog.grow needs levels to be a whole number of at least 1; got {levels!r}."
            )
        model, name = steered.model, self.reply.candidate.scorer.committee.names[0]
        done, cancelled = 0, False
        while done < levels and not cancelled:
            with threadpool_limits(1):  # matrices are small
                model = model.grow()
            done += 1
            told = callback is not None and callback(Progress(done, levels, name))
            cancelled = done < levels and bool(told or (stop is not None and stop()))
        candidate = steered.with_program(GROW, model, self.reply.preference)
        note = f"grown by {done} level{'' if done == 1 else 's'} to {model.n_levels}"
        return self._taken(candidate, stand, began, note, cancelled=cancelled)

    def _steered(self, method: str) -> SteeredProgram:
        """The current program, or why there is none."""
        found = SteeredProgram.of(self.reply.candidate, self._data)
        if found is None:
            raise ValueError(
                f"Dialog.{method} needs a dialog over a martingale program that was not trained "
                "on the tuning samples: Dialog.from_data(X, y, committee='martingale'), or "
                "Dialog(model, X_tune, y_tune) with a trained MartingaleBoostClassifier."
            )
        return found

    def _taken(
        self,
        candidate: Candidate,
        stand: int,
        began: float,
        note: str,
        *,
        cancelled: bool,
        asked: tuple[tuple[Votes, Tuning], ...] = (),
    ) -> Reply:
        """A step of the program, kept."""
        wanted, after = self.reply.preference, self._data.matrix(candidate.predictions)
        reply = Reply(
            wanted,
            wanted is None or wanted.met(after),
            self.confusion,
            after,
            candidate.strategy,
            perf_counter() - began,
            1,
            True,
            cancelled,
            note,
            asked,
            candidate=candidate,
        )
        self._keep(reply, stand)
        return reply

    def _keep(self, reply: Reply, stand: int) -> None:
        """Add a step, and write it down if that was asked for."""
        self._history.add(reply, stand)
        if self._path is not None:
            self.save(self._path)

    def _base(self) -> tuple[Candidate, TuningData]:
        """Where requests begin: the program as last made by hand, or the start; and its samples."""
        history, at = self._history, self.position
        while at and history.replies[at].strategy not in (NODES, GROW):
            at = history.parents[at]
        candidate, data = history.replies[at].candidate, self._data
        if at == 0:
            return candidate, data
        committee = candidate.scorer.committee
        return candidate, replace(data, committee=committee, raw=committee.raw(data.X.X))


def _checked_wants(
    wants: Mapping[Votes, Preference | str | None], steered: SteeredProgram
) -> dict[Votes, Preference | str]:
    """What is wanted of nodes that are there."""
    owner = "Dialog.tune_nodes"
    if not isinstance(wants, Mapping):
        raise TypeError(
            f"{owner} needs a mapping from the votes of nodes to preferences, such as "
            f"{{(0, 0): 'fp <= 9'}}; got {type(wants).__name__}."
        )
    asked = {key: want for key, want in wants.items() if want is not None}
    if not asked:
        raise ValueError(f"{owner} needs a preference for at least one node; got none.")
    nodes = steered.model.program_.nodes
    there = [nodes[place].position for place in sorted(steered.model.learners_)]
    for key in asked:
        if key not in there:
            shown = ", ".join(str(tuple(map(int, one))) for one in there[:6])
            more = f", ... ({len(there)} in all)" if len(there) > 6 else ""
            raise ValueError(
                f"{owner} needs nodes with a learner, by their votes: {shown}{more}; got {key!r}."
            )
    return asked


def _met_before(node: Tuning) -> bool:
    return node.preference is not None and node.preference.met(node.before)


def _told_nodes(asked: tuple[tuple[Votes, Tuning], ...], others: Iterable[Any]) -> str:
    """Which node was asked for what, what became of it, and which could not be asked."""
    parts = []
    for votes, node in asked:
        said = f"{node.shortfall:g} short"
        if node.met:
            said = "met before" if _met_before(node) else "met"
        parts.append(f"{votes} {node.preference}: {said}")
    parts += [f"{votes} cannot be asked: samples of some class do not come" for votes in others]
    return "; ".join(parts) if parts else "no node was asked"
