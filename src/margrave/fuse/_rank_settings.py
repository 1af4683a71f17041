"""What a `RankMarginClassifier` is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrave.committee import check_tuning
from margrave.fuse._combination import Asked
from margrave.fuse._rank_weights import hardest_share, is_number
from margrave.fuse._scales import SCALES


def checked_settings(given: Any) -> Asked:
    """The settings of a RankMarginClassifier; refuse those that mean nothing."""
    owner = "RankMarginClassifier"
    if given.scale not in SCALES:
        raise ValueError(
            f"{owner} needs scale to be one of {', '.join(SCALES)}; got {given.scale!r}."
        )
    if given.nu != "cv" and not (is_number(given.nu) and 0 <= given.nu <= 1):
        raise ValueError(f"{owner} needs nu to be 'cv' or a number in [0, 1]; got {given.nu!r}.")
    if given.tol != "auto" and not (is_number(given.tol) and 0 < given.tol < np.inf):
        raise ValueError(
            f"{owner} needs tol to be 'auto' or a finite number above 0; got {given.tol!r}."
        )
    check_tuning(given.tuning, owner)
    if not isinstance(given.calibrate, bool | np.bool_):
        raise ValueError(f"{owner} needs calibrate to be True or False; got {given.calibrate!r}.")
    return Asked(
        scale=given.scale,
        nu=given.nu,
        hardest=hardest_share(given.negatives, owner),
        tol=given.tol,
        calibrate=bool(given.calibrate),
    )
