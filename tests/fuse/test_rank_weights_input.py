"""What `rank_margin_weights` refuses, and what it names as wrong."""

import numpy as np
import pytest

from margrave import Scores
from margrave.fuse import rank_margin_weights

GOOD = [[0.1, 0.2], [0.3, -0.4]]


@pytest.mark.parametrize(
    ("scores", "y", "settings", "match"),
    [
        ([[0.1, 2.0], [0.3, -0.4]], [0, 1], {}, r"\bscores\b.*-0\.4"),
        ([[0.1, np.nan], [0.3, -0.4]], [0, 1], {}, r"\bscores\b.*NaN"),
        ([0.1, 0.2], [0, 1], {}, r"\bscores\b.*\(2,\)"),
        (GOOD, [0, 1, 1], {}, r"\by\b.*\(3,\)"),
        (GOOD, [1, 1], {}, r"\by\b"),
        (GOOD, [0, 1], {"positive": 7}, r"\bpositive\b.*\b7\b"),
        (GOOD, [0, 1], {"sample_weight": [0, 1]}, r"\bpositive\b.*\b1\b.*sample_weight"),
        (GOOD, [0, 1], {"sample_weight": [1, 0]}, r"\bpositive\b.*\b1\b.*sample_weight"),
        (GOOD, [0, 1], {"sample_weight": [-1, 1]}, "sample_weight.*-1"),
        (GOOD, [0, 1], {"sample_weight": [1]}, r"sample_weight.*\(1,\)"),
        ([["a", "b"], ["c", "d"]], [0, 1], {}, r"\bscores\b.*'a'"),
        (Scores.from_arrays(scores=GOOD, classes=["a", "b"]), ["b", "c"], {}, "'c'"),
        (GOOD, [0, 1], {"nu": 1.5}, r"\bnu\b"),
        (GOOD, [0, 1], {"nu": "cv"}, r"\bnu\b"),
        (GOOD, [0, 1], {"tol": 0}, r"\btol\b"),
        (GOOD, [0, 1], {"max_iter": 0}, "max_iter"),
        (GOOD, [0, 1], {"negatives": "easiest 10%"}, r"\bnegatives\b"),
        ([[0.5, 0.5], [0.5, 0.5]], [0, 1], {}, r"rank_margin_weights.*\bmember"),
    ],
)
def test_bad_input_is_refused_by_name(scores, y, settings, match):
    with pytest.raises(ValueError, match=match):
        rank_margin_weights(scores, y, **settings)
