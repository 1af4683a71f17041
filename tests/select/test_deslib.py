"""Local selection predicts as DESlib does, outside ties: see README.md."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from experiments.select import comparing, fixture, meta_des
from experiments.select.comparing import METHODS, OUTSIDE
from experiments.select.meta_des import META_DES

MOST_TIES = {"ola": 0.25, "rank": 0.25, "lca": 0.45, "mla": 0.45, "des-knn": 0.2}
"""The largest fraction of the queries that are ties; of other methods:"""
OF_OTHERS = 0.1

DUPLICATES = "contraceptive"
"""A set with many duplicates: more ties, and META-DES is fitted on other neighbours."""

KEPT = fixture.read(Path(__file__).with_name("deslib.npz"))


def _found(title, method):
    tables, peer = KEPT[title]
    ours, why = comparing.ours(tables, method)
    return comparing.counted(ours, peer.predictions[method], why, tables.y_query)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("title", KEPT)
def test_predictions_agree_outside_ties(title, method):
    found = _found(title, method)
    least = 0.94 if (title, method) == (DUPLICATES, META_DES) else 0.99
    assert found.same_outside >= least, found.apart
    most = 0.5 if title == DUPLICATES else MOST_TIES.get(method, OF_OTHERS)
    assert found.tied <= most, found.ties


@pytest.mark.parametrize("title", KEPT)
def test_meta_des_is_the_same_with_the_neighbours_of_deslib(title):
    found = meta_des.check(*KEPT[title])
    assert found.difference <= 1e-9
    assert found.counts.apart[OUTSIDE] == 0


def test_duplicates_are_left_out_instead_of_the_sample():
    """DESlib has samples among their own neighbours; the models and predictions then differ."""
    found = meta_des.check(*KEPT[DUPLICATES])
    assert 0 < found.own <= found.others < found.n
    assert _found(DUPLICATES, META_DES).apart[OUTSIDE] > 0
    tables, peer = KEPT[DUPLICATES]
    own = comparing.fit(tables, META_DES)._meta_des.classifier
    assert np.abs(own.coef - peer.coef).max() > 1e-4


def test_members_of_the_fixture_disagree():
    """Members disagree, methods differ, and three sets have more than two classes."""
    assert len(KEPT) == 6
    assert Counter(tables.parts_tune.shape for tables, _ in KEPT.values()) == {
        (150, 11, 2): 3,
        (150, 11, 3): 2,
        (150, 11, 7): 1,
    }
    for tables, peer in KEPT.values():
        predicted = peer.predictions
        votes = tables.predictions
        assert (votes != votes[:, :1]).any(axis=1).mean() > 0.3
        np.testing.assert_allclose(tables.proba_query.sum(axis=2), np.ones((150, 11)), rtol=1e-9)
        assert len({each.tobytes() for each in predicted.values()}) >= 5
        assert all(np.mean(each == tables.y_query) > 0.4 for each in predicted.values())
