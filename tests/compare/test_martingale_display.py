"""The display of a martingale program."""

import sys
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from margrave._plotting import COLOURS
from margrave.compare import MartingaleDisplay
from margrave.martingale._program import Edge, Node, Program

plt = pytest.importorskip("matplotlib.pyplot")
to_rgb = pytest.importorskip("matplotlib.colors").to_rgb


@pytest.fixture(autouse=True, scope="module")
def no_window():
    plt.switch_backend("agg")


def a_program(classes, nodes, edges, sizes, flow):
    """Make an object with the attributes of a program; only the counts of samples matter."""
    sizes, k = np.array(sizes), len(classes)
    return SimpleNamespace(
        classes=classes,
        nodes=[
            SimpleNamespace(layer=layer, position=position, kind=kind, prediction=label)
            for layer, position, kind, label in nodes
        ],
        edges=[SimpleNamespace(start=start, end=end) for start, end in edges],
        counts=sizes[:, :, None] * (np.arange(k) == 0),
        reach=sizes / np.maximum(sizes[0], 1),
        flow=np.array(flow),
    )


def grown(k, n_levels, step=1.0):
    """All positions of votes, which samples come to with probabilities near to nature's."""
    layer = {(0.0,) * k: np.full(k, 10_000)}
    nodes, edges, sizes, flow = [], [], [], []
    for level in range(n_levels + 1):
        end = level == n_levels
        following, steps = defaultdict(lambda: np.zeros(k, dtype=int)), []
        for position, came in sorted(layer.items()):
            label = int(np.argmax(position)) if end else None
            nodes.append((level, position, "leaf" if end else "learner", label))
            sizes.append(came)
            for c in range(0 if end else k):
                to = tuple(v + step * (c == i) for i, v in enumerate(position))
                part = np.where(np.arange(k) == c, 0.6, 0.4 / (k - 1)) * came
                following[to] += part.astype(int)
                steps.append((len(nodes) - 1, to))
                flow.append(part.astype(int))
        place = {to: len(nodes) + i for i, to in enumerate(sorted(following))}
        edges += [(start, place[to]) for start, to in steps]
        layer = following
    return a_program([f"class {c}" for c in range(k)], nodes, edges, sizes, flow)


@pytest.fixture
def every_kind():
    """A program of two levels with a node of each kind; 100 samples of "no" and 10 of "yes"."""
    nodes = [
        (0, (0, 0), "learner", None),
        (1, (1, 0), "frozen", 0),
        (1, (0, 1), "constant", 1),
        (2, (1, 1), "empty", 0),
        (2, (0, 2), "leaf", 1),
    ]
    edges = [(0, 1), (0, 2), (2, 3), (2, 4)]
    sizes = [[100, 10], [100, 5], [0, 5], [0, 0], [0, 5]]
    return a_program(("no", "yes"), nodes, edges, sizes, [[100, 5], [0, 5], [0, 0], [0, 5]])


def with_empty_node_reached(program):
    """The same program, counted again on samples that come to the empty node too."""
    program.counts[3, 1, 0], program.reach[3] = 1, [0, 0.1]
    return program


def colours(artist):
    return artist.get_facecolors()[:, :3]


def areas(markers):
    """What the markers cover, in squares of points."""
    (path,) = markers.get_paths()
    x, y = path.interpolated(1).to_polygons()[0].T
    shape = abs(x[:-1] @ y[1:] - x[1:] @ y[:-1]) / 2
    return shape * markers.get_sizes()


def words(display):
    return [text.get_text().strip() for text in display.ax_.get_legend().get_texts()]


class TestPlaces:
    def test_two_classes_stand_at_the_difference_of_their_votes(self, every_kind):
        places = MartingaleDisplay(every_kind).plot().places_
        np.testing.assert_array_equal(places, [[0, 0], [-1, 1], [1, 1], [np.nan] * 2, [2, 2]])

    def test_votes_need_not_be_whole(self):
        program = grown(2, 4, step=0.37)
        display = MartingaleDisplay(program).plot()
        at = [node.position[1] - node.position[0] for node in program.nodes]
        np.testing.assert_allclose(display.places_[:, 0], at, rtol=1e-9, atol=1e-12)
        low, high = display.ax_.get_xlim()
        assert low == -high
        assert 4 * 0.37 < high < 4 * 0.37 * 1.3

    def test_tiny_steps_fill_the_axes_too(self):
        display = MartingaleDisplay(grown(2, 3, step=1e-4)).plot()
        assert display.ax_.get_xlim()[1] < 3e-4 * 1.5

    @pytest.mark.parametrize("step", [1, 0.37])
    def test_three_classes_stand_evenly_in_the_order_of_their_votes(self, step):
        program = grown(3, 4, step)
        display = MartingaleDisplay(program).plot()
        for layer in range(5):
            there = [i for i, node in enumerate(program.nodes) if node.layer == layer]
            there.sort(key=lambda i: display.places_[i, 0])
            across = display.places_[there, 0]
            assert len(across) == (layer + 1) * (layer + 2) / 2
            np.testing.assert_allclose(np.diff(across), 1)
            assert across[0] == -across[-1]
            votes = [program.nodes[i].position for i in there]
            assert votes == sorted(votes, reverse=True)
            assert set(display.places_[there, 1]) == {layer}
        assert list(display.ax_.get_xticks()) == []

    @pytest.mark.parametrize("k", [2, 3])
    def test_the_root_is_on_top_and_everything_on_the_axes(self, k):
        display = MartingaleDisplay(grown(k, 3)).plot()
        ax = display.ax_
        bottom, top = ax.get_ylim()
        assert bottom > 3 > 0 > top
        assert np.abs(display.places_[:, 0]).max() < ax.get_xlim()[1]

    def test_ticks_are_whole_where_votes_are(self):
        display = MartingaleDisplay(grown(2, 3)).plot()
        for ticks in (display.ax_.get_xticks(), display.ax_.get_yticks()):
            assert len(ticks)
            np.testing.assert_array_equal(ticks, np.round(ticks))


class TestNodes:
    def test_every_kind_has_its_own_marker(self, every_kind):
        display = MartingaleDisplay(every_kind).plot(show_empty=True)
        assert list(display.nodes_) == ["learner", "constant", "frozen", "leaf", "empty"]
        shapes = {markers.get_paths()[0].vertices.tobytes() for markers in display.nodes_.values()}
        assert len(shapes) == 5
        rings = {kind: markers.get_linewidths()[0] for kind, markers in display.nodes_.items()}
        assert rings.pop("frozen") > max(rings.values())

    def test_empty_nodes_are_left_out_unless_requested_or_reached(self, every_kind):
        display = MartingaleDisplay(every_kind)
        assert "empty" not in display.plot().nodes_
        without = words(display)
        assert "empty" in display.plot(show_empty=True).nodes_
        assert len(words(display)) == len(without) + 1
        reached = MartingaleDisplay(with_empty_node_reached(every_kind)).plot()
        np.testing.assert_array_equal(reached.places_[3], [0, 2])
        np.testing.assert_allclose(colours(reached.nodes_["empty"])[0], to_rgb(COLOURS[1]))

    def test_a_learner_that_no_sample_came_to_is_drawn(self):
        program = a_program((0, 1), [(0, (0, 0), "learner", None)], [], [[0, 0]], [])
        display = MartingaleDisplay(program).plot()
        red, green, blue = colours(display.nodes_["learner"])[0]
        assert red == green == blue

    def test_area_is_the_mean_reach_whatever_the_marker(self):
        display = MartingaleDisplay(grown(2, 3)).plot()
        reach = display.program.reach.mean(axis=1)
        drawn = np.concatenate([areas(display.nodes_[kind]) for kind in ("learner", "leaf")])
        expected = [*sorted(reach[:6], reverse=True), *sorted(reach[6:], reverse=True)]
        np.testing.assert_allclose(drawn / drawn[0], expected, rtol=0.01)

    @pytest.mark.parametrize("kind", ["constant", "frozen", "leaf", "empty"])
    def test_equal_reach_is_equal_area(self, every_kind, kind):
        every_kind.reach[:] = 1
        display = MartingaleDisplay(every_kind).plot()
        np.testing.assert_allclose(
            areas(display.nodes_[kind]), areas(display.nodes_["learner"]), rtol=0.01
        )

    def test_a_class_without_samples_makes_no_node_smaller(self, every_kind):
        whole = MartingaleDisplay(every_kind).plot().nodes_["learner"].get_sizes()
        every_kind.counts[:, 0], every_kind.reach[:, 0] = 0, 0
        display = MartingaleDisplay(every_kind).plot()
        np.testing.assert_array_equal(display.nodes_["learner"].get_sizes(), whole)

    def test_small_ones_are_seen_and_come_last(self):
        display = MartingaleDisplay(grown(2, 30)).plot()
        for markers in display.nodes_.values():
            sizes = markers.get_sizes()
            assert (np.diff(sizes) <= 0).all()
            assert sizes[-1] > 5

    def test_two_classes_diverge_through_grey_by_reach_not_by_number(self, every_kind):
        display = MartingaleDisplay(every_kind).plot()
        (root,) = colours(display.nodes_["learner"])  # 100 of one class, 10 of the other
        assert root[0] == root[1] == root[2]
        (pure,) = colours(display.nodes_["constant"])
        np.testing.assert_allclose(pure, to_rgb(COLOURS[1]))
        (frozen,) = colours(display.nodes_["frozen"])  # reached by 1 and by ½: fractions ⅔ and ⅓
        np.testing.assert_allclose(frozen, np.array(to_rgb(COLOURS[0])) / 3 + root * 2 / 3)

    def test_three_classes_are_mixed_by_their_fractions(self):
        nodes = [(0, (0, 0, 0), "learner", None)]
        nodes += [(1, (c, 0, 1 - c), "leaf", 0) for c in (0.1, 0.2, 0.3)]
        sizes = [[8, 8, 8], [6, 2, 0], [0, 6, 0], [2, 0, 8]]
        edges, flow = [(0, 1), (0, 2), (0, 3)], sizes[1:]
        display = MartingaleDisplay(a_program("abc", nodes, edges, sizes, flow)).plot()
        tints = np.array([to_rgb(colour) for colour in COLOURS[:3]])
        expected = np.array([[0.2, 0, 0.8], [0.75, 0.25, 0], [0, 1, 0]]) @ tints
        np.testing.assert_allclose(colours(display.nodes_["leaf"]), expected)
        (root,) = colours(display.nodes_["learner"])
        assert np.ptp(root) < 1e-12

    def test_rings_show_the_prediction(self, every_kind):
        display = MartingaleDisplay(every_kind).plot()
        ring = {kind: m.get_edgecolors()[0, :3] for kind, m in display.nodes_.items()}
        for kind, label in (("frozen", 0), ("constant", 1), ("leaf", 1)):
            shade = ring[kind] / np.array(to_rgb(COLOURS[label])).clip(1e-9)
            np.testing.assert_allclose(shade[ring[kind] > 0], shade.max())
            assert shade.max() < 1

    def test_more_classes_than_colours(self):
        assert len(MartingaleDisplay(grown(8, 1)).plot().nodes_["leaf"].get_sizes()) == 8


class TestEdges:
    def test_width_is_the_flow(self, every_kind):
        edges = MartingaleDisplay(every_kind).plot().edges_
        widths = edges.get_linewidths()
        # Of "no" all and of "yes" half go left: ¾ on the mean; the others are half of "yes": ¼.
        np.testing.assert_allclose(np.array(widths) / widths[0], [1, 1 / 3, 1 / 3])
        joined = [segment.tolist() for segment in edges.get_segments()]
        assert joined == [[[0, 0], [-1, 1]], [[0, 0], [1, 1]], [[1, 1], [2, 2]]]

    def test_edges_without_samples_are_plotted_on_request(self, every_kind):
        edges = MartingaleDisplay(every_kind).plot(show_empty=True).edges_
        assert [[1, 1], [0, 2]] in [segment.tolist() for segment in edges.get_segments()]
        assert 0 < min(edges.get_linewidths()) < 1

    def test_one_node_has_none(self):
        program = a_program((0, 1), [(0, (0, 0), "frozen", 1)], [], [[3, 5]], [])
        display = MartingaleDisplay(program).plot()
        display.figure_.canvas.draw()
        assert len(display.edges_.get_segments()) == 0
        assert list(display.nodes_) == ["frozen"]


class TestFigure:
    @pytest.mark.parametrize(("k", "n_levels"), [(2, 1), (2, 15), (3, 5), (12, 1)])
    def test_everything_is_on_the_figure(self, k, n_levels):
        display = MartingaleDisplay(grown(k, n_levels)).plot()
        figure, ax = display.figure_, display.ax_
        figure.canvas.draw()
        boxes = [ax.get_legend().get_window_extent(), ax.get_tightbbox()]
        for box in boxes:
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1
        assert ax.get_window_extent().width > figure.bbox.width / 3

    @pytest.mark.parametrize(("k", "n_levels"), [(2, 15), (3, 5)])
    def test_nodes_do_not_touch(self, k, n_levels):
        display = MartingaleDisplay(grown(k, n_levels)).plot()
        display.figure_.canvas.draw()
        at, radii = [], []
        for markers in display.nodes_.values():
            at.append(display.ax_.transData.transform(markers.get_offsets()))
            radii.append(np.sqrt(markers.get_sizes()) / 2 * display.figure_.dpi / 72)
        at, radii = np.concatenate(at), np.concatenate(radii)
        assert len(at) == len(display.program.nodes)
        apart = np.linalg.norm(at[:, None] - at, axis=2) - radii[:, None] - radii
        assert apart[np.triu_indices(len(at), 1)].min() > 0

    def test_legend_and_axes_name_the_classes(self, every_kind):
        display = MartingaleDisplay(every_kind).plot()
        for label in ("no", "yes"):
            assert sum(label in word.split() for word in words(display)) == 1
        assert len(set(words(display)[-4:])) == len(display.nodes_) == 4
        across = display.ax_.get_xlabel().split()
        assert across.index("yes") < across.index("no")
        assert display.ax_.get_ylabel()

    def test_labels_are_not_read_as_formulas_or_left_out(self, every_kind):
        every_kind.classes = ("_<$50k", "_>$50k")
        display = MartingaleDisplay(every_kind).plot()
        display.figure_.canvas.draw()
        assert any(r"_<\$50k" in word for word in words(display))  # drawn without the backslash
        assert not any(word.startswith("_") for word in words(display))
        across = display.ax_.get_xlabel()
        assert across.index(r"_>\$50k") < across.index(r"_<\$50k")

    def test_labels_need_not_be_text(self, every_kind):
        every_kind.classes = (np.int64(0), np.int64(1))
        display = MartingaleDisplay(every_kind).plot()
        assert any("1" in word.split() for word in words(display))

    def test_existing_axes_are_used(self, every_kind):
        figure, (left, right) = plt.subplots(1, 2)
        display = MartingaleDisplay(every_kind).plot(right, legend=False)
        assert display.ax_ is right
        assert display.figure_ is figure
        assert right.get_legend() is None
        assert not left.collections

    def test_nodes_are_smaller_on_small_axes(self):
        program = grown(2, 15)
        _, ax = plt.subplots(figsize=(3, 2))
        small = MartingaleDisplay(program).plot(ax).nodes_["learner"].get_sizes()[0]
        assert small < MartingaleDisplay(program).plot().nodes_["learner"].get_sizes()[0] / 2

    def test_axes_with_ticks_of_their_own(self, every_kind):
        _, ax = plt.subplots()
        ax.set(xticks=[0.5], yticks=[0.5])
        assert 0.5 not in MartingaleDisplay(every_kind).plot(ax).ax_.get_yticks()


class TestFromEstimator:
    def test_draws_the_program_of_an_estimator(self, every_kind):
        booster = SimpleNamespace(program_=every_kind)
        _, ax = plt.subplots()
        display = MartingaleDisplay.from_estimator(booster, ax=ax, show_empty=True, legend=False)
        assert display.program is every_kind
        assert display.ax_ is ax
        assert "empty" in display.nodes_

    def test_of_a_pipeline_the_last_step(self, every_kind):
        booster = GaussianNB()
        booster.program_ = every_kind
        pipeline = make_pipeline(StandardScaler(), booster)
        assert MartingaleDisplay.from_estimator(pipeline).program is every_kind

    @pytest.mark.parametrize("other", [GaussianNB(), make_pipeline(GaussianNB())])
    def test_without_a_program(self, other):
        with pytest.raises(TypeError, match=rf"from_estimator.*program_.*{type(other).__name__}"):
            MartingaleDisplay.from_estimator(other)

    def test_an_object_other_than_a_program_is_refused(self):
        with pytest.raises(TypeError, match=r"SimpleNamespace.*nodes, edges, counts, reach, flow"):
            MartingaleDisplay(SimpleNamespace(classes=(0, 1)))


def test_the_program_of_martingale_boosting():
    nodes = (Node(0, (0, 0), "learner"), Node(1, (1, 0), "leaf", 0), Node(1, (0, 1), "leaf", 1))
    counts = [[[6, 2], [1, 3]], [[6, 0], [1, 0]], [[0, 2], [0, 3]]]
    edges, outcomes = (Edge(0, 1, 0), Edge(0, 2, 1)), [[[6, 0], [1, 0]], [[0, 2], [0, 3]]]
    program = Program((0, 1), nodes, edges, counts, outcomes)
    display = MartingaleDisplay(program).plot()
    drawn = Counter({kind: len(m.get_sizes()) for kind, m in display.nodes_.items()})
    assert drawn == Counter(node.kind for node in nodes)
    assert len(display.edges_.get_segments()) == 2


def test_without_matplotlib(every_kind, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"MartingaleDisplay.*matplotlib.*\bplot\b"):
        MartingaleDisplay(every_kind).plot()
