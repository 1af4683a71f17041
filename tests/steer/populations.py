"""Populations of scores whose true rates are known exactly, and samples of them.

The scores take finitely many values, so that a certification set is a vector of counts, thousands
of sets are drawn at once, and the true confusion matrix of a decision is a sum of probabilities.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr
from scipy.stats import binomtest

from margrave import Preference
from margrave.confusion import Objective
from margrave.steer._plan import Draws, Plan, certify_draws, make_plan
from margrave.steer._thresholds import (
    Threshold,
    best_decision,
    best_rejecting_decision,
    default_decision,
)


@dataclass(frozen=True)
class Population:
    """Scores with finitely many values, and the probability of each value in each class."""

    values: np.ndarray
    given_class: np.ndarray  # (k, number of values)
    prior: np.ndarray  # (k,)

    @property
    def k(self):
        return len(self.prior)

    def draw(self, rng, n):
        """Draw the scores and classes of n samples."""
        codes = rng.choice(self.k, size=n, p=self.prior)
        at = np.empty(n, dtype=np.intp)
        for c in range(self.k):
            there = np.flatnonzero(codes == c)
            at[there] = rng.choice(len(self.values), size=len(there), p=self.given_class[c])
        return self.values[at], codes

    def draw_sets(self, rng, sizes, n_sets):
        """Draw many sets with these class sizes."""
        counts = [rng.multinomial(n, self.given_class[c], n_sets) for c, n in enumerate(sizes)]
        return self._sets(np.hstack(counts))

    def draw_mixed_sets(self, rng, n, n_sets):
        """Draw many sets of n samples, each with class sizes of its own.

        They are for plans that use the size of no class: paths, and limits on all samples.
        """
        joint = (self.prior[:, None] * self.given_class).ravel()
        return self._sets(rng.multinomial(n, joint / joint.sum(), n_sets))

    def _sets(self, counts):
        codes = np.repeat(np.arange(self.k), len(self.values))
        return Draws(np.concatenate([self.values] * self.k), codes, counts * 1.0)

    def matrix(self, decision):
        """Return the joint probabilities of class and prediction, shape (k, k + 1)."""
        columns = decision.predict(self.values) % (self.k + 1)  # -1 is the last
        rates = [np.bincount(columns, given, self.k + 1) for given in self.given_class]
        return self.prior[:, None] * np.array(rates)

    def are_false(self, plan, decisions):
        """Return for each decision whether its true matrix violates a limit of the plan."""
        cells, known = plan.cells(), {}
        keys = decisions if self.k == 2 else [*map(id, decisions)]  # those of a path are few
        for key, decision in zip(keys, decisions, strict=True):
            if key not in known:
                known[key] = violates(cells, self.matrix(decision))
        return np.array([known[key] for key in keys], dtype=bool)


def normal(step=0.03):
    """Two classes with normal scores on a grid: a coarse one makes ties, a fine one hardly any."""
    values = np.round(np.arange(-3.0, 6, step), 9)
    means = np.array([[0.0], [2.0]])
    below = np.column_stack([np.zeros((2, 1)), ndtr(values[:-1] - means), np.ones((2, 1))])
    return Population(values, np.diff(below, axis=1), np.array([0.6, 0.4]))


def three_classes():
    """Three scores of each sample, the largest mostly that of its class."""
    rng = np.random.default_rng(3)
    values = np.round(rng.normal(size=(60, 3)), 1)
    likely = np.exp(1.5 * values.T)
    return Population(values, likely / likely.sum(axis=1, keepdims=True), np.array([0.5, 0.3, 0.2]))


def violates(cells, joint):
    """Whether the true rates of a matrix violate a limit; the cells are those of `Plan.cells`."""
    for bound, amount, base in cells:
        excess = joint[amount].sum() - float(bound.limit) * joint[base].sum()
        if (excess if bound.at_most else -excess) > 1e-12:
            return True
    return False


def plan_of(text, world, n_tune=300, seed=0, tuned=None, delta=0.1):
    """Plan a certification of 300 samples as a dialog does, on a tuning set of the same world."""
    preference = Preference(text)
    scores, codes = world.draw(np.random.default_rng(seed), n_tune)
    objective = Objective(preference, codes, tuple(range(world.k)))
    if tuned is None:
        find = best_rejecting_decision if preference.allows_rejecting else best_decision
        tuned = find(objective, scores)
    sizes = np.round(300 * np.bincount(codes) / n_tune).astype(int)
    return make_plan(preference, tuned, scores, objective, sizes, delta)


def single(text, low, high=None):
    """Plan order statistics from a given decision."""
    return Plan(Preference(text), (0, 1), 1, Threshold(low, low if high is None else high))


def along(text, thresholds):
    """Plan a path of single thresholds in the order of the tests."""
    path = tuple(Threshold(float(one), float(one)) for one in thresholds)
    return Plan(Preference(text), (0, 1), 1, default_decision(2), path)


def certify_sets(plan, world, n, delta, n_sets):
    """Certify a plan on many independent sets of n samples.

    Class sizes are random if a limit counts samples of several classes. Else they are fixed, since
    limits on the rates of one class have to hold for any class sizes.

    Returns how many sets are certified, and of how many the guarantee is false.
    """
    rng = np.random.default_rng(1000)  # the seeds of tuning sets are smaller
    together = [bool(side.rows.all()) for side in plan.sides]
    if plan.path or all(together):  # class sizes change no test
        for _, n_used in plan.limited_sizes(np.array([n, 0]), delta):
            n = n_used
        draws = [world.draw_mixed_sets(rng, n, n_sets)]
    else:
        sizes = np.round(n * world.prior).astype(int)[None]
        if any(together):
            sizes = rng.multinomial(n, world.prior, n_sets)
        sizes, counts = np.unique(sizes, axis=0, return_counts=True)
        for one in sizes:
            for rows, n_used in plan.limited_sizes(one, delta):
                one[rows] = n_used
        counts = counts * n_sets // counts.sum()
        draws = [world.draw_sets(rng, *pair) for pair in zip(sizes, counts, strict=True)]
    decisions = []
    for some in draws:
        found = certify_draws(plan, some, delta)
        decisions += [found.decisions[at] for at in np.flatnonzero(found.certified)]
    return len(decisions), int(world.are_false(plan, decisions).sum())


def holds(n_false, n_sets, delta):
    """Whether so many false guarantees are consistent with a fraction δ of all requests."""
    return binomtest(n_false, n_sets, delta, alternative="greater").pvalue > 1e-4
