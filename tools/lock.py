"""Write constraints.txt and locks/: versions and checksums for each supported platform and Python.

uv resolves every extra and dependency group for all platforms at once, and gives a marker to what
only some platforms or Pythons need. It keeps the versions that constraints.txt already names where
they still suit the requirements; ``--upgrade`` takes the newest ones.

Then uv resolves the requirements again for each target, with the lock as constraints and from
wheels only, which fails where a locked version has no wheel. ``--check`` does only this.

A file in locks/ has what one command installs, with the SHA-256 of every file of these versions,
so that pip installs nothing else. A lock that fails replaces nothing.
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
LOCKS = ROOT / "locks"
SETS = {  # the extras and the dependency groups that a command installs
    "run": (["studio"], []),
    "test": (["all"], ["test", "docs"]),
    "full": ([], ["full"]),
}
HEADER = "# Locked versions for `make run` and `make test`. Refresh with `make lock`.\n"
PYTHONS = ("3.11", "3.14")  # the oldest and the newest supported
PLATFORMS = (  # by uv's names
    "x86_64-manylinux_2_28",
    "aarch64-manylinux_2_28",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
)
# One version for all Pythons where there is one, not the newest for each.
UNIVERSAL = ("--universal", "--python-version", PYTHONS[0], "--fork-strategy", "fewest")
MACOS = "14.0"  # the oldest with wheels of onnxruntime


def read_requirements(name: str | None = None) -> list[str]:
    """Return the requirements of a set, or of all, with the tools that install and build it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    optional, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    # PyTorch has many builds; the one for the tests is named in the Makefile.
    extras, chosen = SETS[name] if name else ([one for one in optional if one != "gpu"], groups)
    lines = [line for one in chosen for line in groups[one]]
    if extras:
        build = [*project["build-system"]["requires"], "editables", "pip>=25.3"]
        lines += [*project["project"]["dependencies"], *build]
    waiting = list(extras)
    while waiting:
        for line in optional[waiting.pop()]:
            if line.startswith("margrave["):
                waiting += line.removeprefix("margrave[").removesuffix("]").split(",")
            else:
                lines.append(line)
    return sorted(set(lines))


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

    def add_checksums(self, name: str, lock: Path) -> list[str]:
        """Return the lines of a set, with the versions of `lock` and their files' checksums."""
        options = ["--constraints", str(lock), "--generate-hashes", *UNIVERSAL]
        return self.resolve(read_requirements(name), *options)

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
            options = [*UNIVERSAL, *(["--upgrade"] if chosen.upgrade else [])]
            # uv prefers the versions in its output file; it prints the lines too, unless quiet.
            lines = resolver.resolve(read_requirements(), *options, "--output-file", str(lock))
            lock.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
            print(f"{LOCK.name}: {len(lines)} versions")
        for platform, python in ((name, python) for name in PLATFORMS for python in PYTHONS):
            print(f"{platform}, Python {python}: ", end="", flush=True)
            print(f"{len(resolver.check(platform, python, lock))} wheels")
        if not chosen.check:  # only a lock that passed
            sets = {name: resolver.add_checksums(name, lock) for name in SETS}
            for name, lines in sets.items():
                path = LOCKS / f"{name}.txt"
                path.write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")
            shutil.copyfile(lock, LOCK)


if __name__ == "__main__":
    try:
        main()
    except (ConnectionError, RuntimeError) as error:
        sys.exit(str(error))
