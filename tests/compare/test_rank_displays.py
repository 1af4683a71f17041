"""The critical difference diagram, and the curves of rank margins."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from margrave.compare import CriticalDifferenceDisplay, RankMarginDisplay, friedman_holm

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True, scope="module")
def no_window():
    plt.switch_backend("agg")


def spread(k, n_rows=30, step=0.2):
    """Results of k methods, each somewhat better than the one before."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(n_rows, k)) + step * np.arange(k)


class TestGroups:
    @pytest.mark.parametrize("k", [3, 6, 12])
    def test_nemenyi_joins_the_longest_runs_within_the_critical_difference(self, k):
        result = friedman_holm(spread(k))
        rank = dict(zip(result.methods, result.mean_ranks, strict=True))
        groups = CriticalDifferenceDisplay(result).groups
        for one in rank:
            for other in rank:
                together = any({one, other} <= set(group) for group in groups)
                near = abs(rank[one] - rank[other]) < result.critical_difference
                assert together == near or one == other
        for group in groups:
            assert len(group) > 1
            assert list(group) == sorted(group, key=rank.get)
            assert not any(set(group) < set(other) for other in groups)

    @pytest.mark.parametrize("control", ["method 1", "method 4", "method 6"])
    def test_holm_joins_methods_not_different_from_the_control(self, control):
        result = friedman_holm(spread(6), control=control)
        display = CriticalDifferenceDisplay(result, test="holm")
        alike = {*result.methods} - {*result.better} - {*result.worse}
        assert alike < {*result.methods}
        assert [set(group) for group in display.groups] == ([alike] if len(alike) > 1 else [])

    @pytest.mark.parametrize("test", ["nemenyi", "holm"])
    def test_all_are_one_group_where_friedman_finds_nothing(self, test):
        # Holm alone would tell the extremes apart: see test_friedman.
        table = np.array([[3.0, 2, 1]] * 7 + [[1.0, 2, 3]] * 2)
        display = CriticalDifferenceDisplay(friedman_holm(table), test=test)
        assert display.groups == [("method 1", "method 2", "method 3")]

    def test_none_where_all_differ(self):
        display = CriticalDifferenceDisplay.from_results(np.tile([3.0, 2, 1], (60, 1)))
        assert display.groups == []
        assert display.bars_ == []


class TestDiagram:
    @pytest.mark.parametrize("test", ["nemenyi", "holm"])
    @pytest.mark.parametrize("k", [3, 5, 12])
    def test_labels_do_not_overlap_and_are_on_the_figure(self, k, test):
        display = CriticalDifferenceDisplay.from_results(spread(k), test=test)
        figure = display.figure_
        figure.canvas.draw()
        texts = [*display.ax_.texts, display.ax_.xaxis.label]
        boxes = [text.get_window_extent() for text in texts]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])
            assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1

    def test_labels_have_name_and_rank_with_the_best_on_the_left(self):
        display = CriticalDifferenceDisplay.from_results(
            spread(4), methods=["w", "x", "y", "z"], control="w"
        )
        result = display.result
        order = [result.methods[i] for i in np.argsort(result.mean_ranks)]
        assert set(display.labels_) == set(order)
        for name, rank in zip(result.methods, result.mean_ranks, strict=True):
            assert set(display.labels_[name].get_text().split()) == {name, f"{rank:.2f}"}
        sides = [display.labels_[name].get_horizontalalignment() for name in order]
        assert sides == ["right", "right", "left", "left"]
        low, high = display.ax_.get_xlim()
        assert (low, high) == (1, 4)

    def test_bars_cover_their_methods(self):
        display = CriticalDifferenceDisplay.from_results(spread(6))
        rank = dict(zip(display.result.methods, display.result.mean_ranks, strict=True))
        assert len(display.bars_) == len(display.groups) > 1
        for bar, group in zip(display.bars_, display.groups, strict=True):
            left, right = bar.get_xdata()
            inside = {name for name in rank if left <= rank[name] <= right}
            assert inside == set(group)

    def test_the_ruler_has_the_length_of_the_critical_difference(self):
        display = CriticalDifferenceDisplay.from_results(spread(6))
        width = display.result.critical_difference
        assert [1, 1 + width] in [list(line.get_xdata()) for line in display.ax_.lines]
        assert any(f"{width:.2f}" in word for word in notes(display))

    def test_a_ruler_wider_than_the_axis_is_not_drawn_but_its_length_is_written(self):
        display = CriticalDifferenceDisplay.from_results([[1, 2, 3], [2, 3, 1]])
        width = display.result.critical_difference
        assert width > 2
        assert max(line.get_xdata()[-1] for line in display.ax_.lines) < 3.1
        assert any(f"{width:.2f}" in word for word in notes(display))

    def test_holm_names_the_control_and_draws_no_ruler(self):
        display = CriticalDifferenceDisplay.from_results(spread(5), test="holm", control="method 2")
        assert any("method 2" in word for word in notes(display))
        width = display.result.critical_difference
        assert not any(f"{width:.2f}" in word for word in notes(display))
        assert [1, 1 + width] not in [list(line.get_xdata()) for line in display.ax_.lines]
        colours = {name: label.get_color() for name, label in display.labels_.items()}
        assert colours.pop("method 2") not in colours.values()

    def test_draws_on_existing_axes(self):
        figure, ax = plt.subplots()
        display = CriticalDifferenceDisplay.from_results(spread(4), ax=ax)
        assert display.ax_ is ax
        assert display.figure_ is figure

    def test_an_unknown_test(self):
        with pytest.raises(ValueError, match=r"CriticalDifferenceDisplay.*\btest\b.*'tukey'"):
            CriticalDifferenceDisplay.from_results(spread(4), test="tukey")

    def test_bad_results_are_those_of_the_test(self):
        with pytest.raises(ValueError, match=r"friedman_holm.*\b2\b"):
            CriticalDifferenceDisplay.from_results([[1, 2], [2, 1]])


def notes(display):
    """The texts of a diagram that are not the labels of its methods."""
    labels = [label.get_text() for label in display.labels_.values()]
    return [text.get_text() for text in display.ax_.texts if text.get_text() not in labels]


def differences(y, scores, positive):
    """All margins, pair by pair."""
    chosen = np.asarray(y) == positive
    values = np.asarray(scores, dtype=float)
    return np.subtract.outer(values[chosen], values[~chosen]).ravel()


class TestCurves:
    @given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=25))
    def test_every_point_is_that_of_the_brute_force(self, samples):
        y, scores = [label for label, _ in samples], [score for _, score in samples]
        if len(set(y)) < 2:
            return
        display = RankMarginDisplay.from_predictions(y, scores, normalise=False, n_points=9)
        plt.close(display.figure_)
        margins, fractions = display.margins["scores"], display.fractions["scores"]
        every = differences(y, scores, True)
        expected = [(every <= margin).mean() for margin in margins]
        np.testing.assert_allclose(fractions, expected, rtol=1e-9)
        assert (margins[0], margins[-1]) == (every.min(), every.max())
        assert fractions[-1] == 1
        assert 0 in margins or not every.min() < 0 < every.max()
        assert display.aucs["scores"] == pytest.approx(roc_auc_score(y, scores))

    @given(st.lists(st.tuples(st.booleans(), st.integers(-5, 5)), min_size=2, max_size=25))
    def test_normalised_is_scaled_by_hand(self, samples):
        y, scores = np.array([s[0] for s in samples]), np.array([s[1] for s in samples], float)
        if len(set(y.tolist())) < 2 or np.ptp(scores) == 0:
            return
        scaled = 2 * (scores - scores.min()) / np.ptp(scores) - 1
        display = RankMarginDisplay.from_predictions(
            y, {"original": scores, "moved": 8 * scores + 16, "scaled": scaled}, n_points=9
        )
        plt.close(display.figure_)
        margins, fractions = display.margins, display.fractions
        assert np.abs(margins["original"]).max() <= 2
        np.testing.assert_allclose(margins["original"], margins["moved"], rtol=1e-9)
        np.testing.assert_allclose(fractions["original"], fractions["moved"], rtol=1e-9)
        ends = [margins["scaled"][0], margins["scaled"][-1]]
        np.testing.assert_allclose(
            [margins["original"][0], margins["original"][-1]], ends, atol=1e-12
        )

    def test_normalising_ties_no_scores(self):
        # Onto [-1, 1], both of the small ones would round to -1.
        display = RankMarginDisplay.from_predictions([0, 1, 1], [1e-30, 1e-20, 1.0])
        assert display.aucs == {"scores": 1}
        assert display.margins["scores"][0] > 0

    def test_scores_that_are_all_alike(self):
        display = RankMarginDisplay.from_predictions([0, 1, 1], [3, 3, 3])
        assert display.margins["scores"].tolist() == [0]
        assert display.fractions["scores"].tolist() == [1]

    def test_the_height_at_0_is_the_fraction_in_the_wrong_order_or_tied(self):
        y, scores = [0, 0, 0, 1, 1], [0.1, 0.5, 0.9, 0.5, 0.7]
        display = RankMarginDisplay.from_predictions(y, scores)
        at = display.margins["scores"] == 0
        # Of six pairs, 0.5 is below 0.9 and ties with 0.5; 0.7 is below 0.9.
        assert display.fractions["scores"][at].tolist() == [3 / 6]

    def test_the_positive_label(self):
        y, scores = np.array(["a", "b", "c", "b"]), [1.0, 2, 3, 5]
        display = RankMarginDisplay.from_predictions(y, scores, positive="b", normalise=False)
        assert display.margins["scores"][0] == differences(y, scores, "b").min()
        turned = RankMarginDisplay.from_predictions([0, 1, 1], scores[:3], positive=0)
        assert turned.aucs["scores"] == 0

    def test_lines_legend_and_axes(self):
        y = [0, 1, 0, 1, 0, 1]
        scores = {"bad": [3, 1, 2, 2, 1, 3], "good": [1, 2, 1, 3, 2, 3]}
        display = RankMarginDisplay.from_predictions(y, scores)
        assert list(display.lines_) == ["bad", "good"]
        for name, line in display.lines_.items():
            np.testing.assert_array_equal(line.get_xdata(), display.margins[name])
            np.testing.assert_array_equal(line.get_ydata(), display.fractions[name])
        ax = display.ax_
        assert (ax.get_xscale(), ax.get_yscale()) == ("linear", "log")
        assert 0 < ax.get_ylim()[0] < min(curve.min() for curve in display.fractions.values())
        texts = [text.get_text() for text in ax.get_legend().get_texts()]
        for text, name in zip(texts, ("good", "bad"), strict=True):
            assert name in text
            assert f"{display.aucs[name]:.3f}" in text

    def test_many_curves_all_look_different(self):
        scores = {str(i): [0, 1, 2, 3] for i in range(28)}
        display = RankMarginDisplay.from_predictions([0, 1, 0, 1], scores)
        looks = {(line.get_color(), str(line._dash_pattern)) for line in display.lines_.values()}
        assert len(looks) == 28

    def test_draws_on_existing_axes(self):
        figure, ax = plt.subplots()
        display = RankMarginDisplay.from_predictions([0, 1], [0, 1], ax=ax)
        assert display.ax_ is ax
        assert display.figure_ is figure

    def test_from_curves_at_hand(self):
        display = RankMarginDisplay({"a": [-1, 1]}, {"a": [0.5, 1]}, aucs={"a": 0.5}).plot()
        assert list(display.lines_["a"].get_ydata()) == [0.5, 1]


@pytest.fixture(scope="module")
def three_classes():
    X, y = make_classification(
        90, n_informative=4, n_classes=3, n_clusters_per_class=1, random_state=0
    )
    return X, np.array(["a", "b", "c"])[y]


@pytest.fixture(scope="module")
def two_classes(three_classes):
    X, y = three_classes
    return X[y != "c"], y[y != "c"]


class TestFromEstimator:
    @pytest.mark.parametrize("positive", [None, "a", "b"])
    def test_the_decision_function_or_else_the_probability(self, two_classes, positive):
        X, y = two_classes
        models = {"ridge": RidgeClassifier().fit(X, y), "bayes": GaussianNB().fit(X, y)}
        display = RankMarginDisplay.from_estimator(models, X, y, positive=positive)
        sign, column = (-1, 0) if positive == "a" else (1, 1)
        scores = {
            "ridge": sign * models["ridge"].decision_function(X),
            "bayes": models["bayes"].predict_proba(X)[:, column],
        }
        expected = RankMarginDisplay.from_predictions(y, scores, positive=positive)
        assert display.aucs == pytest.approx(expected.aucs, rel=1e-9)
        for name in models:
            np.testing.assert_allclose(display.margins[name], expected.margins[name], rtol=1e-9)
            np.testing.assert_allclose(display.fractions[name], expected.fractions[name], rtol=1e-9)

    def test_one_of_more_classes(self, three_classes):
        X, y = three_classes
        model = LogisticRegression().fit(X, y)
        for method in ("decision_function", "predict_proba"):
            display = RankMarginDisplay.from_estimator(
                model, X, y, positive="b", response_method=method
            )
            scores = getattr(model, method)(X)[:, 1]
            expected = roc_auc_score(y == "b", scores)
            assert display.aucs["logisticregression"] == pytest.approx(expected)

    def test_a_list_is_named_by_type_and_pipelines_are_one(self, two_classes):
        X, y = two_classes
        pipeline = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
        display = RankMarginDisplay.from_estimator([pipeline, GaussianNB().fit(X, y)], X, y)
        assert list(display.lines_) == ["pipeline", "gaussiannb"]
        assert list(RankMarginDisplay.from_estimator(pipeline, X, y).lines_) == ["pipeline"]

    def test_decisions_between_pairs_of_classes(self, three_classes):
        X, y = three_classes
        model = make_pipeline(SVC(decision_function_shape="ovo")).fit(X, y)
        with pytest.raises(ValueError, match=r"decision_function.*\b3\b.*'svm'"):
            RankMarginDisplay.from_estimator({"svm": model}, X, y, positive="a")

    def test_what_is_lacking(self, three_classes, two_classes):
        X, y = two_classes
        model = NearestCentroid().fit(X, y)
        cases = [
            (
                {"m": model},
                (X, y),
                {"response_method": "predict"},
                r"\bresponse_method\b.*'predict'",
            ),
            (
                {"m": LinearSVC().fit(X, y)},
                (X, y),
                {"response_method": "predict_proba"},
                r"\bpredict_proba\b.*'m'",
            ),
            (
                {"m": model},
                three_classes,
                {"positive": "c"},
                r"'c'.*'m'",
            ),
            ([], (X, y), {}, r"\bmember"),
        ]
        for models, data, settings, named in cases:
            with pytest.raises(ValueError, match="RankMarginDisplay.*" + named):
                RankMarginDisplay.from_estimator(models, *data, **settings)


@pytest.mark.parametrize(
    ("y", "scores", "settings", "named"),
    [
        ([0, 1], {}, {}, r"\bscores\b"),
        ([0, 1], {"a": [1, 2, 3]}, {}, r"\bscore.*\b2\b.*\(3,\)"),
        ([0, 1], [[1, 2], [3, 4]], {}, r"\bscore.*\b2\b.*\(2, 2\)"),
        ([0, 1], {"a": [1, np.nan]}, {}, r"\bscores\b.*'a'"),
        (["x", "x"], [1, 2], {}, r"\by\b.*\b1\b.*'x'"),
        (["x", "x"], [1, 2], {"positive": "x"}, r"\by\b.*\b1\b.*'x'"),
        ([0, 1, 2], [1, 2, 3], {}, r"\by\b.*\bpositive\b.*\b3\b.*0, 1, 2"),
        (["x", "y"], [1, 2], {"positive": "z"}, r"\bpositive\b.*'z'"),
        ([0, np.nan], [1, 2], {}, r"\by\b"),
        ([[0], [1]], [1, 2], {}, r"\by\b.*\(2, 1\)"),
        ([0, 1], [1, 2], {"n_points": 1}, r"\bn_points\b.*\b1\b"),
    ],
)
def test_bad_predictions(y, scores, settings, named):
    with pytest.raises(ValueError, match="RankMarginDisplay.*" + named):
        RankMarginDisplay.from_predictions(y, scores, **settings)


def test_curves_without_a_name_in_common():
    with pytest.raises(ValueError, match=r"\['a'\].*\['b'\].*\['a'\]"):
        RankMarginDisplay({"a": [1]}, {"b": [1]}, aucs={"a": 1}).plot()


@pytest.mark.parametrize(
    ("owner", "draw"),
    [
        ("CriticalDifferenceDisplay", lambda: CriticalDifferenceDisplay.from_results(spread(3))),
        ("RankMarginDisplay", lambda: RankMarginDisplay.from_predictions([0, 1], [0, 1])),
    ],
)
def test_without_matplotlib(owner, draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"{owner}.*matplotlib.*\bplot\b"):
        draw()
