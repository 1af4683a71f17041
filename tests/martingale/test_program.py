"""The graph of a program: its counts, and the error rates of theorem 1 from them."""

import copy
import pickle
import re
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave import Confusion
from margrave.martingale import Edge, Node, Program

SEEDS = st.integers(0, 2**32 - 1)
KINDS = ("learner", "constant", "frozen", "empty", "leaf")


def routed(y, k, n_levels, rng, *, freeze=0.0, real=False):
    """Route samples at random; return the program that counts them and each sample's label.

    Ends predict at random, so that no rate is right by symmetry. With ``real`` a sample moves by a
    random number, and samples of different predictions can meet in one node.
    """
    nodes, edges, counts, takers, final = [], [], [], [], np.full(len(y), -1)
    layer = {(0.0,) * k: np.arange(len(y))}
    for level in range(n_levels + 1):
        following, moves = {}, []
        for position in sorted(layer):
            rows = layer[position]
            kind = kind_of(y[rows], level, n_levels, rng.random() < freeze)
            predictions, prediction = predicted(y[rows], kind, k, rng)
            nodes.append(Node(level, position, kind, prediction))
            counts.append(tally(y[rows], predictions, k))
            if nodes[-1].is_end:
                final[rows] = prediction
                continue
            to = moved(position, predictions, rng, real)
            for there in sorted({*to, *(() if real else moved(position, range(k), rng, False))}):
                rows_there = rows[[t == there for t in to]]
                following.setdefault(there, []).append(rows_there)
                voted = None if real else int(np.argmax(np.subtract(there, position)))
                moves.append((len(nodes) - 1, there, voted))
                takers.append(rows_there)
        layer = {there: np.concatenate(groups) for there, groups in following.items()}
        place = {there: len(nodes) + i for i, there in enumerate(sorted(layer))}
        edges += [Edge(start, place[there], voted) for start, there, voted in moves]
    outcomes = np.reshape([tally(y[rows], final[rows], k) for rows in takers], (len(edges), k, k))
    return Program(tuple(range(k)), tuple(nodes), tuple(edges), np.array(counts), outcomes), final


def kind_of(labels, level, n_levels, freeze):
    if len(labels) == 0:
        return "empty"
    if level == n_levels:
        return "leaf"
    if freeze and level:
        return "frozen"
    return "constant" if len(set(labels.tolist())) == 1 else "learner"


def predicted(labels, kind, k, rng):
    """The prediction for each sample that came, and the node's own if it has no learner."""
    if kind == "learner":
        return np.where(
            rng.random(len(labels)) < 0.5, labels, rng.integers(k, size=len(labels))
        ), None
    prediction = int(labels[0]) if kind == "constant" else int(rng.integers(k))
    return np.full(len(labels), prediction), prediction


def moved(position, predictions, rng, real):
    """The next position for each prediction: a vote more, or a random step to its side."""
    if real:
        steps = [rng.uniform(0.2, 1) * (1 if prediction else -1) for prediction in predictions]
        return [(0.0, round(position[1] + step, 1)) for step in steps]
    return [
        tuple(v + (c == prediction) for c, v in enumerate(position)) for prediction in predictions
    ]


def tally(labels, predictions, k):
    table = np.zeros((k, k), dtype=int)
    np.add.at(table, (labels, predictions), 1)
    return table


def counted(y, final, k):
    """The fraction of each class whose last prediction is wrong, as a fraction."""
    rates = []
    for c in range(k):
        of_class = y == c
        n = int(of_class.sum())
        rates.append(Fraction(int((final[of_class] != c).sum()), n) if n else None)
    return tuple(rates)


@pytest.fixture
def three_stages():
    """Figure 2: a 3-stage program, v_{i,j} at layer j after i votes for the positive class."""
    up = {  # layer, i: of the negatives and the positives that came, those predicted "positive"
        (0, 0): ((100, 30), (60, 40)),
        (1, 0): ((70, 20), (20, 10)),
        (1, 1): ((30, 12), (40, 30)),
        (2, 0): ((50, 5), (10, 3)),
        (2, 1): ((38, 19), (20, 8)),
        (2, 2): ((12, 9), (30, 29)),
    }
    leaves = ((45, 7), (24, 15), (22, 9), (9, 29))
    nodes = [Node(layer, (layer - i, i), "learner") for layer, i in up]
    nodes += [Node(3, (3 - i, i), "leaf", int(i > 1.5)) for i in range(4)]
    place = {(node.layer, node.position[1]): at for at, node in enumerate(nodes)}
    edges, flow, counts = [], [], []
    for (layer, i), ((n_neg, fp), (n_pos, tp)) in up.items():
        counts.append([[n_neg - fp, fp], [n_pos - tp, tp]])
        edges += [Edge(place[layer, i], place[layer + 1, i + a], a) for a in (0, 1)]
        flow += [[n_neg - fp, n_pos - tp], [fp, tp]]
    for i, came in enumerate(leaves):
        counts.append(np.outer(came, [i <= 1.5, i > 1.5]))
    return Program(("-", "+"), tuple(nodes), tuple(edges), counts, all_right(flow))


def all_right(flow):
    """Outcomes with this flow, where only the flow matters."""
    return np.asarray(flow)[:, :, None] * np.eye(2, dtype=int)


def through_pickle(program):
    return pickle.loads(pickle.dumps(program))  # noqa: S301 - our own bytes


def kinds_in(program):
    """The kinds of nodes that its text names, in order."""
    return re.findall("|".join(KINDS), str(program))


def one_node(kind="leaf", prediction=0, counts=((3, 0), (2, 0)), classes=("a", "b")):
    node = Node(0, (0.0,) * len(classes), kind, prediction)
    return Program(classes, (node,), (), [counts], np.zeros((0, len(classes), len(classes))))


class TestTheorem1:
    def test_the_formula_for_three_stages_by_hand(self, three_stages):
        e00, e01, e11 = Fraction(30, 100), Fraction(20, 70), Fraction(12, 30)
        e12, e22 = Fraction(19, 38), Fraction(9, 12)
        fp_rate = (
            e00 * e11 * e22 + e00 * e11 * (1 - e22) + e00 * (1 - e11) * e12 + (1 - e00) * e01 * e12
        )
        assert three_stages.exact_error_rates[0] == fp_rate == Fraction(22 + 9, 100)
        rates = {"-": float(fp_rate), "+": (7 + 15) / 60}
        assert three_stages.error_rates() == pytest.approx(rates)

    def test_the_same_from_the_advantages(self, three_stages):
        # ε⁻ = ½ − γ⁻ at every node; the nodes are v00, v01, v11, v02, v12, v22.
        e00, e01, e11, _, e12, e22 = 0.5 - three_stages.advantages[:6, 0]
        rate = e00 * e11 * (e22 + 1 - e22) + e00 * (1 - e11) * e12 + (1 - e00) * e01 * e12
        assert three_stages.error_rates()["-"] == pytest.approx(rate, rel=1e-12)

    def test_one_stage_is_its_learner(self):
        nodes = (Node(0, (0, 0), "learner"), Node(1, (1, 0), "leaf", 0), Node(1, (0, 1), "leaf", 1))
        edges = (Edge(0, 1, 0), Edge(0, 2, 1))
        counts = [[[6, 2], [1, 3]], [[6, 0], [1, 0]], [[0, 2], [0, 3]]]
        program = Program((0, 1), nodes, edges, counts, all_right([[6, 1], [2, 3]]))
        assert program.exact_error_rates == (Fraction(2, 8), Fraction(1, 4))
        assert list(program.error_rates().values()) == pytest.approx(0.5 - program.advantages[0])

    def test_powers_of_the_matrix_of_weights(self, three_stages):
        # Equation (1), with the leaves that predict "positive" in place of the columns it names.
        matrix = np.zeros((len(three_stages), len(three_stages)))
        for edge, flow in zip(three_stages.edges, three_stages.flow, strict=True):
            matrix[edge.start, edge.end] = flow[0] / three_stages.sizes[edge.start, 0]
        rate = np.linalg.matrix_power(matrix, 3)[0, -2:].sum()
        assert three_stages.error_rates()["-"] == pytest.approx(rate, rel=1e-12)

    @pytest.mark.parametrize("k", [2, 3])
    @pytest.mark.parametrize("n_levels", range(1, 9))
    @given(seed=SEEDS, freeze=st.sampled_from([0.0, 0.2]))
    def test_the_path_sum_is_the_counted_rate(self, n_levels, k, seed, freeze):
        rng = np.random.default_rng(seed)
        y = rng.integers(k, size=rng.integers(1, 80))
        program, final = routed(y, k, n_levels, rng, freeze=freeze)
        assert program.exact_error_rates == counted(y, final, k)

    @given(seed=SEEDS, n_levels=st.integers(1, 8))
    def test_positions_that_are_real_numbers(self, seed, n_levels):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=60)
        program, final = routed(y, 2, n_levels, rng, freeze=0.1, real=True)
        assert program.exact_error_rates == counted(y, final, 2)
        assert {edge.prediction for edge in program.edges} == {None}

    def test_many_samples_and_levels_stay_exact(self):
        rng = np.random.default_rng(0)
        y = rng.integers(2, size=20_000)
        program, final = routed(y, 2, 15, rng)
        assert len(program) == 16 * 17 / 2
        assert program.exact_error_rates == counted(y, final, 2)

    def test_a_class_without_samples(self):
        rng = np.random.default_rng(0)
        y = np.repeat([0, 2], 20)
        program, final = routed(y, 3, 3, rng)
        assert program.exact_error_rates == counted(y, final, 3)
        assert program.exact_error_rates[1] is None
        rates = program.error_rates()
        assert np.isnan(rates[1])
        assert rates[0] == pytest.approx(float(counted(y, final, 3)[0]))
        assert not program.reach[:, 1].any()

    @pytest.mark.parametrize("kind", ["frozen", "empty", "leaf"])
    def test_an_end_settles_all_that_come(self, kind):
        program = one_node(kind)
        assert program.nodes[0].is_end
        assert program.error_rates() == {"a": 0, "b": 1}
        assert program.n_levels == 0

    @pytest.mark.parametrize("kind", ["learner", "constant"])
    def test_the_others_pass_samples_on(self, kind):
        assert not Node(0, (0, 0), kind).is_end

    def test_no_sample_at_all(self):
        program = one_node("empty", counts=((0, 0), (0, 0)))
        assert program.exact_error_rates == (None, None)
        assert np.isnan(list(program.error_rates().values())).all()
        assert program.reach.tolist() == [[0, 0]]

    def test_a_frozen_node_ends_a_path_early(self):
        nodes = (
            Node(0, (0, 0), "learner"),
            Node(1, (1, 0), "frozen", 0),
            Node(1, (0, 1), "constant", 1),
            Node(2, (1, 1), "empty", 0),
            Node(2, (0, 2), "leaf", 1),
        )
        edges = (Edge(0, 1, 0), Edge(0, 2, 1), Edge(2, 3, 0), Edge(2, 4, 1))
        came = [[[4, 0], [1, 0]], [[0, 0], [0, 9]], [[0, 0], [0, 0]], [[0, 0], [0, 9]]]
        flow = [[4, 1], [0, 9], [0, 0], [0, 9]]
        program = Program((0, 1), nodes, edges, [[[4, 0], [1, 9]], *came], all_right(flow))
        assert program.exact_error_rates == (0, Fraction(1, 10))


class TestCounts:
    @pytest.mark.parametrize("k", [2, 3])
    @given(seed=SEEDS)
    def test_flow_is_conserved_at_every_node(self, k, seed):
        rng = np.random.default_rng(seed)
        y = rng.integers(k, size=50)
        program, _ = routed(y, k, 4, rng, freeze=0.2)
        came, left = np.zeros((2, len(program), k), dtype=int)
        for edge, flow in zip(program.edges, program.flow, strict=True):
            came[edge.end] += flow
            left[edge.start] += flow
        ends = np.array([node.is_end for node in program.nodes])
        np.testing.assert_array_equal(program.sizes[1:], came[1:])
        np.testing.assert_array_equal(left, np.where(ends[:, None], 0, program.sizes))
        assert program.sizes[0].tolist() == np.bincount(y, minlength=k).tolist()
        assert program.sizes[ends].sum(axis=0).tolist() == program.sizes[0].tolist()

    @pytest.mark.parametrize("real", [False, True])
    @given(seed=SEEDS)
    def test_errors_are_conserved_at_every_node(self, real, seed):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=50)
        program, final = routed(y, 2, 4, rng, freeze=0.2, real=real)
        through, left = program.node_outcomes, np.zeros((len(program), 2, 2), dtype=int)
        for edge, outcomes in zip(program.edges, program.outcomes, strict=True):
            left[edge.start] += outcomes
        ends = np.array([node.is_end for node in program.nodes])
        np.testing.assert_array_equal(left[~ends], through[~ends])
        np.testing.assert_array_equal(through[ends], program.counts[ends])
        np.testing.assert_array_equal(through[0], tally(y, final, 2))
        np.testing.assert_array_equal(through.sum(axis=2), program.sizes)

    def test_reach_is_the_fraction_of_a_class_that_reaches_a_node(self, three_stages):
        assert three_stages.reach[0].tolist() == [1, 1]
        assert three_stages.reach[1] == pytest.approx([70 / 100, 20 / 60])
        np.testing.assert_allclose(three_stages.reach[-4:].sum(axis=0), 1)
        assert one_node(counts=((1, 0), (0, 0))).reach.tolist() == [[1, 0]]

    def test_advantages_are_recalls_less_a_half(self, three_stages):
        assert three_stages.advantages[0] == pytest.approx([0.7 - 0.5, 40 / 60 - 0.5])
        assert three_stages.advantages[-1] == pytest.approx([-0.5, 0.5])  # the end predicts "+"

    def test_no_advantage_where_no_sample_of_a_class_came(self):
        program = one_node(counts=((3, 1), (0, 0)))
        np.testing.assert_array_equal(program.advantages, [[0.25, np.nan]])

    def test_the_local_matrix(self, three_stages):
        matrix = three_stages.confusion(2)
        assert isinstance(matrix, Confusion)
        assert matrix.classes == ("-", "+")
        assert (matrix.tn, matrix.fp, matrix.fn, matrix.tp) == (18, 12, 10, 30)
        assert matrix.positive == "+"

    def test_the_positive_class_of_the_local_matrices(self, three_stages):
        matrix = replace(three_stages, positive="-").confusion(0)
        assert (matrix.positive, matrix.fp) == ("-", 20)

    def test_of_three_classes_none_is_positive(self):
        rng = np.random.default_rng(0)
        program, _ = routed(rng.integers(3, size=30), 3, 2, rng)
        assert program.confusion(0).positive is None
        assert program.confusion(0).counts[:, :3].tolist() == program.counts[0].tolist()

    def test_an_empty_node_has_an_empty_matrix(self):
        assert one_node("empty", counts=((0, 0), (0, 0))).confusion(0).n == 0


class TestWords:
    def test_levels_and_kinds(self, three_stages):
        assert len(three_stages) == 10
        assert three_stages.n_levels == 3
        assert re.findall(r"\d+", str(three_stages)) == ["3", "10", "6", "4"]
        assert kinds_in(three_stages) == ["learner", "leaf"]

    def test_kinds_with_nodes_are_listed_in_one_order(self):
        nodes = tuple(Node(0, (0, 0), kind, 0) for kind in KINDS[::-1])
        program = Program((0, 1), nodes, (), np.zeros((5, 2, 2)), np.zeros((0, 2, 2)))
        assert re.findall(r"\d+", str(program)) == ["0", "5", "1", "1", "1", "1", "1"]
        assert kinds_in(program) == list(KINDS)
        assert kinds_in(one_node("frozen")) == ["frozen"]

    def test_repr_leaves_the_counts_out(self, three_stages):
        assert "counts" not in repr(three_stages)
        assert "flow" not in repr(three_stages)


class TestImmutable:
    @pytest.mark.parametrize("name", ["classes", "nodes", "edges", "counts", "flow", "positive"])
    def test_fields_of_a_program(self, three_stages, name):
        with pytest.raises(FrozenInstanceError, match=f"'{name}'"):
            setattr(three_stages, name, None)

    @pytest.mark.parametrize(
        ("part", "name"), [(Node(0, (0, 0), "leaf", 1), "prediction"), (Edge(0, 1), "end")]
    )
    def test_fields_of_nodes_and_edges(self, part, name):
        with pytest.raises(FrozenInstanceError, match=f"'{name}'"):
            setattr(part, name, 0)

    @pytest.mark.parametrize("name", ["counts", "outcomes"])
    def test_arrays_are_its_own_and_read_only(self, three_stages, name):
        array = getattr(three_stages, name).copy()
        program = replace(three_stages, **{name: array})
        array[:] = 99
        kept = getattr(program, name)
        np.testing.assert_array_equal(kept, getattr(three_stages, name))
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 0
        assert kept.dtype == np.int64

    @pytest.mark.parametrize("computed", [False, True], ids=["fresh", "after its rates"])
    def test_a_pickle_has_the_same_rates(self, three_stages, computed):
        if computed:
            three_stages.error_rates()
        back = through_pickle(three_stages)
        assert (back.nodes, back.edges, back.classes) == (
            three_stages.nodes,
            three_stages.edges,
            three_stages.classes,
        )
        np.testing.assert_array_equal(back.counts, three_stages.counts)
        assert back.exact_error_rates == three_stages.exact_error_rates

    @pytest.mark.parametrize("name", ["counts", "outcomes"])
    @pytest.mark.parametrize(
        "again",
        [copy.copy, through_pickle, copy.deepcopy],
    )
    def test_arrays_stay_read_only(self, three_stages, name, again):
        assert not getattr(again(three_stages), name).flags.writeable

    def test_counts_of_another_shape_are_refused(self, three_stages):
        with pytest.raises(ValueError, match=r"Program.*counts.*\(10, 2, 2\)"):
            replace(three_stages, counts=three_stages.counts[1:])
