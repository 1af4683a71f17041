"""The quick run (`pytest`, `make test`) and the full run (`pytest --full`, `make test-full`).

The quick run leaves out tests that are marked `full`, and tests that took long when
`make durations` last wrote durations.txt, unless they are marked `core`.
"""

import gc
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.needs import MISSING

DURATIONS = Path(__file__).with_name("durations.txt")
LONG = 0.15
"""Seconds; a test that takes longer is left to the full run."""

# On import, skops lists scikit-learn's estimators and so imports every array library that
# scikit-learn wraps: seconds of PyTorch in every process. No test needs the wrappers.
for _package in ("cupy", "dask", "torch"):
    sys.modules.setdefault(f"sklearn.externals.array_api_compat.{_package}", None)

# No deadline: a first call may import scipy's solvers, and a busy machine is slow.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("full", deadline=None, max_examples=200)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run everything, also what takes long")
    parser.addoption("--no-shell", action="store_true", help="run no documented shell blocks")
    parser.addoption(
        "--record-durations", action="store_true", help=f"write {DURATIONS.name} after the run"
    )


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("full" if config.getoption("--full") else "quick")
    if config.getoption("--record-durations") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave PyTorch, which takes seconds to import, to the full run."""
    skipped = collection_path.name.startswith("test_torch") and not config.getoption("--full")
    return True if skipped else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Do not look for garbage among the modules and the tests: they stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Let every second process collect the files from the last one on.

    In a fresh clone each process then compiles half of them, and finds the others compiled.
    """
    report = yield
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    if isinstance(collector, pytest.Directory) and int(worker.removeprefix("gw")) % 2:
        report.result.reverse()
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to the full run what takes long, and begin with the files that take longest.

    Each file is for one process, which then makes its fixtures once.
    """
    lines = [line.split(maxsplit=1) for line in DURATIONS.read_text("utf-8").splitlines()]
    took = {test: float(seconds) for seconds, test in lines}
    if not config.getoption("--full"):
        kept, left_out = [], []
        for item in items:
            marked = item.get_closest_marker("full") is not None
            slow = item.nodeid in took and item.get_closest_marker("core") is None
            (left_out if marked or slow else kept).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept
    seconds: Counter[Path] = Counter()
    for item in items:
        seconds[item.path] += took.get(item.nodeid, LONG / 5)
    items.sort(key=lambda item: (-seconds[item.path], item.path))


class Recorder:
    """Write how long each long test takes, without its fixtures."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        lines = [f"{took:.2f} {test}\n" for test, took in self.seconds.items() if took > LONG]
        lines.sort(key=lambda line: line.split(maxsplit=1)[1])
        DURATIONS.write_text("".join(lines), "utf-8")


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Tell whether this is the full run, for tests that do more in it."""
    return bool(request.config.getoption("--full"))


@pytest.fixture(autouse=True)
def no_figure_left() -> Iterator[None]:
    """Close the figures of a test: many open ones are a warning, in whichever test comes next."""
    yield
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Say in the last line what could not be tested here."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    reasons = [report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)]
    missing = {reason.partition(MISSING)[2] for reason in reasons if MISSING in reason}
    if missing:
        reporter.write_line(f"Not tested, {MISSING}{', '.join(sorted(missing))}.")
    return result
