"""The models that the user of a dialog has accepted, and how they are certified."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from margrave._errors import ParameterError
from margrave.confusion import Preference
from margrave.steer._certificate import Certificate
from margrave.steer._certify import (
    CertificationSet,
    Prospect,
    certify,
    describe_support,
    make_certification_set,
    name_request,
)
from margrave.steer._copies import has_few_values
from margrave.steer._expected import ExpectedCertificate
from margrave.steer._ledger import Account, Ledger, RowSample
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Reply
from margrave.steer._row_hashes import ROW
from margrave.steer._split import what_to_count
from margrave.steer._steered import SteeredClassifier, certified_model
from margrave.steer._table_split import check_one_per_sample
from margrave.steer._tuning_data import Candidate, TuningData


@dataclass(frozen=True, eq=False)
class Accepted:
    """A model that the user has accepted.

    Attributes
    ----------
    step : int
        The current step of the dialog at that time.
    samples : str
        Fingerprint of the certification set.
    model : SteeredClassifier
        The certified model.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
    >>> reply = dialog.prefer("fn <= 30%")
    >>> model = dialog.accept()
    >>> (accepted,) = dialog.accepted
    >>> accepted.step, accepted.certificate.preference, accepted.model is model
    (1, 'fn <= 30%', True)
    """

    step: int
    samples: str
    model: SteeredClassifier

    @property
    def certificate(self) -> Certificate:
        """The certificate of the model."""
        if self.model.certificate_ is None:
            raise RuntimeError("An accepted model has a certificate.")
        return self.model.certificate_


@dataclass(eq=False)
class Acceptances:
    """The accepted models of a dialog, and what the next one is certified with.

    Attributes
    ----------
    certification_set : CertificationSet or None
        The certification set that was set aside, if any.
    rows : RowSample or None
        Identifies the data that it was taken from.
    estimator : classifier, list or None
        The estimator that the dialog was made with.
    ledger : Ledger
        The accounts of certification data.
    accepted : list of Accepted
        The accepted models, in order.
    """

    certification_set: CertificationSet | None
    rows: RowSample | None
    estimator: Any = None
    ledger: Ledger = field(default_factory=Ledger)
    accepted: list[Accepted] = field(default_factory=list)

    def account(self) -> Account | None:
        """Return the account of the certification set that was set aside, if there is one."""
        return None if self.rows is None else self.ledger.account(self.rows)

    def support(self, classes: tuple[Any, ...], confidence: float) -> str:
        """Describe the limits that the certification set can support."""
        if self.certification_set is None:
            return "There is no certification set: accept needs X_certify and y_certify."
        account = self.account()
        delta = 1 - confidence
        if account is not None and account.uses:
            if account.used_up:
                return (
                    "The certification set is used up: another guarantee needs new labelled "
                    f"samples. Earlier guarantees: {'; '.join(map(str, account.uses))}."
                )
            delta = min(delta, account.left)
        n_by_class = np.bincount(self.certification_set.codes, minlength=len(classes)).tolist()
        return describe_support(dict(zip(classes, n_by_class, strict=True)), confidence, delta)

    def model(
        self,
        reply: Reply,
        step: int,
        start: Candidate,
        data: TuningData,
        X: Any,
        y: ArrayLike | None,
        groups: ArrayLike | None,
        confidence: float,
        reserve: bool,
        anyway: bool,
    ) -> SteeredClassifier:
        """Certify the model of a step, or return the one accepted before for the same request."""
        confidence = float(confidence)
        wanted, certification_set, rows = self._begin(reply, data, X, y, groups)
        known = self._known(step, certification_set, confidence)
        if known is not None:
            return known
        certified = certify(
            wanted,
            reply.candidate,
            start,
            data,
            certification_set,
            confidence=confidence,
            use=lambda name: self.ledger.use(
                rows,
                name=name,
                preference=str(wanted.limits),
                delta=1 - confidence,
                reserve=reserve,
            ),
            part=lambda name: self._part(rows, name, 1 - confidence, reserve),
            anyway=anyway,
        )
        model = certified_model(
            certified,
            estimator=self.estimator,
            preference=str(wanted),
            positive=data.positive,
            confidence=confidence,
            duplicates=data.used.duplicates,
        )
        self.accepted.append(Accepted(step, certification_set.name, model))
        return model

    def check(
        self,
        reply: Reply,
        step: int,
        data: TuningData,
        confidence: float,
        reserve: bool,
        anyway: bool,
    ) -> None:
        """Raise the error of `model` that can be known without the certification set's labels."""
        wanted, certification_set, rows = self._begin(reply, data, None, None, None)
        if self._known(step, certification_set, confidence) is not None:
            return
        prospect = Prospect.of(wanted, reply.candidate, data, certification_set.codes, confidence)
        account = self.ledger.account(rows, 1 - confidence)
        if account.uses:  # the same request may be one of them
            scores = reply.candidate.scorer.score_encoded(certification_set.X.X)
            name = name_request(prospect.plan, scores, certification_set.codes, confidence)
            if account.has(name):
                return
        prospect.check(account.next_part(1 - confidence, reserve), anyway)

    def expect(
        self,
        reply: Reply,
        data: TuningData,
        X: Any,
        y: ArrayLike | None,
        groups: ArrayLike | None,
        confidence: float,
        reserve: bool,
    ) -> ExpectedCertificate:
        """Return what the certificate of a step will probably state."""
        wanted, certification_set, rows = self._begin(reply, data, X, y, groups)
        part = self.ledger.account(rows, 1 - confidence).next_part(1 - confidence, reserve)
        codes = certification_set.codes
        return Prospect.of(wanted, reply.candidate, data, codes, confidence).expect(part)

    def _begin(
        self,
        reply: Reply,
        data: TuningData,
        X: Any,
        y: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> tuple[Preference, CertificationSet, RowSample]:
        """Return what to guarantee, the certification set, and the rows of its account."""
        if reply.preference is None:
            raise GuaranteeError(
                "Dialog.accept needs a preference to guarantee; this step has none. Request one "
                "first, such as prefer('fp <= 1%').",
                code="no_preference",
            )
        return reply.preference, *self._certification_set(reply.preference, data, X, y, groups)

    def _part(self, rows: RowSample, name: str, delta: float, reserve: bool) -> float:
        """Return what a request may use: the same as before, if it is the same request."""
        return self.ledger.account(rows, delta).part_of(name, delta, reserve)

    def _known(
        self, step: int, certification_set: CertificationSet, confidence: float
    ) -> SteeredClassifier | None:
        """Return the model that was accepted before for the same request."""
        for accepted in self.accepted:
            same = (accepted.step, accepted.samples) == (step, certification_set.name)
            if same and accepted.certificate.confidence == confidence:
                return accepted.model
        return None

    def _certification_set(
        self,
        wanted: Preference,
        data: TuningData,
        X: Any,
        y: ArrayLike | None,
        groups: ArrayLike | None,
    ) -> tuple[CertificationSet, RowSample]:
        """Return the certification set of the caller, else the one that was set aside."""
        if (X is None) != (y is None):
            raise ParameterError(
                "Dialog.accept needs both X_certify and y_certify, or neither; got only one.",
                parameter="X_certify" if X is None else "y_certify",
                allowed="both, or neither",
                received=None,
            )
        if y is None and groups is not None:
            allowed = "None without X_certify"
            raise ParameterError.of("Dialog.accept", "groups", allowed, "groups")
        if y is not None:
            owner, one_of = "Dialog.accept", ROW
            if groups is not None:
                groups = check_one_per_sample(groups, len(np.asarray(y)), "groups", owner)
                one_of = what_to_count(wanted, data.codes, data.labels, data.positive)
            own = make_certification_set(
                *(X, y, data.committee, data.used, data.X.X, owner),
                encoded=True,
                groups=groups,
                one_of=one_of,
            )
            counted = not data.used.together or has_few_values(X, encoded=True)
            return own, RowSample.of(X, counted=counted)
        if self.certification_set is None or self.rows is None:
            raise GuaranteeError(
                "Dialog.accept needs a certification set, and none was set aside. Pass labelled "
                "samples that no step has used as X_certify and y_certify.",
                code="no_certification_set",
            )
        return self.certification_set, self.rows
