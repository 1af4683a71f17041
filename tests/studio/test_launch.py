"""Starting the studio: by the command, on a table, and from a notebook."""

import signal
import socket
import subprocess
import sys
import threading
import webbrowser
from contextlib import contextmanager
from errno import EADDRINUSE
from html import escape
from os import strerror
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import httpx
import numpy as np
import pandas as pd
import pytest
from sqlalchemy import text
from tests.studio.serving import client_of

from margrave import cli, datasets
from margrave.steer import Dialog
from margrave.studio import Settings, launch, open_studio, routes_dialogs, view
from margrave.studio.launch import Beginning, listening, serve
from margrave.studio.settings import is_loopback
from margrave.studio.store import Store

SECONDS = 60


# The command


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """`refused(*arguments)`: the line in which the command says why it does not start."""
    monkeypatch.chdir(tmp_path)
    opened = []

    def noted(*given):
        opened.append(open_studio(*given))
        return opened[-1]

    def run(*arguments, token=""):
        monkeypatch.setenv("MARGRAVE_TOKEN", token)
        with pytest.raises(SystemExit) as end:
            cli.main(["studio", "--no-browser", *map(str, arguments)])
        printed = capsys.readouterr()
        assert (end.value.code, printed.out) == (2, "")
        lines = printed.err.splitlines(keepends=True)
        return "".join(line for line in lines if not line.endswith(" ...\n"))  # without its stages

    monkeypatch.setattr(launch, "open_studio", noted)
    yield run
    for studio in opened:
        studio.close()


CANNOT_START = [  # with what the refusal names
    (["nope"], ["DATA", "'nope'"]),
    (["pina"], ["DATA", "'pina'", "'pima'"]),
    (["--target", "y"], ["--target", "DATA"]),
    (["--positive", "y"], ["--positive", "DATA"]),
    (["--port", "99999"], ["port", "99999"]),
    (["--host", "http://x"], ["host", "'http://x'"]),
    (["--public-host", "https://x"], ["host", "'https://x'"]),
    (["--trusted-proxy", "proxy"], ["proxy", "'proxy'"]),
    (["--store", "sqlite://"], ["store", "sqlite:///"]),
    (["--store", "mysql://x/y"], ["store", "'mysql'"]),
    (["pima", "--public-host", "studio.example"], ["DATA", "--public-host"]),
    (["--token", "a-token-for-tests"], ["--token"]),  # other users would see it
]


@pytest.mark.parametrize(("arguments", "named"), CANNOT_START)
def test_what_cannot_be_started_is_refused_in_one_line(refused, arguments, named):
    line = refused(*arguments)
    assert line.startswith("margrave: ")
    assert line.count("\n") == 1
    assert [one for one in named if one not in line] == []


def test_a_token_that_cannot_be_used_is_refused_in_one_line(refused):
    for token, named in (("abc-def-ghi-jkl", ["token", "15"]), ("x" * 300, ["token", "300"])):
        line = refused(token=token)
        assert line.count("\n") == 1
        assert [one for one in named if one not in line] == []
        assert token not in line
    line = refused("pima", token="a-token-for-tests")  # noqa: S106
    assert [one for one in ("DATA", "MARGRAVE_TOKEN") if one not in line] == []
    assert "a-token-for-tests" not in line


def test_a_port_that_is_taken_is_refused_in_one_line(refused, tmp_path):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        line = refused("--port", port, "--store", f"sqlite:///{tmp_path / 'studio.db'}")
    assert line.count("\n") == 1
    assert [one for one in ("127.0.0.1", f"{port}", strerror(EADDRINUSE)) if one not in line] == []
    assert not (tmp_path / "studio.db").exists()


def test_a_file_that_is_no_database_is_refused_in_one_line(refused, tmp_path):
    (tmp_path / "notes.txt").write_text("not a database, but long enough to look like one " * 50)
    line = refused("--port", 0, "--store", f"sqlite:///{tmp_path / 'notes.txt'}")
    assert line.count("\n") == 1
    assert str(tmp_path / "notes.txt") in line


def test_options_that_do_not_fit_the_table_are_refused_in_one_line(refused, tmp_path):
    store = f"sqlite:///{tmp_path}"
    line = refused("iris", "--target", "zzz", "--port", 0, "--store", f"{store}/one.db")
    assert line.count("\n") == 1
    columns = datasets.load("iris", as_frame=True).frame.columns
    assert [one for one in ("--target", "zzz", *columns) if one not in line] == []
    line = refused("iris", "--positive", "rose", "--port", 0, "--store", f"{store}/two.db")
    assert line.count("\n") == 1
    classes = ("setosa", "versicolor", "virginica")
    assert [one for one in ("--positive", "'rose'", *classes) if one not in line] == []


def test_what_cannot_be_started_leaves_nothing_behind(refused, tmp_path):
    url = f"sqlite:///{tmp_path / 'studio.db'}"
    refused("iris", "--target", "zzz", "--port", 0, "--store", url)
    with Store(url) as store, store.read() as session:
        assert session.scalar(text("select count(*) from tables")) == 0


def test_what_cannot_be_started_lets_go_of_the_store(refused, tmp_path):
    url = f"sqlite:///{tmp_path / 'studio.db'}"
    refused("iris", "--target", "zzz", "--port", 0, "--store", url)
    with Store(url) as store:
        store.claim("another")


@pytest.mark.slow
def test_the_command_serves_until_it_is_interrupted(start_studio):
    studio = start_studio("iris")
    assert [line.split()[-1] for line in studio.errors.splitlines()] == ["...", "..."]
    assert "iris" in studio.errors
    base, _, place = studio.url.partition("#")
    assert place.startswith("/d/")
    with httpx.Client(base_url=base.partition("?")[0], trust_env=False, timeout=30) as http:
        assert http.get("/").headers["content-type"] == "text/html; charset=utf-8"
        assert http.get("/api/dialogs").status_code == 401
        assert http.get(base).status_code == 303  # and the cookie is enough
        found = http.get(f"/api/dialogs/{place.split('/')[2]}").json()
        assert (found["title"], found["target"], found["kind"]) == ("iris", "target", "committee")
        assert http.post("/api/tables/bundled", json={"name": "iris"}).status_code == 403
    studio.process.send_signal(signal.SIGINT)
    assert studio.process.wait(30) == 130
    assert "Traceback" not in studio.errors


@pytest.mark.slow
def test_in_the_background_it_serves_until_it_is_terminated(start_studio):
    """A shell starts `margrave studio &` with SIGINT ignored: Ctrl-C is not for it."""
    studio = start_studio(interrupt=signal.SIG_IGN)
    with client_of(studio.url) as user:
        for _ in range(2):  # uvicorn ends at once at the second
            studio.process.send_signal(signal.SIGINT)
        assert user.get("/studio").status_code == 200
    assert studio.stop() == -signal.SIGTERM
    assert "Traceback" not in studio.errors
    with Store(studio.store) as store:
        store.claim("another")  # it has let go of the store


def test_it_says_that_it_starts_before_it_loads_a_server():
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from margrave.cli import main; main(['studio', '--no-browser'])"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    stage, error = done.stderr.splitlines()
    assert stage.endswith(" ...")
    assert "uvicorn" in error
    assert done.returncode == 2


@pytest.mark.slow
def test_on_all_interfaces_it_prints_an_address_for_other_machines(start_studio):
    studio = start_studio("--host", "0.0.0.0")  # noqa: S104
    urls = [httpx.URL(url) for url in (studio.url, *studio.more_urls(1))]
    assert [is_loopback(url.host) for url in urls] == [True, False]
    for url in urls:
        with httpx.Client(trust_env=False, timeout=30, follow_redirects=True) as http:
            assert http.get(url).status_code == 200


# Where it listens


def test_it_listens_on_the_next_free_port():
    settings = Settings.of()
    with listening(settings, None) as first:
        first.listen()
        with listening(settings, None) as second:
            ports = [one.getsockname()[1] for one in (first, second)]
    assert all(port in range(8420, 8440) for port in ports)
    assert ports[0] != ports[1]


def test_two_that_start_at_once_get_different_ports():
    settings = Settings.of()
    with listening(settings, None) as first, listening(settings, None) as second:
        assert first.getsockname() != second.getsockname()


# On a table


@pytest.fixture
def started(tmp_path, monkeypatch):
    """`with started("mails.csv") as url`: a studio that was started with a table."""
    monkeypatch.setattr(routes_dialogs, "default_members", lambda _: ("logistic",))
    settings = Settings.of(store=f"sqlite:///{tmp_path / 'studio.db'}")
    servers, server_of = [], launch.server_of

    def noted(*given):
        servers.append(server_of(*given))
        return servers[-1]

    monkeypatch.setattr(launch, "server_of", noted)

    @contextmanager
    def start(data=None, **more):
        begin = None if data is None else Beginning(str(data), **more)
        said, up = [], threading.Event()

        def ready(urls):
            said.append(urls[0])
            up.set()

        thread = threading.Thread(target=serve, args=(settings, 0, begin, ready))
        thread.start()
        try:
            assert up.wait(SECONDS)
            yield said[0]
        finally:
            servers[-1].should_exit = True
            thread.join(SECONDS)

    return start


def trained(url):
    """The dialog that a studio has opened, once it is trained."""
    with client_of(url) as user:
        name = f"/dialogs/{url.partition('#')[2].split('/')[2]}"
        job = user.ok(name)["job"]
        if job is not None:
            assert list(user.events(job["id"]))[-1][1]["state"] == "done"
        return user.ok(name)


def mails(seed=0):
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 2, 120)
    return pd.DataFrame({"a": rng.normal(size=120) + code, "spam": np.where(code, "yes", "no")})


@pytest.mark.slow
def test_a_table_opens_the_dialog_that_it_opened_before(started, tmp_path):
    file = tmp_path / "mails.csv"
    mails().to_csv(file, index=False)
    with started(file) as url:
        first = trained(url)
        assert url.endswith(f"#/d/{first['id']}/frontier")
    assert (first["title"], first["table"]["name"], first["target"]) == (
        "mails.csv",
        "mails.csv",
        "spam",
    )
    with started(file) as url:
        again = trained(url)
    assert (again["id"], again["updated"]) == (first["id"], first["updated"])
    with started(file, positive="no") as url:
        other = trained(url)
    assert other["id"] != first["id"]
    assert (other["table"], other["positive"]) == (first["table"], "no")
    mails(seed=1).to_csv(file, index=False)
    with started(file) as url:
        changed = trained(url)
        with client_of(url) as user:
            assert len(user.ok("/dialogs")["dialogs"]) == 3
    assert changed["table"]["id"] != first["table"]["id"]
    assert str(tmp_path) not in str(changed)


@pytest.mark.slow
def test_a_table_in_another_encoding_is_opened_as_its_user_says(started, tmp_path):
    file = tmp_path / "mails.csv"
    frame = mails().replace({"spam": {"yes": "où"}})
    frame.to_csv(file, index=False, sep=";", decimal=",", encoding="cp1252")
    with started(file, encoding="cp1252", decimal=",") as url:
        first = trained(url)
        with client_of(url) as user:
            columns = user.ok(f"/tables/{first['table']['id']}")["columns"]
            script = user.get(f"/dialogs/{first['id']}/script.py").text
    assert [column["kind"] for column in columns] == ["number", "category"]
    assert set(first["classes"]) == {"no", "où"}
    assert "encoding='cp1252'" in script
    assert "decimal=','" in script
    frame.to_csv(file, index=False)
    with started(file) as url:  # the same content, which a script has to read in another way
        again = trained(url)
    assert again["table"]["id"] != first["table"]["id"]


def test_a_table_without_a_likely_target_is_opened_to_choose_one(started, tmp_path):
    file = tmp_path / "numbers.csv"
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"]).to_csv(file, index=False)
    with started(file) as url, client_of(url) as user:
        place = url.partition("#")[2]
        assert place.startswith("/new/")
        assert user.ok(f"/tables/{place.removeprefix('/new/')}")["target"] is None
        assert user.ok("/dialogs") == {"dialogs": []}


def test_without_a_table_it_opens_at_the_start(started):
    with started() as url:
        assert "#" not in url
        with client_of(url) as user:
            assert user.ok("/dialogs") == {"dialogs": []}


def test_a_set_whose_target_is_a_number_is_refused(tmp_path):
    studio = open_studio(Settings.of(store=f"sqlite:///{tmp_path / 'studio.db'}"))
    try:
        with pytest.raises(ValueError, match="abalone"):
            launch._open_table(studio, launch.find_table("abalone"), Beginning("abalone"))
    finally:
        studio.close()


# From a notebook


@pytest.fixture(scope="module")
def notebook():
    """A notebook whose studio ends with these tests."""
    servers, server_of = [], launch.server_of

    def noted(*given):
        servers.append(server_of(*given))
        return servers[-1]

    launch._own_studio.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "server_of", noted)
        patch.setattr(launch, "_adopted", {})
        yield
    for server in servers:
        server.should_exit = True
    launch._own_studio.cache_clear()


@pytest.fixture(scope="module")
def table():
    return datasets.load("pima", as_frame=True).frame


@pytest.fixture
def dialog(notebook, table):
    X, y = table.drop(columns="target"), table["target"]
    return Dialog.from_data(X, y, committee=["logistic"], positive="pos", random_state=0)


def test_what_is_done_on_the_page_is_done_to_the_dialog_and_the_reverse(dialog):
    dialog.prefer("fp <= 60", strategies=["move"])
    url = view(dialog, browser=False)
    name = f"/dialogs/{url.partition('#')[2].split('/')[2]}"
    with client_of(url) as user:
        record = user.ok(name)
        assert (record["saved"], record["table"], record["position"]) == (False, None, 1)
        assert [step["preference"] for step in record["steps"]] == [None, "fp <= 60"]
        user.asked(name, "fp <= 30", strategies=["move"])
        assert [str(reply.preference) for reply in dialog.history[1:]] == ["fp <= 60", "fp <= 30"]
        user.ok(f"{name}/undo", {})
        assert dialog.position == 1
        dialog.prefer("fp <= 20", strategies=["move"])
        record = user.ok(name)
        assert (record["position"], len(record["steps"])) == (3, 4)
        assert record["steps"][3]["after"]["counts"] == dialog.confusion.counts.tolist()
        total = user.ok(f"{name}/rows", params={"true": "neg", "predicted": "pos"})["total"]
        assert total == dialog.confusion.fp
        dialog.goto(1)
        accepted = user.finished(user.post(f"{name}/accept", {"confidence": 0.8}))
        assert accepted["result"] == {"accepted": 1}
        assert len(dialog.accepted) == 1
        for path in ("script.py", "report.html"):
            answer = user.get(f"{name}/{path}")
            assert answer.status_code == 400
            assert "table" in answer.json()["error"]
        assert user.get(f"{name}/dialog.json").status_code == 200


def test_a_dialog_has_one_page(dialog, notebook, table, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    url = view(dialog)
    assert view(dialog, browser=False) == url == dialog.open(browser=False)
    (file,) = opened
    assert escape(url) in Path(url2pathname(urlsplit(file).path)).read_text("utf-8")
    assert urlsplit(file).scheme == "file"
    assert httpx.URL(url).params["token"] not in file
    other = Dialog.from_data(
        table.drop(columns="target"), table["target"], committee=["logistic"], random_state=1
    )
    assert view(other, browser=False) != url


def test_a_dialog_that_was_deleted_on_the_page_can_be_opened_again(dialog):
    url = view(dialog, browser=False)
    with client_of(url) as user:
        assert user.http.delete(f"/api/dialogs/{url.split('/')[-2]}").status_code == 204
        again = view(dialog, browser=False)
        assert user.get(f"/dialogs/{again.split('/')[-2]}").status_code == 200


def test_to_look_at_a_dialog_does_not_change_it(dialog):
    dialog.prefer("fp <= 60", strategies=["move"])
    dialog.accept(confidence=0.8)
    url = view(dialog, browser=False)
    with client_of(url) as user:
        name = f"/dialogs/{url.split('/')[-2]}"
        first, second = (user.ok(name) for _ in range(2))
    assert [one["number"] for one in first["accepted"]] == [1]
    assert first == second


def test_rows_of_a_notebooks_dialog_are_as_its_user_has_them(dialog, table):
    url = view(dialog, browser=False)
    with client_of(url) as user:
        page = user.ok(f"/dialogs/{url.split('/')[-2]}/rows", params={"sort": "row"})
    row = page["rows"][0]
    line = table.drop(columns="target").iloc[row["row"] - 1]
    assert row["values"] == [f"{value:.6g}" for value in line.tolist()]


@pytest.mark.full
@pytest.mark.slow
def test_a_notebooks_store_ends_with_its_process(tmp_path):
    code = (
        "from margrave import datasets\nfrom margrave.steer import Dialog\n"
        "from sklearn.linear_model import LogisticRegression\n"
        "X, y = datasets.load('iris', return_X_y=True)\n"
        "Dialog(LogisticRegression(max_iter=1000).fit(X, y), X, y).open(browser=False)\n"
    )
    subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", code], check=True, env={"TMPDIR": str(tmp_path)}, timeout=120
    )
    assert list(Path(tmp_path).glob("margrave-studio-*")) == []
