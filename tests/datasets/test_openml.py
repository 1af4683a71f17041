"""The last resort, with a stand-in for scikit-learn's downloader: never the network."""

from urllib.error import URLError

import numpy as np
import pytest
from sklearn.utils import Bunch

from margrave.datasets import _openml, load
from margrave.datasets._facts import all_facts

HEART = all_facts()["heart_statlog"]


def heart():
    """What `fetch_openml` gives for a set of the size and classes of heart_statlog.

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
    """Answer `fetch_openml` with what a test sets, and keep what was asked."""
    service = Bunch(answer=heart(), asked=[])

    def fetch_openml(**asked):
        service.asked.append(asked)
        if isinstance(service.answer, Exception):
            raise service.answer
        return service.answer

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch_openml)
    return service


def test_a_set_with_a_number_is_fetched_and_read_as_our_files_are(openml):
    data = load("heart_statlog")
    assert openml.asked == [{"data_id": 53, "as_frame": False, "parser": "liac-arff"}]
    assert data.categories == {"f0": ("a", "z")}
    np.testing.assert_array_equal(data.data[:3, :3], [[0, 9, 0.1], [1, 10, 1e-300], [1, 10, 0]])
    assert data.target.dtype.kind == "U"
    assert data.positive in data.target


def test_a_real_valued_target_is_checked_by_its_range(openml):
    stock = all_facts()["stock"]
    target = np.linspace(*stock.target_range, stock.rows)
    openml.answer = Bunch(
        data=np.zeros((stock.rows, stock.features)),
        target=target,
        feature_names=[f"f{j}" for j in range(stock.features)],
        categories={},
    )
    np.testing.assert_array_equal(load("stock").target, target)
    openml.answer.target = target + 1
    with pytest.raises(FileNotFoundError, match=r"OpenML 223.*'stock'"):
        load("stock")


def test_no_network(openml):
    openml.answer = URLError("no route")
    with pytest.raises(FileNotFoundError, match="'heart_statlog'") as error:
        load("heart_statlog")
    for named in ("OpenML 53", "URLError", "no route", "MARGRAVE_DATA", HEART.origin):
        assert named in str(error.value)


def test_missing_values_are_empty_cells():
    column = np.array([1, np.nan, 0])
    assert _openml._text(column, None) == ["1", "", "0"]
    assert _openml._text(column, ["a", "b"]) == ["b", "", "a"]


def test_other_missing_values_are_another_set(openml):
    openml.answer.data[0, 0] = np.nan
    with pytest.raises(FileNotFoundError, match=r"\b270\b.*\b13\b.*\b1\b"):
        load("heart_statlog")


def test_another_set_is_refused(openml):
    openml.answer.target[0] = "present"
    with pytest.raises(FileNotFoundError, match=r"OpenML 53.*ValueError") as error:
        load("heart_statlog")
    for counts in ("{'absent': 150, 'present': 120}", "{'absent': 149, 'present': 121}"):
        assert counts in str(error.value)


@pytest.mark.parametrize("name", ["iris", "raetsch_banana"])
def test_openml_is_not_asked_for_sets_it_need_not_or_cannot_give(openml, name):
    try:
        load(name)
    except FileNotFoundError:
        assert name == "raetsch_banana"
    assert openml.asked == []
