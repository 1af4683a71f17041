"""Run tests against copies of the package, each in a process of its own.

The parent imports what takes long, but not the package. A child is a fork of it, which imports a
copy of the package and runs the tests until one fails.
"""

from __future__ import annotations

import compileall
import importlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tools.faults._fault import PACKAGE, ROOT, Fault

_SLOW_IMPORTS = (
    "joblib", "numpy", "pandas", "scipy.optimize", "scipy.stats", "sklearn.datasets",
    "sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection", "sklearn.naive_bayes",
)  # fmt: skip
# A run may take so many seconds, and so many times as long as without a fault.
_SECONDS, _TIMES = 60.0, 5.0
# What may notice a fault instead of a test.
TOO_LONG, AT_IMPORT, CRASH = "the time limit", "an import", "a crash of the process"
# The address space of each process, in bytes: a fault may allocate without end.
_MEMORY = 8 << 30


def run_tests(
    faults: Sequence[Fault], seconds: dict[str, float]
) -> Iterator[tuple[Fault, str, float]]:
    """Run the tests of each fault, on all cores; yield what failed, "" if nothing, and the time.

    The time limit of a fault follows from how long each of its tests takes without one.
    """
    for name in _SLOW_IMPORTS:
        importlib.import_module(name)
    (ROOT / "out").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(
        prefix="faults-", dir=ROOT / "out", ignore_cleanup_errors=True
    ) as folder:
        base = Path(folder, "base")
        shutil.copytree(PACKAGE, base, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(base, quiet=2, workers=0)
        waiting = list(enumerate(faults))
        running: dict[int, tuple[Fault, Path, float, float]] = {}
        try:
            while waiting or running:
                while waiting and len(running) < (os.cpu_count() or 1):
                    number, fault = waiting.pop(0)
                    expected = sum(seconds.get(test, 0.0) for test in fault.tests)
                    copy = Path(folder, str(number))
                    child = _start(fault, base, copy)
                    limit = max(_SECONDS, _TIMES * expected)
                    running[child] = fault, copy, time.monotonic(), limit
                time.sleep(0.02)
                for child, (fault, copy, began, limit) in list(running.items()):
                    took = time.monotonic() - began
                    ended = bool(os.waitpid(child, os.WNOHANG)[0])
                    if ended or took > limit:
                        del running[child]
                        _end(child, ended)
                        yield fault, _read_result(copy) if ended else TOO_LONG, took
                        shutil.rmtree(copy, ignore_errors=True)
        finally:
            for child in running:
                _end(child)


def _end(child: int, ended: bool = False) -> None:
    """Kill a child, if it has not ended, and all processes that it has left in its group."""
    if not ended:  # it may have no group of its own yet
        os.kill(child, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    if not ended:
        os.waitpid(child, 0)


def _start(fault: Fault, base: Path, folder: Path) -> int:
    """Plant a fault in a copy of the package, and start a process that tests it."""
    shutil.copytree(base, folder / "margrave", copy_function=os.link)
    changed = folder / "margrave" / fault.file
    changed.unlink()  # or the base would change too
    changed.write_text(fault.text, "utf-8")
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        import resource  # which Windows does not have

        with suppress(ValueError):  # macOS refuses it
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        with (folder / "output.txt").open("w") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = str(folder)
        os.chdir(ROOT)
        watcher = _Watcher(fault.tests)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # modules of the parent
        code = pytest.main([*options, *fault.tests], plugins=[watcher])
        package = getattr(sys.modules.get("margrave"), "__file__", None) or str(folder)
        result = [
            watcher.failed or ("" if code == 0 else f"{CRASH}: pytest, exit code {int(code)}"),
            package,
        ]
        (folder / "result.json").write_text(json.dumps(result))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(0)


def _read_result(folder: Path) -> str:
    """Return the test that failed; raise an error if the tests saw another package."""
    try:
        failed, package = json.loads((folder / "result.json").read_text())
    except FileNotFoundError:
        output = (folder / "output.txt").read_text(errors="replace").splitlines()
        return f"{CRASH}: {' '.join(output[-1:])}"
    if not package.startswith(str(folder)):
        raise RuntimeError(f"The tests imported {package}, not the copy of the package.")
    return str(failed)


class _Watcher:
    """A plugin of pytest that makes runs repeatable and remembers the test that failed."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.files = tests
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        settings.register_profile("faults", settings.get_profile("quick"), derandomize=True)
        settings.load_profile("faults")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Run the files in their order, and what takes long in a file at its end."""
        lines = (ROOT / "tests" / "durations.txt").read_text("utf-8").splitlines()
        long = {line.split(maxsplit=1)[1] for line in lines}
        order = {file: number for number, file in reversed(list(enumerate(self.files)))}
        items.sort(key=lambda item: (order[item.nodeid.partition("::")[0]], item.nodeid in long))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report, f"{AT_IMPORT}: ")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def _note(self, report: Any, how: str = "") -> None:
        if report.failed and not self.failed:
            self.failed = f"{how}{report.nodeid}"
