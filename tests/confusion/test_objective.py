"""The judge: verdicts against the preference itself, offsets against all thresholds, the cost."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.confusion.values import value_of

from margrave import Confusion, Preference
from margrave.confusion import Objective

# Preferences on two classes, each with the errors of which it does not speak.
TWO = [
    Preference(text)
    for text in [
        "fp <= 0",
        "fp <= 2",
        "fp <= 25%",
        "fn <= 0",
        "fn <= 1",
        "recall(1) >= 80%",
        "correct(1) >= 2",
        "recall(0) >= 1",
        "precision(1) >= 70%",
        "precision(0) >= 66.7%",
        "alarms <= 30%",
        "alarms <= 2",
        "fp <= 1, fn <= 1",
        "fp <= 0, recall(1) >= 50%",
        "precision(1) >= 70%, recall(1) >= 70%",
        "accuracy >= 75%",
        "errors <= 1",
        "rejected <= 5%",
        "fp <= 50%, then fewest errors",
        "fn <= 50%, then lowest cost of fp + 3 fn",
        "errors <= 6, then fewest fp(0)",
    ]
]
THREE = [
    Preference(text)
    for text in [
        "errors(0 -> 1) <= 0",
        "errors(0 -> 1) <= 1, errors(2 -> 1) <= 1",
        "recall(2) >= 80%",
        "correct(0) >= 3, precision(1) >= 60%",
        "fp(2) <= 1",
        "fn(1) <= 0",
        "alarms(0) <= 20%",
        "accuracy >= 90%",
        "fp(2) <= 2, then fewest errors",
        "fn(0) <= 2, then lowest cost of errors(1 -> 2) + 0.5 fp(0)",
    ]
]


def classes_of(n, k):
    return arrays(np.intp, n, elements=st.integers(0, k - 1))


@st.composite
def answered(draw, k):
    """True classes and answers."""
    n = draw(st.integers(1, 12))
    return draw(classes_of(n, k)), draw(classes_of(n, k))


@st.composite
def scored(draw, k, grid):
    """True classes and scores on a grid, so that ties are common."""
    n = draw(st.integers(1, 12))
    codes = draw(classes_of(n, k))
    return codes, draw(arrays(np.float64, (n, k), elements=st.integers(-6, 6))) / grid


def counted(codes, answers, k):
    return Confusion.of(codes, answers, classes=range(k))


def thresholds(values):
    """A number below all values, one between any two, and one above all."""
    there = np.unique(values)
    between = [(low + high) / 2 for low, high in pairwise(there)]
    return [there[0] - 1, *between, there[-1] + 1]


@pytest.mark.core
@given(answered(2), st.sampled_from(TWO))
def test_a_verdict_on_two_classes_is_what_the_preference_says(data, preference):
    codes, answers = data
    matrix = counted(codes, answers, 2)
    objective = Objective(preference, codes, (0, 1))
    assert objective.matrix(answers) == matrix
    value = objective.evaluate(answers)
    assert value[1:] == value_of(preference, matrix)
    assert (value.shortfall == 0) == preference.met(matrix)
    assert value.errors == matrix.fp + matrix.fn


@given(answered(3), st.sampled_from(THREE))
def test_a_verdict_on_three_classes_is_what_the_preference_says(data, preference):
    codes, answers = data
    matrix = counted(codes, answers, 3)
    value = Objective(preference, codes, (0, 1, 2)).evaluate(answers)
    assert value[1:] == value_of(preference, matrix)
    assert (value.shortfall == 0) == preference.met(matrix)
    assert value.errors == (codes != answers).sum()


def test_a_limit_that_is_just_reached_is_met():
    """A share of 0.7 has no exact float: 0.7 · 30 and 21 differ by rounding."""
    codes = np.repeat([0, 1], [70, 30])
    answers = np.where(np.arange(100) >= 79, 1, 0)  # 21 of the 30
    for text in ("recall(1) >= 70%", "fn <= 30%", "alarms <= 21%"):
        assert Objective(Preference(text), codes, (0, 1)).evaluate(answers).shortfall == 0
    one_fewer = np.where(np.arange(100) >= 80, 1, 0)
    value = Objective(Preference("recall(1) >= 70%"), codes, (0, 1)).evaluate(one_fewer)
    assert value.shortfall == pytest.approx(1)


def test_fp_and_fn_speak_of_the_positive_class():
    codes, answers = np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 1])
    fp = Preference("fp <= 0")
    value = Objective(fp, codes, ("x", "y")).evaluate(answers)
    assert (value.shortfall, value.goal, value.errors) == (2, 1, 3)
    value = Objective(fp, codes, ("x", "y"), positive="x").evaluate(answers)
    assert (value.shortfall, value.goal, value.errors) == (1, 2, 3)


def test_limits_come_first_then_predicted_classes_the_goal_errors_and_rejected_samples():
    """20 samples of class 0 and 10 of class 1, each matrix worse than the one before."""
    matrices = [
        [[18, 2, 0], [0, 9, 1]],  # no positive is missed
        [[18, 2, 0], [1, 8, 1]],
        [[17, 2, 1], [1, 8, 1]],  # a rejected sample more
        [[17, 3, 0], [1, 9, 0]],  # a false alarm more
        [[20, 0, 0], [2, 8, 0]],  # a positive is missed more
        [[0, 0, 20], [9, 1, 0]],
        [[20, 0, 0], [0, 0, 10]],  # class 1 is never predicted
        [[16, 4, 0], [0, 10, 0]],  # the limit is missed
    ]
    preference = Preference("fp <= 3, rejected <= 100%")
    objective = Objective(preference, np.repeat([0, 1], [20, 10]), (0, 1))
    values = [*zip(*objective.evaluate_counts(np.array(matrices)), strict=True)]
    assert all(one < next_one for one, next_one in pairwise(values))


@given(answered(3) | answered(2), st.sampled_from(["errors", "fn(0)", "errors(0 -> 1)"]))
def test_a_stated_goal_is_what_is_minimised(data, word):
    codes, answers = data
    k = max(2, codes.max() + 1, answers.max() + 1)
    matrix = counted(codes, answers, k)
    preference = Preference(f"fp(1) <= 2, then lowest cost of {word} + 2.5 fp(0)")
    off_diagonal = matrix.counts[:, :k] - np.diag(np.diag(matrix.counts))
    cells = {"errors": off_diagonal, "fn(0)": off_diagonal[0], "errors(0 -> 1)": off_diagonal[0, 1]}
    value = Objective(preference, codes, range(k)).evaluate(answers)
    assert value.goal == pytest.approx(cells[word].sum() + 2.5 * off_diagonal[:, 0].sum())
    assert value[1:] == value_of(preference, matrix)


def test_a_stand_in_without_a_goal_has_the_errors_that_no_bound_limits():
    codes, answers = np.array([0, 0, 1, 1, 1]), np.array([1, 0, 0, 0, 1])
    wanted = Preference("fp <= 2")
    for then, goal in [(None, 2), (Preference("fp <= 2, then fewest fp").then, 1)]:
        stand_in = SimpleNamespace(all_bounds=wanted.all_bounds, then=then)
        assert Objective(stand_in, codes, (0, 1)).evaluate(answers).goal == goal


@given(scored(2, grid=2), st.sampled_from(TWO))
def test_no_threshold_is_better_than_the_best_offset_of_two_classes(data, preference):
    codes, scores = data
    offset, value = Objective(preference, codes, (0, 1)).best_offsets(scores)

    def judged(answers):
        return value_of(preference, counted(codes, answers, 2))

    toward = scores[:, 1] - scores[:, 0]
    best = min(judged((toward > threshold).astype(int)) for threshold in thresholds(toward))
    assert value[1:] == best
    assert judged((scores + offset).argmax(axis=1)) == best
    assert offset.sum() == pytest.approx(0)


@pytest.mark.parametrize("outlier", [10, 1e6, 1e10])
def test_an_outlier_takes_no_threshold_away(outlier):
    toward = np.array([-2.0, -1, 1, 2, 3, outlier])
    objective = Objective(Preference("fp <= 0"), np.array([0, 0, 1, 0, 1, 1]), (0, 1))
    offset, value = objective.best_offsets(np.column_stack([np.zeros(6), toward]))
    assert value == (0, 0, 0, 1, 1, 0)  # above 2: one positive is lost
    assert -3 < offset[1] - offset[0] < -2


def test_scores_that_differ_by_rounding_only_are_not_told_apart():
    scores = np.array([[0.0, 0.1 + 0.2], [0, 0.3], [0, 1]])
    assert scores[0, 1] > scores[1, 1]
    objective = Objective(Preference("fp <= 0"), np.array([1, 0, 1]), (0, 1))
    offset, value = objective.best_offsets(scores)
    assert value == (0, 0, 0, 1, 1, 0)
    assert (scores + offset).argmax(axis=1).tolist() == [0, 0, 1]


def test_a_threshold_stands_halfway_and_no_farther_than_it_must():
    toward = np.array([-4.0, 1, 2, 5])
    scores = np.column_stack([np.zeros(4), toward])
    objective = Objective(Preference("fp <= 0"), np.array([0, 0, 1, 1]), (0, 1))
    offset, value = objective.best_offsets(scores)
    assert value == (0, 0, 0, 0, 0, 0)
    assert offset.tolist() == [0.75, -0.75]
    # Two of 1, 2, 3 and 4 are wrong; thresholds after 1 and after 3 leave one.
    scores = np.column_stack([np.zeros(4), [1, 2, 3, 4]])
    evenly = Objective(Preference("accuracy >= 75%"), np.array([0, 1, 0, 1]), (0, 1))
    assert evenly.best_offsets(scores)[0].tolist() == [0.75, -0.75]
    # An offset of 0 is as good as any other here.
    scores = np.column_stack([np.zeros(4), toward])
    same, value = objective.best_offsets(scores - [0, 1.4])
    assert value == (0, 0, 0, 0, 0, 0)
    assert same.tolist() == [0, 0]


@given(scored(3, grid=3), st.sampled_from(THREE))
@example((np.array([1, 0]), np.array([[-6, -1, 0], [-6, -2, -6]]) / 3), THREE[0])
def test_the_offset_of_three_classes_gives_the_verdict_also_with_ties(data, preference):
    codes, scores = data
    objective = Objective(preference, codes, (0, 1, 2))
    offset, value = objective.best_offsets(scores)
    assert objective.evaluate((scores + offset).argmax(axis=1)) == value
    assert value <= objective.evaluate(scores.argmax(axis=1))
    assert offset.sum() == pytest.approx(0)


@given(st.integers(0, 10_000), st.integers(3, 15), st.sampled_from(THREE))
def test_from_the_offset_of_three_classes_no_class_alone_gains(seed, n, preference):
    rng = np.random.default_rng(seed)
    codes, scores = rng.integers(0, 3, n), rng.normal(size=(n, 3))
    objective = Objective(preference, codes, (0, 1, 2))
    offset, value = objective.best_offsets(scores)
    moved = scores + offset
    assert objective.evaluate(moved.argmax(axis=1)) == value
    for c in range(3):
        needed = np.delete(moved, c, axis=1).max(axis=1) - moved[:, c]
        for threshold in thresholds(needed):
            alone = moved + threshold * (np.arange(3) == c)
            assert value <= objective.evaluate(alone.argmax(axis=1))


def test_two_classes_of_three_are_moved_where_one_is_not_enough():
    # Each class is called 0 by a hair; only the offsets of both 1 and 2 make all right.
    scores = np.array([[9.0, 0, 0], [1, 0, -9], [1, 0, -9], [1, -9, 0], [1, -9, 0]])
    objective = Objective(Preference("accuracy >= 100%"), np.array([0, 1, 1, 2, 2]), (0, 1, 2))
    offset, value = objective.best_offsets(scores)
    assert value == (0, 0, 0, 0, 0, 0)
    assert (scores + offset).argmax(axis=1).tolist() == [0, 1, 1, 2, 2]


def best_of(objective, scores, offsets):
    """The best value of some offsets."""
    k = objective.k
    cells = (objective.codes * k + (scores + offset).argmax(axis=1) for offset in offsets)
    counts = np.array([np.bincount(of, minlength=k**2) for of in cells]).reshape(-1, k, k)
    return min(zip(*objective.evaluate_counts(counts), strict=True))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "text",
    [
        "fn(0) <= 8, fn(1) <= 8",
        "errors(0 -> 1) <= 3, errors(1 -> 0) <= 3",
        "fp(2) <= 5, fn(0) <= 10",
        "fn(2) <= 2",
    ],
)
def test_a_fine_grid_of_offsets_finds_hardly_fewer_errors(seed, text):
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.normal(size=(3, 2))
    codes = rng.integers(0, 3, 150)
    points = centres[codes] + rng.normal(size=(150, 2))
    scores = -((points[:, None] - centres) ** 2).sum(axis=2) / 2
    objective = Objective(Preference(text), codes, (0, 1, 2))
    _, value = objective.best_offsets(scores)
    steps = np.linspace(-6, 6, 61)
    _, *best, errors, _ = best_of(objective, scores, [(0, a, b) for a in steps for b in steps])
    shortfall, unpredicted, goal = best
    assert value[1:4] <= (shortfall, unpredicted, goal + 1)
    if value[1:4] == (shortfall, unpredicted, goal):
        assert value.errors <= errors + 1


def test_two_limits_do_not_send_samples_to_a_third_class():
    """Limits on the confusions of two classes are met by fewer errors, not by other ones."""
    rng = np.random.default_rng(3)
    centres = np.array([[0, 0], [1.6, 0], [0.8, 1.8], [4, 4]])
    codes = rng.integers(0, 4, 1200)
    points = centres[codes] + rng.normal(size=(1200, 2))
    scores = -((points[:, None] - centres) ** 2).sum(axis=2) / 2
    before = counted(codes, scores.argmax(axis=1), 4)
    limits = before[0, 1] // 2, before[1, 0] // 2
    wanted = Preference(f"errors(0 -> 1) <= {limits[0]}, errors(1 -> 0) <= {limits[1]}")
    objective = Objective(wanted, codes, (0, 1, 2, 3))
    offset, value = objective.best_offsets(scores)
    assert value.shortfall == 0
    # A random search near what was found, and far from it.
    steps = rng.choice([0.02, 0.2, 2], size=(3000, 1)) * rng.normal(size=(3000, 4))
    _, shortfall, unpredicted, goal, errors, _ = best_of(objective, scores, offset + steps)
    assert value[1:3] <= (shortfall, unpredicted)
    assert value.goal <= goal + 2
    assert value.goal < goal or value.errors <= errors + 2


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "text",
    ["fp(0) <= 3%", "recall(1) >= 70%, fp(2) <= 5%", "precision(1) >= 60%", "errors(0 -> 1) <= 1%"],
)
def test_offsets_of_many_samples_are_as_good_as_those_of_a_random_search(text, seed):
    """Of so many samples, the search begins with a part."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, 4000, p=[0.5, 0.3, 0.17, 0.03])
    scores = rng.normal(size=(4000, 4)) + 1.5 * np.eye(4)[codes]
    objective = Objective(Preference(text), codes, (0, 1, 2, 3))
    offset, value = objective.best_offsets(scores)
    assert value == objective.evaluate((scores + offset).argmax(axis=1))
    steps = rng.choice([0.02, 0.2, 2], size=(600, 1)) * rng.normal(size=(600, 4))
    _, shortfall, unpredicted, goal, *_ = best_of(objective, scores, offset + steps)
    assert value[1:3] <= (shortfall, unpredicted)
    assert value.goal <= 1.005 * goal


@pytest.mark.parametrize(("n", "seed"), [(300, 0), (300, 1), (3200, 0), (9000, 1)])
@pytest.mark.parametrize(
    "text", ["fp(2) <= 2%", "recall(3) >= 76%, precision(1) >= 80%", "fn(0) <= 0"]
)
def test_offsets_are_as_good_as_those_that_a_search_starts_from(text, seed, n):
    """Of many samples a part is searched first; what is good there may be bad for all."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(4, n, p=[0.5, 0.3, 0.17, 0.03])
    scores = np.round(rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[codes], 1)
    objective = Objective(Preference(text), codes, (0, 1, 2, 3))

    def value_at(offset):
        return objective.evaluate((scores + offset).argmax(axis=1))

    start = rng.normal(size=4)
    close, _ = objective.best_offsets(scores, local=True)
    for starts in [], [start], [close]:
        for local in True, False:
            offset, found = objective.best_offsets(scores, starts, local=local)
            assert found == value_at(offset)
            assert found <= min(map(value_at, [np.zeros(4), *starts]))


def overlapping(n, seed):
    """Codes and scores of three classes, the log densities of normal distributions."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, n, p=[0.7, 0.2, 0.1])
    centres = np.array([[0, 0], [1.5, 0], [0.9, 1.2]])
    points = centres[codes] + rng.normal(size=(n, 2))
    return codes, -((points[:, None] - centres) ** 2).sum(axis=2) / 2, rng


def test_no_offsets_of_a_grid_are_nearer_to_limits_that_are_not_met():
    """With this seed, no single move from the results of all starts comes as near."""
    codes, scores, _ = overlapping(400, seed=1)
    objective = Objective(Preference("recall(2) >= 90%, recall(1) >= 70%"), codes, (0, 1, 2))
    _, value = objective.best_offsets(scores)
    steps = np.linspace(-5, 5, 51)
    _, shortfall, *_ = best_of(objective, scores, [(0, a, b) for a in steps for b in steps])
    assert 0 < value.shortfall <= shortfall


@pytest.mark.parametrize(
    ("n", "seed"), [(400, 14), (400, 73), (400, 134), (6000, 38), (6000, 78), (6000, 144)]
)
def test_limits_that_some_offsets_meet_are_met(n, seed):
    """With these seeds, no single move from the results of all starts meets them."""
    codes, scores, rng = overlapping(n, seed)
    reached = Confusion.of(codes, (scores + rng.normal(size=3)).argmax(axis=1), classes=(0, 1, 2))
    limits = [f"errors({a} -> {b}) <= {reached.counts[a, b]}" for a, b in [(0, 1), (1, 2), (2, 0)]]
    objective = Objective(Preference(", ".join(limits)), codes, (0, 1, 2))
    assert objective.best_offsets(scores)[1].shortfall == 0


@pytest.mark.parametrize("seed", [46, 83, 197])
def test_limits_are_met_beside_one_that_no_offsets_meet(seed):
    """No offsets reject a sample, so that limit must not get priority."""
    codes, scores, rng = overlapping(400, seed)
    reached = Confusion.of(codes, (scores + rng.normal(size=3)).argmax(axis=1), classes=(0, 1, 2))
    limits = [f"errors({a} -> {b}) <= {reached.counts[a, b]}" for a, b in [(0, 1), (1, 2), (2, 0)]]
    objective = Objective(Preference(", ".join([*limits, "rejected >= 50"])), codes, (0, 1, 2))
    assert objective.best_offsets(scores)[1].shortfall == 50


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        (35, ["errors(0 -> 1)", "errors(1 -> 2)", "errors(2 -> 0)"]),
        (37, ["fn(0)", "fn(1)", "fn(2)"]),
    ],
)
def test_limits_that_the_scores_just_meet_are_met(seed, words):
    """Of a part of the samples, the rates are others, so it may not suggest this."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(3, 3000, p=[0.55, 0.44, 0.01])
    scores = rng.normal(size=(3000, 3)) + rng.choice([0.3, 1, 2]) * np.eye(3)[codes]
    matrix = Confusion.of(codes, scores.argmax(axis=1), classes=(0, 1, 2))
    bounds = [Preference(f"{word} <= 0").bounds[0] for word in words]
    numbers = [matrix.counts[bound.cells(matrix)[0]].sum() for bound in bounds]
    limits = [f"{word} <= {number}" for word, number in zip(words, numbers, strict=True)]
    objective = Objective(Preference(", ".join(limits)), codes, (0, 1, 2))
    assert objective.best_offsets(scores)[1].shortfall == 0


def test_a_limit_on_a_count_of_no_samples_is_met():
    counts = np.zeros((1, 2, 2), dtype=int)
    for text, shortfall in ("fp <= 3", 0), ("correct >= 3", 3), ("precision >= 50%", 1):
        objective = Objective(Preference(text), np.zeros(0, dtype=int), (0, 1), 1)
        assert objective.evaluate_counts(counts)[1] == shortfall


# Samples that get no answer: -1, and a last column.

WITH_REJECTS = [
    Preference(text)
    for text in [
        "fp <= 1",
        "rejected <= 20%",
        "rejected(0) <= 1, fp <= 25%",
        "rejected(0) <= 1, rejected(1) <= 50%",
        "rejected >= 1, rejected <= 90%",
        "fn <= 1, rejected <= 3",
        "recall(1) >= 50%, rejected <= 40%",
        "precision(1) >= 70%, rejected <= 100%",
        "accuracy >= 60%, rejected <= 30%",
        "errors <= 1, correct >= 3, rejected <= 100%",
        "alarms(1) <= 30%, rejected <= 2",
    ]
]


@st.composite
def doubted(draw, k):
    """True classes and answers, some of them -1."""
    n = draw(st.integers(1, 12))
    answers = draw(arrays(np.intp, n, elements=st.integers(-1, k - 1)))
    return draw(classes_of(n, k)), answers


@st.composite
def stacks(draw, k):
    """Several matrices of the same classes, with rejected samples."""
    m = draw(st.integers(1, 5))
    return draw(arrays(np.int64, (m, k, k + 1), elements=st.integers(0, 9)))


@given(doubted(2), st.sampled_from(WITH_REJECTS))
def test_a_verdict_counts_what_is_rejected_as_the_preference_does(data, preference):
    codes, answers = data
    matrix = Confusion.of(codes, answers, classes=range(2), reject_label=-1, positive=1)
    objective = Objective(preference, codes, (0, 1))
    assert objective.matrix(answers) == matrix
    assert objective.matrix(answers).n_rejected == (answers == -1).sum()
    value = objective.evaluate(answers)
    assert value[1:] == value_of(preference, matrix)
    assert (value.shortfall == 0) == preference.met(matrix)
    assert value.errors == ((codes != answers) & (answers >= 0)).sum()


@given(doubted(3), st.sampled_from([one for one in THREE if "fp(" not in str(one)]))
def test_three_classes_may_be_rejected_too(data, preference):
    codes, answers = data
    matrix = Confusion.of(codes, answers, classes=range(3), reject_label=-1)
    value = Objective(preference, codes, (0, 1, 2)).evaluate(answers)
    assert value[1:] == value_of(preference, matrix)
    assert (value.shortfall == 0) == preference.met(matrix)
    assert value.errors == ((codes != answers) & (answers >= 0)).sum()
    assert value.n_rejected == (answers < 0).sum()


@given(stacks(2), st.sampled_from(WITH_REJECTS))
def test_a_stack_is_judged_matrix_by_matrix(counts, preference):
    objective = Objective(preference, np.array([0, 1]), (0, 1))
    _, *values = objective.evaluate_counts(counts)
    for i, one in enumerate(counts):
        matrix = Confusion(one)
        assert tuple(value[i] for value in values) == value_of(preference, matrix)
        assert (values[0][i] == 0) == preference.met(matrix)
        assert values[3][i] == one[:, :2].sum() - np.trace(one)


@given(stacks(3), st.sampled_from(THREE))
def test_without_a_rejected_column_none_is_rejected(counts, preference):
    objective = Objective(preference, np.array([0, 1, 2]), (0, 1, 2))
    answered = counts[:, :, :3]
    none_rejected = np.concatenate([answered, np.zeros_like(counts[:, :, 3:])], axis=2)
    for short, whole in zip(
        objective.evaluate_counts(answered), objective.evaluate_counts(none_rejected), strict=True
    ):
        assert short.tolist() == whole.tolist()


@pytest.mark.core
@given(doubted(2), st.sampled_from(WITH_REJECTS), st.integers(1, 4))
def test_groups_of_samples_are_judged_as_their_samples(data, preference, times):
    """Samples with the same class and answer, as one entry with a count."""
    codes, answers = (np.repeat(of, times) for of in data)
    objective = Objective(preference, codes, (0, 1))
    grouped, group = objective.of_groups(answers + 1)
    assert grouped.counts.sum() == len(codes)
    assert grouped.matrix(group - 1) == objective.matrix(answers)
    assert grouped.evaluate(group - 1) == objective.evaluate(answers)


# Which of two predictions is clearly better


def beats_by_hand(objective, one, other, standard_errors):
    """The definition: the limits and the classes, or McNemar's statistic weighted by the costs."""
    values = [objective.evaluate(each)[:3] for each in (one, other)]
    if values[0] != values[1]:
        return values[0] < values[1]
    matrix = objective.matrix(one)
    costs = objective.preference.goal(matrix).costs(matrix)
    gain = variance = 0.0
    for true, mine, its in zip(objective.codes, one, other, strict=True):
        saved = costs[true, its] - costs[true, mine]
        gain, variance = gain + saved, variance + saved**2
    return gain > 0 and gain / np.sqrt(variance) > standard_errors


def discordant(fewer, more, n=40):
    """Predictions for n samples of class 1 and one of class 0, which is predicted correctly.

    Some of class 1 are errors of only the second and of only the first; no bound limits these.
    """
    codes = np.append(np.ones(n, dtype=np.intp), 0)
    one, other = codes.copy(), codes.copy()
    other[:fewer] = 0
    one[n - more : n] = 0
    return Objective(Preference("fp <= 0"), codes, (0, 1)), one, other


@pytest.mark.parametrize(
    ("fewer", "more", "standard_errors", "expected"),
    [
        (10, 3, 2.0, False),  # 7² = 49 ≤ 4 · 13
        (11, 3, 2.0, True),  # 8² = 64 > 4 · 14
        (10, 3, 1.9, True),  # 49 > 3.61 · 13
        (4, 0, 2.0, False),  # 4² = 4 · 4
        (5, 0, 2.0, True),
        (5, 0, 2.3, False),  # 25 ≤ 5.29 · 5
        (1, 0, 0.0, True),
        (1, 0, 0.99, True),
        (1, 0, 1.0, False),
        (7, 6, 0.0, True),
        (7, 7, 0.0, False),
        (3, 10, 0.0, False),
        (0, 0, 0.0, False),
    ],
)
def test_errors_have_to_be_fewer_by_standard_errors(fewer, more, standard_errors, expected):
    objective, one, other = discordant(fewer, more)
    assert objective.beats(one, other, standard_errors) is expected
    assert not objective.beats(other, one, standard_errors) or fewer < more


def test_two_standard_errors_are_the_default():
    for fewer, more in [(10, 3), (11, 3), (4, 0), (5, 0)]:
        objective, one, other = discordant(fewer, more)
        assert objective.beats(one, other) == objective.beats(one, other, 2.0)


def test_a_smaller_shortfall_always_beats():
    codes = np.repeat([0, 1], 10)
    objective = Objective(Preference("fp <= 0"), codes, (0, 1))
    one_fp, none = codes.copy(), np.zeros(20, dtype=np.intp)
    one_fp[0] = 1  # a single error, against ten that the preference does not mention
    assert objective.beats(none, one_fp, 1e9)
    assert not objective.beats(one_fp, none, 0.0)


def test_a_rejected_sample_is_no_error():
    objective, one, other = discordant(6, 0)
    objective = Objective(Preference("rejected <= 50%"), objective.codes, (0, 1))
    rejecting = np.where(one != other, -1, other)
    assert objective.beats(rejecting, other)
    assert not objective.beats(one, rejecting, 0.0)


def test_a_prediction_of_every_class_always_beats():
    codes = np.repeat([0, 1], 10)
    objective = Objective(Preference("fn <= 100%"), codes, (0, 1))
    never, once = np.zeros(20, dtype=np.intp), np.zeros(20, dtype=np.intp)
    once[:5] = 1  # with five errors more
    assert objective.beats(once, never, 1e9)
    assert not objective.beats(never, once, 0.0)


def test_costs_count_what_only_one_of_two_predictions_costs():
    """Ten false alarms against three missed positives, of cost 1 and 4."""
    codes = np.repeat([0, 1], 20)
    fewer_alarms, fewer_missed = codes.copy(), codes.copy()
    fewer_alarms[20:23] = 0
    fewer_missed[:10] = 1
    for text, expected in [
        ("fewest errors", fewer_alarms),
        ("lowest cost of fp + 4 fn", fewer_missed),
    ]:
        objective = Objective(Preference(f"rejected <= 0, then {text}"), codes, (0, 1))
        other = fewer_missed if expected is fewer_alarms else fewer_alarms
        assert objective.beats(expected, other, 0.0)
        assert not objective.beats(other, expected, 0.0)


@given(answered(2), classes_of(12, 2), st.sampled_from(TWO), st.sampled_from([0.0, 1.0, 2.0]))
def test_beats_is_its_definition(given_, others, preference, standard_errors):
    codes, one = given_
    other = others[: len(codes)]
    objective = Objective(preference, codes, (0, 1))
    expected = beats_by_hand(objective, one, other, standard_errors)
    assert objective.beats(one, other, standard_errors) == expected
    assert not objective.beats(one, one, standard_errors)
    if expected:
        assert not objective.beats(other, one, standard_errors)


@given(answered(2), classes_of(12, 2), arrays(np.int64, 12, elements=st.integers(1, 5)))
def test_a_count_is_as_many_samples(given_, others, counts):
    codes, one = given_
    other, counts = others[: len(codes)], counts[: len(codes)]
    preference = Preference("fp <= 2")
    grouped = Objective(preference, codes, (0, 1), counts=counts)
    each = Objective(preference, np.repeat(codes, counts), (0, 1))
    for standard_errors in (0.0, 1.0, 2.0):
        expected = each.beats(np.repeat(one, counts), np.repeat(other, counts), standard_errors)
        assert grouped.beats(one, other, standard_errors) == expected
