"""Memory and store say the same, whatever goes wrong or comes between."""

import threading

import pytest
from tests.studio.serving import client_of, serving

from margrave.steer import Dialog
from margrave.studio import Settings, open_studio, workspace
from margrave.studio.job_table import CANCELLED
from margrave.studio.launch import view
from margrave.studio.store import StoreError
from margrave.studio.workspace import Live

SECONDS = 60


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("integrity"), workers=2) as served:
        yield served


@pytest.fixture
def studio(made):
    return made[0]


@pytest.fixture
def user(made):
    return made[1]


def number_of(dialog):
    return dialog.rsplit("/", 1)[1]


def test_a_second_studio_on_a_store_is_refused_with_the_address_of_the_first(studio):
    settings = Settings.of(store=studio.settings.store, port=1)
    with pytest.raises(StoreError, match=f"http://127.0.0.1:{studio.settings.port}/"):
        open_studio(settings)


def test_a_store_can_be_opened_again_after_it_was_closed(tmp_path):
    for _ in range(2):
        settings = Settings.of(store=f"sqlite:///{tmp_path / 'studio.db'}", port=0)
        open_studio(settings).close()


def test_a_failure_after_the_guarantee_leaves_what_the_store_has(studio, user, monkeypatch):
    dialog = user.dialog("pima", own=True, members=["logistic"])
    user.asked(dialog, "fp <= 40")

    def broken(model):
        raise ValueError("no")

    with monkeypatch.context() as patched:
        patched.setattr(workspace, "can_export", broken)
        assert (
            user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))["state"] == "failed"
        )
    found = user.ok(dialog)
    assert found["accepted"] == []
    assert user.get(f"{dialog}/accepted/1/model.skops").status_code == 404
    assert found["used_up"]  # whoever has seen what came of it
    user.asked(dialog, "fp <= 50")
    refused = user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))
    assert (refused["state"], refused["code"]) == ("failed", "used_up")
    user.ok(f"{dialog}/undo", {})  # the same request again is the same use
    assert user.ok(f"{dialog}/guarantee", params={"confidence": 0.8})["error"] is None
    assert user.finished(user.post(f"{dialog}/accept", {"confidence": 0.8}))["state"] == "done"
    (accepted,) = user.ok(dialog)["accepted"]
    assert accepted["use_number"] == 1


def test_a_refusal_that_looked_is_not_forgotten(studio, user):
    dialog = user.dialog("pima", own=True, members=["logistic"])
    user.asked(dialog, "fp <= 12%, fn <= 40%", keep=False)
    terms = {"confidence": 0.95, "anyway": True}
    last = user.finished(user.post(f"{dialog}/accept", terms))
    assert last["state"] == "failed"
    found = user.ok(dialog)
    assert found["used_up"]
    studio.workspace.forget(number_of(dialog))
    again = user.ok(dialog)
    assert (again["used_up"], again["left"]) == (found["used_up"], found["left"])


@pytest.fixture
def busy_training(user, monkeypatch):
    """The one worker that trains is busy until the event is set."""
    begun, free = threading.Event(), threading.Event()
    from_data = Dialog.from_data

    def waiting(*given, **options):
        begun.set()
        assert free.wait(SECONDS)
        return from_data(*given, **options)

    monkeypatch.setattr(Dialog, "from_data", waiting)
    first = begin_training(user)
    assert begun.wait(SECONDS)
    yield free
    free.set()
    assert user.finished(first)["state"] == "done"


def begin_training(user):
    body = {"table": user.table("pima"), "target": "target", "members": ["logistic"]}
    return user.post("/dialogs", body)


def test_training_that_is_cancelled_while_it_waits_can_be_tried_again(studio, user, busy_training):
    begun = begin_training(user).json()
    assert begun["job"]["state"] == "waiting"
    user.ok(f"/jobs/{begun['job']['id']}/cancel", {})
    dialog = f"/dialogs/{begun['dialog']['id']}"
    found = user.ok(dialog)
    assert (found["state"], found["error"]) == ("failed", CANCELLED)
    others = [begin_training(user) for _ in range(studio.settings.limits.jobs_waiting)]
    assert user.post(f"{dialog}/retry").status_code == 429
    assert user.ok(dialog)["error"] == CANCELLED
    for other in others:
        user.ok(f"/jobs/{other.json()['job']['id']}/cancel", {})
    again = user.post(f"{dialog}/retry")
    found = user.ok(dialog)
    assert (found["state"], found["error"]) == ("training", None)
    assert found["job"]["state"] == "waiting"
    busy_training.set()
    assert user.finished(again)["state"] == "done"
    assert user.ok(dialog)["state"] == "ready"


def test_a_refused_request_moves_nothing(user):
    dialog = user.dialog("pima", members=["logistic"])
    user.asked(dialog, "fp <= 30")
    user.asked(dialog, "fp <= 20")
    user.ok(f"{dialog}/undo", {})
    before = user.ok(dialog)
    answer = user.post(f"{dialog}/prefer", {"wants": ["recall(maybe) >= 90%"], "at": 0})
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_class")
    after = user.ok(dialog)
    assert {**after, "updated": ""} == {**before, "updated": ""}


def test_a_notebooks_dialog_is_the_same_in_the_page():
    import numpy as np
    from sklearn.naive_bayes import GaussianNB

    random = np.random.default_rng(0)
    y = np.array(["no", "yes"])[random.integers(0, 2, 600)]
    X = random.normal(size=(600, 2)) + 2 * (y == "yes")[:, None]
    dialog = Dialog.from_data(X, y, committee=[("bayes", GaussianNB())], random_state=0)
    dialog.prefer("fp <= 20", strategies=["move"])
    model = dialog.accept(confidence=0.8)
    url = view(dialog, browser=False)
    path = f"/dialogs/{url.partition('#')[2].split('/')[2]}"
    with client_of(url) as user:
        found = user.ok(path)
        assert not found["saved"]
        assert found["used_up"]
        assert found["parts"]["certify"] == dialog.sizes.certify
        (accepted,) = found["accepted"]
        assert accepted["text"] == str(model.certificate_)
        assert model.certificate_.describe_errors() in accepted["errors"]
        loaded = type(model).from_bytes(user.get(f"{path}/accepted/1/model.skops").content)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        user.asked(path, "fn <= 30", keep=False)
        assert dialog.position == 2  # a step of the page is a step of the dialog
        dialog.undo()
        assert user.ok(path)["position"] == 1  # and the reverse
        assert user.get(f"{path}/script.py").status_code == 400
        assert view(dialog, browser=False) == url
        assert user.http.delete(f"/api{path}").status_code == 204
        again = view(dialog, browser=False)
        assert again != url
        assert user.ok(f"/dialogs/{again.split('/')[-2]}")["position"] == 1


def test_steps_count_for_the_memory_a_dialog_takes(studio, user):
    dialog = user.dialog("pima", members=None, kind="program", levels=3)
    live = studio.workspace.live("local", number_of(dialog))
    assert isinstance(live, Live)
    before = live.size
    assert user.finished(user.post(f"{dialog}/program/grow", {}))["state"] == "done"
    assert live.size > before
