"""The ledger: which part of the error probability δ of a certification set is used.

Choosing among ten certified candidates on the same samples breaks a guarantee at δ = 5 % in 31 % of
the cases. Therefore each certificate uses a part of δ, whatever its outcome: the first one uses all
of it, and there is no second; or it uses a half, the next one a quarter, and so on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from margrave._errors import ParameterError
from margrave.confusion import Preference
from margrave.steer._certificate import Certificate
from margrave.steer._certify import (
    CertificationSet,
    certify,
    check_guarantee,
    describe_support,
    make_certification_set,
)
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Reply
from margrave.steer._steered import SteeredClassifier, certified_model
from margrave.steer._tuning_data import Candidate, TuningData


@dataclass(frozen=True)
class Account:
    """The error probability of one certification set, and how much of it is used.

    Attributes
    ----------
    samples : str
        Fingerprint of the certification set.
    delta : float
        The error probability: one minus the confidence of the first certificate.
    used : tuple of float
        The part that each certificate used, in order.
    """

    samples: str
    delta: float
    used: tuple[float, ...] = ()

    @property
    def used_up(self) -> bool:
        """Whether no further certificate is possible on this certification set."""
        return bool(self.used) and not self.left

    @property
    def left(self) -> float:
        """The error probability that is left."""
        used = sum(self.used)
        return 0.0 if used >= self.delta * (1 - 1e-9) else self.delta - used

    def next_part(self, delta: float, reserve: bool) -> float:
        """Return what the next certificate may use: all that is left, or half with `reserve`.

        Raises
        ------
        GuaranteeError
            If nothing is left, or if the first certificate has another confidence.
        """
        if abs(delta - self.delta) > 1e-12:
            raise GuaranteeError(
                "All certificates on one certification set need the same confidence, here "
                f"{1 - self.delta:.10g}; got {1 - delta:.10g}.",
                code="confidence",
                confidence=1 - self.delta,
                received=1 - delta,
            )
        if not self.left:
            raise GuaranteeError(
                "The certification set is used up: another guarantee needs new labelled samples. "
                "Choosing among several guarantees tested on the same samples would break them "
                "more often than the confidence says. Pass new samples to "
                "accept(X_certify, y_certify). To keep half of the error probability for later, "
                "call accept(reserve=True) the first time.",
                code="used_up",
                n_certificates=len(self.used),
            )
        return self.left / 2 if reserve else self.left

    def with_used(self, part: float) -> Account:
        """Return the account after a certificate that used this part."""
        return replace(self, used=(*self.used, part))


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
class Ledger:
    """The accepted models of a dialog, and the account of each certification set.

    Attributes
    ----------
    certification_set : CertificationSet or None
        The certification set that was set aside, if any.
    notes : tuple of str
        Notes about the samples for every certificate.
    estimator : classifier, list or None
        The estimator that the dialog was made with.
    accounts : dict of Account
        The accounts by the fingerprint of their certification set.
    accepted : list of Accepted
        The accepted models, in order.
    """

    certification_set: CertificationSet | None
    notes: tuple[str, ...]
    estimator: Any = None
    accounts: dict[str, Account] = field(default_factory=dict)
    accepted: list[Accepted] = field(default_factory=list)

    def account(self) -> Account | None:
        """Return the account of the certification set that was set aside, if there is one."""
        if self.certification_set is None:
            return None
        name = self.certification_set.name
        return self.accounts.get(name, Account(name, 0.0))

    def support(self, classes: tuple[Any, ...], confidence: float) -> str:
        """Describe the limits that the certification set can support."""
        if self.certification_set is None:
            return "There is no certification set: accept needs X_certify and y_certify."
        account = self.accounts.get(self.certification_set.name)
        if account is not None and not account.left:
            return "The certification set is used up: another guarantee needs new labelled samples."
        delta = 1 - confidence if account is None else min(1 - confidence, account.left)
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
        confidence: float,
        reserve: bool,
    ) -> SteeredClassifier:
        """Certify the model of a step, or return the one accepted before for the same request."""
        confidence = float(confidence)
        wanted, certification_set = self._begin(reply, data, X, y)
        known = self._known(step, certification_set, confidence)
        if known is not None:
            return known
        account, part = self._next_use(certification_set, confidence, reserve)
        certified = certify(
            wanted,
            reply.candidate,
            start,
            data,
            certification_set,
            confidence=confidence,
            delta=part,
            number=len(account.used) + 1,
            notes=self.notes,
            use=self._record_use(account, part),
        )
        model = certified_model(
            certified,
            estimator=self.estimator,
            preference=str(wanted),
            positive=data.positive,
            confidence=confidence,
            duplicates="independent" if data.used is None else "group",
        )
        self.accepted.append(Accepted(step, certification_set.name, model))
        return model

    def check(
        self, reply: Reply, step: int, data: TuningData, confidence: float, reserve: bool
    ) -> None:
        """Raise the error of `model` that can be known without the certification set's scores."""
        wanted, certification_set = self._begin(reply, data, None, None)
        if self._known(step, certification_set, confidence) is None:
            _, part = self._next_use(certification_set, confidence, reserve)
            check_guarantee(wanted, reply.candidate.decision, data, certification_set, part)

    def _begin(
        self, reply: Reply, data: TuningData, X: Any, y: ArrayLike | None
    ) -> tuple[Preference, CertificationSet]:
        """Return what to guarantee, and the certification set."""
        if reply.preference is None:
            raise GuaranteeError(
                "Dialog.accept needs a preference to guarantee; this step has none. Request one "
                "first, such as prefer('fp <= 1%').",
                code="no_preference",
            )
        return reply.preference, self._certification_set(data, X, y)

    def _known(
        self, step: int, certification_set: CertificationSet, confidence: float
    ) -> SteeredClassifier | None:
        """Return the model that was accepted before for the same request."""
        for accepted in self.accepted:
            same = (accepted.step, accepted.samples) == (step, certification_set.name)
            if same and accepted.certificate.confidence == confidence:
                return accepted.model
        return None

    def _next_use(
        self, certification_set: CertificationSet, confidence: float, reserve: bool
    ) -> tuple[Account, float]:
        """Return the account of a certification set, and the part that the next use may take."""
        name, delta = certification_set.name, 1 - confidence
        account = self.accounts.get(name, Account(name, delta))
        return account, account.next_part(delta, reserve)

    @contextmanager
    def _record_use(self, account: Account, part: float) -> Iterator[None]:
        """Record that part of the error probability is used, also if an error ends the use."""
        used = True
        try:
            yield
        except GuaranteeError as error:
            used = error.used_up
            raise
        finally:
            if used:
                self.accounts[account.samples] = account.with_used(part)

    def _certification_set(self, data: TuningData, X: Any, y: ArrayLike | None) -> CertificationSet:
        """Return the certification set of the caller, else the one that was set aside."""
        if (X is None) != (y is None):
            raise ParameterError(
                "Dialog.accept needs both X_certify and y_certify, or neither; got only one.",
                parameter="X_certify" if X is None else "y_certify",
                allowed="both, or neither",
                received=None,
            )
        if y is not None:
            return make_certification_set(X, y, data.committee, data.used, "Dialog.accept")
        if self.certification_set is None:
            raise GuaranteeError(
                "Dialog.accept needs a certification set, and none was set aside. Pass labelled "
                "samples that no step has used as X_certify and y_certify.",
                code="no_certification_set",
            )
        return self.certification_set
