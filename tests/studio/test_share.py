"""A read-only link shows one dialog to whoever has it, and opens nothing else."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor, as_completed, wait

import httpx
import pytest
from tests.studio.page_parts import table, trained, uploaded
from tests.studio.serving import serving

from margrave.studio import exports
from margrave.studio.context import Studio
from margrave.studio.settings import Settings
from margrave.studio.store import Store

UNIQUE = "mallory-the-unique"  # a value of the table
VIEWS = {
    "/api/dialogs/{dialog}",
    "/api/dialogs/{dialog}/compare",
    "/api/dialogs/{dialog}/frontier",
    "/api/dialogs/{dialog}/members",
    "/api/dialogs/{dialog}/program",
    "/api/dialogs/{dialog}/report.html",
    "/api/dialogs/{dialog}/winners",
}
QUERY = {"first": 0, "second": 1}


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("share")) as made:
        yield made


@pytest.fixture(scope="module")
def user(studio):
    return studio[1]


@pytest.fixture(scope="module")
def dialog(user):
    """A dialog that is shared, of a table with a value that nobody else has."""
    data = table(senders=("alice", "bob", UNIQUE))
    made = trained(user, uploaded(user, data), "fp <= 20")
    assert user.post(f"/dialogs/{made}/share").status_code == 200
    return made


def key_of(user, dialog):
    """The key in the link of a dialog."""
    return user.ok(f"/dialogs/{dialog}")["link"].rpartition("/")[2]


def reader(studio, key):
    """Who has nothing but a key; without a cookie, without the token."""
    address = f"http://127.0.0.1:{studio[0].settings.port}"
    headers = {"X-Margrave": "1", "X-Margrave-Share": key}
    return httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False)


@pytest.fixture
def guest(studio, user, dialog):
    with reader(studio, key_of(user, dialog)) as client:
        yield client


def operations(user):
    """Each operation of the API: its method and its path."""
    paths = user.ok("/openapi.json")["paths"]
    return [(method.upper(), path) for path, found in paths.items() for method in found]


def filled(path, dialog):
    """A path with the parts that a request needs."""
    return re.sub(r"{\w+}", "1", path.replace("{dialog}", dialog))


@pytest.mark.core  # it keeps secrets
def test_of_all_operations_only_the_views_can_be_read(user, dialog, guest):
    tried = set()
    for method, path in operations(user):
        answer = guest.request(method, filled(path, dialog), params=QUERY)
        if method == "GET" and path in VIEWS:
            assert answer.status_code == (409 if path.endswith("program") else 200), path
            tried.add(path)
        elif path != "/api/session":
            assert answer.status_code in (401, 403), (method, path, answer.text)
    assert tried == VIEWS
    for path in ("/api/openapi.json", "/api/session", "/api/dialogs//", "/api/none"):
        assert guest.get(path).status_code in (401, 403)
    assert guest.head(f"/api/dialogs/{dialog}").status_code == 403
    assert guest.get("/").status_code == 200  # the page itself has no secrets


@pytest.mark.core  # it keeps secrets
def test_no_view_has_a_row_of_the_table_or_a_secret(studio, user, dialog, guest):
    for path in sorted(VIEWS - {"/api/dialogs/{dialog}/program"}):
        answer = guest.get(filled(path, dialog), params=QUERY)
        for secret in (UNIQUE, studio[0].settings.token, key_of(user, dialog)):
            assert secret not in answer.text, path
        assert "set-cookie" not in answer.headers


def test_a_reader_sees_what_the_owner_sees(user, dialog, guest):
    own, seen = user.ok(f"/dialogs/{dialog}"), guest.get(f"/api/dialogs/{dialog}").json()
    assert seen["read_only"]
    assert not own["read_only"]
    assert seen["link"] is None
    for name in ("title", "steps", "accepted", "position", "classes", "members"):
        assert seen[name] == own[name]
    frontier = f"/dialogs/{dialog}/frontier"
    assert guest.get(f"/api{frontier}").json() == user.ok(frontier)


@pytest.mark.core  # it keeps secrets
def test_a_link_shows_no_other_dialog(user, dialog, guest, studio):
    other = trained(user, user.ok(f"/dialogs/{dialog}")["table"]["id"])
    assert guest.get(f"/api/dialogs/{other}").status_code == 403
    assert user.post(f"/dialogs/{other}/share").status_code == 200
    assert guest.get(f"/api/dialogs/{other}").status_code == 403
    with reader(studio, key_of(user, other)) as another:
        assert another.get(f"/api/dialogs/{other}").status_code == 200
        assert another.get(f"/api/dialogs/{dialog}").status_code == 403


def test_the_key_counts_and_not_the_cookie(user, dialog):
    """Who opens a link in the owner's own browser may do no more than others."""
    headers = {"X-Margrave-Share": key_of(user, dialog)}
    seen = user.get(f"/dialogs/{dialog}", headers=headers)
    assert seen.json()["read_only"]
    assert user.post(f"/dialogs/{dialog}/undo", headers=headers).status_code == 403
    assert user.get("/dialogs", headers=headers).status_code == 403


def test_sharing_ends_and_begins_with_a_new_key(studio, user, dialog):
    old = key_of(user, dialog)
    assert len(old) >= 22  # 128 bits in base64
    again = user.post(f"/dialogs/{dialog}/share").json()
    assert again["link"].endswith(old)
    stopped = user.http.delete(f"/api/dialogs/{dialog}/share")
    assert stopped.json()["link"] is None
    with reader(studio, old) as guest:
        assert guest.get(f"/api/dialogs/{dialog}").status_code == 403
        assert user.post(f"/dialogs/{dialog}/share").status_code == 200
        assert guest.get(f"/api/dialogs/{dialog}").status_code == 403
    with reader(studio, key_of(user, dialog)) as guest:
        assert guest.get(f"/api/dialogs/{dialog}").status_code == 200


def test_a_reader_does_not_see_guarantees_in_other_dialogs(studio, user):
    mails = uploaded(user, table(rows=500, senders=("dave",)))
    made, other = (trained(user, mails, want) for want in ("fp <= 20%", "fp <= 61%"))
    assert user.post(f"/dialogs/{made}/share").status_code == 200
    before = user.ok(f"/dialogs/{made}")["left"]
    accepting = user.post(f"/dialogs/{other}/accept", {"confidence": 0.8})
    assert user.finished(accepting)["state"] == "done"
    own = user.ok(f"/dialogs/{made}")
    with reader(studio, key_of(user, made)) as guest:
        seen = guest.get(f"/api/dialogs/{made}").json()
    assert "61%" in own["left"]
    assert "61%" not in seen["left"]
    assert seen["left"] not in ("", before), "what is left is shown"
    assert seen["used_up"] == own["used_up"]


def test_reports_for_readers_take_no_place_of_the_owner(user, dialog, guest, monkeypatch):
    begun, free = threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        assert free.wait(60)
        return "report"

    monkeypatch.setattr(exports, "report", slow)
    path = f"/api/dialogs/{dialog}/report.html"
    with ThreadPoolExecutor(9) as pool:
        try:
            reading = [pool.submit(guest.get, path) for _ in range(8)]
            assert begun.wait(60)
            refused = next(as_completed(reading, timeout=60)).result()
            assert refused.status_code == 429
            own = pool.submit(user.http.get, path)
            assert wait([own], timeout=0.5).not_done, "it has a place, and waits for its turn"
        finally:
            free.set()
        assert own.result().status_code == 200


def test_keys_that_take_long_to_look_up_keep_nobody_else_waiting(studio, user, dialog, monkeypatch):
    begun, free = threading.Event(), threading.Event()

    def slow(*_):
        begun.set()
        assert free.wait(60)

    monkeypatch.setattr(Store, "share_of", slow)
    n = 50  # more than there are threads for requests
    with reader(studio, "wrong") as guest, ThreadPoolExecutor(n) as pool:
        try:
            answers = [pool.submit(guest.get, f"/api/dialogs/{dialog}") for _ in range(n)]
            assert begun.wait(60)
            assert user.get("/dialogs", timeout=20).status_code == 200
            assert not any(answer.done() for answer in answers)
        finally:
            free.set()
        assert {answer.result().status_code for answer in answers} <= {403, 429}


def test_what_does_not_exist_is_not_shared(user):
    assert user.post("/dialogs/none/share").status_code == 404
    assert user.http.delete("/api/dialogs/none/share").status_code == 404


def test_wrong_keys_are_refused_alike_and_slowed_down(tmp_path):
    with serving(tmp_path) as (studio, owner):
        name = owner.dialog("iris", members=["logistic"]).removeprefix("/dialogs/")
        owner.post(f"/dialogs/{name}/share")
        right = key_of(owner, name)
        answers = []
        for place, key in [(name, "wrong"), ("none", right), ("none", "é" * 3), (name, right[:-1])]:
            with reader((studio, owner), key.encode()) as guest:
                answers.append(guest.get(f"/api/dialogs/{place}"))
        assert {answer.status_code for answer in answers} == {403}
        assert len({answer.text for answer in answers}) == 1
        with reader((studio, owner), "wrong") as guest:
            codes = [guest.get(f"/api/dialogs/{name}").status_code for _ in range(8)]
            assert codes[-1] == 429
        with reader((studio, owner), right) as guest:
            assert guest.get(f"/api/dialogs/{name}").status_code == 200  # nobody is locked out


@pytest.mark.parametrize(
    ("options", "start"),
    [
        ({}, "http://127.0.0.1:8420/#/s/"),
        ({"host": "studio.example"}, "http://studio.example:8420/#/s/"),
        (
            {"hosts": ["studio.example"], "proxies": ["127.0.0.1"]},
            "https://studio.example/#/s/",
        ),
    ],
)
def test_a_link_has_the_address_that_others_open(options, start):
    settings = Settings.of(**options)
    link = Studio(settings, None, None, None).link("7", "key")
    assert link == f"{start}7/key"
    assert settings.token not in link
