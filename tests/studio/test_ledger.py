"""The ledger of the store: the same rows are used up, in whatever dialog and for whatever user."""

import json
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from sqlalchemy import Engine, event, select, text
from tests.studio.page_parts import uploaded
from tests.studio.serving import connected, serving

from margrave.steer import FileError, GuaranteeError, RowSample
from margrave.studio.ledger import StoreLedger
from margrave.studio.store import DialogRow, Store

TERMS = {"confidence": 0.8}
TOKEN = "for-all-of-us-here"  # noqa: S105 - of a studio that lives as long as the tests


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("ledger"), token=TOKEN) as served:
        yield served


@pytest.fixture
def user(made):
    return made[1]


def rows(seed, n=400):
    """A table of two features and two targets."""
    random = np.random.default_rng(seed)
    y = random.integers(0, 2, n)
    other = random.integers(0, 2, n)
    return pd.DataFrame(
        {
            "a": random.normal(size=n) + 2 * y,
            "b": random.normal(size=n) - y + 2 * other,
            "y": np.where(y == 1, "yes", "no"),
            "z": np.where(other == 1, "yes", "no"),
        }
    )


def dialog_on(user, table, **choices):
    """A dialog that is ready to be accepted, and its path."""
    id_ = uploaded(user, table.to_csv(index=False).encode())
    body = {"table": id_, "target": "y", "members": ["logistic"], **choices}
    begun = user.post("/dialogs", body)
    assert user.finished(begun)["state"] == "done"
    dialog = f"/dialogs/{begun.json()['dialog']['id']}"
    user.asked(dialog, "fp <= 30%")
    return dialog


def accepted(user, dialog, **terms):
    """The code of the refusal, or the number of the use."""
    last = user.finished(user.post(f"{dialog}/accept", {**TERMS, **terms}))
    if last["state"] == "failed":
        return last["code"]
    return user.ok(dialog)["accepted"][last["result"]["accepted"] - 1]["use_number"]


@pytest.mark.parametrize(
    ("change", "choices"),
    [
        (lambda table: table, {"seed": 1}),
        (lambda table: table, {"drop": ["a"]}),
        (lambda table: table.iloc[1:], {}),
        (lambda table: pd.concat([table, table.iloc[:1]]), {}),
        (lambda table: table.sample(frac=1, random_state=0), {"seed": 1}),
        (lambda table: table.iloc[::2], {"seed": 1}),
        (lambda table: table.iloc[::2], {"drop": ["a"]}),
    ],
    ids=["another seed", "a column dropped", "a row dropped", "a row repeated", "shuffled",
         "half of the rows", "half without a column"],
)  # fmt: skip
def test_another_dialog_on_the_same_rows_is_refused(user, change, choices, request):
    table = rows(sum(map(ord, request.node.name)))
    assert accepted(user, dialog_on(user, table)) == 1
    again = dialog_on(user, change(table), **choices)
    found = user.ok(again)
    assert found["used_up"]
    assert found["opened"] == 0.8
    assert "fp <= 30%" in found["left"]
    assert user.ok(f"{again}/guarantee", params=TERMS)["code"] == "used_up"
    assert accepted(user, again) == "used_up"
    assert user.ok(again)["accepted"] == []


def test_it_outlives_the_dialog_and_its_table(made, user):
    studio, _ = made
    table = rows(1)
    first = dialog_on(user, table)
    assert accepted(user, first) == 1
    assert user.http.delete(f"/api{first}").status_code == 204
    studio.store.delete_unused_tables(before=pd.Timestamp.now("UTC").to_pydatetime())
    assert accepted(user, dialog_on(user, table, seed=1)) == "used_up"


def test_it_is_the_same_for_all_users_and_names_none(made, user):
    studio, _ = made
    table = rows(2)
    assert accepted(user, dialog_on(user, table, title="My secret")) == 1
    with connected(studio.settings) as other:
        again = dialog_on(other, table, seed=1)
        assert accepted(other, again) == "used_up"
        left = other.ok(again)["left"]
    assert "fp <= 30%" in left
    assert "secret" not in left


def test_new_rows_and_another_target_have_an_account_of_their_own(user):
    table = rows(3)
    assert accepted(user, dialog_on(user, table)) == 1
    assert accepted(user, dialog_on(user, rows(4))) == 1
    assert accepted(user, dialog_on(user, table, target="z")) == 1


def test_the_same_request_in_another_dialog_is_free(user):
    table = rows(5)
    first, second = (dialog_on(user, table) for _ in range(2))
    assert [accepted(user, dialog) for dialog in (first, second)] == [1, 1]
    texts = [user.ok(dialog)["accepted"][0]["text"] for dialog in (first, second)]
    assert texts[0] == texts[1]


def test_dialogs_that_reserve_share_the_error_probability(user):
    table = rows(6)
    dialogs = [dialog_on(user, table, seed=seed) for seed in range(3)]
    assert [accepted(user, one, reserve=True) for one in dialogs[:2]] == [1, 2]
    assert user.ok(dialogs[2])["left"].startswith("25%")
    assert accepted(user, dialogs[2]) == 3
    (last,) = user.ok(dialogs[2])["accepted"]
    assert sum("fp <= 30%" in remark for remark in last["remarks"]) == 2
    assert user.ok(dialogs[0])["used_up"]


def test_a_refused_use_has_its_own_number(user):
    """Another user certifies between the refusal and the same request in a second dialog."""
    table = rows(9)
    dialogs = [dialog_on(user, table) for _ in range(2)]
    other = dialog_on(user, table, seed=1)
    for dialog in dialogs:
        user.asked(dialog, "fp <= 17%, fn <= 17%", keep=False, strategies=["move"])
    assert accepted(user, dialogs[0], reserve=True, anyway=True) == "conflict"
    assert accepted(user, other, reserve=True) == 2
    assert accepted(user, dialogs[1], reserve=True, anyway=True) == "conflict"
    found = [user.ok(f"{dialog}/dialog.json")["refused"] for dialog in dialogs]
    assert [[use["use_number"] for use in refused] for refused in found] == [[1], [1]]


@contextmanager
def statements():
    """What is asked of the database."""
    seen = []

    def note(_connection, _cursor, statement, *_):
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_the_rows_of_an_account_are_read_once(user):
    dialog = dialog_on(user, rows(7))
    with statements() as seen:
        assert accepted(user, dialog) == 1
        user.ok(dialog)
    assert any("accounts.hashes" in one for one in seen)
    with statements() as seen:
        assert user.ok(dialog)["used_up"]
    assert seen
    assert not any("accounts.hashes" in one for one in seen)


def test_a_list_of_dialogs_reads_no_hashes_of_rows(made, user):
    dialog_on(user, rows(8))
    with statements() as seen:
        assert user.ok("/dialogs")["dialogs"]
    assert seen
    assert not any("hashes" in one for one in seen)
    with made[0].store.read() as session:
        assert all(
            len(json.dumps(facts)) < 2000 for facts in session.scalars(select(DialogRow.facts))
        )


@pytest.mark.core
def test_what_one_ledger_of_a_store_records_is_used_up_in_all_others(tmp_path):
    url = f"sqlite:///{tmp_path}/studio.sqlite3"
    table, new = (RowSample.of(rows(seed)) for seed in (9, 10))
    request = {"preference": "fp <= 30%", "delta": 0.05}
    with Store(url) as store, StoreLedger(store, "y").use(table, name="first", **request):
        pass
    with Store(url) as store:
        ledger = StoreLedger(store, "y")
        with pytest.raises(GuaranteeError) as refusal, ledger.use(table, name="next", **request):
            pass
        assert refusal.value.code == "used_up"
        with ledger.use(table, name="first", **request) as again:
            assert (again.part, again.number) == (0.05, 1)
        for free, rows_of_it in ((StoreLedger(store, "z"), table), (ledger, new)):
            with free.use(rows_of_it, name="next", **request) as grant:
                assert grant.number == 1
        assert sorted(len(account.uses) for account in ledger.read()) == [1, 1]


@pytest.mark.core
@pytest.mark.parametrize("change", ["uses = '[]'", "uses = '{}'", "delta = 7", "hashes = x''"])
def test_a_damaged_account_of_a_store_is_an_error(tmp_path, change):
    table, request = RowSample.of(rows(9)), {"preference": "fp <= 30%", "delta": 0.05}
    url = f"sqlite:///{tmp_path}/studio.sqlite3"
    with Store(url) as store, StoreLedger(store, "y").use(table, name="first", **request):
        pass
    with Store(url) as store:
        with store.write() as session:
            session.execute(text(f"UPDATE accounts SET {change}"))  # noqa: S608
        ledger = StoreLedger(store, "y")
        for act in (ledger.read, lambda: ledger.use(table, name="next", **request).__enter__()):
            with pytest.raises(FileError) as refused:
                act()
            assert refused.value.code == "damaged"
