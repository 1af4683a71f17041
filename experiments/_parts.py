"""A data set in three parts: training, tuning and test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Fractions = tuple[float, float, float]
"""Fractions of the samples in the training, tuning and test set."""


@dataclass(frozen=True)
class Parts:
    """A stratified split into three parts, with features scaled on the training set."""

    X_train: Floats
    y_train: Ints
    X_tune: Floats
    y_tune: Ints
    X_test: Floats
    y_test: Ints

    @property
    def both(self) -> tuple[Floats, Ints]:
        """Samples and labels of the training and the tuning set."""
        return (
            np.concatenate([self.X_train, self.X_tune]),
            np.concatenate([self.y_train, self.y_tune]),
        )


def split(X: Floats, y: Ints, seed: int, fractions: Fractions) -> Parts:
    """Split into training, tuning and test set."""
    train, tune, _ = fractions
    X_rest, X_test, y_rest, y_test = train_test_split(
        X, y, train_size=train + tune, stratify=y, random_state=seed
    )
    return split_rest(X_rest, y_rest, X_test, y_test, seed, train / (train + tune))


def split_rest(
    X_rest: Floats, y_rest: Ints, X_test: Floats, y_test: Ints, seed: int, train: float
) -> Parts:
    """Split the samples that are not in the test set; `train` is the fraction for training."""
    X_train, X_tune, y_train, y_tune = train_test_split(
        X_rest, y_rest, train_size=train, stratify=y_rest, random_state=seed
    )
    scaler = make_pipeline(SimpleImputer(), StandardScaler()).fit(X_train)
    X_train, X_tune, X_test = (scaler.transform(part) for part in (X_train, X_tune, X_test))
    return Parts(X_train, y_train, X_tune, y_tune, X_test, y_test)
