"""A steered classifier, with its certificate and its model card."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from margrave import _labels
from margrave._atomic_write import atomic_write
from margrave._errors import MargraveError, ParameterError
from margrave._extensions import load_extension
from margrave._json import SCHEMA_VERSION, json_ready
from margrave._messages import format_count
from margrave._typing import Codes, Floats
from margrave._validation import check_columns, check_samples, is_number
from margrave.committee import FittedMembers
from margrave.confusion import Confusion, Preference
from margrave.martingale import NotMetWarning
from margrave.steer._certificate import Certificate, Check, check_guarantees, warn_if_useless
from margrave.steer._certify import (
    Certified,
    Plan,
    certify,
    check_confidence,
    describe_groups,
    refuse_used_rows,
    renew_certificate,
)
from margrave.steer._copies import Copies, find_copies, has_few_values
from margrave.steer._files import Saved
from margrave.steer._ledger import Grant, Ledger, RowSample
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._row_hashes import (
    AUTO,
    GROUP,
    INDEPENDENT,
    NEAR,
    ONE_OF_GROUP,
    ROW,
    RowHashes,
    UsedRows,
    hash_rows,
    one_of_each_group,
)
from margrave.steer._scorer import Scorer, SingleMember, class_probabilities
from margrave.steer._split import what_to_count
from margrave.steer._start import fit_unsteered, start_from_table
from margrave.steer._strategies import Search, get_strategies
from margrave.steer._table_split import check_one_per_sample
from margrave.steer._thresholds import Decision, default_decision

LIMITS = (
    "The guarantee is for new samples drawn like the certification set. If the data change, "
    "it no longer applies: `check(X, y)` tests it on newly labelled samples, and `recertify(X, y)` "
    "computes a new guarantee.",
    "The guarantee is about rates over many samples, not about a single prediction.",
    "Each interval is two-sided and holds at the stated confidence by itself, not all of them at "
    "once. A guarantee is one-sided, so its limit can be below the upper end of an interval.",
    "The certificate in a model file is not signed: whoever has the file can change it.",
)
"""What a guarantee does not cover."""

# What begins markup in Markdown or HTML within a line: also an entity, an underscore beside a word,
# and an address, which many renderers make a link.
_MARKUP = re.compile(
    r"[\\`*\[|~#$@]|<(?=[A-Za-z/!?])|&(?=[#\w])|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.",
    re.IGNORECASE,
)


def _escape(text: Any) -> str:
    """Escape a user's text for a line of Markdown or a cell of a table."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(str(text).split()))


def _code(text: Any) -> str:
    """Write a user's text as code in a line of Markdown, between enough backquotes."""
    line = " ".join(str(text).split())
    fence = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    edge = " " if "`" in (line[:1], line[-1:]) else ""
    return f"{fence}{edge}{line}{edge}{fence}"


def model_card(model: Any) -> str:
    """Make the model card of a fitted SteeredClassifier."""
    parts = ["# Model card"]
    certificate = model.certificate_
    if certificate is None:
        parts.append("## Guarantee\n\nNone: this model is not certified.")
    else:
        guarantees = "\n".join(f"- {_escape(guarantee)}" for guarantee in certificate.guarantees)
        notes = "".join(f"\n- {_escape(note)}" for note in certificate.remarks)
        parts.append("## Guarantee")
        if certificate.useless:
            reasons = _escape("; ".join(certificate.useless))
            parts.append(f"**Certified, but useless:** {reasons}.")
        parts.append(
            f"{certificate.meaning}:\n\n{guarantees}\n\n"
            f"In plain numbers: {_escape(certificate.describe_errors())}. "
            f"Goal within these limits: {_escape(certificate.goal)}. Computed by "
            f"{certificate.route} on "
            f"the {certificate.confusion.n:,} samples of the certification set, which "
            "training and steering did not use; the certified decision was set on them. "
            f"Certificate {certificate.number} on this set, issued {certificate.issued}.{notes}"
        )
        parts.append(
            "## Measured on the certification set\n\n"
            + _table(certificate.confusion, certificate.cells)
        )
        parts.append("## Measured on the tuning set\n\n" + _table(certificate.tuning))
    parts.append(_describe_model(model))
    parts.append("## Limitations\n\n" + "\n".join(f"- {limit}" for limit in LIMITS))
    return "\n\n".join(parts) + "\n"


def _describe_model(model: Any) -> str:
    """Describe the classes, the columns, and the members with their weights."""
    scorer = model.scorer_
    labels = ", ".join(_code(label) for label in model.classes_.tolist())
    lines = [f"- Classes: {labels}"]
    certificate = model.certificate_
    if certificate is not None:
        if certificate.confusion.positive is not None:
            lines.append(f"- Positive class: {_code(certificate.confusion.positive)}")
        lines.append(
            f"- Requested: {_code(certificate.requested)}; found by the strategy "
            f"`{certificate.strategy}`"
        )
    if model.decision_.rejects:
        lines.append(f"- Rejects close calls: its prediction is then {_code(model.reject_label_)}")
    encoder = scorer.committee.encoder
    if encoder is not None:
        lines.append("- Columns: " + _escape("; ".join(encoder.describe().splitlines())))
    members = [
        f"{_escape(name)} ({type(member).__name__}, weight {weight:.2f})"
        for name, member, weight in zip(
            scorer.committee.names, scorer.committee.members, scorer.weights, strict=True
        )
    ]
    lines.append("- Members: " + ", ".join(members))
    return "## Model\n\n" + "\n".join(lines)


def card_record(model: SteeredClassifier) -> dict[str, Any]:
    """Return what the card of a fitted model states, in values that JSON can hold, and the card."""
    certificate, scorer = model.certificate_, model.scorer_
    members = zip(scorer.committee.names, scorer.committee.members, scorer.weights, strict=True)
    record = {
        "schema_version": SCHEMA_VERSION,
        "classes": model.classes_,
        "positive": positive_class(model),
        "reject_label": model.reject_label_ if model.decision_.rejects else None,
        "columns": getattr(model, "feature_names_in_", None),
        "members": [
            {"name": name, "type": type(member).__name__, "weight": weight}
            for name, member, weight in members
        ],
        "certificate": None if certificate is None else certificate.to_dict(),
        "limitations": LIMITS,
        "card": model_card(model),
    }
    return {name: json_ready(value) for name, value in record.items()}


def _table(matrix: Confusion, cells: Any = ()) -> str:
    """Write a confusion matrix in Markdown, with the intervals of its cells if there are any."""
    heads = ["", *(f"predicted {_escape(label)}" for label in matrix.classes), "rejected"]
    intervals = {
        (cell.true, cell.predicted): f" ({cell.low:.1%} to {cell.high:.1%})" for cell in cells
    }
    rows = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    for true in matrix.classes:
        counts = [
            f"{matrix[true, predicted]}{intervals.get((true, predicted), '')}"
            for predicted in (*matrix.classes, None)
        ]
        rows.append("| " + " | ".join([f"true {_escape(true)}", *counts]) + " |")
    return "\n".join(rows)


class SteeredClassifier(Saved, ClassifierMixin, BaseEstimator):
    """A classifier that meets a preference, with a certificate for new samples.

    :meth:`Dialog.accept` returns a fitted one. `fit` does the same in one call: it splits the
    samples, fits a committee, steers it to the preference on the tuning set, and computes the
    certificate on the certification set.

    `fit` has no ledger: it does not know the certificates of other fits on the same samples. The
    best of several fits, such as those of ten seeds, breaks its guarantee more often than the
    confidence says. To make several attempts, use a :class:`Dialog` with a :class:`Ledger`. Unlike
    :meth:`Dialog.accept`, `fit` goes on if a useful model is probably not certified.

    Parameters
    ----------
    estimator : classifier, str or list, default=None
        The classifier or committee to fit and steer: classifiers, (name, classifier) pairs and
        names in the catalogue, as the `committee` of :meth:`Dialog.from_data`. None is its default
        committee, on encoded columns.
    preference : str or Preference, default=None
        The errors that you can tolerate, such as ``"fp <= 2%"``, with an optional goal, as in
        ``"fp <= 2%, then fewest errors"``; by default the fewest errors that no limit counts. With
        None the model is not steered, and nothing is guaranteed.
    positive : label, default=None
        The positive class, to which ``fp`` and ``fn`` refer. None is the second of two classes.
    confidence : float, default=0.95
        1 minus the probability that a request ends in a certificate of which a guarantee is
        false.
    certify : "auto", float in (0, 1) or None, default="auto"
        Fraction of the samples in the certification set. "auto" plans how many samples of each
        class the preference needs. None makes no certificate.
    strategies : list of str, default=None
        Strategies to try, among "move", "reject" and "retune". None tries "move" and "reject".
    duplicates : {"auto", "group", "near", "independent"}, default="auto"
        What rows are that are equal or nearly equal; as in :meth:`Dialog.from_data`. For
        :func:`margrave.scale.fit`, "auto" is "group".
    n_jobs : int, default=None
        Number of members to fit in parallel.
    random_state : int, RandomState or None, default=None
        Seed of the split and of the members.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes.
    certificate_ : Certificate or None
        The certificate; None if there is none.
    scorer_ : Scorer
        Computes the scores of samples.
    decision_ : Decision
        Turns scores into predictions.
    reject_label_ : label
        The prediction for a rejected sample. It is never one of the classes.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the columns, if X has any.
    parts_ : dict
        After :func:`margrave.scale.fit` only: the number of rows for "train", "tune" and "certify".

    See Also
    --------
    Dialog : The same step by step, with a reply to each request.
    margrave.scale.fit : Fit on Dask collections, which may be larger than memory.

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
    >>> print(model.certificate_.guarantees[0].sentence)
    at most 10% of malignant predicted benign
    """

    classes_: NDArray[Any]
    scorer_: Scorer
    decision_: Decision
    certificate_: Certificate | None
    reject_label_: Any
    parts_: dict[str, int]
    _plan: Plan | None
    _used: UsedRows | None

    def __init__(
        self,
        estimator: Any = None,
        *,
        preference: Any = None,
        positive: Any = None,
        confidence: float = 0.95,
        certify: Any = "auto",
        strategies: Any = None,
        duplicates: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.preference = preference
        self.positive = positive
        self.confidence = confidence
        self.certify = certify
        self.strategies = strategies
        self.duplicates = duplicates
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Fit a committee, steer it to the preference, and compute the certificate.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            Labels.

        Returns
        -------
        self : SteeredClassifier
            The fitted classifier.

        Raises
        ------
        GuaranteeError
            If the certification set is too small for the guarantee, or the guarantee does not hold
            on it.

        Warns
        -----
        GroupsWarning
            If rows seem to belong together, such as those of a patient: then use `Dialog.from_data`
            with `groups`.
        NotMetWarning
            If no candidate meets the preference on the tuning set. The nearest one is used.
        UselessWarning
            If the model is certified, but useless (:attr:`Certificate.useless`).
        """
        fitted, tuning = self._steer(X, y)
        adopt_fit(self, fitted, tuning)
        return self

    @property
    def _duplicates(self) -> str:
        """What equal rows are: as in `fit` if that was decided there."""
        if self.duplicates != AUTO:
            return str(self.duplicates)
        return GROUP if self._used is None else self._used.duplicates

    def _steer(self, X: Any, y: ArrayLike) -> tuple[SteeredClassifier, Confusion | None]:
        """Return a new steered model, and the matrix of the tuning set."""
        check_samples(X, "SteeredClassifier")
        validate_data(self, X, skip_check_array=True)
        named_or_many = isinstance(self.estimator, str | list | tuple | dict)
        if self.preference is None and not (self.estimator is None or named_or_many):
            scorer = fit_unsteered(self.estimator, X, y, self.positive)
            return make_model(scorer, default_decision(len(scorer.committee.classes))), None
        check_confidence(self.confidence, "SteeredClassifier")
        preference = None if self.preference is None else Preference(self.preference)
        start = start_from_table(
            X,
            y,
            committee=self.estimator,
            certify=None if preference is None else self.certify,
            guarantee=preference,
            delta=1 - self.confidence,
            positive=self.positive,
            duplicates=self.duplicates,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
        first, data = start.candidate, start.data
        if preference is None:
            return make_model(first.scorer, first.decision), None
        preference.check_counts(data.matrix(first.predictions))
        strategies = get_strategies(self.strategies, "SteeredClassifier")
        best = Search(preference, data, [first], strategies).run_to_end()
        tuning = data.matrix(best.predictions)
        if start.certify is None:
            return make_model(best.scorer, best.decision), tuning
        certified = certify(
            preference,
            best,
            first,
            data,
            start.certify,
            confidence=self.confidence,
            anyway=True,
        )
        return certified_model(certified), tuning

    def _card(self) -> dict[str, Any] | None:
        return card_record(self) if hasattr(self, "scorer_") else None

    def _set_columns(self, committee: FittedMembers) -> None:
        """Set the columns: of the encoder, of the table, or of the first member."""
        source, columns = committee.encoder or committee.members[0], committee.columns
        if committee.encoder is None and columns is not None:
            self.n_features_in_ = columns if isinstance(columns, int) else len(columns)
            if not isinstance(columns, int):
                self.feature_names_in_ = np.array(columns, dtype=object)
            return
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(source, name):
                setattr(self, name, getattr(source, name))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict classes; ``reject_label_`` for rejected samples.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        scores = score_samples(self, X)
        codes = self.decision_.predict(scores)
        return _labels.decode(codes, self.classes_, self.reject_label_)

    def decision_function(self, X: Any) -> Floats:
        """Compute the scores on which the decision is made, relative to the threshold.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive if the second of ``classes_`` is predicted, whichever class is
            positive, as in scikit-learn; if the model may reject, 0 for rejected samples only. For
            more classes, the scores with their offsets.
        """
        scores = score_samples(self, X)
        return self.decision_.decision_values(scores)

    @available_if(lambda self: _has_probabilities(self))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """Estimate class probabilities from the scores, before the decision is moved.

        The predicted class may differ from the most probable one, because the threshold of a
        steered model is usually not at 0.5.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of ``classes_``.
        """
        scores = score_samples(self, X)
        return class_probabilities(scores, self.scorer_.combine)

    def confusion(self, X: Any, y: ArrayLike) -> Confusion:
        """Compute the confusion matrix of labelled samples.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Samples.
        y : array-like of shape (n_samples,)
            True labels.

        Returns
        -------
        Confusion
            Counts of true and predicted classes, and of rejected samples.
        """
        return Confusion.of(
            y,
            self.predict(X),
            classes=self.classes_.tolist(),
            positive=positive_class(self),
            reject_label=self.reject_label_,
        )

    def check(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None, *, level: float = 0.05
    ) -> Check:
        """Test whether the guarantees still hold on newly labelled samples.

        Samples count as in the certificate: one of each set of copies, and with groups one of each
        group, or of each group and class. Which one depends on the samples only.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Samples that have been labelled since the certificate was issued. Rows that the model
            was built from would always support its guarantees: if more than half of the samples
            are such rows, they are refused; if some are, the result says how many. A model knows
            its rows unless :func:`margrave.scale.fit` has fitted it, or its equal rows are
            independent observations.
        y : array-like of shape (n_samples,)
            True labels.
        groups : array-like of shape (n_samples,), default=None
            The group of each sample.
        level : float in (0, 1), default=0.05
            Largest probability of a false alarm, if the guarantees hold.

        Returns
        -------
        Check
            True unless there is an alarm; ``print`` shows the test of each guarantee.

        Raises
        ------
        GuaranteeError
            If the model was built from most of the samples.
        MargraveError
            If the model has no certificate.

        Examples
        --------
        >>> import numpy as np
        >>> from margrave import datasets
        >>> from margrave.steer import SteeredClassifier
        >>> from sklearn.naive_bayes import GaussianNB
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> model = SteeredClassifier(
        ...     GaussianNB(), preference="fn <= 30%", strategies=["move"], random_state=0
        ... ).fit(X[:600], y[:600])
        >>> bool(model.check(X[600:], y[600:]))
        True
        >>> model.check(X[600:], np.full(168, "pos")).alarm
        True
        """
        owner = "SteeredClassifier.check"
        check_certified(self, owner)
        scores, y = score_samples(self, X), _labels.natural(y)
        check_consistent_length(scores, y)
        codes, rows = _labels.encode(y, self.classes_, f"{owner}: y"), hash_samples(self, X)
        sets = self._find_copies(X, codes).sets
        if groups is not None:
            groups = check_one_per_sample(groups, len(codes), "groups", owner)
        predicted = self.decision_.predict(scores)
        return check_predictions(self, predicted, codes, rows, level, owner, sets, groups)

    def _find_copies(self, X: Any, codes: Codes) -> Copies:
        encoded = self.scorer_.committee.encoder is not None
        return find_copies(X, codes, encoded=encoded, all_near=self._duplicates == NEAR)

    def recertify(
        self,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        *,
        confidence: float | None = None,
        ledger: Ledger | None = None,
        reserve: bool = False,
    ) -> SteeredClassifier:
        """Compute a new decision and certificate for the same scores, on new labelled samples.

        Choosing among several models that were certified on the same samples breaks the guarantee
        more often than the confidence says. Only a ledger prevents this: it refuses samples that
        are used up.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The new certification set: samples that have not been used before. Copies count
            once.
        y : array-like of shape (n_samples,)
            True labels.
        groups : array-like of shape (n_samples,), default=None
            The group of each sample. One sample of each group counts, or of each group and class if
            all limits are on rates within a class.
        confidence : float in (0, 1), default=None
            Confidence of the new certificate. None is the confidence of the current one.
        ledger : Ledger, default=None
            Knows which certification data are used up, and records this use. With None, each call
            may use the whole error probability of the samples.
        reserve : bool, default=False
            Whether to use only half of the error probability that the ledger has left for the
            samples.

        Returns
        -------
        SteeredClassifier
            A new model; this one is not changed.

        Raises
        ------
        GuaranteeError
            If the samples are too few for the guarantee, or the guarantee does not hold on them;
            or if the samples are used up.
        ParameterError
            If `reserve` is true without a ledger.
        ValueError
            If the model has no certificate.

        Warns
        -----
        UselessWarning
            If the new model is certified, but useless (:attr:`Certificate.useless`).
        """
        owner = "SteeredClassifier.recertify"
        if reserve and ledger is None:
            raise ParameterError.of(owner, "reserve", "False without a ledger", reserve)
        check_certified(self, owner)
        scores, y = score_samples(self, X), _labels.natural(y)
        check_consistent_length(scores, y)
        codes = _labels.encode(y, self.classes_, f"{owner}: y")
        use = None
        if ledger is not None:
            counted = self._duplicates == INDEPENDENT or has_few_values(X, encoded=True)
            sample = RowSample.of(X, counted=counted)
            use = partial(ledger.use, sample, reserve=reserve)
        rows = hash_samples(self, X)
        copies = self._find_copies(X, codes)
        copies.check(self._duplicates, self.classes_, GuaranteeError)
        if groups is not None:
            groups = check_one_per_sample(groups, len(codes), "groups", owner)
        return recertify_scores(self, scores, codes, rows, confidence, owner, use, copies, groups)

    def model_card(self) -> str:
        """Describe the model, its guarantee and the limits of this guarantee, in Markdown.

        Returns
        -------
        str
            The model card.
        """
        check_is_fitted(self, "scorer_")
        return model_card(self)

    def to_onnx(self) -> bytes:
        """Convert the model to ONNX, for use without Python.

        The inputs are in double precision. A model of arrays has one input ``X`` of shape
        (n, n_features). A model of tables has one input of shape (n, 1) for each column, with the
        name of the column. A missing number is NaN. Categories are strings without spaces around
        them, whole numbers without decimals, and "" if missing. If a column has the name of an
        output, "_" is appended to it. :func:`margrave.export.onnx_inputs` makes the inputs of a
        table.

        The outputs are ``label``, as from :meth:`predict` (booleans are strings if the model may
        reject); ``score``, as from :meth:`decision_function`; and ``rejected``.

        Returns
        -------
        bytes
            The ONNX model. Its ``metadata_props`` hold the version of Margrave, the preference, the
            certificate, the columns, and the names of members in single precision.

        Raises
        ------
        ExportError
            If a member or a column cannot be converted to ONNX.

        Notes
        -----
        All members of the default committee are computed in double precision. So are linear
        models, support vector machines, trees, forests, martingale programs, scalers and quantile
        transformers among your own members. Their scores equal those of :meth:`decision_function`
        up to rounding, except for a single classifier whose probabilities are within 1e-6 of 0 or
        1. skl2onnx converts all other members. Some of them it converts to single precision only,
        and ``metadata_props`` names these: a score may then differ by a relative error of about
        1e-6, and the prediction for a sample that is this close to a threshold may differ.

        The ONNX model does not validate its input: where :meth:`predict` raises an error, it
        returns a prediction.

        Examples
        --------
        >>> import onnxruntime
        >>> from margrave import datasets
        >>> from margrave.steer import SteeredClassifier
        >>> from sklearn.svm import SVC
        >>> X, y = datasets.load("iris", return_X_y=True)
        >>> model = SteeredClassifier(SVC()).fit(X, y)
        >>> session = onnxruntime.InferenceSession(
        ...     model.to_onnx(), providers=["CPUExecutionProvider"]
        ... )
        >>> label, score, rejected = session.run(None, {"X": X})
        >>> bool((label == model.predict(X)).all())
        True
        """
        check_is_fitted(self, "scorer_")
        data: bytes = load_extension("onnx")(self)
        return data

    def export_onnx(self, path: str | Path) -> None:
        """Write the model to an ONNX file; see :meth:`to_onnx`.

        Parameters
        ----------
        path : str or Path
            The file. An existing file is replaced; if writing fails, it stays unchanged.

        Raises
        ------
        ExportError
            If a member or a column cannot be converted to ONNX.
        """
        data = self.to_onnx()
        with atomic_write(Path(path)) as temporary:
            temporary.write_bytes(data)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.estimator is None  # its encoder imputes
        if self.estimator is not None and hasattr(self.estimator, "__sklearn_tags__"):
            input_tags = get_tags(self.estimator).input_tags
            tags.input_tags.sparse = input_tags.sparse
            tags.input_tags.allow_nan = input_tags.allow_nan
        return tags


def positive_class(model: SteeredClassifier) -> Any:
    """Return the positive class; None with more than two classes and none that is positive."""
    certificate = model.certificate_
    positive = model.positive if certificate is None else certificate.confusion.positive
    return model.classes_.tolist()[1] if positive is None and len(model.classes_) == 2 else positive


def make_model(
    scorer: Scorer,
    decision: Decision,
    plan: Plan | None = None,
    certificate: Certificate | None = None,
    used: UsedRows | None = None,
    **params: Any,
) -> SteeredClassifier:
    """Make a fitted model with these parameters."""
    model = SteeredClassifier(**params)
    model.classes_ = scorer.committee.classes
    model.scorer_, model.decision_ = scorer, decision
    model.certificate_ = certificate
    model.reject_label_ = _labels.default_reject_label(scorer.committee.classes)
    model._plan, model._used = plan, used
    model._set_columns(scorer.committee)
    return model


def certified_model(certified: Certified, **params: Any) -> SteeredClassifier:
    """Make a fitted model with its certificate."""
    return make_model(
        certified.scorer,
        certified.decision,
        certified.plan,
        certified.certificate,
        certified.used,
        **params,
    )


def adopt_fit(
    model: SteeredClassifier,
    fitted: SteeredClassifier,
    tuning: Confusion | None,
    stacklevel: int = 3,
) -> None:
    """Copy the fitted attributes of another model; warn if the preference is not met.

    Parameters
    ----------
    model, fitted : SteeredClassifier
        The model to change, and the model whose attributes it receives.
    tuning : Confusion or None
        The confusion matrix of the tuning set; None if there is no preference.
    stacklevel : int
        The number of calls up to the one that the warning names.
    """
    for name in [name for name in vars(model) if name.endswith("_")]:
        delattr(model, name)
    learned = {name: value for name, value in vars(fitted).items() if name.endswith("_")}
    model.__dict__.update(learned, _plan=fitted._plan, _used=fitted._used)
    preference = None if model.preference is None else Preference(model.preference)
    if preference is not None and tuning is not None and not preference.met(tuning):
        warnings.warn(
            f"SteeredClassifier did not meet '{preference}' on the tuning set: the nearest is "
            f"{format_count(preference.shortfall(tuning))} samples short; "
            f"'{preference.binding(tuning)}' is the limiting constraint.",
            NotMetWarning,
            stacklevel=stacklevel,
        )
    warn_if_useless(fitted.certificate_, "SteeredClassifier", stacklevel + 1)


def check_certified(model: SteeredClassifier, owner: str) -> tuple[Certificate, Plan]:
    """Return the certificate of a model and its plan, or raise an error if it has none."""
    if not isinstance(model, SteeredClassifier):
        raise TypeError(
            f"{owner} needs model to be a SteeredClassifier; got {type(model).__name__}."
        )
    check_is_fitted(model, "scorer_")
    if model.certificate_ is None or model._plan is None:
        raise MargraveError(
            f"{owner} needs a model with a certificate; this model has none. Use the model that "
            "Dialog.accept returns, or fit with a preference.",
            code="no_certificate",
        )
    return model.certificate_, model._plan


def score_samples(model: SteeredClassifier, X: Any) -> Floats:
    """Check the columns of samples and compute their scores, before the decision."""
    check_is_fitted(model, "scorer_")
    if model.scorer_.committee.encoder is None:  # an encoder checks the columns itself
        check_columns(model, X)
    return model.scorer_(X)


def hash_samples(model: SteeredClassifier, X: Any) -> RowHashes | None:
    """Hash samples, to find copies among them and in the rows of a model; None for neither."""
    if model._used is not None:
        return model._used.hash(X)
    if model._duplicates == INDEPENDENT:
        return None
    exact = hash_rows(X)
    return RowHashes(exact, exact)


def check_predictions(
    model: SteeredClassifier,
    predicted: Codes,
    codes: Codes,
    rows: RowHashes | None,
    level: float,
    owner: str,
    sets: Codes | None = None,
    groups: NDArray[Any] | None = None,
) -> Check:
    """Test the guarantees of a model on predictions for new samples, with hashes of these.

    By default the sets of copies are those of equal hashes.
    """
    certificate, plan = check_certified(model, owner)
    if not is_number(level) or not 0 < level < 1:
        raise ParameterError.of(owner, "level", "a number in (0, 1)", level)
    used, notes = model._used, []
    one_of = ROW if used is None else used.one_of
    if groups is None and one_of:
        notes.append("The rates of the certificate are over groups; no groups were passed.")
    one_of = ROW if groups is None else one_of or ONE_OF_GROUP
    if sets is None and rows is not None:
        sets = np.unique(rows.exact, return_inverse=True)[1]
    kept = _choose_counted(model, predicted, codes, sets, groups, one_of)
    if len(kept) < len(codes):
        of = one_of or "set of copies"
        notes.append(f"{len(kept):,} of {len(codes):,} samples count: one of each {of}.")
    matrix, n_used = plan.matrix(predicted[kept], codes[kept]), 0
    if used is not None and rows is not None:
        n_used = refuse_used_rows(used, rows[kept], owner, allowed=0.5)
    return check_guarantees(certificate, plan.preference, matrix, level, n_used, tuple(notes))


def _choose_counted(
    model: SteeredClassifier,
    outcomes: Floats | Codes,
    codes: Codes,
    sets: Codes | None,
    groups: NDArray[Any] | None,
    one_of: str,
) -> Codes:
    """Return the positions of the samples that count, with their scores or predictions."""
    kept = np.arange(len(codes))
    if sets is not None and model._duplicates != INDEPENDENT:
        order = np.lexsort([codes, hash_rows(outcomes)])  # whatever the order of the samples
        kept = np.sort(order[np.unique(sets[order], return_index=True)[1]])
    if groups is not None:
        kept = one_of_each_group(hash_rows(outcomes), codes, groups, one_of, kept)
    return kept


def recertify_scores(
    model: SteeredClassifier,
    scores: Floats,
    codes: Codes,
    rows: RowHashes | None,
    confidence: float | None,
    owner: str,
    use: Callable[..., AbstractContextManager[Grant]] | None = None,
    copies: Copies | None = None,
    groups: NDArray[Any] | None = None,
) -> SteeredClassifier:
    """Make a model with a new decision and certificate, from scores of new samples."""
    certificate, plan = check_certified(model, owner)
    level = certificate.confidence if confidence is None else confidence
    check_confidence(level, owner)
    used, one_of = model._used, ROW
    if groups is None and used is not None and used.one_of != ROW:
        allowed = f"the group of each sample, as the certificate counts one of each {used.one_of}"
        raise ParameterError.of(owner, "groups", allowed, None)
    if groups is not None:
        one_of = what_to_count(plan.preference, codes, plan.classes, plan.positive)
    if rows is not None and used is not None:
        refuse_used_rows(used, rows, owner)
        used = replace(used.with_rows(rows), one_of=one_of)
    if copies is None and rows is not None:
        copies = Copies.equal(rows.exact)
    notes = () if copies is None else copies.notes(model._duplicates, model.classes_)
    if groups is not None:
        notes += (describe_groups(one_of),)
    sets = None if copies is None else copies.sets
    kept = _choose_counted(model, scores, codes, sets, groups, one_of)
    scores, codes = scores[kept], codes[kept]
    if use is not None:
        use = partial(use, preference=certificate.requested, delta=1 - level)
    decision, new = renew_certificate(certificate, plan, scores, codes, level, notes, owner, use)
    warn_if_useless(new, owner, 4)
    params = model.get_params(deep=False)
    return make_model(model.scorer_, decision, plan, new, used, **params)


def _has_probabilities(model: SteeredClassifier) -> bool:
    scorer = getattr(model, "scorer_", None)
    return (
        scorer is None or not isinstance(scorer.combine, SingleMember) or scorer.combine.probability
    )
