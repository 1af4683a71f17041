"""Write constraints.txt: a version of each requirement for every supported platform and Python.

uv resolves every extra and dependency group for all platforms at once, and gives a marker to what
only some platforms or Pythons need. It keeps the versions that constraints.txt already names where
they still suit the requirements; ``--upgrade`` takes the newest ones.

Then uv resolves the requirements again for each target, with the lock as constraints and from
wheels only, which fails where a locked version has no wheel. ``--check`` does only this.
A lock that fails does not replace constraints.txt.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "constraints.txt"
HEADER = "# Locked versions for `make run` and `make test`. Refresh with `make lock`.\n"
PYTHONS = ("3.11", "3.14")  # the oldest and the newest supported
PLATFORMS = (  # by uv's names
    "x86_64-manylinux_2_28",
    "aarch64-manylinux_2_28",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
MACOS = "14.0"  # the oldest with wheels of onnxruntime


def read_requirements() -> list[str]:
    """Return every requirement the project names, with the tools that install and build it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    # PyTorch has many builds; the one for the tests is named in the Makefile.
    optional = project["project"]["optional-dependencies"]
    extras = [lines for name, lines in optional.items() if name != "gpu"]
    groups = project["dependency-groups"].values()
    named = [line for lines in (*extras, *groups) for line in lines]
    external = [line for line in named if not line.startswith("margrave[")]
    build = [*project["build-system"]["requires"], "editables", "pip>=25.3"]
    return sorted({*project["project"]["dependencies"], *external, *build})


def run_python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run this Python with `arguments` and capture what it prints."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, **options)  # noqa: S603


class Resolver:
    """uv, which pip installs into `folder`; its cache is there too."""

    def __init__(self, folder: Path) -> None:
        done = run_python("-m", "pip", "install", "--quiet", "--target", str(folder), "uv")
        if done.returncode:
            raise ConnectionError(f"pip could not install uv: {done.stderr}")
        # uv does not read pip's settings, so it gets the index that pip uses.
        settings = run_python("-m", "pip", "config", "list", check=True).stdout.splitlines()
        pairs = [line.split("=", 1) for line in settings]
        indexes = [ast.literal_eval(value) for name, value in pairs if name.endswith(".index-url")]
        self.environment = {
            **({"UV_DEFAULT_INDEX": indexes[-1]} if indexes else {}),
            **os.environ,
            "PYTHONPATH": str(folder),
            "UV_CACHE_DIR": str(folder / "cache"),
            "UV_PYTHON_DOWNLOADS": "never",  # uv builds nothing here
            "MACOSX_DEPLOYMENT_TARGET": MACOS,
        }

    def resolve(self, requirements: list[str], *options: str) -> list[str]:
        """Return the ``name==version`` lines that satisfy `requirements`, from wheels only."""
        command = ["-m", "uv", "pip", "compile", "-", "--only-binary", ":all:", *options]
        command += ["--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links"]
        done = run_python(*command, input="\n".join(requirements), env=self.environment)
        if done.returncode:
            unreachable = "Failed to fetch" in done.stderr
            raise (ConnectionError if unreachable else RuntimeError)(done.stderr)
        return [line for line in done.stdout.splitlines() if not line.startswith("#")]

    def check(self, platform: str, python: str, lock: Path = LOCK) -> list[str]:
        """Return what `lock` installs on one target; raise RuntimeError where it cannot."""
        target = ["--python-platform", platform, "--python-version", python]
        chosen = self.resolve(read_requirements(), "--constraints", str(lock), *target)
        locked = {line.split(" ;")[0] for line in lock.read_text(encoding="utf-8").splitlines()}
        if missing := [line for line in chosen if line not in locked]:
            raise RuntimeError(f"not in {lock.name}: {', '.join(missing)}")
        return chosen


def main() -> None:
    """Write the lock and check it for each target."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    parser.add_argument("--check", action="store_true", help="only check the present lock")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        resolver = Resolver(Path(folder))
        lock = Path(shutil.copy(LOCK, folder))
        if not chosen.check:
            # One version for all Pythons where there is one, not the newest for each.
            options = ["--universal", "--python-version", PYTHONS[0], "--fork-strategy", "fewest"]
            options += ["--upgrade"] if chosen.upgrade else []
            # uv prefers the versions in its output file; it prints the lines too, unless quiet.
            lines = resolver.resolve(read_requirements(), *options, "--output-file", str(lock))
            lock.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
            print(f"{LOCK.name}: {len(lines)} versions")
        for platform, python in ((name, python) for name in PLATFORMS for python in PYTHONS):
            print(f"{platform}, Python {python}: ", end="", flush=True)
            print(f"{len(resolver.check(platform, python, lock))} wheels")
        if not chosen.check:  # only a lock that passed
            shutil.copyfile(lock, LOCK)


if __name__ == "__main__":
    try:
        main()
    except (ConnectionError, RuntimeError) as error:
        sys.exit(str(error))
