"""Write constraints.txt: the newest versions that suit pyproject.toml, as ``name==version`` lines.

It asks pip to resolve every extra and dependency group, without installing anything, for the first
release of the oldest Python that the project supports: what suits that suits the later ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OLDEST = "3.11.0"
HEADER = "# Locked versions for `make run` and `make test`. Refresh with `make lock`.\n"


def wanted(pyproject: Path) -> list[str]:
    """Every requirement the project names, with the tools that install and build it."""
    project = tomllib.loads(pyproject.read_text())
    # PyTorch has many builds; the one for the tests is named in the Makefile.
    optional = project["project"]["optional-dependencies"]
    extras = [lines for name, lines in optional.items() if name != "gpu"]
    groups = project["dependency-groups"].values()
    named = [line for lines in (*extras, *groups) for line in lines]
    outside = [line for line in named if not line.startswith("margrave[")]
    build = [*project["build-system"]["requires"], "editables", "pip>=25.3"]
    return sorted({*project["project"]["dependencies"], *outside, *build})


def resolve(requirements: list[str]) -> list[str]:
    """Pip's own answer to what would be installed, as sorted ``name==version`` lines."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    command += ["--python-version", OLDEST, "--only-binary", ":all:", "--target", "nowhere"]
    command += ["--report", "-", *requirements]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # noqa: S603
    chosen = {entry["metadata"]["name"].lower(): entry["metadata"] for entry in report["install"]}
    return [f"{name}=={chosen[name]['version']}" for name in sorted(chosen)]


if __name__ == "__main__":
    lines = resolve(wanted(ROOT / "pyproject.toml"))
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(lines) + "\n")
    print(f"constraints.txt: {len(lines)} versions")
