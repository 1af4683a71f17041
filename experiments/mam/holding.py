"""How often statements at one setting and δ fail, and how far they are from the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from experiments._parts import Floats
from experiments.mam.coverage import Setting, Statement

BAR = 0.01
"""So many failures or more being less probable than this, a statement is broken."""

MARGIN, BOUND, COUNTED = "(12)", "(14)", "held out"
KINDS = (MARGIN, BOUND, COUNTED)


@dataclass(frozen=True, eq=False)
class Holding:
    """Many samples at one setting and one δ.

    Attributes
    ----------
    setting : Setting
        How the classifiers are fitted.
    delta : float
        How often a statement may fail.
    runs : int
        How many samples.
    failures : dict
        In how many of them a statement fails, at any probe, by kind.
    printed : int or None
        In how many (14) fails with the paper's signs; None with a threshold.
    mistakes, bound, held_out : ndarray
        By probe, the mean over the samples of the true probability and of its two bounds.
    vacuous : float
        Fraction of probes at which the bound is 1.
    """

    setting: Setting
    delta: float
    runs: int
    failures: dict[str, int]
    printed: int | None
    mistakes: Floats
    bound: Floats
    held_out: Floats
    vacuous: float

    @classmethod
    def of(cls, statements: Sequence[Statement]) -> Holding:
        """Sum up the statements at one setting and δ."""
        failures = dict.fromkeys(KINDS, 0)
        for one in statements:
            failures[MARGIN] += one.spare < 0
            failures[BOUND] += bool((one.bound < one.mistakes).any())
            counted = (one.held_out < one.mistakes) | (one.held_out_error < one.errors)
            failures[COUNTED] += bool(counted.any())
        as_printed = [
            (one.printed < one.mistakes).any() for one in statements if one.printed is not None
        ]
        return cls(
            statements[0].setting,
            statements[0].delta,
            len(statements),
            failures,
            int(sum(as_printed)) if as_printed else None,
            np.mean([one.mistakes for one in statements], axis=0),
            np.mean([one.bound for one in statements], axis=0),
            np.mean([one.held_out for one in statements], axis=0),
            float(np.mean([one.bound >= 1 for one in statements])),
        )

    def p(self, kind: str) -> float:
        """How probable as many failures are if each has the probability δ."""
        return float(binom.sf(self.failures[kind] - 1, self.runs, self.delta))

    def broken(self, kind: str) -> bool:
        """Whether there are more failures than chance makes."""
        return self.p(kind) < BAR

    @property
    def loose(self) -> float:
        """How far (14) is above the truth, the mean over probes and samples."""
        return float(np.mean(self.bound - self.mistakes))

    @property
    def loose_counted(self) -> float:
        """How far the count on held-out samples is above it."""
        return float(np.mean(self.held_out - self.mistakes))
