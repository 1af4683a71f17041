"""Accepting models: the certify samples, what is left of them, and what was accepted on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from margrave._typing import Codes
from margrave.steer._history import History
from margrave.steer._issue import issued
from margrave.steer._ledger import Account
from margrave.steer._material import Material, Option
from margrave.steer._promise import PromiseError, planned, supported
from margrave.steer._reply import Reply
from margrave.steer._search import may_reject
from margrave.steer._start import CertifyPart, certify_part
from margrave.steer._steered import SteeredClassifier

# Samples are the same if they are to so many digits; so many have to be different from each other
# to tell, and so many of the new ones among them.
_DIGITS, _DISTINCT, _MOST = 6, 0.95, 0.5


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


def support_of(codes: Codes, classes: tuple[Any, ...], confidence: float) -> str:
    """What samples of these classes can support."""
    sizes = np.bincount(codes, minlength=len(classes)).tolist()
    lines = [f"{sum(sizes)} samples are set aside. At confidence {confidence:.9g} they support"]
    for label, n in zip(classes, sizes, strict=True):
        rate = supported(n, 1 - confidence)
        lines.append(f"  limits of {rate:.2f}% and more on the mistakes with {label} ({n})")
    return "\n".join(lines)


@dataclass(eq=False)
class Acceptance:
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

    part: CertifyPart | None
    notes: tuple[str, ...]
    estimator: Any = None
    accounts: dict[str, Account] = field(default_factory=dict)
    accepted: list[Accepted] = field(default_factory=list)

    def support(self, classes: tuple[Any, ...], confidence: float) -> str:
        """What the samples set aside can support."""
        if self.part is None:
            return "Nothing is set aside for a certificate: accept needs X_certify and y_certify."
        return support_of(self.part.codes, classes, confidence)

    def model(
        self,
        history: History,
        material: Material,
        X: Any,
        y: ArrayLike | None,
        confidence: float,
        reserve: bool,
    ) -> SteeredClassifier:
        """The current model with a promise; the same again for the same step and samples."""
        reply, step, start = history.reply, history.at, history.replies[0].option
        if reply.preference is None:
            raise PromiseError(
                "Dialog.accept needs something to promise: ask for it first, such as "
                "prefer('fp <= 1%')."
            )
        part = self._part(material, X, y)
        for known in self.accepted:
            certificate = known.model.certificate_
            if certificate is not None and (known.step, known.samples, certificate.confidence) == (
                step,
                part.name,
                confidence,
            ):
                return known.model
        if seen_before(material, part):
            raise PromiseError(
                "Dialog.accept needs samples that no step has seen; these are tuning samples."
            )
        model = self._certified(reply, start, material, part, confidence, reserve)
        self.accepted.append(Accepted(step, part.name, model))
        return model

    def _certified(
        self,
        reply: Reply,
        start: Option,
        material: Material,
        part: CertifyPart,
        confidence: float,
        reserve: bool,
    ) -> SteeredClassifier:
        """Set the decision and the promise, and write down what was spent."""
        wanted, option = reply.preference, reply.option
        if wanted is None:
            raise RuntimeError("There is nothing to promise.")
        delta = 1 - confidence
        account = self.accounts.get(part.name, Account(part.name, delta))
        share = account.share(delta, reserve)
        judge = material.judge(wanted)
        plan = planned(
            wanted, option.decision, option.held, judge, len(part.codes), may_reject(wanted)
        )
        scores, at_start = (one.scorer.of_encoded(part.X.X) for one in (option, start))
        spent = True
        try:
            decision, certificate = issued(
                plan,
                scores,
                part.codes,
                asked=str(wanted),
                way=reply.way,
                tuning=reply.after,
                confidence=confidence,
                delta=share,
                number=len(account.spent) + 1,
                notes=self.notes,
                start=plan.matrix(start.decision.answers(at_start), part.codes),
            )
        except PromiseError as error:
            spent = error.looked
            raise
        finally:
            if spent:
                self.accounts[part.name] = account.spending(share)
        return SteeredClassifier._made(
            replace(option.scorer, panel=option.scorer.panel.forgetting()),
            decision,
            plan,
            certificate,
            estimator=self.estimator,
            preference=str(wanted),
            positive=material.positive,
            confidence=confidence,
        )

    def _part(self, material: Material, X: Any, y: ArrayLike | None) -> CertifyPart:
        """The certify samples: those given, or those set aside."""
        if (X is None) != (y is None):
            raise ValueError("Dialog.accept needs both X_certify and y_certify, or neither.")
        if y is not None:
            return certify_part(X, y, material.panel, "Dialog.accept")
        if self.part is None:
            raise PromiseError(
                "Dialog.accept needs X_certify and y_certify, samples that no step has seen: "
                "nothing was set aside for the certificate."
            )
        return self.part


def seen_before(material: Material, part: CertifyPart) -> bool:
    """Whether most of the certify samples are tuning samples.

    Where many tuning samples are alike, new ones may well be like them: that tells nothing.
    """
    known, new = material.X.X, part.X.X
    if not (isinstance(known, np.ndarray) and isinstance(new, np.ndarray)):
        known, new = material.raw, material.panel.raw(new)
    rows = {row.tobytes() for row in np.round(known, _DIGITS)}
    if len(rows) < _DISTINCT * len(known):
        return False
    return bool(np.mean([row.tobytes() in rows for row in np.round(new, _DIGITS)]) > _MOST)
