"""What the tests need from the system: found, asked for in plain words, or gone without."""

import os

import pytest
from tools import system


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with nothing installed, and a user who may not install anything."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("MARGRAVE_WITHOUT", raising=False)
    monkeypatch.setattr(system, "APPLICATIONS", ())
    monkeypatch.setattr(system, "SERVERS", (f"{tmp_path}/postgresql/*/bin",))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)


def test_what_is_missing_is_told_with_a_way_out(bare, capsys):
    assert system.main() == 1
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("The tests need Chromium: `apt install chromium` (Debian),")
    assert told[1].startswith("The tests need PostgreSQL's server: `apt install postgresql`")
    assert told[2].endswith('make test WITHOUT="chromium postgresql"')


def test_who_goes_without_is_not_asked(bare, monkeypatch, capsys):
    monkeypatch.setenv("MARGRAVE_WITHOUT", "postgresql, chromium typescript")
    assert system.main() == 0
    assert capsys.readouterr() == ("", "")


def test_without_names_only_what_there_is(bare, monkeypatch):
    monkeypatch.setenv("MARGRAVE_WITHOUT", "chrome")
    told = "WITHOUT may name chromium, postgresql, typescript, torch; it names chrome."
    with pytest.raises(SystemExit, match=told):
        system.main()


def test_the_newest_server_is_taken_and_path_comes_first(bare):
    program(bare / "chromium-browser")
    for version in ("9", "15"):
        program(bare / "postgresql" / version / "bin" / "initdb")
        program(bare / "postgresql" / version / "bin" / "pg_ctl")
    program(bare / "postgresql" / "17" / "bin" / "initdb")  # no server, only half a package
    assert system.chromium() == bare / "chromium-browser"
    assert system.postgresql() == bare / "postgresql/15/bin"
    program(bare / "initdb")
    program(bare / "pg_ctl")
    assert system.postgresql() == bare
    assert system.main() == 0


@pytest.mark.parametrize(
    ("who", "apt", "name", "packages"),
    [
        (0, True, "debian", ["chromium", "postgresql"]),
        (0, True, "ubuntu", ["postgresql"]),
        (0, False, "fedora", []),
        (1000, True, "debian", []),
    ],
)
def test_only_root_with_apt_installs(bare, monkeypatch, who, apt, name, packages):
    if apt:
        program(bare / "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: who)
    monkeypatch.setattr(system.platform, "freedesktop_os_release", lambda: {"ID": name})
    asked = []
    monkeypatch.setattr(system, "install", asked.extend)
    assert system.main() == 1  # the pretended installation brings nothing
    assert asked == packages


def test_a_failed_installation_is_told(bare, capfd):
    program(bare / "apt-get")
    (bare / "apt-get").write_text("#!/bin/sh\necho $1 failed >&2; exit 100\n")
    system.install(["chromium"])
    told = capfd.readouterr()
    assert told.out == "Installing chromium with apt-get ...\n"
    assert told.err == "update failed\ninstall failed\n"
