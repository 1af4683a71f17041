"""Certificates hold: simulations of every kind of limit, from populations with known true rates.

A guarantee at confidence 1 - δ may be false for a fraction δ of the requests and no more. Most
tests certify thousands of certification sets at once, with limits just inside the true rate of a
decision, so that a rule that is too lenient is noticed. If only some limits of a request can be
violated, the test compares with their part of δ. The tests at the end go through the public
functions, with a classifier that has memorized what it was trained on. They make 15 to 40 runs
each: enough to notice that many certification rows were trained on, too few to check δ. The seeds
are fixed: a rule that is exactly at δ exceeds it in each comparison with a probability of at most
1e-4. The other comparisons hold with these seeds.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from tests.hospital import FEATURES, draw_visits, rate_over_patients
from tests.steer.populations import (
    Population,
    along,
    certify_sets,
    holds,
    normal,
    plan_of,
    single,
    three_classes,
    violates,
)

from margrave import Preference
from margrave.steer import Dialog, GuaranteeError, Ledger, RowSample, SteeredClassifier
from margrave.steer._certify import set_decision
from margrave.steer._order_statistic import clopper_pearson, largest_allowed_count
from margrave.steer._plan import Plan, certify_draws
from margrave.steer._split import LatestDraw, RandomDraw
from margrave.steer._thresholds import Offsets, Threshold, default_decision

pytestmark = pytest.mark.core
DELTA = 0.1
FINE, TIES, COARSE = normal(), normal(step=0.3), normal(step=0.75)
WORLDS = pytest.mark.parametrize("world", [FINE, COARSE], ids=["no ties", "ties"])
BEYOND = {"fp": -9.0, "alarms": -9.0, "errors(0": -9.0, "fn": 9.0, "recall": 9.0}
"""A tuned threshold that is far beyond the limit, so that the certified one is right at it."""


def simulate(plan, world, n=250, n_sets=2000):
    """Certify sets of n samples; return how many are certified, and how many falsely."""
    return certify_sets(plan, world, n, DELTA, n_sets)


class TestOrderStatistics:
    """Limits on rates of two classes without rejection."""

    @WORLDS
    @pytest.mark.parametrize(
        "text",
        [
            "fp <= 22.6%",
            "fn <= 10.5%",
            "recall >= 89.5%",
            "alarms <= 49.3%",
            "errors(0 -> 1) <= 22.6%",
        ],
    )
    def test_thresholds_that_use_the_whole_allowance(self, world, text):
        n_certified, n_false = simulate(single(text, BEYOND[text.split()[0]]), world, 250, 4000)
        assert n_certified == 4000
        assert holds(n_false, 4000, DELTA)
        assert n_false > 4000 * DELTA / 2  # nor are they much stricter than they have to be

    @WORLDS
    @pytest.mark.parametrize(
        ("text", "tuned"),
        [
            ("fp <= 22.6%, fn <= 45%", -9.0),
            ("fp <= 40%, fn <= 30.8%", 9.0),
            ("recall >= 50%, alarms <= 49.3%", -9.0),
            ("recall >= 69.2%, alarms <= 60%", 9.0),
        ],
    )
    def test_two_limits_on_opposite_sides(self, world, text, tuned):
        """From there only one of them can be violated, and it has half of δ."""
        n_certified, n_false = simulate(single(text, tuned), world, 400)
        assert n_certified > 2000 / 2
        assert holds(n_false, 2000, DELTA / 2)
        assert n_false > 2000 * DELTA / 4

    def test_both_limits_may_fail_so_each_has_half_of_the_error_probability(self):
        """Each of two thresholds slightly violates one limit, and each may pass by chance."""
        rates = np.array([[0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])
        world = Population(np.arange(3.0), rates, np.array([0.5, 0.5]))
        plan = single("fp <= 19.999%, fn <= 19.999%", 0.5)
        n_certified, n_false = simulate(plan, world, 2000, 4000)
        assert n_false == n_certified > 4000 * DELTA / 2
        assert holds(n_false, 4000, DELTA)

    @WORLDS
    def test_two_limits_on_the_same_side_each_have_the_whole_error_probability(self, world):
        """The stricter of both thresholds is false only if that of the violated limit is."""
        plan = single("fp <= 22.6%, alarms <= 55%", -9.0)
        n_certified, n_false = simulate(plan, world, 400)
        assert n_certified == 2000
        assert holds(n_false, 2000, DELTA)
        assert n_false > 2000 * DELTA / 2

    @pytest.mark.parametrize(
        ("text", "n"), [("fp <= 10%", 22), ("fp <= 20%", 11), ("fn <= 15%", 15)]
    )
    def test_classes_with_the_fewest_samples_that_a_limit_needs(self, text, n):
        assert largest_allowed_count(n, float(Preference(text).bounds[0].limit), DELTA) == 0
        plan = single(text, BEYOND[text[:2]])
        sizes = np.array([n, 5] if text[:2] == "fp" else [5, n])
        rng = np.random.default_rng(0)
        found = certify_draws(plan, FINE.draw_sets(rng, sizes, 4000), DELTA)
        assert found.certified.all()
        n_false = FINE.are_false(plan, found.decisions).sum()
        assert holds(n_false, 4000, DELTA)
        assert n_false > 4000 * DELTA / 2

    @pytest.mark.parametrize(
        ("text", "share"),
        [("fp <= 18.4%", 1), ("alarms <= 45.6%", 1), ("fp <= 18.4%, fn <= 45%", 0.5)],
    )
    def test_one_set_at_a_time(self, text, share):
        """As certification does it: it also chooses which samples to use."""
        plan, rng = single(text, -9.0), np.random.default_rng(0)
        found = [set_decision(plan, *FINE.draw(rng, 250), DELTA).decision for _ in range(400)]
        assert holds(FINE.are_false(plan, found).sum(), 400, share * DELTA)


class TestPaths:
    """Limits without an order statistic: decisions are tested one after another."""

    CROSSING = (
        along("precision >= 75.8%", (2.7, 2.1, 1.5, 0.9, 0.6, 0.3, 0.0)),
        along("accuracy >= 80.4%", (1.2, 0.6, 0.3, 0.0, -0.3)),
        along("precision >= 75.8%, recall >= 55%", (1.5, 0.9, 0.6, 0.3, 0.0)),
        along("errors <= 18.9%", (1.2, 1.8, 2.1, 2.4, 2.7)),
    )

    @pytest.mark.parametrize("world", [FINE, TIES], ids=["no ties", "ties"])
    @pytest.mark.parametrize("plan", CROSSING, ids=lambda plan: str(plan.preference))
    def test_paths_from_safe_decisions_to_wrong_ones(self, plan, world):
        n_certified, n_false = simulate(plan, world, 350)
        assert n_certified > 2000 / 2
        assert holds(n_false, 2000, DELTA)
        assert n_false > 2000 * DELTA / 2

    def test_decisions_slightly_beyond_the_limit(self):
        """Any certificate is false, so certificates are as rare as δ allows, and not much rarer."""
        plan = along("fp <= 18.4%", np.arange(0.9, 0.6, -0.03))
        assert FINE.are_false(plan, plan.path).all()
        n_certified, n_false = simulate(plan, FINE, 500)
        assert n_false == n_certified > 2000 * DELTA / 2
        assert holds(n_false, 2000, DELTA)

    def test_a_path_through_unrelated_decisions_ends_at_its_first_failure(self):
        """Six decisions between class 0 and another one each, all slightly beyond the limit."""
        signs = np.array(list(product([-1.0, 1.0], repeat=6)))
        likely = np.where(signs > 0, 0.2 + 1e-9, 0.8 - 1e-9).prod(axis=1)
        values = np.column_stack([np.zeros(64), signs])
        world = Population(values, np.array([likely] * 7), np.array([0.7] + [0.05] * 6))
        path = tuple(Offsets(9.0 * np.isin(np.arange(7), (0, c))) for c in range(1, 7))
        plan = Plan(Preference("fn(0) <= 20%"), tuple(range(7)), None, default_decision(7), path)
        n_certified, n_false = simulate(plan, world, 400)
        assert n_false == n_certified > 2000 * DELTA / 3
        assert holds(n_false, 2000, DELTA)

    @pytest.mark.parametrize(
        ("text", "path"),
        [
            ("fn(1) <= 26.1%", [(1, t, 0) for t in (2, 1, 0, -0.5, -1)]),
            ("errors(0 -> 1) <= 13.6%", [(1, t, 0) for t in (-2, -1, 0, 0.5, 1)]),
            ("precision(2) >= 52.6%", [(2, t, 0) for t in (-1, 0, 1, 2)]),
            ("rejected <= 24.9%", [(0, 0, lead) for lead in (0.1, 0.37, 0.91, 1.2, 2)]),
            ("fp(0) <= 17.1%, accuracy >= 50%", [(0, t, 0) for t in (-1, 0, 0.5, 1)]),
        ],
    )
    def test_three_classes(self, text, path):
        decisions = [Offsets(t * (np.arange(3) == c), float(lead)) for c, t, lead in path]
        plan = Plan(Preference(text), (0, 1, 2), None, default_decision(3), tuple(decisions))
        n_certified, n_false = simulate(plan, three_classes(), 300)
        assert n_certified > 2000 / 2
        assert holds(n_false, 2000, DELTA)
        assert n_false > 2000 * DELTA / 2


@pytest.mark.parametrize(
    ("world", "text", "n_tune", "seed", "route"),
    [
        (FINE, "fp <= 5%", 60, 1, "order statistics"),
        (COARSE, "fn <= 10.5%", 60, 1, "order statistics"),
        (FINE, "accuracy >= 84.3%", 60, 4, "tested path"),
        (COARSE, "accuracy >= 82.2%", 60, 2, "tested path"),
        (COARSE, "precision >= 72.5%", 60, 2, "tested path"),
        (TIES, "fp <= 18.4%, rejected <= 20%", 60, 9, "tested path"),
        (FINE, "errors <= 10%, rejected <= 20%", 60, 15, "tested path"),
        (three_classes(), "fn(1) <= 23.9%", 40, 3, "tested path"),
    ],
)
def test_plans_of_tuning_sets_that_mislead(world, text, n_tune, seed, route):
    """With these seeds, the decision tuned on a small set violates the limit slightly."""
    plan = plan_of(text, world, n_tune, seed, delta=DELTA)
    assert world.are_false(plan, [plan.decision]).all()  # or choose other seeds
    assert plan.route == route
    _, n_false = simulate(plan, world, 300)
    assert holds(n_false, 2000, DELTA)
    assert n_false > 2000 * DELTA / 3


class TestRejection:
    """Limits with rejection: two thresholds, and a limit on what is between them."""

    @pytest.mark.parametrize("world", [FINE, TIES], ids=["no ties", "ties"])
    @pytest.mark.parametrize(
        ("text", "low", "high", "share"),
        [
            ("fp <= 18.4%, rejected <= 30%", 0.4, 0.5, 1 / 2),
            ("fn <= 13.5%, rejected <= 35%", 1.5, 1.6, 1 / 2),
            ("rejected(1) <= 40%, rejected(0) <= 40%, fp <= 18.4%", 0.6, 0.7, 1 / 2),
        ],
    )
    def test_bands_from_given_decisions(self, world, text, low, high, share):
        """The limits that can be violated from there have a share of δ."""
        n_certified, n_false = simulate(single(text, low, high), world, 300)
        assert n_certified > 2000 / 5
        assert holds(n_false, 2000, share * DELTA)
        assert n_false > 2000 * share * DELTA / 3

    @pytest.mark.parametrize("world", [FINE, TIES], ids=["no ties", "ties"])
    @pytest.mark.parametrize(
        ("text", "low", "high"),
        [
            ("fp <= 11.5%, fn <= 30%, rejected <= 60%", 0.5, 0.5),
            ("fp <= 30%, fn <= 13.5%, rejected <= 60%", 1.5, 1.5),
            ("fp <= 30%, fn <= 30%, rejected <= 29.4%", -49.0, 51.0),
            ("fp <= 30%, fn <= 30%, rejected(1) <= 26.3%, rejected(0) <= 60%", -49.0, 51.0),
        ],
    )
    def test_bands_whose_width_is_set(self, world, text, low, high):
        """Limits on errors have half of δ together, those on rejected samples the other half."""
        n_certified, n_false = simulate(single(text, low, high), world, 300)
        assert n_certified > 2000 / 2
        assert holds(n_false, 2000, DELTA / 2)
        assert n_false > 2000 * DELTA / 6

    @pytest.mark.parametrize("seed", range(3))
    def test_planned_bands_with_limits_on_both_classes(self, seed):
        plan = plan_of("fp <= 15%, fn <= 15%, rejected <= 40%", FINE, 100, seed, delta=DELTA)
        n_certified, n_false = simulate(plan, FINE, 300)
        assert n_certified > 2000 / 2
        assert holds(n_false, 2000, DELTA)

    def test_a_band_that_rejects_slightly_more_than_its_limit_passes_by_chance_only(self):
        """The limit on fp needs this band, or that nothing is rejected, which is no false one."""
        rates = np.array([[0.8, 0.2, 0.0], [0.0, 0.2, 0.8]])
        world = Population(np.arange(3.0), rates, np.array([0.5, 0.5]))
        plan = single("fp <= 5%, rejected <= 19.999%", 0.5, 1.5)
        n_certified, n_false = simulate(plan, world, 1000, 4000)
        assert n_certified > n_false > 4000 * DELTA / 4
        assert holds(n_false, 4000, DELTA / 2)

    def test_that_nothing_is_rejected_after_a_failure_is_accounted_for(self):
        """Recall depends on the few positives, rejection on all others: either may go wrong."""
        sizes = (20_000, 100)
        values = np.concatenate([[-9.0, 0.0], 4 + ndtri((np.arange(400) + 0.5) / 400)])
        negative, positive = np.zeros((2, len(values)))
        negative[:2], positive[2:] = (0.6, 0.4), 1 / 400
        world = Population(values, np.array([negative, positive]), np.array(sizes) / sum(sizes))
        # Slightly less than what all bands reject that end somewhat below the limit on recall.
        limit = 100 * world.matrix(Threshold(-1.0, 3.5))[:, 2].sum()
        plan = single(f"recall >= 50%, rejected <= {limit:.3f}%, then fewest errors", -1.0, 9.0)
        found = certify_draws(plan, world.draw_sets(np.random.default_rng(1), sizes, 2000), DELTA)
        n_false = (found.certified & world.are_false(plan, found.decisions)).sum()
        assert found.certified.sum() > 1000
        assert holds(n_false, 2000, DELTA)
        assert n_false > 2000 * DELTA / 3


class TestSeveralRequests:
    """Requests on the same certification set: a ledger divides the error probability."""

    def granted(self, *reserve):
        """The error probability that a ledger grants to each request on the same rows; 0: none."""
        ledger, sample, parts = Ledger(), RowSample.of(np.arange(300.0)[:, None]), []
        for i, keep in enumerate(reserve):
            try:
                with ledger.use(
                    sample, name=f"request {i}", preference="", delta=DELTA, reserve=keep
                ) as grant:
                    parts.append(grant.part)
            except GuaranteeError:
                parts.append(0.0)
        return parts

    def test_requests_that_are_fixed_beforehand(self):
        """A set counts if any of its three guarantees is false."""
        draws = FINE.draw_sets(np.random.default_rng(0), np.array([147, 151]), 4000)
        false, parts = np.zeros(4000, dtype=bool), self.granted(True, True, False)
        texts = ("fp <= 18.4%", "fn <= 13.5%", "fp <= 38.2%")
        for text, part in zip(texts, parts, strict=True):
            plan = single(text, BEYOND[text[:2]])
            found = certify_draws(plan, draws, part)
            assert found.certified.all()
            false |= FINE.are_false(plan, found.decisions)
        assert holds(false.sum(), 4000, DELTA)
        assert false.sum() > 4000 * DELTA / 2

    @pytest.mark.parametrize("with_ledger", [True, False])
    def test_the_first_of_ten_candidates_that_passes(self, with_ledger):
        """Ten unrelated scores, each slightly beyond the limit: only a ledger makes this rare."""
        rates = np.array([[0.9 - 1e-9, 0.1 + 1e-9], [0.5, 0.5]])
        world, rng = (
            Population(np.arange(2.0), rates, np.array([0.6, 0.4])),
            np.random.default_rng(2),
        )
        plan, certified = along("fp <= 10%", [0.5]), np.zeros(1000, dtype=bool)
        for part in self.granted(*[True] * 10) if with_ledger else [DELTA] * 10:
            draws = world.draw_sets(rng, np.array([300, 100]), 1000)
            certified |= certify_draws(plan, draws, part).certified
        assert holds(certified.sum(), 1000, DELTA) == with_ledger

    def first_certificate(self, part):
        """Certify a decision of three classes on 1,000 sets; return them and the outcomes."""
        path, world = (default_decision(3),), three_classes()
        draws = world.draw_sets(np.random.default_rng(0), np.array([200, 200, 200]), 1000)
        plan = Plan(Preference("accuracy >= 50%"), (0, 1, 2), None, path[0], path)
        return world, plan, draws, certify_draws(plan, draws, part)

    def test_a_first_request_that_holds(self):
        world, plan, _, outcomes = self.first_certificate(DELTA / 2)
        assert outcomes.certified.mean() > 0.9
        assert not world.are_false(plan, plan.path).any()

    @pytest.mark.xfail(
        raises=AssertionError,
        reason="the ledger grants a second request on rows that the first certificate has shown",
    )
    def test_a_second_request_that_is_chosen_after_reading_the_first_certificate(self):
        """The user compares the matrix of the first certificate with that of a large tuning set,
        and requests for the cell with the smallest p-value just what its count supports."""
        first, second = self.granted(True, False)
        if not second:
            return
        world, plan, draws, outcomes = self.first_certificate(first)
        rates = world.matrix(plan.decision)[:, :3] / world.prior[:, None]
        counts = outcomes.matrices[:, :, :3].reshape(1000, 9)
        luck = binom.cdf(counts, 200, rates.ravel()) + 2 * np.eye(3).ravel()
        chosen = luck.argmin(axis=1)
        n_false = 0
        for cell, n in set(zip(chosen, counts[range(1000), chosen], strict=True)):
            supported = clopper_pearson(int(n), 200, 1 - 2 * second)[1]
            text = f"errors({cell // 3} -> {cell % 3}) <= {100 * supported + 1e-4:.4f}%"
            plan = replace(plan, preference=Preference(text))
            there = outcomes.certified & (chosen == cell) & (counts[:, cell] == n)
            found = certify_draws(plan, replace(draws, counts=draws.counts[there]), second)
            n_false += found.certified.sum() * world.are_false(plan, plan.path).sum()
        assert holds(n_false, 1000, DELTA)


class TestWrongRules:
    """The same simulations notice rules that are known to be wrong."""

    def test_the_quantile_of_the_certification_set(self):
        draws = FINE.draw_sets(np.random.default_rng(1), (150, 100), 500)
        above = np.cumsum(draws.counts[:, ::-1] * (draws.codes[::-1] == 0), axis=1)[:, ::-1]
        at = (above[:, draws.codes == 0] <= 15 + 1e-9).argmax(axis=1)
        thresholds = np.nextafter(draws.scores[draws.codes == 0][at], -np.inf)
        plan = single("fp <= 10%", -9.0)
        n_false = FINE.are_false(plan, [Threshold(t, t) for t in thresholds.tolist()]).sum()
        assert not holds(n_false, 500, DELTA)

    def test_predictions_at_the_threshold_too(self):
        plan = single("fp <= 10%", -9.0)
        draws = COARSE.draw_sets(np.random.default_rng(1), (150, 100), 500)
        certified = certify_draws(plan, draws, DELTA).decisions
        below = [Threshold(t, t) for t in np.nextafter([one.high for one in certified], -np.inf)]
        assert not holds(COARSE.are_false(plan, below).sum(), 500, DELTA)

    @pytest.mark.parametrize("plan", TestPaths.CROSSING, ids=lambda plan: str(plan.preference))
    def test_the_last_decision_that_meets_the_limits_on_the_certification_set(self, plan):
        draws = FINE.draw_sets(np.random.default_rng(1), (150, 100), 600)
        last, cells = np.full(600, -1), plan.cells()
        for at, decision in enumerate(plan.path):
            matrices = draws.tabulate(decision.predict(draws.scores), 2)
            last[[not violates(cells, matrix) for matrix in matrices]] = at
        false = np.append(FINE.are_false(plan, plan.path), False)
        assert not holds(false[last].sum(), 600, DELTA)


class Memorizing(ClassifierMixin, BaseEstimator):
    """Scores rows by their first feature, and the rows that it was trained on by their labels.

    It predicts correctly each row whose second feature is that of a training row. So its true rates
    are those of the first feature, and hardly any error is seen on the certification set if its
    rows, or copies or groups of them, were trained on.
    """

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = dict(zip(self._names(X), np.asarray(y), strict=True))
        return self

    def decision_function(self, X):
        honest = np.asarray(X)[:, 0].astype(float) - 1
        labels = [self.known_.get(name) for name in self._names(X)]
        return honest + np.array([0 if one is None else 20 * int(one) - 10 for one in labels])

    def predict(self, X):
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    def _names(self, X):
        return np.asarray(X)[:, 1].tolist()


def rows(n, rng, gap=2.0, positives=0.4):
    """Draw rows: a score, normal in each class, and a number that names the row."""
    y = (rng.random(n) < positives).astype(int)
    return np.column_stack([rng.normal(size=n) + gap * y, rng.random(n)]), y


def true_matrix(model, gap=2.0, positives=0.4):
    """The true matrix of a model of rows that are new to it."""
    quantiles = ndtri((np.arange(2000) + 0.5) / 2000)
    joint = np.zeros((2, 3))
    for c, prior in enumerate((1 - positives, positives)):
        new = np.full((2000, model.n_features_in_), -1.0)
        new[:, 0] = quantiles + gap * c
        predicted = model.predict(new)
        for column in (0, 1):
            joint[c, column] = prior * (predicted == column).mean()
        joint[c, 2] = prior - joint[c].sum()
    return joint


def errors(matrix):
    """How many predictions of two classes are wrong."""
    return float(matrix[0, 1] + matrix[1, 0])


class Runs(NamedTuple):
    """How many runs end with a certificate, with a false one, and the errors that all show.

    A little less is seen than expected, since the threshold is set on these rows, and nearly
    nothing if they were trained on.
    """

    n_certified: int
    n_false: int
    seen: float
    expected: float  # of as many new rows of each class

    @classmethod
    def of(cls, text, models):
        """Compare certificates with true rates."""
        truths = [true_matrix(model) for model in models]
        counts = [model.certificate_.confusion.counts for model in models]
        expected = [
            joint * (found.sum(axis=1) / joint.sum(axis=1))[:, None]
            for joint, found in zip(truths, counts, strict=True)
        ]
        cells = single(text, 0.0).cells()
        n_false = sum(violates(cells, joint) for joint in truths)
        return cls(len(models), n_false, sum(map(errors, counts)), sum(map(errors, expected)))


def certified_models(text, n_runs, draw, **options):
    """Run `from_data` and `accept` on tables; return the models that are certified."""
    models = []
    for seed in range(n_runs):
        X, y, more = draw(np.random.default_rng(seed))
        dialog = Dialog.from_data(
            X, y, committee=Memorizing(), random_state=seed, **more, **options
        )
        dialog.prefer(text, strategies=["move", "reject"])
        with suppress(GuaranteeError):
            models.append(dialog.accept())
    return models


class TestTables:
    """`Dialog.from_data` and `accept`, end to end, at confidence 0.95."""

    def check(self, text, draw, n_runs=20, **options):
        runs = Runs.of(text, certified_models(text, n_runs, draw, **options))
        assert runs.n_certified > n_runs / 2
        assert holds(runs.n_false, n_runs, 0.05)
        assert runs.seen > 0.8 * runs.expected

    @pytest.mark.parametrize("text", ["fp <= 10%", "fn <= 30%, fp <= 40%", "precision >= 75%"])
    def test_certification_rows_are_not_trained_on(self, text):
        self.check(text, lambda rng: (*rows(400, rng), {}), certify=0.4, tune=0.4)

    def test_cross_fitted_members(self):
        self.check("fp <= 10%", lambda rng: (*rows(400, rng), {}))

    @pytest.mark.parametrize("text", ["fp <= 10%", "alarms <= 50%"])
    def test_planned_splits(self, text):
        self.check(text, lambda rng: (*rows(400, rng), {}), guarantee=text, tune=0.4)

    @pytest.mark.parametrize("times", [(3, 3), (1, 5)])
    def test_copies(self, times):
        def draw(rng):
            X, y = rows(300, rng)
            order = rng.permutation(np.repeat(np.arange(300), np.where(y, *times)))
            return X[order], y[order], {}

        self.check("fp <= 10%", draw, certify=0.4, tune=0.4)

    def test_groups(self):
        """The rows of a group have one label, one name and similar scores."""

        def draw(rng):
            X, y = rows(150, rng)
            groups = np.repeat(np.arange(150), 6)
            X, y = X[groups], y[groups]
            X[:, 0] += 1e-3 * rng.normal(size=len(y))
            return X, y, {"groups": groups}

        self.check("fp <= 10%", draw, certify=0.4, tune=0.4)

    def test_time(self):
        """All rows of a day have one label and one name; the latest days are set aside."""

        def draw(rng):
            days = np.repeat(np.arange(100), 4)
            X, y = rows(100, rng)
            X, y = X[days], y[days]
            X[:, 0] = rng.normal(size=400) + 2 * y
            return X, y, {"time": days}

        self.check("fp <= 10%", draw, certify=0.4, tune=0.4)

    @pytest.mark.parametrize("numbered", [False, True])
    def test_copies_that_may_differ_in_a_column_that_the_member_ignores(self, numbered):
        def draw(rng):
            X, y = rows(300, rng)
            order = rng.permutation(np.repeat(np.arange(300), 3))
            X = np.column_stack([X[order], np.arange(900)]) if numbered else X[order]
            return X, y[order], {"duplicates": "near"}

        self.check("fp <= 10%", draw, 15)


class TestVisits:
    """Visits of patients, some healthy and some not: rates are over the patients with a class."""

    POPULATION = draw_visits(np.random.default_rng(9), 20_000)

    @staticmethod
    def draws(visits, each_class, seed):
        """What draws a certification set at random, and what draws the latest visits."""
        codes = (visits["outcome"] == "disease").to_numpy().astype(int)
        groups, time = (
            np.unique(visits["patient"], return_inverse=True)[1],
            visits["day"].to_numpy(),
        )
        alone = np.ones(len(codes), dtype=bool)
        return codes, (
            RandomDraw.of(codes, groups, seed, each_class),
            LatestDraw(codes, time, alone, groups, each_class, seed),
        )

    @pytest.mark.parametrize("text", ["fp <= 20%", "fn <= 20%"])
    def test_thresholds_on_one_visit_of_each_patient_and_class(self, text):
        plan, code = single(text, BEYOND[text[:2]]), int(text[:2] == "fn")
        label = "disease" if code else "healthy"
        of_class = self.POPULATION[self.POPULATION["outcome"] == label].sort_values("pressure")
        weights = 1 / of_class.groupby("patient")["patient"].transform("size").to_numpy()
        scores, below = of_class["pressure"].to_numpy(), np.cumsum(weights) / weights.sum()
        n_false = np.zeros(2, dtype=int)
        for seed in range(400):
            visits = draw_visits(np.random.default_rng(seed), 120)
            codes, draws = self.draws(visits, True, seed)
            for i, draw in enumerate(draws):
                at = draw.rows(draw.complete({code: 40}))[1]
                some = visits["pressure"].to_numpy()[at]
                threshold = set_decision(plan, some, codes[at], DELTA).decision.high
                rate = np.interp(threshold, scores, below)
                n_false[i] += (rate if code else 1 - rate) > 0.2
        assert all(holds(n, 400, DELTA) for n in n_false)
        assert min(n_false) > 400 * DELTA / 3

    @pytest.mark.parametrize(
        ("text", "columns"), [("fn <= 25%", ["patient"]), ("fp <= 25%", ["patient", "day"])]
    )
    def test_certificates(self, text, columns):
        """Through the public functions, with members that are trained on the other patients."""
        label, models = "disease" if text[:2] == "fn" else "healthy", []
        for seed in range(15):
            visits = draw_visits(np.random.default_rng(seed), 250)
            more = dict(zip(("groups", "time"), (visits[name] for name in columns), strict=False))
            dialog = Dialog.from_data(
                visits[FEATURES],
                visits["outcome"],
                committee=LogisticRegression(),
                guarantee=text,
                positive="disease",
                random_state=seed,
                **more,
            )
            dialog.prefer(text, strategies=["move"])
            models.append(dialog.accept(confidence=1 - DELTA))
        rates = [rate_over_patients(model, self.POPULATION, label) for model in models]
        assert holds(sum(rate > 0.25 for rate in rates), 15, DELTA)
        assert np.mean(rates) > 0.15  # nor are they much stricter than they have to be


def test_one_call():
    runs = Runs.of(
        "fp <= 10%",
        [
            SteeredClassifier(Memorizing(), preference="fp <= 10%", random_state=seed).fit(
                *rows(400, np.random.default_rng(seed))
            )
            for seed in range(20)
        ],
    )
    assert holds(runs.n_false, 20, 0.05)
    assert runs.seen > 0.8 * runs.expected


def test_new_certification_sets_of_a_trained_model():
    """A fitted model, its tuning set, and many certification sets of the user's own.

    The decision that the tuning set determines violates the limit slightly.
    """
    rng = np.random.default_rng(0)
    model = Memorizing().fit(*rows(50, rng))
    dialog = Dialog(model, *rows(300, rng))
    dialog.prefer("fp <= 8%", strategies=["move"])
    models = [dialog.accept(*rows(200, rng), confidence=1 - DELTA) for _ in range(40)]
    runs = Runs.of("fp <= 8%", models)
    assert runs.n_false > 0
    assert holds(runs.n_false, 40, DELTA)
    assert runs.seen > 0.8 * runs.expected
