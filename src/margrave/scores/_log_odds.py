"""Log-odds of the members' probabilities."""

from __future__ import annotations

from scipy.special import logit

from margrave._typing import Flags, Floats

# Whether a forest predicts probability 0 depends on the number of its trees. So probabilities are
# mapped linearly to [NOISE, 1 - NOISE], as if this fraction of each class's labels were wrong.
NOISE = 0.02


def replace_by_log_odds(raw: Floats, log_odds: Flags) -> Floats:
    """Return raw values with log-odds in place of ``2 p - 1``, for the members in `log_odds`."""
    if not log_odds.any():
        return raw
    values = raw.copy()
    p = (raw[:, log_odds] + 1) / 2
    values[:, log_odds] = logit(NOISE + (1 - 2 * NOISE) * p)
    return values
