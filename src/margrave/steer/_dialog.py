"""The dialog: a user says which mistakes can be afforded, and is shown what that costs.

"Interactive Martingale Boosting", figures 1 to 3: the user edits the confusion matrix, the system
answers with a model that keeps to it, and so on until it is accepted. Here every answer is held
against samples that what it was learned from does not include, and what is accepted is certified
on samples that no step has seen.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike

from margrave.preference import Preference
from margrave.steer._acceptance import Acceptance
from margrave.steer._decision import plain
from margrave.steer._frontier import Frontier
from margrave.steer._history import History
from margrave.steer._issue import check_confidence
from margrave.steer._material import Option
from margrave.steer._members import Progress
from margrave.steer._program_steps import ProgramSteps
from margrave.steer._reachable import frontier, offered
from margrave.steer._reply import Reply
from margrave.steer._search import Search, wanted_of
from margrave.steer._show import Shown
from margrave.steer._start import Start, from_model, from_table
from margrave.steer._steered import SteeredClassifier
from margrave.steer._ways import Way, chosen


class Dialog(Shown, ProgramSteps):
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
    >>> reply.met, reply.way
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
        self._open(from_model(model, X_tune, y_tune, positive, groups))

    def _open(self, start: Start) -> None:
        """Begin with a model and its tuning samples."""
        self._path, self._material = None, start.material
        self._codes = start.material.codes
        self._acceptance = Acceptance(start.certify, start.notes, start.estimator)
        option = Option("start", start.scorer, start.held, plain(start.material.k))
        matrix = self._material.matrix(option.answers)
        first = Reply(None, True, matrix, matrix, "start", 0.0, 1, True, option=option)
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
        promise: Preference | str | None = None,
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
            What is trained, on X as it is; six different ones on encoded columns if None. Their
            names, such as ``["line", "boosted-trees"]``, choose among them; ``"program"`` is a
            :class:`~margrave.martingale.MartingaleBoostClassifier`, on encoded columns too, that
            can be steered node by node.
        levels : int, default=3
            Of that program: its layers of learners.
        tune : float in (0, 1), optional
            The share of the samples not set aside that is kept to tune on, so that nothing is
            trained on it. None shares by cross-fitting; with ``"program"`` alone it is 0.4.
        certify : "auto", float in (0, 1), None or (X, y), default="auto"
            The share set aside for the certificate, or samples of its own. "auto" is a fifth, or
            more if `promise` needs it; None sets nothing aside.
        promise : Preference or str, optional
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
        wanted = None if promise is None else Preference(promise)
        dialog = cls.__new__(cls)
        dialog._open(
            from_table(
                X,
                y,
                committee=committee,
                levels=levels,
                tune=tune,
                certify=certify,
                promise=wanted,
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
        return self._material.labels

    @property
    def members(self) -> tuple[str, ...]:
        """The members' names."""
        return tuple(self._material.panel.names)

    def __repr__(self) -> str:
        n, members = len(self._material.codes), ", ".join(self.members)
        return (
            f"Dialog({n} tuning samples, {len(self.classes)} classes, members: {members}; "
            f"step {self.position} of {len(self.history) - 1})"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{self.reply}"

    # Asking

    def prefer(
        self,
        *wants: Preference | str,
        keep: bool = False,
        ways: Sequence[str | Way] | None = None,
        callback: Callable[[Reply], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Ask for a confusion matrix that keeps to a preference.

        Of the options that meet it the one with fewest errors in cells of which it does not speak
        is taken; what it allows is spent. A dear way ("reweigh", "select", "retune") has to
        have fewer by two standard errors of the difference, else the moved decision stays. If none
        meets it, the nearest is taken.

        Parameters
        ----------
        *wants : str or Preference
            What can be afforded, such as ``"fp <= 5"`` or ``dialog.confusion.edit(...)``.
        keep : bool, default=False
            Whether what was asked where the dialog stands still holds, except for the words that
            are said anew.
        ways : list of str, optional
            Among "move", "reject", "reweigh", "select" and "retune", or ways of your own; all if
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
        replies = self.replies(*wants, keep=keep, ways=ways, stop=stop)
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
        ways: Sequence[str | Way] | None = None,
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
        allowed = chosen(ways, "Dialog.prefer")
        wanted = self._wanted(wants, keep)
        stand, current, (base, material) = self.position, self.reply.option, self._base()
        known = [base] if current.scorer is base.scorer else [base, current]
        search = Search(wanted, material, known, self.confusion, allowed, stop or (lambda: False))
        return search.replies(lambda reply: self._keep(reply, stand))

    def _wanted(self, wants: Sequence[Preference | str], keep: bool) -> Preference:
        """What is asked, checked against the samples."""
        return wanted_of(wants, self.reply.preference if keep else None, self.confusion)

    # What is possible

    def frontier(self, dear: bool = False) -> Frontier:
        """What is reachable before asking: false positives against false negatives.

        Parameters
        ----------
        dear : bool, default=False
            Whether to try the dear ways for it, for half of either mistake. Without them the answer
            comes at once: the start, each member alone, and what the dialog has found.

        Returns
        -------
        Frontier
            Of the positive class against the rest, for decisions that answer always.
        """
        material = self._material
        if material.positive is None:
            raise ValueError(
                "Dialog.frontier needs a positive class; with more than two classes say which: "
                "Dialog(..., positive=...)."
            )
        options = [reply.option for reply in self.history]
        if dear:
            tried = [way for way in chosen(None, "Dialog.frontier") if way.dear]
            base, made = self._base()
            options += offered(made, base, material.matrix(base.answers), tried)
        return frontier(material, options)

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
        return self._acceptance.support(self.classes, confidence)

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
        PromiseError
            If the samples cannot support the promise, with how many would; or if they are spent.
        """
        check_confidence(confidence, "Dialog.accept")
        model = self._acceptance.model(
            self._history, self._material, X_certify, y_certify, confidence, reserve
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
