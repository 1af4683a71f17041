"""Killed at any moment, the studio comes back where it was: nothing shown as saved is lost."""

from contextlib import ExitStack

import pytest
from tests.studio.running import Studio
from tests.studio.serving import SLOW_MEMBERS, SLOW_SEARCH, client_of


@pytest.fixture
def client():
    """`client(studio)`: a program of the studio's user."""
    with ExitStack() as opened:
        yield lambda studio: opened.enter_context(client_of(studio.url))


def lasting(record):
    """What a restart may not change."""
    left_out = ("job", "updated")
    return {name: value for name, value in record.items() if name not in left_out}


def half_trained(user):
    """A dialog that is being trained."""
    members = ["logistic", "qda", "extra-trees", "gradient-boosting"]
    body = {"table": user.table("pima"), "target": "target", "members": members}
    begun = user.ok("/dialogs", body)
    for name, received in user.events(begun["job"]["id"]):
        if name == "job" and received["progress"] and received["progress"]["done"] > 2:
            break
    return f"/dialogs/{begun['dialog']['id']}", begun["job"]["id"]


def ended(user, job):
    """A job at its end."""
    *_, (name, last) = user.events(job)
    assert name == "end"
    return last


@pytest.mark.full
@pytest.mark.slow
def test_a_killed_studio_comes_back_where_it_was(start_studio, client):
    """Killed while a dialog is trained beside one with steps; and right after one was accepted."""
    studio = start_studio()
    user = client(studio)
    dialog = user.dialog("pima")
    user.asked(dialog, "fp <= 30")
    user.asked(dialog, "fn <= 60", keep=False)
    user.ok(f"{dialog}/undo", {})
    shown = user.ok(dialog)
    training, job = half_trained(user)
    studio.kill()

    studio = start_studio()
    user = client(studio)
    assert lasting(user.ok(dialog)) == lasting(shown)
    assert user.ok(training)["state"] == "training"
    assert ended(user, job)["state"] == "done"  # it continues by itself
    assert user.ok(training)["state"] == "ready"
    assert user.ok(f"{dialog}/redo", {})["position"] == 2  # what was undone is not lost either
    step = user.asked(dialog, "fp <= 30", keep=False)
    assert step["met"]
    accepted = user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))
    assert accepted["state"] == "done", accepted
    shown = user.ok(dialog)
    studio.kill()

    studio = start_studio()
    user = client(studio)
    assert lasting(user.ok(dialog)) == lasting(shown)
    assert user.get(f"{dialog}/accepted/1/model.skops").status_code == 200
    user.asked(dialog, "fp <= 25", keep=False)
    again = user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))
    assert again["state"] == "failed"  # what is used up stays used up
    assert user.ok(dialog)["used_up"]


@pytest.mark.full
@pytest.mark.slow
def test_a_search_continues_after_a_restart(start_studio, client):
    """However the studio was ended, its step appears, once."""
    studio = start_studio()
    user = client(studio)
    dialog = user.dialog("spambase", members=SLOW_MEMBERS)
    for number, end in enumerate((Studio.kill, Studio.stop), 1):
        job = user.ok(f"{dialog}/prefer", SLOW_SEARCH)
        assert job["state"] == "running"
        end(studio)
        studio = start_studio()
        user = client(studio)
        last = ended(user, job["id"])
        assert (last["state"], last["result"]) == ("done", {"step": number})
        found = user.ok(dialog)
        assert (found["position"], len(found["steps"]), found["job"]) == (number, number + 1, None)
        step = found["steps"][number]
        assert (step["preference"], step["cancelled"]) == ("fp <= 8", False)  # it was not cut short
