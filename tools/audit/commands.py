"""Hostile command lines: each ends in time with one of its exit codes, and without a traceback."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from tools.audit._attacks import Attack
from tools.audit.model_files import altered_arrays, model_bytes
from tools.audit.uploads import parquet_files, text_files

SECONDS = 90.0
CODES = (0, 2, 3, 4)  # done, bad input, not met, an alarm
ALTERED = 6  # every so many of the altered model files
FILES = 12  # of each kind, the first ones

OPTIONS = (
    *("--confidence", "--certify", "--seed", "--jobs", "--target", "--positive", "--limit"),
    *("--encoding", "--decimal", "--group", "--time", "--drop"),
)
STUDIO = ("studio", "--no-browser", "--port", "0", "--store", "sqlite:///studio.db")
STEER = ("--out", "model", "--limit", "fp <= 30%", "--strategies", "move", "--quiet")


def lines(folder: Path) -> list[tuple[str, ...]]:
    """Write the files, and return the arguments of the commands."""
    (folder / "good.skops").write_bytes(model_bytes())
    (folder / "new.csv").write_text("0,1,2,3,4,target\n" + "1,2,3,4,5,1\n" * 9)
    altered = [make for _, make in altered_arrays(random.Random(0))]  # noqa: S311
    for number, make in enumerate(altered[::ALTERED]):
        (folder / f"altered_{number}.skops").write_bytes(make())
    (folder / "folder").mkdir()
    names = ["missing.csv", "folder", "/dev/null", "nonsense", "", "good.skops"]
    for kind in (text_files, parquet_files):
        for name, content in islice(kind(random.Random(0)), FILES):  # noqa: S311
            (folder / name).write_bytes(content)
            names.append(name)
    found: list[tuple[str, ...]] = [("steer", name, "--target", "target", *STEER) for name in names]
    found += [(command, name) for command in ("card", "predict", "check") for name in names[:8]]
    models = sorted(path.name for path in folder.glob("*.skops"))
    found += [("predict", model, "new.csv", "--out", "out.csv") for model in models]
    bad = ("", "x", "-1", "0", "nan", "inf", "1e400", "9" * 5000, "\ud83d", "--", "a\nb")
    for option in OPTIONS:
        found += [("steer", "pima", *STEER, option, value) for value in bad[::3]]
    found += [("steer", "pima", *STEER[2:], "--out", out) for out in ("folder", "/nowhere/x", "")]
    found += [("data", name) for name in bad]
    found += [("studio", "--port", port) for port in ("-1", "99999", "x")]
    found += [("studio", "--host", "not a host"), ("studio", "--store", "nonsense://")]
    found += [("nonsense",), ()]
    return found


def run(seed: int, count: int | None) -> Iterator[Attack]:
    """Run the commands, or every n-th so that there are about `count`."""
    del seed
    attack = Attack("hostile command lines", f"an exit code and no traceback, in {SECONDS:g} s")
    with TemporaryDirectory(prefix="margrave-audit-") as name:
        folder = Path(name)
        every = lines(folder)
        stride = 1 if count is None else max(1, len(every) // count)
        for arguments in every[::stride]:
            problem = judge(arguments, folder)
            shown = " ".join(["margrave", *arguments])
            attack.check(problem is None, f"{shown[:120]!r}: {problem}")
        problem = judge(STUDIO, folder, {"MARGRAVE_TOKEN": "short"})
        attack.check(problem is None, f"a studio with a short token: {problem}")
    yield attack


def judge(
    arguments: tuple[str, ...], folder: Path, more: dict[str, str] | None = None
) -> str | None:
    """Run a command, with more in its environment; return None if it holds, or what happened."""
    coded = [argument.encode("utf-8", "surrogatepass") for argument in arguments]
    try:
        done = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "margrave", *coded],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(more or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no end within {SECONDS:g} s"
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    if "Traceback" in said:
        return said.strip().splitlines()[-1][:200]
    return None if done.returncode in CODES else f"exit code {done.returncode}"
