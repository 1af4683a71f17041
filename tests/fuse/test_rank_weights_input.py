"""What `rank_margin_weights` refuses, and with which words."""

import numpy as np
import pytest

from margrave import Scores
from margrave.fuse import rank_margin_weights

GOOD = [[0.1, 0.2], [0.3, -0.4]]


@pytest.mark.parametrize(
    ("scores", "y", "settings", "message"),
    [
        (
            [[0.1, 2.0], [0.3, -0.4]],
            [0, 1],
            {},
            "rank_margin_weights needs scores in [-1, 1]; got -0.4 to 2. "
            "Scores.from_arrays(decision=...) or (proba=...) brings them there.",
        ),
        (
            [[0.1, np.nan], [0.3, -0.4]],
            [0, 1],
            {},
            "rank_margin_weights needs finite scores; got NaN or infinity.",
        ),
        (
            [0.1, 0.2],
            [0, 1],
            {},
            "rank_margin_weights needs scores with a row per sample and a column per member; "
            "got shape (2,).",
        ),
        (
            GOOD,
            [0, 1, 1],
            {},
            "rank_margin_weights needs y with a label for each of 2 samples; got shape (3,).",
        ),
        (
            GOOD,
            [1, 1],
            {},
            "rank_margin_weights needs y with two classes, or positive=; got 1: 1.",
        ),
        (
            GOOD,
            [0, 1],
            {"positive": 7},
            "rank_margin_weights needs samples of both classes with a weight above 0; "
            "got no positive one.",
        ),
        (
            GOOD,
            [0, 1],
            {"sample_weight": [0, 1]},
            "rank_margin_weights needs samples of both classes with a weight above 0; "
            "got no negative one.",
        ),
        (
            GOOD,
            [0, 1],
            {"sample_weight": [-1, 1]},
            "rank_margin_weights needs sample_weight with finite numbers, none negative and not "
            "all zero; got -1.0 to 1.0.",
        ),
        (
            GOOD,
            [0, 1],
            {"sample_weight": [1]},
            "rank_margin_weights needs sample_weight with a number for each of 2 samples; got "
            "shape (1,).",
        ),
        (
            [["a", "b"], ["c", "d"]],
            [0, 1],
            {},
            "rank_margin_weights needs scores that are numbers; got could not convert string to "
            "float: 'a'.",
        ),
        (
            Scores.from_arrays(scores=GOOD, classes=["a", "b"]),
            ["b", "c"],
            {},
            "rank_margin_weights, y: 'c' is not one of the classes 'a', 'b'.",
        ),
        (
            GOOD,
            [0, 1],
            {"nu": 1.5},
            "rank_margin_weights needs nu in [0, 1], a share of the pairs; got 1.5.",
        ),
        (
            GOOD,
            [0, 1],
            {"nu": "cv"},
            "rank_margin_weights needs nu in [0, 1], a share of the pairs; got 'cv'.",
        ),
        (
            GOOD,
            [0, 1],
            {"tol": 0},
            "rank_margin_weights needs tol to be a finite number above 0; got 0.",
        ),
        (
            GOOD,
            [0, 1],
            {"max_iter": 0},
            "rank_margin_weights needs max_iter to be an integer of at least 1; got 0.",
        ),
        (
            GOOD,
            [0, 1],
            {"negatives": "easiest 10%"},
            "rank_margin_weights needs negatives to be None or like 'hardest 10%'; "
            "got 'easiest 10%'.",
        ),
        (
            [[0.5, 0.5], [0.5, 0.5]],
            [0, 1],
            {},
            "rank_margin_weights needs a member that tells samples apart; each says the same of "
            "all.",
        ),
    ],
)
def test_bad_input_is_told(scores, y, settings, message):
    with pytest.raises(ValueError, match="rank_margin_weights") as error:
        rank_margin_weights(scores, y, **settings)
    assert str(error.value) == message
