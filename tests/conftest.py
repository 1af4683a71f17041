"""The quick run (`pytest`, `make test`) and the full run (`pytest --full`, `make test-full`)."""

import sys

import pytest
from hypothesis import settings
from tests.needs import MISSING

# On import, skops lists scikit-learn's estimators and so imports every array library that
# scikit-learn wraps: seconds of PyTorch in every process. No test needs the wrappers.
for _package in ("cupy", "dask", "torch"):
    sys.modules.setdefault(f"sklearn.externals.array_api_compat.{_package}", None)

# No deadline: a first call may import scipy's solvers, and a busy machine is slow.
settings.register_profile("quick", deadline=None, max_examples=25)
settings.register_profile("full", deadline=None, max_examples=200)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="run everything, also what takes long")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("full" if config.getoption("--full") else "quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests marked `full` to the full run."""
    if not config.getoption("--full"):
        left_out = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


@pytest.fixture(scope="session")
def full(request: pytest.FixtureRequest) -> bool:
    """Tell whether this is the full run, for tests that do more in it."""
    return bool(request.config.getoption("--full"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line what could not be tested here."""
    reasons = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    missing = {reason.partition(MISSING)[2].strip("')") for reason in reasons if MISSING in reason}
    if missing:
        terminalreporter.write_line(f"Not tested, {MISSING}{', '.join(sorted(missing))}.")
