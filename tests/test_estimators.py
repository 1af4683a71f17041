"""Every estimator against scikit-learn's own checks; what fails is a row in one table."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import estimator_checks_generator
from sklearn.utils.validation import has_fit_parameter

from margrave import fuse, mam, martingale, members, select, steer
from margrave.members import EncodedLabelsClassifier

PAIR = [("logistic", LogisticRegression()), ("tree", DecisionTreeClassifier(random_state=0))]
ESTIMATORS = [
    fuse.VoteClassifier(PAIR),
    fuse.BayesOptimalClassifier(PAIR, random_state=0),
    fuse.RankMarginClassifier(PAIR, nu=0.1, tuning=2),  # nu="cv" takes longer
    select.LocalSelectionClassifier(PAIR, k=3, tuning=2),
    select.RegionSelectionClassifier(PAIR, tuning=2, random_state=0),
    select.MixtureOfExpertsClassifier(PAIR, tuning=2),
    select.SingleBestClassifier(PAIR, tuning=2),
    members.SmoothedBaggingClassifier(n_estimators=3, random_state=0),
    members.VariedTreesClassifier(n_estimators=3, random_state=0),
    members.RankBoostClassifier(n_estimators=10),
    members.RealAdaBoostClassifier(n_estimators=10, random_state=0),
    members.ModestAdaBoostClassifier(n_estimators=3, random_state=0),
    EncodedLabelsClassifier(LogisticRegression()),
    mam.MAMClassifier(),
    mam.MAMOrdinalClassifier(),
    martingale.TunableLogistic(),
    martingale.TunableRBFLogistic(random_state=0),
    martingale.MartingaleBoostClassifier(n_levels=3),
    martingale.AdaptiveMartingaleBoostClassifier(n_levels=3),
    steer.SteeredClassifier(LogisticRegression()),
]
OTHERS = [
    mam.MAMClassifier("linear"),
    mam.MAMClassifier(gamma="scale", threshold=None),
    mam.MAMClassifier(parametric=PolynomialFeatures(1)),
    mam.MAMClassifier("precomputed"),
    mam.MAMOrdinalClassifier("linear"),
    mam.MAMOrdinalClassifier("precomputed"),
    mam.MAMRanker(),
    mam.MAMRanker("linear"),
    mam.MAMRanker("precomputed"),
    mam.MAMRanker(gamma="scale"),
    mam.MAMRanker(n_components=200),
    select.LocalSelectionClassifier(PAIR, "meta-des", k=3, tuning=2),
    members.SmoothedBaggingClassifier(KNeighborsClassifier(), n_estimators=3, random_state=0),
]

# Checks that an estimator does not pass: estimator, check, reason.
_DRAWN = "weights and repeated rows draw different parts at random, as in scikit-learn's bagging"
_FOLDED = "weights and repeated rows fall into different folds, as in scikit-learn's stacking"
_LEFT_OUT = "leave-one-out leaves out a sample of weight two as one, repeated rows one at a time"
_NEIGHBOURS = "a sample of weight two is one neighbour, repeated rows are two"
EXPECTED_FAILURES = {
    "MAMClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _LEFT_OUT,
        "check_sample_weight_equivalence_on_sparse_data": _LEFT_OUT,
    },
    "MAMOrdinalClassifier": {"check_sample_weight_equivalence_on_dense_data": _LEFT_OUT},
    "MAMRanker": {
        "check_sample_weight_equivalence_on_dense_data": _LEFT_OUT,
        "check_sample_weight_equivalence_on_sparse_data": _LEFT_OUT,
    },
    "RankMarginClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _FOLDED,
        "check_sample_weight_equivalence_on_sparse_data": _FOLDED,
    },
    "LocalSelectionClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _NEIGHBOURS,
        "check_sample_weight_equivalence_on_sparse_data": _NEIGHBOURS,
    },
    "RegionSelectionClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _FOLDED,
        "check_sample_weight_equivalence_on_sparse_data": _FOLDED,
    },
    "MixtureOfExpertsClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _FOLDED,
        "check_sample_weight_equivalence_on_sparse_data": _FOLDED,
    },
    "BayesOptimalClassifier": {
        "check_sample_weight_equivalence_on_dense_data": _DRAWN,
        "check_sample_weight_equivalence_on_sparse_data": _DRAWN,
    },
    "TunableRBFLogistic": {"check_sample_weight_equivalence_on_dense_data": _DRAWN},
    "SmoothedBaggingClassifier": {"check_sample_weight_equivalence_on_dense_data": _DRAWN},
    "VariedTreesClassifier": {"check_sample_weight_equivalence_on_dense_data": _DRAWN},
    "ModestAdaBoostClassifier": {
        "check_sample_weight_equivalence_on_dense_data": (
            "the first weights are drawn for each row, and the inverted weights depend on the "
            "number of rows"
        )
    },
}


# Checks whose own input an estimator does not allow, by its parameters.
_ASYMMETRIC = {
    "check_classifiers_one_label_sample_weights": "the kernel values of the check are not symmetric"
}
_ONE_COMPONENT = dict.fromkeys(
    [
        "check_dont_overwrite_parameters",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
    ],
    "the check sets n_components=1, which only other kernels have, and no parametric part",
)
NOT_ALLOWED = {
    "MAMClassifier(parametric=PolynomialFeatures(degree=1))": _ONE_COMPONENT,
    "MAMClassifier(kernel='precomputed')": _ONE_COMPONENT | _ASYMMETRIC,
    "MAMOrdinalClassifier(kernel='precomputed')": _ASYMMETRIC,
    "MAMRanker(kernel='precomputed')": _ONE_COMPONENT,
}

# Of those in the table, the ones that leave nothing out, or for which it makes no difference.
NONE_LEFT_OUT = (
    "MAMClassifier(gamma='scale', threshold=None)",
    "MAMOrdinalClassifier(kernel='linear')",
    "MAMRanker(kernel='linear')",
    "MAMRanker(gamma='scale')",
)


def expected_failures(estimator):
    if repr(estimator) in NONE_LEFT_OUT:
        return {}
    inputs = NOT_ALLOWED.get(repr(estimator), {})
    return EXPECTED_FAILURES.get(type(estimator).__name__, {}) | inputs


def checks(estimators):
    """As `parametrize_with_checks` does, but print each estimator only once, since that is slow."""
    for estimator in estimators:
        name = re.sub(r"\s", "", str(estimator))
        expected = expected_failures(estimator)
        for one in estimator_checks_generator(
            estimator, expected_failed_checks=expected, mark="xfail"
        ):
            marks, values = getattr(one, "marks", ()), getattr(one, "values", one)
            yield pytest.param(*values, marks=marks, id=f"{name}-{said(values[1])}")


def said(check):
    given = ",".join(f"{name}={value}" for name, value in check.keywords.items())
    return f"{check.func.__name__}({given})" if given else check.func.__name__


def pytest_generate_tests(metafunc):
    """Check other settings of the same estimators in the full run."""
    if metafunc.definition.name == "test_scikit_learns_checks":
        others = OTHERS if metafunc.config.getoption("--full") else []
        metafunc.parametrize(("estimator", "check"), list(checks(ESTIMATORS + others)))


@pytest.mark.slow
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_what_is_expected_to_fail_fails_in_scikit_learns_bagging_too():
    expected = {check for checks in EXPECTED_FAILURES.values() for check in checks}
    for estimator, check in estimator_checks_generator(BaggingClassifier(n_estimators=3)):
        if said(check) in expected:
            with pytest.raises(AssertionError):
                check(estimator)
            expected.remove(said(check))
    assert expected == set()


each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(80, 6, random_state=0)
    return pd.DataFrame(X, columns=list("abcdef")), np.array(["no", "yes"])[y]


def answers(fitted, X):
    """The finest answer an estimator has: probabilities, or scores where it has none."""
    for name in ("predict_proba", "decision_function", "rank"):
        if hasattr(fitted, name):
            return getattr(fitted, name)(X)
    raise AssertionError("no answer finer than labels")


def test_every_public_estimator_is_checked():
    public = {
        name
        for room in (fuse, mam, martingale, members, select, steer)
        for name in room.__all__
        if "Classifier" in name or ("Ranker" in name and room is mam)
    }
    assert {type(one).__name__ for one in ESTIMATORS + OTHERS} >= public


@each
def test_column_names_are_kept_and_compared(estimator, table):
    X, y = table
    fitted = clone(estimator).fit(X, y)
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(X.rename(columns={"a": "z"}))


@each
def test_pickles_and_skops_answer_the_same(estimator, table):
    X, y = table
    fitted = clone(estimator).fit(X, y)
    packed = skops.io.dumps(fitted)
    trusted = skops.io.get_untrusted_types(data=packed)
    outside = {name for name in trusted if not name.startswith("margrave.")}
    assert outside <= {
        "sklearn.tree._tree.Tree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
    }
    for again in (
        pickle.loads(pickle.dumps(fitted)),  # noqa: S301
        skops.io.loads(packed, trusted=trusted),
    ):
        assert (again.predict(X) == fitted.predict(X)).all()
        assert (answers(again, X) == answers(fitted, X)).all()


@pytest.mark.parametrize(
    "estimator",
    [one for one in ESTIMATORS if "n_jobs" in one.get_params()],
    ids=lambda one: type(one).__name__,
)
def test_jobs_do_not_change_the_answer(estimator, table):
    X, y = table
    one = clone(estimator).fit(X, y)
    two = clone(estimator).set_params(n_jobs=2).fit(X, y)
    assert (answers(one, X) == answers(two, X)).all()


def test_grid_search_reaches_into_named_members(table):
    X, y = table
    vote = fuse.VoteClassifier([("logistic", LogisticRegression()), ("bayes", GaussianNB())])
    grid = {
        "vote__logistic__C": [0.01, 1.0],
        "vote__bayes": [GaussianNB(), DecisionTreeClassifier(max_depth=2, random_state=0)],
        "vote__rule": ["plurality"],
    }
    pipeline = make_pipeline(StandardScaler(), vote)
    pipeline.steps[-1] = ("vote", vote)
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    best = search.best_estimator_["vote"]
    chosen = best.named_estimators_.logistic.C
    assert chosen == search.best_params_["vote__logistic__C"]
    assert type(best.named_estimators_.bayes) is type(search.best_params_["vote__bayes"])


STEADY = [("logistic", LogisticRegression()), ("bayes", GaussianNB())]  # no ties, as a tree has
WEIGHTED = [
    one for one in [*ESTIMATORS, mam.MAMRanker()] if has_fit_parameter(one, "sample_weight")
]


@pytest.mark.parametrize("estimator", WEIGHTED, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("factor", [1e-300, 1e300, 2.0**-900])
def test_weights_outside_of_the_range_of_counts_are_relative(estimator, factor):
    X, y = make_classification(160, 4, n_informative=3, n_redundant=0, random_state=3)
    weights = np.random.default_rng(0).uniform(0.5, 2, 160)
    weights /= weights.mean()
    model = clone(estimator)
    if "estimators" in model.get_params(deep=False):
        model.set_params(estimators=STEADY)
    known = clone(model).fit(X, y, sample_weight=weights).predict(X)
    found = clone(model).fit(X, y, sample_weight=weights * factor).predict(X)
    np.testing.assert_allclose(found, known, rtol=1e-6)


for_each_estimator = pytest.mark.parametrize(
    "estimator", [*ESTIMATORS, mam.MAMRanker()], ids=lambda one: type(one).__name__
)
TEXT_ROWS = np.array([["low", "3"], ["high", "4"]] * 20)


def categories_of(rows):
    return pd.DataFrame(rows, columns=["a", "b"]).astype("category")


@pytest.mark.parametrize(
    "estimator", [*ESTIMATORS, mam.MAMRanker()], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("form", [np.asarray, np.ndarray.tolist, categories_of, pd.DataFrame])
def test_text_is_refused_as_by_scikit_learn(estimator, form):
    with pytest.raises(ValueError, match=r"could not convert string|numeric"):
        clone(estimator).fit(form(TEXT_ROWS), np.arange(40) % 2)


@pytest.mark.parametrize(
    "estimator", [*ESTIMATORS, mam.MAMRanker()], ids=lambda e: type(e).__name__
)
def test_numbers_as_strings_are_read_from_objects_and_refused_as_strings(estimator):
    X, y = make_classification(80, 4, random_state=5)
    strings = X.astype(str)  # they are read back exactly
    model = clone(estimator).fit(X, y)
    known = model.predict(X)
    found = clone(estimator).fit(strings.astype(object), y)
    np.testing.assert_allclose(found.predict(strings.astype(object)), known)
    # A committee and a wrapper leave this to their members, which may read text.
    if not {"estimators", "estimator"} & set(estimator.get_params(deep=False)) or isinstance(
        estimator, martingale.MartingaleBoostClassifier | members.SmoothedBaggingClassifier
    ):
        for wrong in (strings, strings.tolist()):
            with pytest.raises(ValueError, match="numeric"):
                clone(estimator).fit(wrong, y)
            with pytest.raises(ValueError, match="numeric"):
                model.predict(wrong)
