"""Find, and where possible install, the programs that some tests need from the system's packages.

``python tools/system.py chromium nginx postgresql`` installs what is missing, as root with apt-get:
on a terminal after a question, elsewhere only if the environment variable CI is set. It never
fails: tests find the programs with the same functions, and skip what is not there.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
ADMINISTRATION = os.pathsep.join(("/usr/sbin", "/usr/local/sbin", "/opt/homebrew/bin"))
SERVERS = (  # where Debian, Red Hat and Homebrew keep the programs that are not in PATH
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql*/bin",
    "/usr/local/opt/postgresql*/bin",
)
_GET = ("apt-get", "install", "--no-install-recommends")


def chromium() -> Path | None:
    """Return the browser's executable."""
    for name in (*BROWSERS, *APPLICATIONS):
        if found := shutil.which(name):
            return Path(found)
    return None


def nginx() -> Path | None:
    """Return the web server's executable, which is often in no PATH but root's."""
    found = shutil.which("nginx") or shutil.which("nginx", path=ADMINISTRATION)
    return Path(found) if found else None


def postgresql() -> Path | None:
    """Return the folder with the newest server's programs (initdb, pg_ctl)."""
    kept = [folder for pattern in SERVERS for folder in Path("/").glob(pattern[1:])]
    kept.sort(key=lambda folder: [int(part) for part in re.findall(r"\d+", str(folder))])
    first = shutil.which("initdb")
    for folder in [*([Path(first).parent] if first else []), *reversed(kept)]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


PROGRAMS = {"chromium": chromium, "nginx": nginx, "postgresql": postgresql}
"""How to find each program, by the name of its package in Debian."""


def missing(names: list[str]) -> list[str]:
    """Return those of some programs that are not installed."""
    return [name for name in names if PROGRAMS[name]() is None]


def installable(names: list[str]) -> list[str]:
    """Return the packages that apt-get can install here: none without root or apt-get."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("apt-get") is None:
        return []
    ubuntu = platform.freedesktop_os_release().get("ID") == "ubuntu"
    # Ubuntu's package chromium only points to a snap, which containers cannot run.
    return [name for name in names if not (ubuntu and name == "chromium")]


def agreed(packages: list[str]) -> bool:
    """Return whether packages may be installed: the user says so, or this is a CI machine."""
    if os.environ.get("CI"):
        return True
    if not sys.stdin.isatty():
        print(f"To install what some tests need: {' '.join(_GET)} {' '.join(packages)}")
        return False
    question = f"Some tests need {' and '.join(packages)}. Install with apt-get? [y/N] "
    print(question, end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def install(packages: list[str]) -> None:
    """Let apt-get install packages without questions; print what goes wrong."""
    print(f"Installing {' and '.join(packages)} with apt-get ...", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    get = [*_GET, "-y", "-qq", *packages]
    for command in (["apt-get", "update", "-qq"], get):
        done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            print("\n".join(done.stderr.splitlines()[-5:]), file=sys.stderr)


def main(names: list[str]) -> None:
    """Install what is missing if that is agreed; report in one line what is still missing."""
    packages = installable(missing(names))
    if packages and agreed(packages):
        install(packages)
    if absent := missing(names):
        print(f"Not installed, tests that need it are skipped: {', '.join(absent)}.")


if __name__ == "__main__":
    main(sys.argv[1:])
