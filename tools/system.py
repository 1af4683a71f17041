"""Find what the tests need from the system's packages: Chromium, and PostgreSQL's server.

``make test`` runs this first. What is missing is installed where that may be done (as root, with
apt-get); where not, it says what to install by hand, or how to go without. The tests look with the
same functions, so that both find the same programs.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
SERVERS = (  # where Debian, Red Hat and Homebrew keep the programs that are not in PATH
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)


def chromium() -> Path | None:
    """The browser's executable."""
    for name in (*BROWSERS, *APPLICATIONS):
        if found := shutil.which(name):
            return Path(found)
    return None


def postgresql() -> Path | None:
    """The folder with the server's programs (initdb, pg_ctl), of the newest version there is."""
    kept = [folder for pattern in SERVERS for folder in Path("/").glob(pattern[1:])]
    kept.sort(key=lambda folder: [int(part) for part in re.findall(r"\d+", str(folder))])
    first = shutil.which("initdb")
    for folder in [*([Path(first).parent] if first else []), *reversed(kept)]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


@dataclass(frozen=True)
class Need:
    """Something the tests need: how to find it, and how to get it by hand."""

    find: Callable[[], Path | None]
    title: str
    by_hand: str


NEEDS = {
    "chromium": Need(
        chromium,
        "Chromium",
        "`apt install chromium` (Debian), `dnf install chromium` (Fedora),"
        " `brew install --cask google-chrome` (macOS), or Google Chrome's own package (Ubuntu)",
    ),
    "postgresql": Need(
        postgresql,
        "PostgreSQL's server",
        "`apt install postgresql` (Debian, Ubuntu), `dnf install postgresql-server` (Fedora),"
        " or `brew install postgresql@17` (macOS)",
    ),
}
OTHERS = ("typescript", "torch")  # what else may be gone without; make itself installs it


def without() -> set[str]:
    """What the user goes without, by MARGRAVE_WITHOUT."""
    named = set(os.environ.get("MARGRAVE_WITHOUT", "").replace(",", " ").split())
    if unknown := sorted(named - {*NEEDS, *OTHERS}):
        allowed = ", ".join((*NEEDS, *OTHERS))
        raise SystemExit(f"WITHOUT may name {allowed}; it names {', '.join(unknown)}.")
    return named


def advice(missing: list[str]) -> str:
    """What to do about what is missing, in plain sentences."""
    lines = [f"The tests need {NEEDS[name].title}: {NEEDS[name].by_hand}." for name in missing]
    lines.append(f'Or skip the tests that need it: make test WITHOUT="{" ".join(missing)}"')
    return "\n".join(lines)


def installable(missing: list[str]) -> list[str]:
    """The missing packages that apt-get has, if it may be used."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return []
    ubuntu = platform.freedesktop_os_release().get("ID") == "ubuntu"
    # Ubuntu's package of that name only points to a snap, which containers cannot run.
    return [name for name in missing if not (ubuntu and name == "chromium")]


def install(packages: list[str]) -> None:
    """Let apt-get install them without questions; what goes wrong is printed."""
    print(f"Installing {' and '.join(packages)} with apt-get ...", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    get = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    for command in (["apt-get", "update", "-qq"], get):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            print("\n".join(done.stderr.splitlines()[-5:]), file=sys.stderr)


def absent() -> list[str]:
    """What is needed and not there."""
    given_up = without()
    return [name for name, need in NEEDS.items() if name not in given_up and need.find() is None]


def main() -> int:
    """Install what is missing, or say what to do."""
    if packages := installable(absent()):
        install(packages)
    if missing := absent():
        print(advice(missing), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
