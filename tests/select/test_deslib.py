"""Local selection predicts as DESlib does, outside ties: see README.md."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from experiments.select import comparing, fixture
from experiments.select.comparing import METHODS

MOST_TIES = {"ola": 0.25, "rank": 0.25, "lca": 0.45, "mla": 0.45, "des-knn": 0.2}
"""The largest fraction of the queries that are ties; of other methods:"""
OF_OTHERS = 0.1

KEPT = fixture.read(Path(__file__).with_name("deslib.npz"))


def _found(title, method):
    tables, predicted = KEPT[title]
    ours, why = comparing.ours(tables, method)
    return comparing.counted(ours, predicted[method], why, tables.y_query)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("title", KEPT)
def test_predictions_agree_outside_ties(title, method):
    found = _found(title, method)
    assert found.same_outside >= 0.99, found.apart
    assert found.tied <= MOST_TIES.get(method, OF_OTHERS), found.ties


def test_members_of_the_fixture_disagree():
    """Members disagree, methods differ from each other, and two sets have more than two classes."""
    assert len(KEPT) == 5
    assert Counter(tables.parts_tune.shape for tables, _ in KEPT.values()) == {
        (150, 11, 2): 3,
        (150, 11, 3): 1,
        (150, 11, 7): 1,
    }
    for tables, predicted in KEPT.values():
        votes = tables.predictions
        assert (votes != votes[:, :1]).any(axis=1).mean() > 0.3
        np.testing.assert_allclose(tables.proba_query.sum(axis=2), np.ones((150, 11)), rtol=1e-9)
        assert len({each.tobytes() for each in predicted.values()}) >= 5
        assert all(np.mean(each == tables.y_query) > 0.5 for each in predicted.values())
