"""What is left of certify samples: each certificate on them spends some of δ.

Choosing among ten accepted candidates on the same samples breaks a 5 % promise 31 % of the time. So
the first certificate may take all of δ, and then there is no second; or half of it, the next a
quarter, and so on, whatever the samples said.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from margrave.steer._promise import PromiseError


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
    spent: tuple[float, ...] = ()

    @property
    def left(self) -> float:
        """What is left."""
        used = sum(self.spent)
        return 0.0 if used >= self.delta * (1 - 1e-9) else self.delta - used

    def share(self, delta: float, reserve: bool) -> float:
        """What the next certificate may spend: all, or half if some is to be left.

        Raises
        ------
        PromiseError
            If nothing is left, or it was opened at another confidence.
        """
        if abs(delta - self.delta) > 1e-12:
            raise PromiseError(
                f"These certify samples were opened at confidence {1 - self.delta:.10g}, which is "
                f"what all certificates on them share; got {1 - delta:.10g}."
            )
        if not self.left:
            raise PromiseError(
                "These certify samples are spent: a promise was set or tried on them, and choosing "
                "between several would break the promise more often than it says. Bring fresh "
                "ones (accept(X_certify, y_certify)), or accept(reserve=True) the first time to "
                "keep half of what may be spent for later."
            )
        return self.left / 2 if reserve else self.left

    def spending(self, share: float) -> Account:
        """The account after a certificate."""
        return replace(self, spent=(*self.spent, share))
