"""Programs that some tests need: found, installed where possible, otherwise reported."""

import io
import os
import sys
from pathlib import Path

import pytest
from tools import system

BOTH = ["chromium", "postgresql"]


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with nothing installed, and a user who may not install anything."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(system, "APPLICATIONS", ())
    monkeypatch.setattr(system, "ADMINISTRATION", str(tmp_path / "sbin"))
    monkeypatch.setattr(system, "SERVERS", (f"{tmp_path}/postgresql/*/bin",))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    return tmp_path


def program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)


def test_what_is_missing_is_reported_in_one_line(bare, capsys):
    system.main(BOTH)
    (line,) = capsys.readouterr().out.splitlines()
    assert all(name in line for name in BOTH)
    program(bare / "chromium")
    system.main(["chromium"])
    assert capsys.readouterr() == ("", "")


def test_the_newest_server_is_taken_and_path_comes_first(bare):
    program(bare / "chromium-browser")
    for version in ("9", "15"):
        program(bare / "postgresql" / version / "bin" / "initdb")
        program(bare / "postgresql" / version / "bin" / "pg_ctl")
    program(bare / "postgresql" / "17" / "bin" / "initdb")  # only half a package
    assert system.chromium() == bare / "chromium-browser"
    assert system.postgresql() == bare / "postgresql/15/bin"
    program(bare / "initdb")
    program(bare / "pg_ctl")
    assert system.postgresql() == bare
    assert system.missing(BOTH) == []


def test_a_server_that_only_the_administrator_has_in_the_path_is_found(bare):
    assert system.missing(["nginx"]) == ["nginx"]
    program(bare / "sbin" / "nginx")
    assert system.nginx() == bare / "sbin" / "nginx"


@pytest.mark.parametrize(
    ("user", "apt", "name", "packages"),
    [
        (0, True, "debian", BOTH),
        (0, True, "ubuntu", ["postgresql"]),
        (0, False, "fedora", []),
        (1000, True, "debian", []),
    ],
)
def test_only_root_with_apt_installs(bare, monkeypatch, user, apt, name, packages):
    if apt:
        program(bare / "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(system.platform, "freedesktop_os_release", lambda: {"ID": name})
    monkeypatch.setenv("CI", "true")
    requested = []
    monkeypatch.setattr(system, "install", requested.extend)
    system.main(BOTH)
    assert requested == packages


@pytest.fixture
def debian(bare, monkeypatch):
    """A Debian whose root installs what is recorded here; nobody has been asked yet."""
    program(bare / "apt-get")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(system.platform, "freedesktop_os_release", lambda: {"ID": "debian"})
    monkeypatch.delenv("CI", raising=False)
    requested = []
    monkeypatch.setattr(system, "install", requested.extend)
    return requested


@pytest.mark.parametrize(
    ("typed", "packages"),
    [("y\n", BOTH), (" Yes \n", BOTH), ("\n", []), ("n\n", []), ("maybe\n", []), ("", [])],
    ids=repr,
)
def test_on_a_terminal_the_user_is_asked(debian, monkeypatch, capsys, typed, packages):
    terminal = io.StringIO(typed)  # "" is the end of the input, as Ctrl-D
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    system.main(BOTH)
    assert debian == packages
    assert "apt-get" in capsys.readouterr().out


def test_without_a_terminal_nothing_is_installed_but_the_command_named(debian, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    system.main(BOTH)
    assert debian == []
    first, last = capsys.readouterr().out.splitlines()
    assert "apt-get install" in first
    assert all(name in first and name in last for name in BOTH)


def test_a_ci_machine_installs_without_a_question(debian, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    monkeypatch.setenv("CI", "true")
    system.main(BOTH)
    assert debian == BOTH


def test_the_ci_run_is_make_test_and_nothing_else():
    lines = (Path(__file__).parents[2] / ".ci/run").read_text().splitlines()
    assert lines[-1].split() == ["exec", "env", "CI=true", "make", "test"]


def test_a_failed_installation_is_reported(bare, capfd):
    program(bare / "apt-get")
    (bare / "apt-get").write_text("#!/bin/sh\necho $1 failed >&2; exit 100\n")
    system.install(["chromium"])
    printed = capfd.readouterr()
    assert "chromium" in printed.out
    assert printed.err == "update failed\ninstall failed\n"
