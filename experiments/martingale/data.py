"""The data sets of the study, in training (40 %), tuning (20 %) and test set (40 %)."""

from __future__ import annotations

import numpy as np
from sklearn.preprocessing import OneHotEncoder

from experiments._parts import Floats, Ints, Parts, split
from experiments.martingale.paper import SOURCES, Source
from margrave import datasets

FRACTIONS = (0.4, 0.2, 0.4)
# Not in the paper: two Gaussians, for which a linear boundary is optimal.
TWONORM = {"Twonorm": Source("twonorm", favoured=1, positive=1)}


def load(title: str) -> tuple[Floats, Ints]:
    """Samples and classes 0 and 1, 1 the positive one; or 0 to k − 1, in the labels' order."""
    source = (SOURCES | TWONORM)[title]
    data = datasets.load(source.name)
    X, labels = np.asarray(data.data, dtype=np.float64), np.asarray(data.target)
    if source.letters:
        X = OneHotEncoder(sparse_output=False).fit_transform(X)
    if source.positive is None:
        return X, np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return X, (labels == source.positive).astype(np.int64)


def favoured(title: str) -> int:
    """The class that models are tuned in favour of."""
    source = SOURCES[title]
    if source.positive is not None:
        return int(source.favoured == source.positive)
    labels = np.unique(np.asarray(datasets.load(source.name).target)).tolist()
    return int(labels.index(source.favoured))


def parts(title: str, seed: int) -> Parts:
    """One stratified split of a data set; features scaled on the training set."""
    return split(*load(title), seed, FRACTIONS)


def two_class_parts(title: str, seed: int) -> Parts:
    """The same with two classes: of more, the favoured one is positive, the others negative."""
    X, y = load(title)
    if y.max() > 1:
        y = (y == favoured(title)).astype(np.int64)
    return split(X, y, seed, FRACTIONS)
