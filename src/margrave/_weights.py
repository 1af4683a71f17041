"""Sample weights as a user gives them."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray


def checked_weights(sample_weight: ArrayLike, n_samples: int, owner: str) -> NDArray[np.float64]:
    """One finite weight a sample, none negative and not all zero."""
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"{owner} needs sample_weight with a number for each of {n_samples} samples; "
            f"got shape {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        _refuse(owner, float(weights.min()), float(weights.max()))
    return weights


def refuse_no_weight(owner: str) -> NoReturn:
    """Refuse weights that are all zero, where they were seen a part at a time."""
    _refuse(owner, 0.0, 0.0)


def _refuse(owner: str, low: float, high: float) -> NoReturn:
    raise ValueError(
        f"{owner} needs sample_weight with finite numbers, none negative and not all zero; "
        f"got {low} to {high}."
    )
