"""The classifier of document 002, (4) to (7), learned from Dask collections.

One pass over the rows for the linear kernel; with random features one for their middle, their
spread and the rows that choose width and cut, and one for the sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from margrave._dask.blocks import Blocks
from margrave._validation import is_number, refuse_zero_weights
from margrave.mam._block_moments import Moments
from margrave.mam._block_rows import check_columns, refuse_no_responses
from margrave.mam._block_sums import Asked, LabelSums, Merge, added, class_sums, label_sums
from margrave.mam._features import LARGEST_SEED, ROWS_FOR_WIDTHS, Frequencies
from margrave.mam._kept import Kept, most_kept
from margrave.mam._learning import Learner
from margrave.mam._parameters import is_linear
from margrave.mam._selection import select_features, some_of_each
from margrave.mam._widths import widths_around

WEIGHT_OF_A_SAMPLE = (
    "The weight of a sample is its sample_weight, times the number for its class where "
    "class_weight is a dict."
)
"""For messages about samples without weight."""


class BlockLearner(Learner):
    """Base of the classifier: what it learns from blocks, by sums."""

    def _learn_blocks(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Forget what was learned before, and learn."""
        if not self._in_features:
            raise ValueError(
                "MAMClassifier.fit takes Dask collections with kernel='linear' or with "
                f"n_components only; got kernel={self.kernel!r}, with which every sample is kept. "
                "Set n_components, or draw rows into memory with margrave.scale.sample."
            )
        if y is None:
            refuse_no_responses(self)
        blocks = Blocks.of("MAMClassifier.fit", X, y=y, sample_weight=sample_weight)
        check_columns(self, X, reset=True)
        self._rng = check_random_state(self.random_state)
        seed = self._rng.randint(LARGEST_SEED)
        plain = is_linear(self.kernel)
        keys = self._rng.randint(LARGEST_SEED)
        asked = Asked(blocks.n_columns, self._factors(), keys, most_kept(blocks.n_columns), plain)
        found = blocks.reduce(label_sums, Merge(asked.most), asked, numbered=True)
        self.classes_ = found.labels
        self._check_found(found)
        self._forget()
        self.gamma_, self.gammas_, self._frequencies = None, np.array([1.0]), None
        if found.sums is not None:
            self._sums = found.sums
        elif found.moments is not None:
            self._frequencies = self._drawn_around(found.moments, found.kept, seed)
            self._sums = blocks.reduce(
                class_sums, added, asked, found.labels, found.exponent, self._frequencies
            )
        self._class_weights, self._exponent = found.weights, found.exponent
        self._kept, self.n_seen_, self._n_judged = found.kept, int(found.counts.sum()), 0
        return self._place()

    def _factors(self) -> dict[Any, float]:
        """What `class_weight` says of labels; whether they are there is not known yet."""
        if not isinstance(self.class_weight, dict):
            return {}
        for factor in self.class_weight.values():
            if not (is_number(factor) and 0 <= factor < np.inf):
                raise ValueError(
                    "MAMClassifier needs class_weight to have numbers of at least 0; "
                    f"got {self.class_weight!r}."
                )
        return self.class_weight

    def _check_found(self, found: LabelSums) -> None:
        check_classes(found.labels)
        if isinstance(self.class_weight, dict):
            self._class_factors(self.class_weight)
        if not found.counts.any() and not isinstance(self.class_weight, dict):
            refuse_zero_weights("MAMClassifier")
        check_present(int(np.count_nonzero(found.counts)))

    def _drawn_around(self, moments: Moments, kept: Kept, seed: int) -> Frequencies:
        """Random features, of a width by leave-one-out with them, on some of the rows."""
        usual = moments.usual_gamma(self.kernel)
        self.gammas_ = widths_around(usual, self.gamma, self.gammas)
        n = self.n_components or 1
        tried = [
            replace(
                Frequencies.drawn(str(self.kernel), gamma, kept.X, n, seed), centre=moments.centre
            )
            for gamma in self.gammas_.tolist()
        ]
        place = 0
        if len(tried) > 1:
            some = some_of_each(kept.codes, ROWS_FOR_WIDTHS, self._rng)
            of = self._samples(kept.codes[some], kept.weights[some])
            place, self.loo_scores_ = select_features(kept.X[some], tried, of, self.n_jobs)
        self.gamma_ = float(self.gammas_[place])
        return tried[place]


def check_classes(classes: NDArray[Any]) -> None:
    """Refuse labels of one class."""
    if len(classes) < 2:
        raise ValueError(
            "MAMClassifier.fit needs y with at least two classes; "
            f"got one class, {classes.tolist()[0]!r}."
        )


def check_present(n_classes: int) -> None:
    """Refuse samples of one class, where those of the others have no weight."""
    if n_classes < 2:
        raise ValueError(
            "MAMClassifier.fit needs at least two classes that have samples with a weight above 0; "
            f"got {n_classes}. {WEIGHT_OF_A_SAMPLE}"
        )
