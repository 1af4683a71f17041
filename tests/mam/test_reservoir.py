"""A sample of a stream: bounded, uniform, and what belongs together stays together."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from scipy.stats import chisquare

from margrave.mam import Reservoir, _classifier


def rows(ids):
    """Rows, codes and weights that identify their sample."""
    ids = np.asarray(ids)
    return np.column_stack([ids, -ids]).astype(float), ids % 3, ids / 7.0


def stream(batches, seed=0, made=np.asarray):
    """What is kept after every batch."""
    rng = np.random.RandomState(seed)
    kept, after = None, []
    for batch in batches:
        X, codes, weights = rows(batch)
        kept = Reservoir.of(made(X), codes, weights, rng, kept)
        after.append(kept)
    return after


def ids_of(kept):
    X = kept.X.toarray() if issparse(kept.X) else kept.X
    return X[:, 0].astype(int)


BATCHES = [range(1, 4), range(4, 12), range(12, 14)]


@pytest.fixture
def five(monkeypatch):
    monkeypatch.setattr(_classifier, "RESERVOIR_SIZE", 5)


@pytest.mark.parametrize("made", [np.asarray, csr_array])
def test_at_most_so_many_are_kept_and_what_belongs_together_stays_together(five, made):
    for seed in range(20):
        seen = set()
        for batch, kept in zip(BATCHES, stream(BATCHES, seed, made), strict=True):
            seen |= set(batch)
            ids = ids_of(kept)
            assert len(ids) == min(5, len(seen)) == len(set(ids))
            assert set(ids) <= seen
            assert issparse(kept.X) == (made is csr_array)
            X, codes, weights = rows(ids)
            assert ((kept.X.toarray() if issparse(kept.X) else kept.X) == X).all()
            assert (kept.labels == codes).all()
            assert (kept.weights == weights).all()
            assert len(kept.keys) == len(ids)


def test_all_are_kept_in_their_order_while_there_is_room():
    last = stream(BATCHES)[-1]
    assert ids_of(last).tolist() == list(range(1, 14))


def test_the_order_of_the_stream_is_kept(five):
    for seed in range(10):
        for kept in stream(BATCHES, seed):
            assert (np.diff(ids_of(kept)) > 0).all()


@pytest.mark.parametrize(
    "batches",
    [
        BATCHES,
        [range(1, 14)],
        [range(1, 11), range(11, 14)],
        [range(k, k + 1) for k in range(1, 14)],
    ],
)
def test_every_row_of_a_stream_is_kept_as_often_as_any_other(five, batches):
    rng = np.random.RandomState(0)
    counts = np.zeros(13)
    runs = 600
    for _ in range(runs):
        kept = None
        for batch in batches:
            kept = Reservoir.of(*rows(batch), rng, kept)
        counts[ids_of(kept) - 1] += 1
    assert counts.sum() == 5 * runs
    # Counts within a run exclude each other, so that they vary by less than chi-square has it.
    assert chisquare(counts).pvalue > 1e-4
    assert np.abs(counts / runs - 5 / 13).max() < 4.5 * np.sqrt(5 / 13 * 8 / 13 / runs)


def test_pairs_of_rows_from_different_batches_are_kept_together_as_often_as_any(five):
    rng = np.random.RandomState(1)
    together = np.zeros((13, 13))
    runs = 1500
    for _ in range(runs):
        kept = None
        for batch in BATCHES:
            kept = Reservoir.of(*rows(batch), rng, kept)
        here = np.zeros(13)
        here[ids_of(kept) - 1] = 1
        together += np.outer(here, here)
    pairs = together[np.triu_indices(13, 1)] / runs
    fraction = 5 * 4 / (13 * 12)
    assert np.abs(pairs - fraction).max() < 5 * np.sqrt(fraction * (1 - fraction) / runs)


def test_the_same_seed_keeps_the_same(five):
    assert ids_of(stream(BATCHES, 3)[-1]).tolist() == ids_of(stream(BATCHES, 3)[-1]).tolist()


def test_dense_and_sparse_batches_go_together():
    rng = np.random.RandomState(0)
    X, codes, weights = rows(range(1, 5))
    kept = Reservoir.of(X, codes, weights, rng, None)
    X, codes, weights = rows(range(5, 8))
    kept = Reservoir.of(csr_array(X), codes, weights, rng, kept)
    assert ids_of(kept).tolist() == list(range(1, 8))


def test_rows_are_copied_so_that_a_buffer_may_be_used_again():
    X, codes, weights = rows(range(1, 5))
    kept = Reservoir.of(X, codes, weights, np.random.RandomState(0), None)
    X[:], codes[:], weights[:] = 0, 0, 0
    assert ids_of(kept).tolist() == [1, 2, 3, 4]
    assert kept.weights.min() > 0
