"""Columns that say which rows belong together, number the rows, or date them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from margrave import datasets
from margrave.table import find_roles


def rng_of(seed):
    return np.random.default_rng(seed)


def visits(seed, n=400):
    """Visits of patients, who stay ill or well, in random order."""
    rng = rng_of(seed)
    of = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 6, n)))
    ill = (rng.random(n) < 0.35)[of]
    table = pd.DataFrame(
        {
            "record_id": np.arange(len(of)) + 1,
            "patient_id": (100_000 + rng.permutation(900_000)[:n])[of],
            "age": rng.integers(20, 90, n)[of],
            "sex": rng.choice(["f", "m"], n)[of],
            "ward": rng.choice(list("ABCD"), len(of)),
            "pressure": rng.normal(120, 15, len(of)).round() + 10 * ill,
        }
    )
    return table, ill, "patient_id"


def panel(seed, n=150, months=24):
    """Customers in each of several months."""
    rng = rng_of(seed)
    of, tendency = np.repeat(np.arange(n), months), rng.normal(size=n)
    table = pd.DataFrame(
        {
            "customer": [f"K{i:05d}" for i in of],
            "months": np.tile(np.arange(months), n),
            "usage": rng.gamma(2, size=len(of)) + tendency[of],
        }
    )
    return table, rng.random(len(of)) < 1 / (1 + np.exp(1 - 2 * tendency[of])), "customer"


def readings(seed, n=30, each=200):
    """Readings of a few devices."""
    rng = rng_of(seed)
    of, bias = np.repeat(np.arange(n), each), rng.normal(size=n)
    table = pd.DataFrame({"deviceId": of, "temp": rng.normal(size=len(of)) + bias[of]})
    return table, rng.random(len(of)) < 1 / (1 + np.exp(2 - table["temp"])), "deviceId"


def sessions(seed, n=500):
    """Sessions of users."""
    rng = rng_of(seed)
    of = np.repeat(np.arange(n), rng.geometric(0.15, n))
    interest = rng.normal(size=n)[of]
    table = pd.DataFrame(
        {
            "user_number": rng.integers(1, 10**8, n)[of],
            "pages": rng.poisson(np.exp(1 + interest / 3)),
            "country": rng.choice(["DE", "FR", "US"], n)[of],
        }
    )
    return table, rng.random(len(of)) < 1 / (1 + np.exp(1 - 2 * interest)), "user_number"


def payments(seed, n=800):
    """Payments with card numbers as text."""
    rng = rng_of(seed)
    of = np.repeat(np.arange(n), rng.geometric(0.3, n))
    cards = np.array(["".join(map(str, rng.integers(0, 10, 16))) for _ in range(n)], dtype=object)
    stolen = (rng.random(n) < 0.15)[of]
    amount = rng.lognormal(3, 1, len(of)).round(2)
    table = pd.DataFrame({"card_number": cards[of], "amount": amount})
    return table, rng.random(len(of)) < np.where(stolen, 0.5, 0.02), "card_number"


def entities(table, labels):
    found = find_roles(table, np.asarray(labels))
    return {finding.column for finding in found if finding.kind == "entity"}


def neutral(table):
    """Name the columns c0, c1, ..."""
    return table.set_axis([f"c{j}" for j in range(table.shape[1])], axis=1)


@pytest.mark.parametrize("draw", [visits, panel, readings, sessions, payments])
@pytest.mark.parametrize("seed", range(3))
def test_entities_are_found_by_name(draw, seed):
    table, labels, name = draw(seed)
    assert entities(table, labels) == {name}


@pytest.mark.parametrize("draw", [visits, panel, sessions])
@pytest.mark.parametrize("seed", range(3))
def test_without_a_name_entities_are_found_by_rows_that_agree(draw, seed):
    table, labels, name = draw(seed)
    at = list(table.columns).index(name)
    assert entities(neutral(table), labels) == {f"c{at}"}


def test_numbers_of_the_rows():
    table, ill, _ = visits(0)
    table["entry_id"] = rng_of(1).permutation(10**6)[: len(table)]
    found = {one.column for one in find_roles(table, ill) if one.kind == "identifier"}
    assert found == {"record_id", "entry_id"}
    only = neutral(table[["record_id", "age"]])
    assert [one.kind for one in find_roles(only, ill)] == ["identifier"]


def test_dates_and_times():
    n = 500
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(n) % 250, unit="D")
    table = pd.DataFrame(
        {
            "sent": days,
            "paid": days.strftime("%d.%m.%Y"),
            "day": np.arange(n) // 3,
            "timestamp": 1_700_000_000 + rng_of(0).permutation(10**6)[:n],
            "birth_date": days,
            "time_in_hospital": rng_of(1).integers(1, 15, n),
        }
    )
    found = {one.column for one in find_roles(table, np.arange(n) % 2) if one.kind == "time"}
    assert found == {"sent", "paid", "day", "timestamp"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rename", [lambda table: table, neutral])
def test_measurements_counts_and_categories_are_no_entities(rename, seed):
    rng, n = rng_of(seed), 2500
    place = rng.integers(0, 400, n)
    table = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "year_built": rng.integers(1940, 2020, n),
            "amount": rng.integers(1, 400, n),
            "steps": rng.poisson(40, n),
            "rooms": rng.integers(1, 9, n),
            "norm": rng.normal(500, 60, n).round(),
            "mileage": (rng.lognormal(10, 0.7, n) // 100).astype(int),
            "account_balance": rng.integers(0, 300, n),
            "is_customer": rng.random(n) < 0.5,
            "member_status": rng.choice(list("abcd"), n),
        }
    ).join(pd.get_dummies(pd.Series(rng.choice(list("abcdefgh"), n))))
    score = table["age"] / 15 + table["year_built"] / 20 + table["amount"] / 200
    labels = rng.random(n) < 1 / (1 + np.exp(score.mean() - score))
    assert not find_roles(rename(table), labels)
    zips = table.assign(zip_code=10_000 + place)
    effect = rng.normal(scale=3, size=400)[place]
    assert not find_roles(zips, rng.random(n) < 1 / (1 + np.exp(-effect)))


def test_factors_of_an_experiment_are_no_entities():
    grid = np.stack(np.meshgrid(*[np.arange(5)] * 4), -1).reshape(-1, 4)
    table = pd.DataFrame(np.tile(grid, (4, 1)), columns=["temperature", "time", "dose", "ph"])
    assert not find_roles(table, (grid.sum(axis=1) > 8).repeat(4))


@pytest.mark.core
@pytest.mark.parametrize("name", datasets.names(available=True))
def test_nothing_is_found_in_the_data_sets(name):
    bunch = datasets.load(name, as_frame=True)
    labels = bunch.target.to_numpy()
    if not len(bunch.target_names):  # a number
        labels = labels > np.median(labels)
    assert not find_roles(bunch.data, labels)
    assert not find_roles(neutral(bunch.data), labels)


def test_odd_tables():
    labels = np.arange(100) % 2
    table = pd.DataFrame(
        {
            "id": pd.array([None] * 100, dtype="Int64"),
            "user": [None] * 100,
            "patient": ["a", 1] * 50,
            "device": pd.Categorical(["x"] * 100),
            "member_id": [1.0, np.nan, np.inf, 2.0] * 25,
        }
    )
    assert not find_roles(table, labels)
    assert not find_roles(table[:0], labels[:0])
    assert not find_roles(table.to_numpy(), labels)
