"""Label noise: some of the training labels are wrong, the test labels are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from experiments._parts import Ints
from experiments.martingale import models
from experiments.martingale.data import parts
from experiments.martingale.models import Evaluation, Size
from margrave.martingale import TunableLogistic

# A name and (size, seed, training samples) to a classifier.
METHODS: dict[str, Callable[[Size, int, int], Any]] = {
    "LR": lambda *_: TunableLogistic(),
    "MB": lambda size, seed, _: models.martingale(None, size.n_levels, seed),
    "AMB": lambda size, seed, _: models.adaptive(None, size.n_levels, seed),
    "AdaBoost-LR": lambda size, seed, n: models.adaboost(TunableLogistic(), size.n_rounds, seed, n),
    "AdaBoost-stumps": lambda size, seed, _: models.boosted_stumps(size.n_rounds, seed),
    "random forest": lambda size, seed, _: models.forest(size.n_trees, seed),
}


def flipped(y: Ints, rate: float, seed: int) -> Ints:
    """Labels with a fraction of them flipped; a higher rate flips the same samples and more."""
    order = np.random.default_rng(seed).permutation(len(y))
    wrong = order[: round(rate * len(y))]
    noisy = y.copy()
    noisy[wrong] = 1 - noisy[wrong]
    return noisy


def with_noise(
    title: str, seed: int, rates: Sequence[float], size: Size
) -> dict[tuple[str, float], Evaluation]:
    """Every method at every rate, trained on training and tuning set together."""
    data = parts(title, seed)
    X, y = data.both
    found = {}
    for rate in rates:
        noisy = flipped(y, rate, seed)
        for name, make in METHODS.items():
            model = make(size, seed, len(y)).fit(X, noisy)
            found[name, rate] = Evaluation.of(model, data.X_test, data.y_test)
    return found
