"""What a local selector remembers of its tuning samples, and finds of them around a query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margrave._typing import AnyFloats, AnyInts, Flags
from margrave.select._competence import Near, ola
from margrave.select._meta import N_PROFILES, MetaClassifier, MetaFeatures, steps
from margrave.select._methods import METHODS, Method
from margrave.select._neighbours import fitted_index, nearest, nearest_others
from margrave.select._selector import Judged, Told, blocks

# Numbers that a block of queries may hold: for each member, of each neighbour and each class.
_LARGEST_BLOCK = 16_000_000


@dataclass(frozen=True)
class Memory:
    """Tuning samples by what their members did there.

    Attributes
    ----------
    truth : ndarray of int, shape (n,)
        Their classes.
    right : ndarray of bool, shape (n, L)
        Where each member is right.
    weight : ndarray of shape (n,) or None
        How much each sample counts.
    rows : ndarray of int, shape (n,)
        Where they are in the data given to ``fit``.
    method : str
        What they are remembered for.
    n_classes, k : int
        Classes, and neighbours to look at.
    places : index or None
        Of their features; None if these are not looked at.
    profiles : index or None
        Of what the members say about them, if that is looked at.
    sure : ndarray of uint8, shape (n, L), or None
        How probable each member calls the true class, in steps, for META-DES.
    owner : str
        For messages.
    meta : MetaClassifier or None
        What META-DES has learned from the samples.
    """

    truth: AnyInts
    right: Flags
    weight: AnyFloats | None
    rows: AnyInts
    method: str
    n_classes: int
    k: int
    places: Any
    profiles: Any
    sure: NDArray[np.uint8] | None
    owner: str
    meta: MetaClassifier | None = None

    @classmethod
    def of(
        cls,
        judged: Judged,
        X: Any,
        method: str,
        k: int,
        n_classes: int,
        index: Any,
        n_jobs: int | None,
        owner: str,
    ) -> Memory:
        """Remember samples; X has them in the space where they are near to each other."""
        rule = METHODS[method]
        learns = rule.competence is None
        most = len(judged.truth) - int(learns)  # of a sample that is learned from, all others
        if k > most:
            raise ValueError(
                f"{owner} needs k to be at most {most}, as there are {len(judged.truth)} tuning "
                f"samples; got {k}."
            )
        profiles, sure = None, None
        if judged.told.proba is not None and (learns or rule.profiles):
            alike = min(N_PROFILES, most) if learns else k
            said = profile(judged.told.proba)
            profiles = fitted_index(None, said, alike, n_jobs, owner)
            of_truth = judged.told.proba[np.arange(len(judged.truth)), :, judged.truth]
            sure = steps(of_truth) if learns else None
        places = None if rule.profiles else fitted_index(index, X, k, n_jobs, owner)
        memory = cls(
            truth=judged.truth,
            right=judged.right,
            weight=judged.weight,
            rows=judged.rows,
            method=method,
            n_classes=n_classes,
            k=k,
            places=places,
            profiles=profiles,
            sure=sure,
            owner=owner,
        )
        return replace(memory, meta=memory._learned(X, judged.told)) if learns else memory

    @property
    def block(self) -> int:
        """How many queries to look at together."""
        each = self.right.shape[1] * max(self.k, 4 * self.n_classes)
        return max(_LARGEST_BLOCK // int(each), 1)

    @property
    def rule(self) -> Method:
        """What they are remembered for."""
        return METHODS[self.method]

    def competence(self, X: Any, told: Told) -> tuple[AnyFloats, Near, AnyInts]:
        """The members' competence at queries, what is known around these, and which samples from.

        Parameters
        ----------
        X : array or sparse matrix
            The queries where samples are near to each other.
        told : Told
            What the members say about them.
        """
        rule = self.rule
        if rule.profiles:
            distance, at = nearest(
                self.profiles, profile(told.proba), self.k, len(self.truth), self.owner
            )
        else:
            distance, at = nearest(self.places, X, self.k, len(self.truth), self.owner)
        near = self._around(at, distance, told)
        if rule.competence is not None:
            return rule.competence(near), near, at
        assert self.meta is not None  # noqa: S101  # it was learned when nothing else is there
        alike = nearest(
            self.profiles, profile(told.proba), self._n_alike, len(self.truth), self.owner
        )[1]
        return self.meta.competence(self._features(near, at, alike, told)), near, at

    def _around(self, at: AnyInts, distance: AnyFloats, told: Told) -> Near:
        return Near(
            right=self.right[at],
            truth=self.truth[at],
            distance=distance,
            weight=None if self.weight is None else self.weight[at],
            answers=told.codes,
            n_classes=self.n_classes,
        )

    def _learned(self, X: Any, told: Told) -> MetaClassifier:
        """What META-DES learns from the tuning samples: each is a query to the others."""
        sums, totals = np.zeros((2, 2 * self.k + self._n_alike + 2)), np.zeros(2)
        for own in blocks(len(self.truth), self.block):
            heard = told.at(own)
            at = nearest_others(self.places, X[own], own, self.k, len(self.truth), self.owner)
            said = profile(heard.proba)
            alike = nearest_others(
                self.profiles, said, own, self._n_alike, len(self.truth), self.owner
            )
            near = self._around(at, np.ones(at.shape), heard)
            features = self._features(near, at, alike, heard)
            for outcome, which in enumerate((~self.right[own], self.right[own])):
                counted = which if self.weight is None else which * self.weight[own, None]
                sums[outcome] += features.sums(counted)
                totals[outcome] += counted.sum()
        return MetaClassifier.learned(sums, totals)

    @property
    def _n_alike(self) -> int:
        return min(N_PROFILES, len(self.truth) - 1)

    def _features(self, near: Near, at: AnyInts, alike: AnyInts, told: Told) -> MetaFeatures:
        assert self.sure is not None  # noqa: S101
        assert told.proba is not None  # noqa: S101
        top = reduce(np.maximum, np.moveaxis(told.proba, 2, 0))  # classes are few
        return MetaFeatures.of(near.right, self.sure[at], ola(near), self.right[alike], top)


def profile(proba: AnyFloats | None) -> AnyFloats:
    """What the members say as one row a sample; of two classes one says it all."""
    assert proba is not None  # noqa: S101
    told = proba[:, :, 1:] if proba.shape[2] == 2 else proba
    return np.ascontiguousarray(told.reshape(len(told), -1))
