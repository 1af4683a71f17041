"""The rank-margin committee on Dask collections: what it learns of the same rows in memory."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")

import dask  # noqa: E402

from margrave import scale  # noqa: E402
from margrave._indexing import largest_keys  # noqa: E402
from margrave.fuse import RankMarginClassifier  # noqa: E402
from margrave.scale import _rank_margin, sample  # noqa: E402
from margrave.scale._blocks import Blocks  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def drawn(n_classes=2, n=900, seed=0):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=n_classes, flip_y=0.1, random_state=seed
    )
    return X, y


def members(X, y):
    some = slice(0, 200)
    kinds = (
        LogisticRegression(),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=3),
        RidgeClassifier(),
    )
    return [(f"m{j}", one.fit(X[some], y[some])) for j, one in enumerate(kinds)]


def both(X, y, weight=None, n_blocks=4, trained=None, **settings):
    """The same committee, learned in memory and on blocks."""
    trained = members(X, y) if trained is None else trained
    size = -(-len(X) // n_blocks)
    inside = RankMarginClassifier(trained, prefit=True, **settings).fit(X, y, weight)
    weights = None if weight is None else da.from_array(weight, chunks=size)
    blocks = da.from_array(X, chunks=(size, X.shape[1])), da.from_array(y, chunks=size)
    outside = scale.fit(RankMarginClassifier(trained, prefit=True, **settings), *blocks, weights)
    return inside, outside, blocks[0]


def same(inside, outside, X, lazy, tol=1e-4):
    assert np.array_equal(outside.nu_, inside.nu_)
    assert outside.rank_margin_ == pytest.approx(inside.rank_margin_, abs=tol)
    assert outside.weights_ == pytest.approx(inside.weights_, abs=tol)
    assert outside.combined_scores(X) == pytest.approx(inside.combined_scores(X), abs=tol)
    assert outside.decision_function(X) == pytest.approx(inside.decision_function(X), abs=200 * tol)
    for method in ("combined_scores", "decision_function", "predict"):
        found = scale.predict(outside, lazy, method)
        here = getattr(outside, method)(X)
        assert isinstance(found, da.Array)
        assert (found.dtype, found.shape) == (here.dtype, here.shape)
        if method == "predict":
            assert np.array_equal(found.compute(), here)
        else:
            assert found.compute() == pytest.approx(here, abs=1e-9)


@pytest.mark.parametrize("name", ["logit", "probability", "rank", "decision"])
def test_the_same_as_in_memory(name):
    X, y = drawn()
    weight = np.random.default_rng(0).choice([0.0, 1.0, 3.0], len(y))
    weight[:225] = 0  # a block without weight
    inside, outside, lazy = both(X, y, weight, scale=name, nu=0.1, tol=1e-5)
    same(inside, outside, X, lazy, 1e-2)
    assert outside.margin_distribution_.auc == pytest.approx(
        inside.margin_distribution_.auc, abs=1e-3
    )
    proba = scale.predict(outside, lazy, "predict_proba").compute()
    assert proba == pytest.approx(outside.predict_proba(X))


@pytest.mark.parametrize("negatives", [None, "hardest 20%"])
def test_nu_and_tol_are_chosen_as_in_memory_where_all_rows_are_drawn(negatives):
    X, y = drawn()
    inside, outside, lazy = both(X, y, negatives=negatives)
    assert outside.auc_by_nu_ == pytest.approx(inside.auc_by_nu_, abs=1e-4)
    same(inside, outside, X, lazy, 2e-2)


def test_more_than_two_classes_and_a_member_that_knows_two():
    X, y = drawn(3)
    two = y[:200] < 2
    trained = [*members(X, y)[:3], ("part", RidgeClassifier().fit(X[:200][two], y[:200][two]))]
    inside, outside, lazy = both(X, y, trained=trained, nu=0.1, tol=1e-5)
    same(inside, outside, X, lazy, 2e-2)
    assert scale.predict(outside, lazy, "predict_proba").shape == (len(X), 3)


def test_the_worst_pair_text_labels_and_no_calibration():
    X, y = drawn()
    names = np.where(y == 1, "yes", "no")
    inside, outside, lazy = both(X, names, nu=0.0, tol=1e-8, calibrate=False, positive="no")
    same(inside, outside, X, lazy, 1e-6)
    assert outside.result_.rho == pytest.approx(inside.result_.rho, abs=1e-9)
    assert np.array_equal(outside.result_.active, inside.result_.active)
    assert outside.result_.n_passes <= 25


def test_data_frames_with_parts_that_are_empty():
    X, y = drawn()
    table = pd.DataFrame(X, columns=list("abcdef"))
    trained = [("logistic", LogisticRegression().fit(table[:200], y[:200])), *members(X, y)[1:2]]
    trained[1] = ("bayes", GaussianNB().fit(table[:200], y[:200]))
    parts = dd.from_pandas(table.assign(y=y, row=np.arange(len(y))), npartitions=6)
    some = parts[(parts["row"] < 300) | (parts["row"] >= 450)]
    kept = np.r_[0:300, 450:900]
    features = some[list("abcdef")]
    outside = RankMarginClassifier(trained, prefit=True, nu=0.2, tol=1e-5)
    assert scale.fit(outside, features, some["y"]) is outside
    inside = RankMarginClassifier(trained, prefit=True, nu=0.2, tol=1e-5)
    inside.fit(table.iloc[kept], y[kept])
    assert outside.weights_ == pytest.approx(inside.weights_, abs=1e-3)
    assert list(outside.feature_names_in_) == list("abcdef")
    predicted = scale.predict(outside, features)
    assert predicted.dtype == y.dtype
    assert np.array_equal(predicted.compute(), outside.predict(table.iloc[kept]))


def few_are_drawn(monkeypatch, n):
    monkeypatch.setattr(_rank_margin, "MAX_DRAWN", n)
    monkeypatch.setattr(_rank_margin, "MIN_DRAWN_PER_CLASS", 1)


def drawn_rows(X, y, most, weight=None):
    blocks = Blocks.of("test", X, y=y, sample_weight=weight)
    more = np.arange(3), most
    return blocks.reduce(
        _rank_margin.draw_block, _rank_margin.DrawnRows.merged, *more, numbered=True
    )


def test_what_is_drawn_is_not_what_members_are_trained_on():
    row = np.arange(4_000)
    X, y = da.from_array(row[:, None], chunks=(500, 1)), da.from_array(row % 2, chunks=500)
    trained_on, _ = sample(X, y, n=400)
    chosen_on = drawn_rows(X, y, 200).X
    kept = np.concatenate(
        [
            500 * k + largest_keys(_rank_margin.random_keys(_rank_margin.FOR_MARGINS, k, 500), 50)
            for k in range(8)
        ]
    )
    assert len(chosen_on) == len(trained_on) == len(kept) == 400
    for one, other in ((trained_on, chosen_on), (trained_on, kept), (chosen_on, kept)):
        assert len(np.intersect1d(one, other)) < 80  # by chance 40


def test_a_rare_class_is_drawn_as_a_whole_and_only_rows_with_weight():
    row = np.arange(4_000)
    X, y = da.from_array(row[:, None], chunks=(500, 1)), da.from_array(row % 100 == 0, chunks=500)
    weight = da.from_array((row >= 700) * 1.0, chunks=500)
    found = drawn_rows(X, y.astype(int), 50, weight)
    rare = found.X[found.codes == 1, 0]
    assert rare.tolist() == row[700::100].tolist()
    assert (found.codes == 0).sum() == 50
    assert found.X.min() >= 700
    assert (np.diff(found.X[:, 0]) > 0).all()
    assert len(found.against_rest(0)) == 50 + len(rare)


def test_the_others_of_a_class_are_drawn_evenly():
    code = np.repeat([0, 1, 2], [8_000, 1_500, 500])
    found = drawn_rows(da.from_array(code[:, None], 900), da.from_array(code, 900), 400)
    rest = found.codes[found.against_rest(2)]
    assert np.bincount(rest).tolist()[2] == 400
    assert (rest < 2).sum() == 400
    assert (rest == 1).sum() == pytest.approx(400 * 1_500 / 9_500, abs=30)


def test_fewer_rows_are_drawn_than_there_are(monkeypatch):
    few_are_drawn(monkeypatch, 300)
    X, y = drawn(n=2_000)
    inside, outside, _ = both(X, y)
    assert len(outside.margin_distribution_.positives) == 300
    assert outside.margin_distribution_.auc == pytest.approx(
        inside.margin_distribution_.auc, abs=0.05
    )
    assert outside.rank_margin_ == pytest.approx(
        (lambda s: s[y == 1].min() - s[y == 0].max())(outside.combined_scores(X))
    )


def refused(match, X, y, trained, weight=None, **settings):
    with pytest.raises(ValueError, match=match):
        scale.fit(RankMarginClassifier(trained, **{"prefit": True, **settings}), X, y, weight)


def test_what_is_refused():
    X, y = drawn(n=300)
    trained = members(X, y)
    lazy, labels = da.from_array(X, chunks=(100, 6)), da.from_array(y, chunks=100)
    refused(r"\bprefit\b", lazy, labels, trained, prefit=False)
    refused(r"RankMarginClassifier.*\b1\b", lazy, 0 * labels + 1, trained)
    refused(r"\by\b.*\b7\b", lazy, 0 * labels + 7, trained)
    refused(r"\by\b.*\b300\b.*\b200\b", lazy, labels[:200], trained)
    refused("sample_weight", lazy, labels, trained, weight=-1.0 * (labels >= 0))
    refused("NaN", da.where(lazy > 0, lazy, np.nan), labels, trained)
    refused(r"scale\.fit.*\bX\b", lazy[:, 0], labels, trained)
    refused(r"scale\.fit.*\by\b.*None", lazy, None, trained)
