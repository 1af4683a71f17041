"""META-DES with the neighbours of DESlib: whether Margrave then fits the same model.

Both libraries fit naive Bayes on the neighbours of the tuning samples. DESlib leaves out the
nearest one as the sample itself; among duplicates that may be another sample. Margrave leaves out
the sample itself. Here Margrave's formulas are applied to the neighbours that DESlib used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from experiments.select.comparing import MethodCounts, Peer, counted, find_ties, fit
from experiments.select.data import Tables
from margrave._typing import AnyInts
from margrave.select import LocalSelectionClassifier
from margrave.select._competence import MetaClassifier, MetaFeatures, to_tenths
from margrave.select._local import MetaDES, output_profiles

META_DES = "meta-des"


@dataclass(frozen=True)
class MetaCheck:
    """META-DES fitted on the neighbours of DESlib, on some splits.

    Attributes
    ----------
    n, others, own : int
        Tuning samples; those whose neighbours are not the same in both libraries, or in another
        order; those that DESlib has among their own neighbours.
    difference : float
        The largest difference of a coefficient between both models.
    counts : MethodCounts
        The predictions of the model beside those of DESlib.
    """

    n: int
    others: int
    own: int
    difference: float
    counts: MethodCounts

    def __add__(self, other: MetaCheck) -> MetaCheck:
        return MetaCheck(
            self.n + other.n,
            self.others + other.others,
            self.own + other.own,
            max(self.difference, other.difference),
            self.counts + other.counts,
        )


def check(tables: Tables, peer: Peer) -> MetaCheck:
    """Fit on the neighbours of DESlib, and compare coefficients and predictions."""
    classifier = fit_on_neighbours(tables, peer.near, peer.similar)
    model = fit(tables, META_DES)
    fitted = _fitted(model)
    used = np.concatenate([peer.near, peer.similar], axis=1)
    others = (used != np.concatenate(find_neighbours(tables, model), axis=1)).any(axis=1)
    own = (used == np.arange(len(used))[:, None]).any(axis=1)
    model._meta_des = replace(fitted, classifier=classifier)
    predictions, why = model.predict(tables.X_query), find_ties(tables, model)
    difference = np.append(classifier.coef - peer.coef, classifier.intercept - peer.intercept)
    return MetaCheck(
        len(used),
        int(others.sum()),
        int(own.sum()),
        float(np.abs(difference).max()),
        counted(predictions, peer.predictions[META_DES], why, tables.y_query),
    )


def _fitted(model: LocalSelectionClassifier) -> MetaDES:
    if model._meta_des is None:
        raise ValueError(f"META-DES is needed; got {model.method}.")
    return model._meta_des


def find_neighbours(tables: Tables, model: LocalSelectionClassifier) -> tuple[AnyInts, AnyInts]:
    """Find the neighbours that a META-DES of ours was fitted on: by features, by predictions."""
    rows = np.arange(len(tables.y_tune))
    near = model._memory.search.find_others(tables.X_tune, rows)
    profiles = output_profiles(tables.proba_tune)
    return near, _fitted(model).profiles.find_others(profiles, rows)


def fit_on_neighbours(tables: Tables, near: AnyInts, similar: AnyInts) -> MetaClassifier:
    """Fit on neighbours by features, of shape (n, k), and by predictions, of shape (n, k_p)."""
    correct = tables.parts_tune.argmax(axis=2) == tables.y_tune[:, None]
    proba = tables.proba_tune
    features = MetaFeatures.of(
        correct[near],
        to_tenths(proba[np.arange(len(proba)), :, tables.y_tune])[near],
        correct[near].mean(axis=1),
        correct[similar],
        proba.max(axis=2),
    )
    outcomes = (~correct, correct)
    return MetaClassifier.fit(
        np.stack([features.sums(mask) for mask in outcomes]),
        np.array([mask.sum() for mask in outcomes], dtype=np.float64),
    )
