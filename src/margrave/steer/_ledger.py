"""What is left of certify samples: each certificate on them spends some of δ.

Choosing among ten accepted candidates on the same samples breaks a 5 % promise 31 % of the time. So
the first certificate may take all of δ, and then there is no second; or half of it, the next a
quarter, and so on, whatever the samples said.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import ArrayLike

from margrave.steer._certify import (
    CertificationSet,
    certify,
    describe_support,
    make_certification_set,
)
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._reply import Reply
from margrave.steer._steered import SteeredClassifier
from margrave.steer._tuning_data import Candidate, TuningData


@dataclass(frozen=True)
class Account:
    """What was spent on some certify samples.

    Attributes
    ----------
    samples : str
        What tells them from others.
    delta : float
        What there was to spend: one less the confidence of the first certificate.
    spent : tuple of float
        In order.
    """

    samples: str
    delta: float
    used: tuple[float, ...] = ()

    @property
    def left(self) -> float:
        """What is left."""
        used = sum(self.used)
        return 0.0 if used >= self.delta * (1 - 1e-9) else self.delta - used

    def share(self, delta: float, reserve: bool) -> float:
        """What the next certificate may spend: all, or half if some is to be left.

        Raises
        ------
        GuaranteeError
            If nothing is left, or it was opened at another confidence.
        """
        if abs(delta - self.delta) > 1e-12:
            raise GuaranteeError(
                f"These certify samples were opened at confidence {1 - self.delta:.10g}, which is "
                f"what all certificates on them share; got {1 - delta:.10g}."
            )
        if not self.left:
            raise GuaranteeError(
                "These certify samples are spent: a promise was set or tried on them, and choosing "
                "between several would break the promise more often than it says. Bring fresh "
                "ones (accept(X_certify, y_certify)), or accept(reserve=True) the first time to "
                "keep half of what may be spent for later."
            )
        return self.left / 2 if reserve else self.left

    def with_used(self, share: float) -> Account:
        """The account after a certificate."""
        return replace(self, used=(*self.used, share))


@dataclass(frozen=True, eq=False)
class Accepted:
    """A model that was accepted.

    Attributes
    ----------
    step : int
        Where the dialog stood.
    samples : str
        The certify samples.
    model : SteeredClassifier
        The model.
    """

    step: int
    samples: str
    model: SteeredClassifier


@dataclass(eq=False)
class Ledger:
    """What may be promised in a dialog.

    Attributes
    ----------
    part : CertifyPart or None
        The samples set aside.
    notes : tuple of str
        What a certificate should say about the samples.
    estimator : classifier, list or None
        What was steered, as it was given.
    accounts : dict of Account
        What was spent, by the certify samples.
    accepted : list of Accepted
        Models.
    """

    part: CertificationSet | None
    notes: tuple[str, ...]
    estimator: Any = None
    accounts: dict[str, Account] = field(default_factory=dict)
    accepted: list[Accepted] = field(default_factory=list)

    def support(self, classes: tuple[Any, ...], confidence: float) -> str:
        """What the samples set aside can support."""
        if self.part is None:
            return "Nothing is set aside for a certificate: accept needs X_certify and y_certify."
        return describe_support(self.part.codes, classes, confidence)

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
        """The model of a step with a promise; the same again for the same step and samples."""
        if reply.preference is None:
            raise GuaranteeError(
                "Dialog.accept needs something to promise: ask for it first, such as "
                "prefer('fp <= 1%')."
            )
        part = self._part(data, X, y)
        for known in self.accepted:
            certificate = known.model.certificate_
            if certificate is not None and (known.step, known.samples, certificate.confidence) == (
                step,
                part.name,
                confidence,
            ):
                return known.model
        delta = 1 - confidence
        account = self.accounts.get(part.name, Account(part.name, delta))
        share, spent = account.share(delta, reserve), True
        try:
            found = certify(
                reply.preference,
                reply.candidate,
                start,
                data,
                part,
                confidence=confidence,
                delta=share,
                number=len(account.used) + 1,
                notes=self.notes,
            )
        except GuaranteeError as error:
            spent = error.used_up
            raise
        finally:
            if spent:
                self.accounts[part.name] = account.with_used(share)
        model = SteeredClassifier._from_certified(
            found,
            estimator=self.estimator,
            preference=str(reply.preference),
            positive=data.positive,
            confidence=confidence,
        )
        self.accepted.append(Accepted(step, part.name, model))
        return model

    def _part(self, data: TuningData, X: Any, y: ArrayLike | None) -> CertificationSet:
        """The certify samples: those given, or those set aside."""
        if (X is None) != (y is None):
            raise ValueError("Dialog.accept needs both X_certify and y_certify, or neither.")
        if y is not None:
            return make_certification_set(X, y, data.committee, "Dialog.accept")
        if self.part is None:
            raise GuaranteeError(
                "Dialog.accept needs X_certify and y_certify, samples that no step has seen: "
                "nothing was set aside for the certificate."
            )
        return self.part
