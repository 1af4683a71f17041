"""The catalogue: every name makes a classifier that takes labels of any kind."""

import dataclasses
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_blobs

from margrave import catalogue

NAMES = (
    "knn",
    "stump",
    "tree",
    "perceptron",
    "logistic",
    "logistic-quantile",
    "rbf-logistic",
    "qda",
    "linear-svm",
    "svm",
    "mam",
    "neural-network",
    "bagging",
    "smoothed-bagging",
    "random-subspace",
    "random-forest",
    "varied-trees",
    "extra-trees",
    "adaboost",
    "real-adaboost",
    "modest-adaboost",
    "rankboost",
    "martingale",
    "gradient-boosting",
    "xgboost",
    "lightgbm",
    "catboost",
)
# Settings that keep the slow ones quick here.
QUICK = {"catboost": {"n_estimators": 20}, "logistic-quantile": {"n_quantiles": 40}}
LABELS = {
    "text": ["ham", "spam"],
    "one-two": [1, 2],
    "signs": [-1, 1],
    "bool": [False, True],
    "three": ["c", "a", "b"],
}


@pytest.fixture(params=NAMES)
def name(request):
    entry = catalogue.describe(request.param)
    if entry.needs is not None:
        pytest.importorskip(entry.estimator.partition(".")[0])
    return request.param


def quoted(error):
    """The names in quotation marks, in order."""
    return re.findall(r"'([\w-]+)'", str(error.value))


def test_names():
    assert catalogue.names() == NAMES


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_any_kind(name, kind):
    if (name, kind) == ("stump", "three"):
        pytest.skip("a stump has two leaves")
    labels = np.array(LABELS[kind])
    X, y = make_blobs(200, centers=len(labels), cluster_std=0.7, random_state=3)
    model = catalogue.make(name, random_state=0, **QUICK.get(name, {}))
    model.fit(X[:100], labels[y[:100]])
    predicted = model.predict(X[100:])
    assert predicted.shape == (100,)
    assert set(predicted.tolist()) <= set(labels.tolist())
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert np.mean(predicted == labels[y[100:]]) > 0.8


def test_every_entry_is_described(name):
    entry = catalogue.describe(name)
    assert entry.name == name
    assert entry.summary
    papers = (
        "Multi-classifiers",
        "Survey of Ensemble",
        "A Linear Combination",
        "A Risk Minimization",
        "Interactive",
        "a member of the default committee",
        "not in the papers",
    )
    assert entry.source.startswith(papers)
    made = catalogue.make(name)
    core = made.estimator if entry.encodes else made
    kind = "make_logistic_quantile" if name == "logistic-quantile" else type(core).__name__
    assert entry.estimator.endswith(f".{kind}")
    params = core.get_params()
    assert {key: params[key] for key in entry.defaults} == dict(entry.defaults)


def test_every_call_makes_a_new_classifier(name):
    made = catalogue.make(name)
    assert made is not catalogue.make(name)
    assert is_classifier(made)
    assert type(clone(made)) is type(made)
    pickle.loads(pickle.dumps(made))  # noqa: S301


def test_nothing_is_printed_or_written(name, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = make_blobs(40, centers=2, random_state=0)
    catalogue.make(name, random_state=0, **QUICK.get(name, {})).fit(X, y).predict(X)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_random_state_goes_where_there_is_one(name):
    made = catalogue.make(name, random_state=7)
    core = made.estimator if catalogue.describe(name).encodes else made
    has_one = name not in ("knn", "rankboost", "qda", "logistic-quantile")
    assert core.get_params().get("random_state") == (7 if has_one else None)


def test_parameters_override_the_defaults():
    assert catalogue.make("stump", max_depth=2).max_depth == 2
    pytest.importorskip("xgboost")
    assert catalogue.make("xgboost", max_depth=2).get_params()["estimator__max_depth"] == 2


def test_random_subspace_draws_features_with_replacement():
    X, y = make_blobs(50, n_features=10, random_state=0)
    model = catalogue.make("random-subspace", n_estimators=20, random_state=0).fit(X, y)
    drawn = model.estimators_features_
    assert all(len(features) == 5 for features in drawn)
    assert any(len(set(features)) < 5 for features in drawn)
    # All rows, each once.
    assert all(sorted(rows) == list(range(50)) for rows in model.estimators_samples_)


def test_unknown_name():
    with pytest.raises(ValueError, match=rf"\bname\b.*{', '.join(NAMES)}") as error:
        catalogue.make("logistic-regression")
    assert quoted(error)[:2] == ["logistic-regression", "logistic"]
    with pytest.raises(ValueError, match=r"\bname\b") as error:
        catalogue.make("random-forrest")
    assert quoted(error)[:2] == ["random-forrest", "random-forest"]
    with pytest.raises(ValueError, match=r"\bname\b") as error:
        catalogue.describe("zzz")
    assert quoted(error) == ["zzz"]


def test_unknown_parameter():
    parameters = "algorithm, leaf_size, metric, metric_params, n_jobs, n_neighbors, p, weights"
    with pytest.raises(TypeError, match=f"KNeighborsClassifier.*{parameters}") as error:
        catalogue.make("knn", n_neighbours=3)
    assert quoted(error) == ["knn", "n_neighbours", "n_neighbors"]


@pytest.mark.parametrize("name", ["xgboost", "lightgbm", "catboost"])
def test_unknown_parameter_of_a_booster(name):
    pytest.importorskip(name)
    with pytest.raises(TypeError, match=r"'max_dept'.*'max_depth'"):
        catalogue.make(name, max_dept=3)


@pytest.mark.parametrize("name", [name for name in NAMES if catalogue.describe(name).needs])
def test_package_that_is_not_installed(name, monkeypatch):
    entry = catalogue.describe(name)
    package = entry.estimator.partition(".")[0]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"{name!r}.*\b{package}\b.*\b{entry.needs}\b"):
        catalogue.make(name)


def test_a_module_of_a_package_that_is_not_installed(monkeypatch):
    entry = catalogue.describe("xgboost")
    entry = dataclasses.replace(entry, estimator="no_such_package.part.Classifier")
    monkeypatch.setattr(catalogue, "describe", lambda name: entry)
    with pytest.raises(ImportError, match=r"\bno_such_package\b.*\bboosters\b"):
        catalogue.make("xgboost")


def test_import_brings_no_learning_library():
    code = (
        "import sys, margrave\n"
        "before = set(sys.modules)\n"
        "import margrave.catalogue\n"
        "new = [m for m in set(sys.modules) - before if not m.startswith('margrave._')]\n"
        "print([m for m in new if 'sklearn' in m or 'margrave' in m])\n"
        "print([m for m in ('xgboost', 'lightgbm', 'catboost', 'matplotlib') if m in sys.modules])"
    )
    # A fresh interpreter, as this one has them all by now.
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.splitlines() == ["['margrave.catalogue']", "[]"]


def test_the_table_cannot_be_changed():
    entry = catalogue.describe("stump")
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.name = "other"
    with pytest.raises(TypeError):
        entry.defaults["max_depth"] = 3
