"""The plot of bias and variance against a parameter."""

import sys

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.tree import DecisionTreeClassifier

from margrave.compare import BiasVarianceDisplay, bias_variance

plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def no_window():
    plt.switch_backend("agg")


@pytest.fixture
def moons():
    X, y = make_moons(120, noise=0.3, random_state=0)
    return X[:60], y[:60], X[60:], y[60:]


def draw(moons, **settings):
    return BiasVarianceDisplay.from_estimator(
        DecisionTreeClassifier(),
        *moons,
        **{"param_name": "max_depth", "param_range": [1, 4, 9], "n_rounds": 5, **settings},
    )


def assert_lines_draw(display, **fields):
    """Check which field of the results each line draws, and that the legend names the line."""
    assert set(display.lines_) == set(fields)
    for name, field in fields.items():
        values = [getattr(result, field) for result in display.results]
        np.testing.assert_allclose(display.lines_[name].get_ydata(), values)
    legend = display.ax_.get_legend()
    labels = [text.get_text() for text in legend.get_texts()]
    by_colour = {
        handle.get_color(): label
        for handle, label in zip(legend.legend_handles, labels, strict=True)
    }
    assert len(by_colour) == len(fields)
    for name, line in display.lines_.items():
        assert name in by_colour[line.get_color()]


@pytest.mark.parametrize("loss", ["squared", "zero-one"])
def test_lines_add_up(moons, loss):
    display = draw(moons, loss=loss, random_state=0)
    lines = {name: line.get_ydata() for name, line in display.lines_.items()}
    np.testing.assert_allclose(lines["bias"] + np.array(lines["variance"]), lines["error"])
    for line in display.lines_.values():
        assert list(line.get_xdata()) == [1, 4, 9]


def test_noise_is_drawn_when_it_is_known(moons):
    proba = np.tile([0.5, 0.5], (60, 1))
    display = draw(moons, true_proba=proba)
    assert_lines_draw(
        display, error="error", bias="bias", variance="net_variance", noise="net_noise"
    )


def test_words_on_the_axes(moons):
    display = draw(moons)
    ax = display.ax_
    assert ax.get_xlabel() == "max_depth"
    assert "squared" in ax.get_ylabel()
    assert_lines_draw(display, error="error", bias="bias", variance="net_variance")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["1", "4", "9"]
    other = draw(moons, loss="zero-one")
    assert "zero-one" in other.ax_.get_ylabel()
    assert_lines_draw(other, error="error", bias="bias", variance="net_variance")


def test_existing_axes_are_used(moons):
    figure, ax = plt.subplots()
    display = draw(moons, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_every_value_gets_the_same_resamples(moons):
    display = draw(moons, param_range=[3, 3], random_state=np.random.RandomState(0))
    assert display.results[0] == display.results[1]


def test_from_results_at_hand_and_values_that_are_no_numbers(moons):
    criteria = ["gini", "entropy"]
    results = [
        bias_variance(DecisionTreeClassifier(criterion=c), *moons, n_rounds=3, random_state=0)
        for c in criteria
    ]
    display = BiasVarianceDisplay(results, param_name="criterion", param_range=criteria).plot()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == criteria


def test_the_estimator_is_not_changed(moons):
    tree = DecisionTreeClassifier(max_depth=2)
    BiasVarianceDisplay.from_estimator(
        tree, *moons, param_name="max_depth", param_range=[5], n_rounds=2
    )
    assert tree.max_depth == 2


def test_results_and_values_must_match():
    with pytest.raises(ValueError, match=r"\bresults\b.*param_range.*\b0\b.*\b2\b"):
        BiasVarianceDisplay([], param_name="max_depth", param_range=[1, 2]).plot()


def test_without_matplotlib(moons, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"BiasVarianceDisplay.*matplotlib.*\bplot\b"):
        draw(moons)
