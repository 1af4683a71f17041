"""Killed at any moment, the studio comes back where it was: nothing shown as saved is lost."""

import httpx
import pytest
from tests.studio.serving import Client


@pytest.fixture
def client():
    """`client(studio)`: a program of the studio's user."""
    opened = []

    def connect(studio):
        http = httpx.Client(
            base_url=studio.url, headers={"X-Margrave": "1"}, timeout=120, trust_env=False
        )
        opened.append(http)
        return Client(http)

    yield connect
    for http in opened:
        http.close()


def lasting(record):
    """What a restart may not change."""
    left_out = ("job", "updated")
    return {name: value for name, value in record.items() if name not in left_out}


def half_trained(user):
    """A dialog that is being trained."""
    members = ["logistic", "qda", "extra-trees", "gradient-boosting"]
    body = {"table": user.table("pima"), "target": "target", "members": members}
    begun = user.ok("/dialogs", body)
    for name, told in user.events(begun["job"]["id"]):
        if name == "job" and told["progress"] and told["progress"]["done"] > 2:
            break
    return f"/dialogs/{begun['dialog']['id']}"


def goes_on_by_itself(user, dialog):
    found = user.ok(dialog)
    assert found["state"] == "training"
    *_, (name, last) = user.events(found["job"]["id"])
    assert (name, last["state"]) == ("end", "done")
    assert user.ok(dialog)["state"] == "ready"


@pytest.mark.full
@pytest.mark.slow
def test_a_killed_studio_comes_back_where_it_was(start_studio, client):
    """Killed while a dialog is trained beside one that has told a step; while one is searched; and
    right after one was accepted."""
    studio = start_studio()
    user = client(studio)
    dialog = user.dialog("pima")
    user.asked(dialog, "fp <= 30")
    user.asked(dialog, "fn <= 60", keep=False)
    user.ok(f"{dialog}/undo", {})
    shown = user.ok(dialog)
    training = half_trained(user)
    studio.kill()

    studio = start_studio()
    user = client(studio)
    assert lasting(user.ok(dialog)) == lasting(shown)
    goes_on_by_itself(user, training)
    assert user.ok(f"{dialog}/redo", {})["position"] == 2  # what was undone is not lost either
    begun = user.post(f"{dialog}/prefer", {"wants": ["fp <= 10"]}).json()
    for name, _ in user.events(begun["id"]):
        if name == "reply":  # told, but not yet said to be saved
            break
    before = user.ok(dialog)
    studio.kill()

    studio = start_studio()
    user = client(studio)
    found = user.ok(dialog)
    assert found["steps"][:3] == before["steps"][:3]
    assert len(found["steps"]) in (3, 4)  # the search may have ended before the signal came
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
