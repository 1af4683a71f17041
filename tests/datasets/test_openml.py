"""OpenML as a source, with a substitute for scikit-learn's downloader: never the network."""

from urllib.error import URLError

import numpy as np
import pytest
from sklearn.utils import Bunch

from margrave.datasets import load
from margrave.datasets._facts import all_facts
from margrave.datasets._sources import _column_as_text

HEART = all_facts()["heart_statlog"]


def heart():
    """Make a result of `fetch_openml` with the size and classes of heart_statlog.

    Its first column is nominal with names that are not sorted, its second nominal with numbers,
    its third numeric with a missing value.
    """
    data = np.zeros((HEART.rows, HEART.features))
    data[:2, 0] = [1, 0]
    data[:2, 1] = [1, 0]
    data[:2, 2] = [0.1, 1e-300]
    features = [f"f{j}" for j in range(HEART.features)]
    target = np.repeat(np.array(list(HEART.classes), dtype=object), list(HEART.classes.values()))
    categories = {"f0": ["z", "a"], "f1": ["10", "9"]}
    return Bunch(data=data, target=target, feature_names=features, categories=categories)


@pytest.fixture
def openml(monkeypatch, bare):
    """Make `fetch_openml` return the result that a test sets, and record its calls."""
    service = Bunch(result=heart(), calls=[])

    def fetch_openml(**arguments):
        service.calls.append(arguments)
        if isinstance(service.result, Exception):
            raise service.result
        return service.result

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return service


def test_a_set_with_a_number_is_fetched_and_read_as_a_file(openml):
    data = load("heart_statlog")
    assert openml.calls == [{"data_id": 53, "as_frame": False, "parser": "liac-arff"}]
    assert data.categories == {"f0": ("a", "z")}
    np.testing.assert_array_equal(data.data[:3, :3], [[0, 9, 0.1], [1, 10, 1e-300], [1, 10, 0]])
    assert data.target.dtype.kind == "U"
    assert data.positive in data.target


def test_a_real_valued_target_is_checked_by_its_range(openml):
    stock = all_facts()["stock"]
    target = np.linspace(*stock.target_range, stock.rows)
    openml.result = Bunch(
        data=np.zeros((stock.rows, stock.features)),
        target=target,
        feature_names=[f"f{j}" for j in range(stock.features)],
        categories={},
    )
    np.testing.assert_array_equal(load("stock").target, target)
    openml.result.target = target + 1
    with pytest.raises(FileNotFoundError, match=r"OpenML 223.*'stock'"):
        load("stock")


def test_no_network(openml):
    openml.result = URLError("no route")
    with pytest.raises(FileNotFoundError, match="'heart_statlog'") as error:
        load("heart_statlog")
    for named in ("OpenML 53", "URLError", "no route", "MARGRAVE_DATA", HEART.origin):
        assert named in str(error.value)


def test_missing_values_are_empty_cells():
    column = np.array([1, np.nan, 0])
    assert _column_as_text(column, None) == ["1", "", "0"]
    assert _column_as_text(column, ["a", "b"]) == ["b", "", "a"]


def test_other_missing_values_are_another_set(openml):
    openml.result.data[0, 0] = np.nan
    with pytest.raises(FileNotFoundError, match=r"\b270\b.*\b13\b.*\b1\b"):
        load("heart_statlog")


def test_another_set_is_refused(openml):
    openml.result.target[0] = "present"
    with pytest.raises(FileNotFoundError, match=r"OpenML 53.*ValueError") as error:
        load("heart_statlog")
    for counts in ("{'absent': 150, 'present': 120}", "{'absent': 149, 'present': 121}"):
        assert counts in str(error.value)


@pytest.mark.parametrize("name", ["iris", "raetsch_banana"])
def test_openml_is_not_used_for_bundled_sets_or_without_a_number(openml, name):
    try:
        load(name)
    except FileNotFoundError:
        assert name == "raetsch_banana"
    assert openml.calls == []
