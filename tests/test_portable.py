"""The same results on other processors, which environment variables imitate in subprocesses.

OpenBLAS and numpy choose their kernels by the processor they find; `OPENBLAS_CORETYPE` and
`NPY_DISABLE_CPU_FEATURES` let them choose those of an older one, which add in another order.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

ROOT = Path(__file__).resolve().parents[1]
FOUND = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
# OpenBLAS's name of each kernel, and what numpy may use of the processor's features beside it.
KERNELS = {
    "x86_64": {"Nehalem": (), "Haswell": ("X86_V3",), "SkylakeX": ("X86_V3", "X86_V4")},
    "aarch64": {"ARMV8": (), "NEOVERSEN1": ("ASIMDHP",)},
}.get(platform.machine() if sys.platform == "linux" else "", {})
USABLE = {kernel: features for kernel, features in KERNELS.items() if set(features) <= set(FOUND)}
# With the kernel and the features of this process, the full run itself is the test.
LOADED = [one for one in threadpool_info() if one["internal_api"] == "openblas"]
OWN = ({one["architecture"].lower() for one in LOADED}, {*FOUND})
OTHERS = [kernel for kernel, features in USABLE.items() if ({kernel.lower()}, {*features}) != OWN]


def run_with(kernel, *arguments):
    """Run Python as on another processor."""
    disabled = " ".join(sorted({*FOUND} - {*USABLE[kernel]}))
    inherited = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    return subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env={
            **inherited, "OPENBLAS_CORETYPE": kernel, "NPY_DISABLE_CPU_FEATURES": disabled,
            "OMP_NUM_THREADS": "1",
        },
    )  # fmt: skip


def check(kernel, *arguments):
    done = run_with(kernel, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


@pytest.mark.parametrize("kernel", USABLE)
def test_the_kernels_are_those_of_the_other_processor(kernel):
    done = run_with(
        kernel,
        "-c",
        "import numpy, threadpoolctl;"
        "print(*(found['architecture'] for found in threadpoolctl.threadpool_info()"
        " if found['internal_api'] == 'openblas'));"
        "print(*numpy.show_config(mode='dicts')['SIMD Extensions'].get('found', []))",
    )
    assert done.returncode == 0, done.stderr
    architectures, features = done.stdout.splitlines()
    assert set(architectures.lower().split()) == {kernel.lower()}
    assert set(features.split()) == set(USABLE[kernel])


@pytest.mark.core
@pytest.mark.slow
@pytest.mark.parametrize("kernel", list(USABLE)[:1])
def test_scores_do_not_depend_on_other_rows(kernel):
    """The short form: what once depended on the kernels, with the oldest of them."""
    check(kernel, "tests/test_estimators.py", "-k", "MAM and invariance")


@pytest.mark.full
@pytest.mark.parametrize("kernel", OTHERS)
@pytest.mark.parametrize("file", ["test_estimators", "test_docs", "test_docstrings"])
def test_estimator_checks_and_documented_examples(kernel, file):
    check(kernel, f"tests/{file}.py", "--full", "--no-shell")
