"""Array types, each defined once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Scores, weights and other real numbers."""

Ints = NDArray[np.int64]
"""Counts."""

Codes = NDArray[np.intp]
"""Positions of classes (-1 for a rejected sample), or of samples."""

Flags = NDArray[np.bool_]
"""Masks."""

AnyFloats = NDArray[np.floating[Any]]
AnyInts = NDArray[np.integer[Any]]
