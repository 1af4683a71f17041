"""The bounds on the error rates of a program, against enumerated paths and fitted programs."""

from fractions import Fraction
from functools import cache
from itertools import product
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier
from tests.examples import few

from margrave.martingale import (
    AdaptiveMartingaleBoostClassifier,
    Edge,
    MartingaleBoostClassifier,
    Node,
    Program,
)

SEEDS = st.integers(0, 2**32 - 1)
STUMP = DecisionTreeClassifier(max_depth=1, random_state=0)


def grown(k, n_levels, local, came=None, end=None):
    """A program of votes.

    ``local`` returns the local matrix of a node from its votes and the samples that came; ``end``
    its kind and prediction, or None to go on. By default paths end at leaves with most votes.
    """
    nodes, edges, counts, flow = [], [], [], []
    layer = {(0,) * k: np.zeros(k, dtype=int) if came is None else np.array(came)}
    for level in range(n_levels + 1):
        following, moves = {}, []
        for votes in sorted(layer):
            ending = end(level, votes) if end else None
            if ending is None and level == n_levels:
                ending = "leaf", int(np.argmax(votes))
            nodes.append(Node(level, votes, *(ending or ("learner", None))))
            if ending:
                counts.append(np.outer(layer[votes], np.eye(k, dtype=int)[ending[1]]))
                continue
            counts.append(local(votes, layer[votes]))
            for code in range(k):
                there = tuple(v + (c == code) for c, v in enumerate(votes))
                moves.append((len(nodes) - 1, there, code))
                flow.append(counts[-1][:, code])
                following[there] = following.get(there, 0) + counts[-1][:, code]
        layer = following
        place = {there: len(nodes) + number for number, there in enumerate(sorted(layer))}
        edges += [Edge(start, place[there], code) for start, there, code in moves]
    outcomes = np.reshape(flow, (len(edges), k, 1)) * np.eye(k, dtype=int)  # only the flow matters
    return Program(tuple(range(k)), tuple(nodes), tuple(edges), counts, outcomes)


def same_everywhere(row, n_levels):
    """A program in which each class has the same fractions at all nodes: ``row``, rotated."""
    k = len(row)
    matrix = np.array([np.roll(row, code) for code in range(k)])
    return grown(k, n_levels, lambda votes, came: matrix)


def at_random(k, n_levels, seed, *, ends=False):
    """A program with random counts; with ``ends``, also frozen nodes and changed labels."""
    rng = np.random.default_rng(seed)
    strength = rng.uniform(0.3, 0.95)

    def local(votes, came):
        return np.array([
            rng.multinomial(n, strength * np.eye(k)[c] + (1 - strength) * rng.dirichlet(np.ones(k)))
            for c, n in enumerate(came)
        ])  # fmt: skip

    def end(level, votes):
        if level == n_levels and rng.random() < 0.3:
            return "leaf", int(rng.integers(k))
        if 0 < level < n_levels and rng.random() < 0.2:
            return str(rng.choice(["frozen", "empty"])), int(rng.integers(k))
        return None

    return grown(k, n_levels, local, rng.integers(1, 300, k), end if ends else None)


def paths(program, c):
    """Each path of samples of a class: its probability, margins, votes and end."""
    outgoing = {}
    for edge, flow in zip(program.edges, program.flow[:, c].tolist(), strict=True):
        if flow:
            outgoing.setdefault(edge.start, []).append((edge, flow))

    def go_on(at, probability, margins, votes):
        if program.nodes[at].is_end:
            yield probability, np.sum(margins, axis=0), votes, program.nodes[at]
        size = int(program.sizes[at, c])
        for edge, flow in outgoing.get(at, ()):
            row = program.counts[at, c] / size
            margin = [2 * row[c] - 1 if j == c else row[c] - row[j] for j in range(len(row))]
            cast = [*votes, edge.prediction]
            yield from go_on(edge.end, probability * Fraction(flow, size), [*margins, margin], cast)

    return list(go_on(0, Fraction(1), [], []))


def bound_of_paths(program, c):
    """The bound of a class, from all paths one by one."""
    k, n_levels = len(program.classes), program.n_levels
    counted, sums = Fraction(0), []
    for probability, margins, votes, end in paths(program, c):
        tally = [votes.count(j) for j in range(k)]
        wins = all(tally[c] > tally[j] for j in range(k) if j != c)
        if end.kind == "leaf":
            sums.append(margins)
        if end.prediction != c and (end.kind != "leaf" or wins):
            counted += probability
    least = np.maximum(np.min(sums, axis=0), 0) if sums else np.full(k, np.inf)
    bounds = [exp(-(least[j] ** 2) / (2 * n_levels)) for j in range(k)]
    return min(1.0, float(counted) + min(bounds[c], sum(bounds) - bounds[c]))


class TestFormula:
    def test_three_levels_by_hand(self):
        recalls = {  # by votes: samples of class 0 that are predicted right, and all of them
            (0, 0): (48, 64),
            (1, 0): (40, 48),
            (0, 1): (8, 16),
            (2, 0): (40, 40),
            (1, 1): (12, 16),
            (0, 2): (6, 8),
        }

        def local(votes, came):
            right, n = recalls[votes]
            assert came[0] == n
            return np.array([[right, n - right], [0, came[1]]])

        program = grown(2, 3, local, (64, 10))
        # The smallest sum of advantages: an error first, ¼ + 0 + ¼, by (0, 2) or by (1, 1).
        assert program.error_bounds()[0] == pytest.approx(exp(-2 * 0.5**2 / 3))
        assert program.error_bounds()[1] == pytest.approx(exp(-2 * 1.5**2 / 3))
        assert program.error_rates() == pytest.approx({0: (4 + 8) / 64, 1: 0})

    @pytest.mark.parametrize("n_levels", [1, 2, 5, 8])
    @pytest.mark.parametrize("advantage", [0.05, 0.2, 0.5])
    def test_equal_advantages(self, advantage, n_levels):
        right = round(100 * (0.5 + advantage))
        program = same_everywhere([right, 100 - right], n_levels)
        bound = exp(-2 * advantage**2 * n_levels)
        assert program.error_bounds() == pytest.approx({0: bound, 1: bound})

    @pytest.mark.parametrize("row", [[50, 50], [40, 60], [34, 33, 33], [0, 50, 50]])
    def test_small_margins_and_none_have_the_bound_1(self, row):
        assert set(same_everywhere(row, 4).error_bounds().values()) == {1.0}

    def test_more_classes_with_the_same_margins_have_a_weaker_bound(self):
        rows = {2: [670, 330], 3: [560, 220, 220], 4: [505, 165, 165, 165]}
        for k, row in rows.items():
            expected = (k - 1) * exp(-(0.34**2) * 20 / 2)
            assert same_everywhere(row, 20).error_bounds()[k - 1] == pytest.approx(expected)

    def test_the_majority_is_the_better_bound_if_one_class_takes_all_errors(self):
        bounds = same_everywhere([80, 20, 0], 9).error_bounds()
        assert bounds[1] == pytest.approx(exp(-2 * 0.3**2 * 9))

    def test_right_learners_bound_the_better_the_more_levels(self):
        bounds = [same_everywhere([1, 0, 0], levels).error_bounds()[0] for levels in range(1, 12)]
        np.testing.assert_allclose(bounds, [exp(-levels / 2) for levels in range(1, 12)])

    @pytest.mark.parametrize(("k", "n_levels"), [(2, 1), (2, 4), (2, 7), (3, 3), (3, 4), (4, 3)])
    @pytest.mark.parametrize("ends", [False, True])
    @given(seed=SEEDS)
    @few(4)
    def test_all_paths_one_by_one(self, k, n_levels, ends, seed):
        program = at_random(k, n_levels, seed, ends=ends)
        for c, bound in program.error_bounds().items():
            assert bound == pytest.approx(bound_of_paths(program, c), abs=1e-12)
            wrong = sum(share for share, *_, end in paths(program, c) if end.prediction != c)
            assert float(wrong) <= bound


class TestValid:
    @pytest.mark.parametrize(("k", "n_levels"), [(2, 9), (2, 10), (3, 6), (3, 7), (4, 5)])
    @pytest.mark.parametrize("ends", [False, True])
    @given(seed=SEEDS)
    @few(4)
    def test_bounds_of_random_programs(self, k, n_levels, ends, seed):
        program = at_random(k, n_levels, seed, ends=ends)
        assert_valid(program)

    @pytest.mark.parametrize("n_levels", range(1, 12))
    @pytest.mark.parametrize("row", [[55, 45], [75, 25], [97, 3], [50, 30, 20], [80, 10, 10]])
    def test_bounds_of_equal_nodes(self, row, n_levels):
        assert_valid(same_everywhere(row, n_levels))

    def test_a_tie_of_an_even_number_of_levels_is_an_error_at_most(self):
        program = same_everywhere([97, 3], 2)
        assert program.error_rates() == pytest.approx({0: 0.03**2, 1: 1 - 0.97**2})
        assert_valid(program)


class TestEnds:
    def frozen(self, prediction):
        """Of 100 samples of class 0, 90 go on, and all are right; 10 end at a frozen node."""

        def local(votes, came):
            if votes == (0, 0):
                return np.array([[90, 10], [0, 50]])
            return np.diag(came)

        def end(level, votes):
            return ("frozen", prediction) if votes == (0, 1) else None

        return grown(2, 3, local, (100, 50), end)

    def test_wrong_samples_at_a_frozen_node_are_added(self):
        program = self.frozen(1)
        assert program.error_rates() == {0: 0.1, 1: 0.0}
        assert program.error_bounds()[0] == pytest.approx(0.1 + exp(-2 * (0.4 + 1) ** 2 / 3))

    def test_right_ones_are_not(self):
        program = self.frozen(0)
        assert program.error_bounds()[0] == pytest.approx(exp(-2 * (0.4 + 1) ** 2 / 3))
        assert program.error_bounds()[1] == program.error_rates()[1] == 1  # all of them end there

    def test_a_class_that_never_reaches_a_leaf_has_its_rate_as_bound(self):
        program = self.frozen(1)
        assert program.error_bounds()[1] == program.error_rates()[1] == 0

    def test_a_label_that_is_not_that_of_the_votes_is_added(self):
        row = np.array([[9, 1], [1, 9]])
        program = grown(
            2, 1, lambda *_: row, (10, 10), lambda level, _: ("leaf", 1) if level else None
        )
        assert program.error_rates() == {0: 1.0, 1: 0.0}
        assert program.error_bounds() == pytest.approx({0: 1.0, 1: exp(-2 * 0.4**2)})

    @pytest.mark.parametrize(("kind", "bounds"), [("frozen", (0, 1)), ("leaf", (1, 1))])
    def test_a_root_that_ends_all_paths(self, kind, bounds):
        program = grown(2, 0, None, (3, 2), lambda *_: (kind, 0))
        assert tuple(program.error_bounds().values()) == bounds

    def test_a_class_without_samples(self):
        program = grown(2, 1, lambda *_: np.array([[9, 1], [0, 0]]), (10, 0))
        assert program.error_bounds() == pytest.approx(
            {0: exp(-2 * 0.4**2), 1: np.nan}, nan_ok=True
        )


@cache
def made(k, seed=0):
    """Training samples and as many others."""
    X, y = make_classification(
        160, 5, n_informative=3, n_redundant=0, n_classes=k, n_clusters_per_class=1, flip_y=0.1,
        class_sep=0.8, random_state=seed,
    )  # fmt: skip
    return X[:80], y[:80], X[80:], y[80:]


def assert_valid(program):
    rates, bounds = program.error_rates(), program.error_bounds()
    assert rates.keys() == bounds.keys()
    for label, bound in bounds.items():
        assert rates[label] <= bound <= 1


class TestFitted:
    @pytest.mark.parametrize("learner", [None, STUMP], ids=["logistic", "stump"])
    @pytest.mark.parametrize("k", [2, 3, 4])
    @pytest.mark.parametrize(("n_levels", "freeze"), list(product([1, 4, 7], [None, 3.0])))
    def test_bounds_of_training_samples_and_others(self, learner, k, n_levels, freeze):
        X, y, X_new, y_new = made(k)
        model = MartingaleBoostClassifier(learner, n_levels, freeze=freeze).fit(X, y)
        assert_valid(model.program_)
        assert_valid(model.measured(X_new, y_new))

    @pytest.mark.parametrize("k", [2, 3, 4])
    def test_strong_learners_have_small_bounds(self, k):
        X, y, *_ = made(k)
        learner = DecisionTreeClassifier(max_depth=5, random_state=0)
        bounds = {
            levels: MartingaleBoostClassifier(learner, levels).fit(X, y).program_.error_bounds()
            for levels in (3, 9)
        }
        assert max(bounds[9].values()) < 0.1 < max(bounds[3].values()) < 1

    @pytest.mark.parametrize("n_levels", [3, 4])
    @pytest.mark.parametrize("k", [2, 3])
    def test_bounds_of_tuned_programs(self, k, n_levels):
        X, y, X_tune, y_tune = made(k)
        model = MartingaleBoostClassifier(STUMP, n_levels).fit(X, y)
        fewer = int(np.sum((model.predict(X_tune) == 0) & (y_tune != 0))) // 3
        tuned = model.tune(f"fp(0) <= {fewer}", X_tune, y_tune, max_models=0)
        assert np.any(tuned.predict(X_tune) != model.predict(X_tune))
        assert_valid(tuned.program_)
        assert_valid(tuned.measured(X_tune, y_tune))

    def test_labels_that_tuning_moved_away_from_the_votes(self):
        X, y, X_tune, y_tune = made(2)
        model = MartingaleBoostClassifier(n_levels=5).fit(X, y)
        tuned = model.tune("fp(0) <= 0", X_tune, y_tune, max_models=0)
        moved = [
            node
            for node in tuned.program_.nodes
            if node.is_end and node.prediction != np.argmax(node.position)
        ]
        assert moved
        assert_valid(tuned.program_)
        assert_valid(tuned.measured(X_tune, y_tune))

    def test_real_positions_are_refused(self):
        X, y, *_ = made(2)
        model = AdaptiveMartingaleBoostClassifier(n_levels=2).fit(X, y)
        with pytest.raises(ValueError, match=r"Program\.error_bounds .*Adaptive"):
            model.program_.error_bounds()
