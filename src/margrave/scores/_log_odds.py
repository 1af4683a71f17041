"""Log-odds in place of members' probabilities."""

from __future__ import annotations

from scipy.special import logit

from margrave._typing import Flags, Floats

# A probability of 0 is a matter of how many trees there are. As if so many labels of each class
# were noise, probabilities run from here to 1 less this, in their order.
NOISE = 0.02


def replace_by_log_odds(raw: Floats, log_odds: Flags) -> Floats:
    """Raw values, with log-odds in place of probabilities."""
    if not log_odds.any():
        return raw
    values = raw.copy()
    p = (raw[:, log_odds] + 1) / 2
    values[:, log_odds] = logit(NOISE + (1 - 2 * NOISE) * p)
    return values
