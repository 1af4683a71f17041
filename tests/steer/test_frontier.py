"""The frontier: all thresholds counted one by one, the optimal hull, and the plots."""

import math
import re
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from margrave.steer import Curve, Frontier, Winner
from margrave.steer._frontier_display import FrontierDisplay

SCORES = {"sharp": [1, 2, 3, 7, 4, 8, 9, 10], "even": [1, 2, 3, 4, 2, 3, 5, 6]}
Y = ["ham"] * 4 + ["spam"] * 4

# Few values, so that scores tie within a way, and counts between ways.
tables = st.integers(1, 3).flatmap(
    lambda strategies: st.lists(
        st.tuples(st.booleans(), *[st.integers(-3, 3)] * strategies), min_size=1, max_size=14
    ).map(lambda rows: [(True, *[0] * strategies), (False, *[1] * strategies), *rows])
)


def frontier_of(table):
    y, *columns = (np.array(column) for column in zip(*table, strict=True))
    scores = {f"way {i}": column / 4 for i, column in enumerate(columns)}
    return Frontier.of(scores, y), scores, y


def counts(scores, y, threshold):
    called = np.asarray(scores) > threshold
    return int((called & ~y).sum()), int((~called & y).sum())


def every_threshold(scores, y):
    """(fp, fn) at every threshold, one by one."""
    return {counts(scores, y, threshold) for threshold in [-math.inf, *np.unique(scores)]}


class TestCurves:
    @given(tables)
    def test_a_curve_is_what_no_other_threshold_beats(self, table):
        frontier, scores, y = frontier_of(table)
        for curve in frontier.curves:
            points = every_threshold(scores[curve.name], y)
            unbeaten = sorted(
                (fp, fn)
                for fp, fn in points
                if not any(p <= fp and n <= fn and (p, n) != (fp, fn) for p, n in points)
            )
            found = list(zip(curve.fp.tolist(), curve.fn.tolist(), strict=True))
            assert found == unbeaten
            assert [
                counts(scores[curve.name], y, threshold) for threshold in curve.thresholds
            ] == found
            assert (curve.fp[0], curve.fn[-1]) == (0, 0)
            assert np.isfinite(curve.thresholds).all()

    @given(tables)
    def test_classes_swapped_and_scores_negated_mirror_it(self, table):
        frontier, scores, y = frontier_of(table)
        mirrored = Frontier.of({name: -given for name, given in scores.items()}, ~y)
        for curve, other in zip(frontier.curves, mirrored.curves, strict=True):
            assert other.fp.tolist() == curve.fn[::-1].tolist()
            assert other.fn.tolist() == curve.fp[::-1].tolist()
            assert other.thresholds.tolist() == (-curve.thresholds[::-1]).tolist()
        flipped = [(one.fn, one.fp) for one in mirrored.hull[::-1]]
        assert flipped == [(one.fp, one.fn) for one in frontier.hull]

    def test_worked_by_hand(self):
        frontier = Frontier.of(SCORES, Y)
        sharp, even = frontier.curves
        assert (sharp.fp.tolist(), sharp.fn.tolist()) == ([0, 1], [1, 0])
        assert sharp.thresholds.tolist() == [7.5, 3.5]
        # 5 and 6 are spam; at 3 ham and spam tie, with a ham at 4 before them; 2 likewise.
        assert (even.fp.tolist(), even.fn.tolist()) == ([0, 2, 3], [2, 1, 0])
        assert even.thresholds.tolist() == [4.5, 2.5, 1.5]
        assert frontier.hull == (
            Winner("sharp", 7.5, 0, 1, 0.0, 1.0),
            Winner("sharp", 3.5, 1, 0, 1.0, math.inf),
        )

    @pytest.mark.parametrize("one", [0.0, 1e300, -1e300, 1.7e308, 5e-324])
    def test_constant_scores_leave_all_or_nothing(self, one):
        (curve,) = Frontier.of({"constant": [one] * 3}, [0, 1, 1]).curves
        assert (curve.fp.tolist(), curve.fn.tolist()) == ([0, 1], [2, 0])
        assert [(one > threshold) for threshold in curve.thresholds] == [False, True]

    def test_thresholds_tell_neighbouring_numbers_apart(self):
        for low in (1.0, -1.0, 0.0, -5e-324, -1.7e308):
            scores = np.array([low, np.nextafter(low, math.inf)])
            (curve,) = Frontier.of({"way": scores}, [0, 1]).curves
            assert (curve.fp.tolist(), curve.fn.tolist()) == ([0], [0])
            assert (scores > curve.thresholds[0]).tolist() == [False, True]

    def test_curves_cannot_be_changed(self):
        (curve,) = Frontier.of({"way": [1, 2]}, [0, 1]).curves
        assert isinstance(curve, Curve)
        with pytest.raises(ValueError, match="read-only"):
            curve.fp[0] = 3


class TestLabels:
    def test_the_larger_label_is_positive_unless_given(self):
        assert Frontier.of(SCORES, Y).positive == "spam"
        other = Frontier.of(SCORES, Y, "ham")
        assert (other.positive, other.negative, other.n_positive) == ("ham", "spam", 4)

    def test_of_many_the_rest_are_negative(self):
        frontier = Frontier.of({"way": [1, 2, 3, 4]}, np.array([0, 2, 1, 1]), positive=np.int64(1))
        assert (frontier.n_positive, frontier.n_negative) == (2, 2)
        assert (frontier.positive, frontier.negative) == (1, None)
        assert frontier.least_fn(0) == (0, "way", 2.5)


class TestLeast:
    @given(tables, st.integers(0, 20))
    def test_none_has_fewer(self, table, limit):
        frontier, scores, y = frontier_of(table)
        for strategy in (None, *scores):
            looked_at = scores if strategy is None else {strategy: scores[strategy]}
            points = [
                (*point, i)
                for i, one in enumerate(looked_at.values())
                for point in every_threshold(one, y)
            ]
            fn, name, threshold = frontier.least_fn(limit, strategy)
            best, fp, place = min((fn, fp, i) for fp, fn, i in points if fp <= limit)
            assert (fn, name) == (best, list(looked_at)[place])
            assert counts(scores[name], y, threshold) == (fp, fn)
            fp, name, threshold = frontier.least_fp(limit, strategy)
            best, fn, place = min(point for point in points if point[1] <= limit)
            assert (fp, name) == (best, list(looked_at)[place])
            assert counts(scores[name], y, threshold) == (fp, fn)

    def test_shares_are_exact_and_rounded_down(self):
        y = np.repeat([0, 1], [1000, 50])
        frontier = Frontier.of({"way": np.tile(np.arange(50), 21)}, y)
        for share in ("0.1%", ".5%", "2.9%", " 29 % ", "57.%"):
            count = round(float(share.strip(" %")) * 10)
            assert frontier.least_fn(share) == frontier.least_fn(count)
        assert frontier.least_fn("5.79%") == frontier.least_fn(57)
        assert frontier.least_fp("3%") == frontier.least_fp(1)

    @pytest.mark.parametrize("limit", [4, 10**30, np.int64(99), "100%", "250%"])
    def test_limits_beyond_all_samples_are_no_limits(self, limit):
        frontier = Frontier.of(SCORES, Y)
        assert frontier.least_fn(limit)[0] == frontier.least_fp(limit)[0] == 0

    @pytest.mark.parametrize("limit", [-1, 2.5, "5", "-5%", "five", "%", "", None, True, [1]])
    def test_garbage_is_refused(self, limit):
        frontier = Frontier.of(SCORES, Y)
        for word, other in (("fn", "fp"), ("fp", "fn")):
            match = rf"Frontier\.least_{word}\b.*\b{other}\b.*{re.escape(repr(limit))}"
            with pytest.raises(ValueError, match=match):
                getattr(frontier, f"least_{word}")(limit)

    def test_an_unknown_way_is_refused(self):
        with pytest.raises(ValueError, match=r"\bcurve\b.*'sharp'.*'even'.*'blunt'"):
            Frontier.of(SCORES, Y).least_fn(0, "blunt")


def cost(fp, fn, slope, frontier):
    return fp / frontier.n_negative + slope * fn / frontier.n_positive


class TestWinners:
    @given(tables, st.floats(0.01, 100), st.floats(0.01, 0.99) | st.none())
    def test_nothing_costs_less_than_the_best(self, table, ratio, prior):
        frontier, scores, y = frontier_of(table)
        best = frontier.best(ratio, prior)
        share = y.mean() if prior is None else prior
        slope = share / (1 - share) * ratio
        assert best.low == best.high == pytest.approx(slope)
        assert counts(scores[best.name], y, best.threshold) == (best.fp, best.fn)
        least = min(
            cost(*p, slope, frontier) for one in scores.values() for p in every_threshold(one, y)
        )
        assert cost(best.fp, best.fn, slope, frontier) == pytest.approx(least)

    @given(
        tables,
        st.tuples(*[st.floats(0.01, 100)] * 2).map(sorted),
        st.tuples(*[st.floats(0.01, 0.99)] * 2).map(sorted),
    )
    def test_ranges_tile_what_was_asked_and_win_in_it(self, table, ratios, priors):
        frontier, scores, y = frontier_of(table)
        winners = frontier.winners(tuple(ratios), tuple(priors))
        low, high = (p / (1 - p) * r for p, r in zip(priors, ratios, strict=True))
        assert (winners[0].low, winners[-1].high) == pytest.approx((low, high), rel=1e-9)
        points = {point for one in scores.values() for point in every_threshold(one, y)}
        for one, after in pairwise(winners):
            assert one.low < one.high == after.low < after.high
            assert one.fp < after.fp
            assert one.fn > after.fn
        for one in winners:
            for slope in (one.low, (one.low + one.high) / 2, one.high):
                least = min(cost(*point, slope, frontier) for point in points)
                assert cost(one.fp, one.fn, slope, frontier) == pytest.approx(least)

    @given(tables)
    def test_the_hull_wins_everywhere_and_turns_left(self, table):
        frontier, _, _ = frontier_of(table)
        hull = frontier.hull
        assert (hull[0].low, hull[-1].high, hull[0].fp, hull[-1].fn) == (0, math.inf, 0, 0)
        ends = [one.high for one in hull]
        assert ends == sorted(set(ends))
        assert [one.low for one in hull[1:]] == ends[:-1]
        assert frontier.winners((1e-9, 1e9))[1:-1] == hull[1:-1]

    def test_of_equals_the_first_strategy_and_fewer_false_positives(self):
        frontier = Frontier.of({"one": SCORES["sharp"], "two": SCORES["sharp"]}, Y)
        assert {one.name for one in frontier.hull} == {"one"}
        assert frontier.best().fp == 0  # one mistake of either kind costs the same
        assert frontier.winners(1) == (frontier.best(),)
        assert [one.fp for one in frontier.winners((1, 2))] == [1]
        assert [one.fp for one in frontier.winners((0.5, 1))] == [0]

    def test_slopes_come_from_the_extremes_of_cost_and_prior(self):
        frontier = Frontier.of(SCORES, Y)
        (only,) = frontier.winners((0.1, 0.2), (0.2, 0.5))
        assert (only.low, only.high) == pytest.approx((0.025, 0.2), rel=1e-9)
        first, last = frontier.winners((1, 3), 0.4)
        assert (first.low, last.high) == pytest.approx((2 / 3, 2))
        assert len(frontier.winners()) == 2

    @pytest.mark.parametrize("ratio", [0, -1, math.inf, math.nan, "2", None, (2, 1), (1, 2, 3)])
    def test_cost_ratios_out_of_range_are_refused(self, ratio):
        match = rf"Frontier\.winners.*\bcost_ratio\b.*{re.escape(repr(ratio))}"
        with pytest.raises(ValueError, match=match):
            Frontier.of(SCORES, Y).winners(ratio)

    @pytest.mark.parametrize("prior", [0, 1, 1.5, (0.5, 0.2), (0.5, 1), math.nan, "half"])
    def test_priors_out_of_range_are_refused(self, prior):
        match = rf"Frontier\.winners.*\bprior\b.*{re.escape(repr(prior))}"
        with pytest.raises(ValueError, match=match):
            Frontier.of(SCORES, Y).winners((1, 2), prior)

    def test_the_best_is_for_one_cost_and_one_prior(self):
        with pytest.raises(ValueError, match=r"Frontier\.best.*\bcost_ratio\b.*\(1, 2\)"):
            Frontier.of(SCORES, Y).best((1, 2))


BAD = {
    "no way": ({}, [0, 1], None, ["scores"]),
    "no names": ([1, 2], [0, 1], None, ["scores", "list"]),
    "lengths": ({"a": [1, 2, 3]}, [0, 1], None, ["'a'", "(3,)"]),
    "columns": ({"a": [[1, 2], [1, 2]]}, [0, 1], None, ["'a'", "(2, 2)"]),
    "nan": ({"a": [1, math.nan]}, [0, 1], None, ["'a'"]),
    "infinity": ({"a": [1, -math.inf]}, [0, 1], None, ["'a'"]),
    "one class": ({"a": [1, 2]}, ["x", "x"], None, ["'x'"]),
    "one class, given": ({"a": [1, 2]}, ["x", "x"], "x", ["'x'"]),
    "three": ({"a": [1, 2, 3]}, [0, 1, 2], None, ["positive", "0, 1, 2"]),
    "unknown": ({"a": [1, 2]}, ["x", "z"], "y", ["positive", "'x'", "'z'", "'y'"]),
    "shape": ({"a": [1, 2]}, [[0], [1]], None, ["(2, 1)"]),
}


@pytest.mark.parametrize(("scores", "y", "positive", "named"), BAD.values(), ids=BAD)
def test_bad_input_is_named(scores, y, positive, named):
    with pytest.raises(ValueError, match=r"Frontier\.of") as caught:
        Frontier.of(scores, y, positive)
    for one in named:
        assert one in str(caught.value)


@pytest.mark.parametrize(
    ("y", "match"),
    [
        ([0, None], r"Frontier\.of"),
        ([0, math.nan], r"Frontier\.of"),
        ([0, "1"], r"Frontier\.of"),
        ([], "(?i)label"),
    ],
)
def test_labels_missing_or_of_two_kinds_are_refused(y, match):
    with pytest.raises(ValueError, match=match):
        Frontier.of({"a": [1, 2]}, y)


def test_as_text():
    frontier = Frontier.of(SCORES, Y)
    lines = str(frontier).splitlines()
    assert "spam" in lines[0]
    assert [line.split() for line in lines[1:]] == [
        [share, "25.0%", "sharp"] for share in ("0.5%", "1%", "2%", "5%", "10%")
    ]
    assert "array" not in repr(frontier)


def test_of_ten_thousand_samples_only_the_corners_are_kept():
    rng = np.random.default_rng(0)
    y = rng.random(10_000) < 0.4
    scores = {f"way {i}": y * i / 3 + rng.normal(size=len(y)) for i in range(6)}
    frontier = Frontier.of(scores, y)
    for curve in frontier.curves:
        ranked = y[np.argsort(-scores[curve.name])].astype(int)
        # A corner is after a positive and before a negative; the ends count as such.
        called = np.flatnonzero(np.diff(ranked, prepend=1, append=0) == -1)
        found = np.append(0, np.cumsum(ranked))[called]
        assert curve.fp.tolist() == (called - found).tolist()
        assert curve.fn.tolist() == (y.sum() - found).tolist()
    # A convex chain of integer steps is short, however many corners are above it.
    assert 5 < len(frontier.hull) < min(len(curve.fp) for curve in frontier.curves) / 10


@pytest.fixture
def plt():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    yield pyplot
    pyplot.close("all")


@pytest.fixture(scope="module")
def mails():
    """A frontier with many corners, of three ways."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(2_000) < 0.3, "spam", "nonspam")
    spam = y == "spam"
    return Frontier.of({f"way {i}": spam * i + rng.normal(size=len(y)) for i in (1, 2, 3)}, y)


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


class TestDisplay:
    @pytest.mark.parametrize("log", [False, True])
    @pytest.mark.parametrize("scale", ["rate", "count"])
    def test_lines_are_the_curves_and_the_hull(self, plt, mails, scale, log):
        display = mails.plot(scale=scale, log=log)
        assert isinstance(display, FrontierDisplay)
        unit = [mails.n_negative, mails.n_positive] if scale == "rate" else [1, 1]
        for curve in mails.curves:
            x, y = display.lines_[curve.name].get_data()
            assert np.allclose(x[1:-1] * unit[0], curve.fp)
            assert np.allclose(y[1:-1] * unit[1], curve.fn)
        drawn = np.array(display.hull_.get_data()).T[:: display.hull_.get_markevery()] * unit
        assert np.allclose(drawn, [(one.fp, one.fn) for one in mails.hull])
        of_each = f"{mails.n_negative:,} nonspam", f"{mails.n_positive:,} spam"
        assert of_each[0] in display.ax_.get_xlabel()
        assert of_each[1] in display.ax_.get_ylabel()
        *named, _ = legend(display)  # the last is the hull
        assert named == ["way 1", "way 2", "way 3"]
        assert display.trajectory_ is None
        display.figure_.canvas.draw()
        for axis in (display.ax_.xaxis, display.ax_.yaxis):
            texts = [text.get_text() for text in axis.get_ticklabels()]
            assert len(texts) == len(set(texts)) > 3
            assert all(text.endswith("%") == (scale == "rate") for text in texts)

    def test_the_axes_show_where_something_happens(self, plt, mails):
        ax = FrontierDisplay(mails).plot(scale="rate").ax_
        assert ax.get_xlim()[1] == pytest.approx(ax.get_ylim()[1])
        for curve in mails.curves:
            rates = np.stack([curve.fp / mails.n_negative, curve.fn / mails.n_positive])
            assert rates.max(axis=0).min() < ax.get_xlim()[1] <= 1

    def test_points_and_a_trajectory(self, plt, mails):
        _, ax = plt.subplots()
        steps = [(700, 20), (300, 40), (300, 40), (100, 60)]
        display = FrontierDisplay(mails, {"in use": (700, 20)})
        assert display.plot(ax, scale="count", trajectory=steps) is display
        assert display.ax_ is ax
        assert np.array_equal(np.array(display.trajectory_.get_data()).T, steps)
        assert [float(part[0]) for part in display.points_[0].get_data()] == [700, 20]
        assert legend(display)[-1] == "in use"
        assert [text.get_text() for text in ax.texts] == ["", "", "0", "1, 2", "3"]
        assert ax.get_xlim()[1] > 700
        display.figure_.canvas.draw()
        unnamed = FrontierDisplay(mails, [(1, 2), (3, 4)]).plot()
        assert (len(unnamed.points_), len(legend(unnamed))) == (2, len(mails.curves) + 1)

    def test_an_arrow_joins_a_step_to_its_parent(self, plt, mails):
        steps = [(700, 20), (300, 40), (100, 60), (500, 30)]

        def arrows(**given):
            ax = FrontierDisplay(mails).plot(scale="count", trajectory=steps, **given).ax_
            drawn = [text for text in ax.texts if text.arrow_patch is not None]
            return [(steps.index(text.get_position()), steps.index(text.xy)) for text in drawn]

        assert arrows() == [(0, 1), (1, 2), (2, 3)]
        assert arrows(parents=(0, 0, 1, 0)) == [(0, 1), (1, 2), (0, 3)]

    @pytest.mark.parametrize("log", [False, True])
    def test_without_a_mistake_there_is_one_corner(self, plt, log):
        display = FrontierDisplay.from_scores({"$a$": [1, 2, 3]}, [0, 1, 2], 2, log=log)
        display.figure_.canvas.draw()
        # How many there are, and the label of the positive class.
        assert re.findall(r"\d+", display.ax_.get_xlabel()) == ["2", "2"]
        assert re.findall(r"\d+", display.ax_.get_ylabel()) == ["1", "2"]
        assert min(display.ax_.get_xlim()[1], display.ax_.get_ylim()[1]) >= 1  # of one sample
        assert len(FrontierDisplay(display.frontier).plot_winners().regions_) == 1

    def test_bad_input_is_named(self, plt, mails):
        with pytest.raises(ValueError, match=r"\bscale\b.*'log'"):
            FrontierDisplay(mails).plot(scale="log")
        for steps in ([1, 2], [(1, 2, 3)], [(-1, 2)], [(1, math.nan)]):
            with pytest.raises(ValueError, match=rf"\btrajectory\b.*{re.escape(repr(steps))}"):
                FrontierDisplay(mails).plot(trajectory=steps)
        for parents in ([0], [0, 2], [0, -1], [0, 0.5]):
            with pytest.raises(ValueError, match=rf"\bparents\b.*{re.escape(repr(parents))}"):
                FrontierDisplay(mails).plot(trajectory=[(1, 2), (3, 4)], parents=parents)

    def test_without_matplotlib(self, mails, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        for draw in (FrontierDisplay(mails).plot, FrontierDisplay(mails).plot_winners):
            with pytest.raises(ImportError, match=r"FrontierDisplay.*\bmatplotlib\b"):
                draw()


class TestMap:
    def test_every_place_is_in_the_region_of_what_costs_least_there(self, plt, mails):
        display = FrontierDisplay(mails).plot_winners(cost_ratio=(0.2, 5), prior=(0.1, 0.8))
        rng = np.random.default_rng(1)
        for ratio, prior in zip(rng.uniform(0.2, 5, 40), rng.uniform(0.1, 0.8, 40), strict=True):
            best = mails.best(ratio, prior)
            found = [
                (winner.name, winner.fp, winner.fn)
                for winner, region in display.regions_
                if any(path.contains_point((ratio, prior)) for path in region.get_paths())
            ]
            assert (best.name, best.fp, best.fn) in found
            assert len(found) <= 2  # two where it is on a border, by its drawing

    def test_the_largest_regions_are_named(self, plt, mails):
        display = FrontierDisplay(mails).plot_winners()
        others = len(display.regions_) - 8
        assert others > 0
        *named, rest, here = legend(display)
        assert len(named) == 8
        assert re.search(rf"\b{others}\b", rest)
        share = mails.n_positive / (mails.n_positive + mails.n_negative)
        assert float(re.search(r"([\d.]+)%", here).group(1)) == pytest.approx(100 * share, abs=0.5)
        labels = [f"{one.name}: {one.fp:,} / {one.fn:,}" for one, _ in display.regions_]
        assert named == [label for label in labels[::-1] if label in named]
        display.figure_.canvas.draw()

    @pytest.mark.parametrize(("word", "given"), [("cost_ratio", 2), ("prior", (0.5, 0.5))])
    def test_a_map_takes_two_ranges(self, plt, mails, word, given):
        match = rf"FrontierDisplay\.plot_winners.*\b{word}\b.*{re.escape(repr(given))}"
        with pytest.raises(ValueError, match=match):
            FrontierDisplay(mails).plot_winners(**{word: given})
