"""Twenty dialogs at once: all are answered, in turns, within memory, and nobody sees another's."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.studio.serving import connected, serving

USERS = 20
TOKEN = "a-token-for-tests"  # noqa: S105


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("load"), token=TOKEN, workers=2, live_bytes=1) as made:
        yield made[0]


def story(studio, number):
    """A user's whole dialog; what it showed."""
    with connected(studio.settings) as user:
        dialog = user.dialog("pima", members=["logistic"], title=f"of user {number}")
        step = user.asked(dialog, f"fp <= {20 + number}")
        assert step["met"]
        assert step["after"]["counts"][0][1] <= 20 + number
        rows = user.ok(f"{dialog}/rows", params={"true": "neg", "predicted": "pos"})
        assert rows["total"] == step["after"]["counts"][0][1]
        lines = user.ok("/dialogs")["dialogs"]
        assert [line["title"] for line in lines] == [f"of user {number}"]
        return dialog, dict(user.http.cookies)


@pytest.mark.full
@pytest.mark.slow
def test_twenty_dialogs_at_once(studio):
    with ThreadPoolExecutor(USERS) as pool:
        stories = list(pool.map(lambda number: story(studio, number), range(USERS)))
    # Dropped from memory as soon as another is used, they answer all the same.
    assert studio.workspace.n_live <= 2
    for number, (dialog, cookies) in enumerate(stories):
        with connected(studio.settings) as stranger:
            assert stranger.get(dialog).status_code == 404
            assert stranger.get(f"{dialog}/frontier").status_code == 404
            assert stranger.get(f"{dialog}/dialog.json").status_code == 404
            assert stranger.post(f"{dialog}/undo").status_code == 404
            stranger.http.cookies.update(cookies)
            assert stranger.ok(dialog)["steps"][1]["preference"] == f"fp <= {20 + number}"
            assert stranger.ok(f"{dialog}/frontier")["best"]


def test_too_many_requests_of_one_user_are_refused(studio):
    waiting = studio.settings.limits.jobs_waiting
    with connected(studio.settings) as user:
        table = user.table("pima")
        answers = [
            user.post("/dialogs", {"table": table, "target": "target", "members": ["svm"]})
            for _ in range(waiting + 8)
        ]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert refused
        assert re.search(rf"\b{waiting}\b", refused[0].json()["error"])
        assert len(user.ok("/dialogs")["dialogs"]) == len(answers) - len(refused)
        for answer in answers:
            if answer.status_code == 202:
                user.ok(f"/jobs/{answer.json()['job']['id']}/cancel", {})
