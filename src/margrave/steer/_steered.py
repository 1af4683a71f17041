"""A model card: what a steered classifier is, promises and needs, in Markdown."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave import _labels
from margrave._atomic_write import atomic_write
from margrave._dask.blocks import is_dask
from margrave._extensions import load_extension
from margrave._typing import Floats
from margrave._validation import check_columns, is_number
from margrave.committee import FittedMembers
from margrave.confusion import Confusion, Preference
from margrave.martingale import NotMetWarning
from margrave.steer._certificate import Certificate, Check, check_guarantees
from margrave.steer._certify import Certified, Plan, certify, check_confidence, renew_certificate
from margrave.steer._files import Saved
from margrave.steer._scorer import Scorer, SingleMember, class_probabilities, find_regions
from margrave.steer._start import fit_unsteered, start_from_table
from margrave.steer._strategies import Search, get_strategies
from margrave.steer._thresholds import Decision, default_decision

LIMITS = (
    "The promise is for samples like the certify samples. When the world changes, `check(X, y)` on "
    "freshly labelled samples raises an alarm, and `recertify(X, y)` sets the promise anew.",
    "It is about shares over many samples, not about one.",
    "Intervals are each at the stated confidence, not all at once.",
    "A file can be changed by who has it: the certificate in it is not signed.",
)
"""What a promise does not say."""

# What Markdown, or a page made from it, would take for more than text.
_MARKS = str.maketrans({"|": "/", "`": "'", "<": "(", ">": ")", "\n": " ", "\r": " ", "#": " "})


def _plain(words: Any) -> str:
    """A user's words as text in a line of Markdown."""
    return str(words).translate(_MARKS)


def model_card(model: Any) -> str:
    """The card of a fitted SteeredClassifier."""
    parts = ["# Model card", _about(model)]
    certificate = model.certificate_
    if certificate is None:
        parts.append("## Promise\n\nNone: this model was not certified.")
    else:
        told = "\n".join(f"- {_plain(guarantee)}" for guarantee in certificate.guarantees)
        notes = "".join(f"\n- {note}" for note in certificate.remarks)
        parts.append(
            f"## Promise\n\nWith confidence {certificate.confidence:.9g}, for new samples drawn as "
            f"the {certificate.confusion.n} certify samples were:\n\n{told}\n\nSet by "
            f"{certificate.route} on samples that no step had seen; certificate "
            f"{certificate.number} on them, issued {certificate.issued}.{notes}"
        )
        parts.append("## Certify samples\n\n" + _table(certificate.confusion, certificate.cells))
        parts.append("## Tuning samples\n\n" + _table(certificate.tuning))
    parts.append("## Limits\n\n" + "\n".join(f"- {limit}" for limit in LIMITS))
    return "\n\n".join(parts) + "\n"


def _about(model: Any) -> str:
    """Classes, members and their weights."""
    scorer = model.scorer_
    labels = ", ".join(f"`{_plain(label)}`" for label in model.classes_.tolist())
    lines = [f"- Classes: {labels}"]
    certificate = model.certificate_
    if certificate is not None:
        if certificate.confusion.positive is not None:
            lines.append(f"- Positive class: `{_plain(certificate.confusion.positive)}`")
        lines.append(
            f"- Asked for: `{certificate.requested}`; found by the way `{certificate.strategy}`"
        )
    if model.decision_.rejects:
        lines.append(f"- Gives no answer (`{model.reject_label_}`) where it is in doubt")
    encoder = scorer.committee.encoder
    if encoder is not None:
        lines.append("- Columns: " + "; ".join(encoder.describe().splitlines()))
    weighed = "rank-margin weight"
    regions = find_regions(scorer.combine)
    if regions is not None:
        alone = regions is scorer.combine
        weighed = "share of the tuning samples" if alone else "weight"
        lines.append(
            f"- Regions: {regions.leaves.n}, with one member in charge of each"
            + ("" if alone else "; the score is the mean of theirs and of the committee's")
        )
    told = [
        f"{name} ({type(member).__name__}, {weighed} {weight:.2f})"
        for name, member, weight in zip(
            scorer.committee.names, scorer.committee.members, scorer.weights, strict=True
        )
    ]
    lines.append("- Members: " + ", ".join(told))
    return "## Model\n\n" + "\n".join(lines)


def _table(matrix: Confusion, cells: Any = ()) -> str:
    """A matrix in Markdown, with intervals where there are some."""
    heads = ["", *(f"called {_plain(label)}" for label in matrix.classes), "rejected"]
    intervals = {
        (cell.true, cell.answer): f" ({cell.low:.1%} to {cell.high:.1%})" for cell in cells
    }
    rows = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for true in matrix.classes:
        told = [f"{matrix[true, a]}{intervals.get((true, a), '')}" for a in (*matrix.classes, None)]
        rows.append("| " + " | ".join([f"true {_plain(true)}", *told]) + " |")
    return "\n".join(rows)


class SteeredClassifier(Saved, ClassifierMixin, BaseEstimator):
    """A classifier that keeps to a preference, with a certificate for new samples.

    What :meth:`Dialog.accept` returns. It can also be trained by itself: `fit` holds the dialog
    with one request and accepts.

    Parameters
    ----------
    estimator : classifier, list of classifiers or of (name, classifier), default=None
        What is trained and steered; None for the default committee.
    preference : str or Preference, default=None
        Which mistakes can be afforded. With None nothing is steered, kept apart or promised.
    positive : label, default=None
        The class that ``fp`` and ``fn`` speak of; by default the second of two.
    confidence : float, default=0.95
        With which probability the promise is to hold.
    certify : "auto", float in (0, 1) or None, default="auto"
        The share of the samples kept for the certificate; None for no certificate.
    strategies : list of str, default=None
        Among "move", "reject", "reweight", "select" and "retune"; all if None.
    n_jobs : int, default=None
        Models trained at a time.
    random_state : int, RandomState or None, default=None
        How samples are parted, and the members' seed.

    Attributes
    ----------
    classes_ : ndarray
        The labels.
    certificate_ : Certificate or None
        What is promised.
    scorer_, decision_
        How samples are scored, and how scores become answers.
    reject_label_ : label
        What `predict` says where it gives no answer: never a class.
    n_features_in_, feature_names_in_
        As in scikit-learn.
    parts_ : dict
        Of Dask collections only: how many rows "train", "tune" and "certify".

    Notes
    -----
    Of Dask collections at most 100,000 rows train the members, in memory, at most 1,000,000
    certify, and all others are scored block by block to find the best cut: by exact counts, and
    the way "move" only. There have to be two classes; where all promises are rates within a class,
    a rare one certifies with its whole share.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.steer import SteeredClassifier
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = datasets.load("breast_wisconsin", return_X_y=True)
    >>> X = X[:, :5]
    >>> model = SteeredClassifier(
    ...     LogisticRegression(), preference="fn <= 10%", random_state=0
    ... ).fit(X, y)
    >>> print(model.certificate_.promises[0].sentence)
    at most 10 % of malignant called benign
    """

    classes_: NDArray[Any]
    scorer_: Scorer
    decision_: Decision
    certificate_: Certificate | None
    reject_label_: Any
    parts_: dict[str, int]
    _plan: Plan | None

    def __init__(
        self,
        estimator: Any = None,
        *,
        preference: Any = None,
        positive: Any = None,
        confidence: float = 0.95,
        certify: Any = "auto",
        strategies: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.preference = preference
        self.positive = positive
        self.confidence = confidence
        self.certify = certify
        self.strategies = strategies
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Train a committee, steer it to the preference, and set the promise on samples kept apart.

        Parameters
        ----------
        X : array-like, data frame or Dask collection
            Samples.
        y : array-like or Dask collection of shape (n_samples,)
            Labels.

        Returns
        -------
        self

        Raises
        ------
        GuaranteeError
            If the samples cannot support the promise.
        """
        for name in [name for name in vars(self) if name.endswith("_")]:  # learned before
            delattr(self, name)
        if is_dask(X, y):
            made, tuning = load_extension("dask").fit_steered(self, X, y)
        else:
            made, tuning = self._fitted(X, y)
        wanted = None if self.preference is None else Preference(self.preference)
        if wanted is not None and not wanted.met(tuning):
            warnings.warn(
                f"SteeredClassifier did not meet '{wanted}' on the tuning samples: the "
                f"nearest is {wanted.shortfall(tuning):g} samples short, and "
                f"'{wanted.binding(tuning)}' binds.",
                NotMetWarning,
                stacklevel=2,
            )
        return self._adopt(made)

    def _fitted(self, X: Any, y: ArrayLike) -> tuple[SteeredClassifier, Confusion | None]:
        """What is learned from samples in memory, and the matrix of the tuning samples."""
        validate_data(self, X, skip_check_array=True)
        alone = self.estimator is not None and not isinstance(self.estimator, list | tuple | dict)
        if self.preference is None and alone:
            scorer = fit_unsteered(self.estimator, X, y, self.positive)
            return self._from_parts(scorer, default_decision(len(scorer.committee.classes))), None
        check_confidence(self.confidence, "SteeredClassifier")
        wanted = None if self.preference is None else Preference(self.preference)
        start = start_from_table(
            X,
            y,
            committee=self.estimator,
            certify=None if wanted is None else self.certify,
            guarantee=wanted,
            delta=1 - self.confidence,
            positive=self.positive,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        candidate, data = start.candidate, start.data
        if wanted is None:
            return self._from_parts(candidate.scorer, candidate.decision), None
        wanted.check_counts(data.matrix(candidate.predictions))
        search = Search(
            wanted, data, [candidate], get_strategies(self.strategies, "SteeredClassifier")
        )
        *_, found = search.run()
        tuning = data.matrix(found.candidate.predictions)
        if start.certify is None:
            return self._from_parts(found.candidate.scorer, found.candidate.decision), tuning
        made = certify(
            wanted,
            found.candidate,
            candidate,
            data,
            start.certify,
            confidence=self.confidence,
            delta=1 - self.confidence,
            notes=start.notes,
        )
        return self._from_certified(made), tuning

    def _adopt(self, other: SteeredClassifier) -> Self:
        """Become what another has learned."""
        learned = {name: value for name, value in vars(other).items() if name.endswith("_")}
        self.__dict__.update(learned, _plan=other._plan)
        return self

    @classmethod
    def _from_parts(
        cls,
        scorer: Scorer,
        decision: Decision,
        plan: Plan | None = None,
        certificate: Certificate | None = None,
        **params: Any,
    ) -> Self:
        """One that has learned already."""
        made = cls(**params)
        made.classes_ = scorer.committee.classes
        made.scorer_, made.decision_ = scorer, decision
        made.certificate_ = certificate
        made.reject_label_ = _labels.default_reject_label(scorer.committee.classes)
        made._plan = plan
        made._set_columns(scorer.committee)
        return made

    @classmethod
    def _from_certified(cls, found: Certified, **params: Any) -> Self:
        """One that has been certified."""
        return cls._from_parts(
            found.scorer, found.decision, found.plan, found.certificate, **params
        )

    def _set_columns(self, committee: FittedMembers) -> None:
        """The columns of samples: the encoder's, those of the dialog, or the first member's."""
        source, columns = committee.encoder or committee.members[0], committee.columns
        if committee.encoder is None and columns is not None:
            self.n_features_in_ = columns if isinstance(columns, int) else len(columns)
            if not isinstance(columns, int):
                self.feature_names_in_ = np.array(columns, dtype=object)
            return
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))

    def _scores(self, X: Any) -> Floats:
        check_is_fitted(self, "scorer_")
        if self.scorer_.committee.encoder is None:  # which checks for itself
            check_columns(self, X)
        return self.scorer_(X)

    def _predict_blocks(self, method: str, X: Any) -> NDArray[Any]:
        """The same for rows of Dask: an array of Dask, with nothing computed yet."""
        check_is_fitted(self, "scorer_")
        k = len(self.classes_)
        empty = np.zeros((0, k) if k > 2 or method == "predict_proba" else 0)
        if method == "predict":  # in a type that holds every answer there may be
            codes = np.array([0, _labels.REJECTED])[: 1 + self.decision_.rejects]
            empty = _labels.decode(codes, self.classes_, self.reject_label_)[:0]
        answers: NDArray[Any] = load_extension("dask").predict_blocks(
            self, method, X, empty
        )  # to all who ask it is an array
        return answers

    def predict(self, X: Any) -> NDArray[Any]:
        """Answers; ``reject_label_`` where none is given.

        Parameters
        ----------
        X : array-like, data frame or Dask collection
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if is_dask(X):
            return self._predict_blocks("predict", X)
        scores = self._scores(X)
        codes = self.decision_.predict(scores)
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def decision_function(self, X: Any) -> Floats:
        """Scores as they are compared: with two classes above 0 for the second, 0 for no answer.

        Parameters
        ----------
        X : array-like, data frame or Dask collection
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        if is_dask(X):
            return self._predict_blocks("decision_function", X)
        scores = self._scores(X)
        return self.decision_.decision_values(scores)

    @available_if(lambda self: _has_probabilities(self))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities, as the committee sees them: the decision is not at one half.

        Parameters
        ----------
        X : array-like, data frame or Dask collection
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        if is_dask(X):
            return self._predict_blocks("predict_proba", X)
        scores = self._scores(X)
        return class_probabilities(scores, self.scorer_.combine)

    def confusion(self, X: Any, y: ArrayLike) -> Confusion:
        """The confusion matrix of labelled samples.

        Parameters
        ----------
        X, y
            Samples and labels.

        Returns
        -------
        Confusion
        """
        positive = self.certificate_.confusion.positive if self.certificate_ else self.positive
        return Confusion.of(
            y,
            self.predict(X),
            classes=self.classes_.tolist(),
            positive=positive,
            reject_label=self.reject_label_,
        )

    def check(self, X: Any, y: ArrayLike, *, level: float = 0.05) -> Check:
        """Whether the promise is still kept on newly labelled samples.

        Parameters
        ----------
        X, y
            Samples that were labelled since.
        level : float, default=0.05
            How often an alarm may be false while the promise just holds.

        Returns
        -------
        Check
            True unless there is an alarm.
        """
        certificate, plan = self._promised("check")
        if not is_number(level) or not 0 < level < 1:
            raise ValueError(
                f"SteeredClassifier.check needs level to be a number in (0, 1); got {level!r}."
            )
        return check_guarantees(certificate, plan.preference, self.confusion(X, y), level)

    def recertify(self, X: Any, y: ArrayLike, *, confidence: float | None = None) -> Self:
        """The same model with its decision and promise set anew, on fresh labels.

        Parameters
        ----------
        X, y
            Samples that no step has seen. Of Dask collections with more than 1,000,000 rows so
            many are drawn, whatever their classes.
        confidence : float, optional
            As before if left out.

        Returns
        -------
        SteeredClassifier

        Raises
        ------
        GuaranteeError
            If the samples cannot support the promise.
        """
        certificate, plan = self._promised("recertify")
        level = certificate.confidence if confidence is None else confidence
        check_confidence(level, "SteeredClassifier.recertify")
        scores: Any = self._predict_blocks("_scores", X) if is_dask(X) else self._scores(X)
        decision, new = renew_certificate(certificate, plan, scores, y, self.classes_, level)
        return self._from_parts(self.scorer_, decision, plan, new, **self.get_params(deep=False))

    def model_card(self) -> str:
        """What the model is, promises and needs, in Markdown.

        Returns
        -------
        str
        """
        check_is_fitted(self, "scorer_")
        return model_card(self)

    def to_onnx(self) -> bytes:
        """Return the model in the format of ONNX, for other programs to run.

        Its inputs are in double precision: ``X`` of shape (n, n_features) for a model of arrays;
        for one of tables each column by its name, of shape (n, 1). Numbers are NaN where they are
        missing. Categories are texts without spaces around them, whole numbers without decimals,
        and "" where they are missing. A column that is called like an output has a "_" after its
        name.

        Its outputs are ``label``, as :meth:`predict` has it (Booleans are texts if samples may be
        rejected); ``score``, as :meth:`decision_function` has it; and ``rejected``.

        Returns
        -------
        bytes
            The model. Its ``metadata_props`` hold the version of Margrave, preference and
            certificate, the columns, and the members in single precision.

        Raises
        ------
        ExportError
            If a member or a column has no equal in ONNX.

        Notes
        -----
        All members of the default committee are computed in double precision, as are linear
        models, kernel machines, trees, forests, martingale programs, scaling and quantiles in
        members of your own. Scores are then equal to the digits they are rounded to, but for
        probabilities within 1e-6 of 0 or 1 of a model without a committee, of which few digits are
        left. Other members are as skl2onnx has them. Those it has in single precision only, which
        ``metadata_props`` name, may move a score by a millionth of its size: an answer can then
        differ for samples that are so near to a cut.

        No input is checked: where :meth:`predict` would refuse samples, the file answers.

        Examples
        --------
        >>> import onnxruntime
        >>> from margrave import datasets
        >>> from margrave.steer import SteeredClassifier
        >>> from sklearn.svm import SVC
        >>> X, y = datasets.load("iris", return_X_y=True)
        >>> model = SteeredClassifier(SVC()).fit(X, y)
        >>> runs = onnxruntime.InferenceSession(
        ...     model.to_onnx(), providers=["CPUExecutionProvider"]
        ... )
        >>> label, score, rejected = runs.run(None, {"X": X})
        >>> bool((label == model.predict(X)).all())
        True
        """
        check_is_fitted(self, "scorer_")
        made: bytes = load_extension("onnx")(self)
        return made

    def export_onnx(self, path: str | Path) -> None:
        """Write the model to an ONNX file, all of it or nothing; see :meth:`to_onnx`.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced.

        Raises
        ------
        ExportError
            If a member or a column has no equal in ONNX.
        """
        made = self.to_onnx()
        with atomic_write(Path(path)) as beside:
            beside.write_bytes(made)

    def _promised(self, what: str) -> tuple[Certificate, Plan]:
        check_is_fitted(self, "scorer_")
        if self.certificate_ is None or self._plan is None:
            raise ValueError(
                f"SteeredClassifier.{what} needs a certificate; this model promises nothing. "
                "Dialog.accept makes one that does."
            )
        return self.certificate_, self._plan

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None  # the encoder fills them
        if self.estimator is not None and hasattr(self.estimator, "__sklearn_tags__"):
            of = get_tags(self.estimator)
            tags.input_tags.sparse = of.input_tags.sparse
            tags.input_tags.allow_nan = of.input_tags.allow_nan
        return tags


def _has_probabilities(model: SteeredClassifier) -> bool:
    scorer = getattr(model, "scorer_", None)
    return (
        scorer is None or not isinstance(scorer.combine, SingleMember) or scorer.combine.probability
    )
