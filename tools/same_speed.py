"""Compare the speed of two checkouts of the package: ``python -m tools.same_speed OTHER``.

The benchmarks of steering and of the foundation run in turns in both checkouts, each in a process
of its own, so that a busy moment hits both. The table has the best time of each row; the script
exits with 1 if a row is slower than 1.1 times the other checkout's.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

TARGET = 1.1
ROWS = """
import json
from benchmarks import foundation, steer
n = 1_000_000
for group in (foundation.votes(n), foundation.crucial_pairs(n), steer.on_spambase()):
    for row in group:
        print(json.dumps([row.what, row.ours]), flush=True)
print(json.dumps(["import margrave", foundation.extra_import_seconds()]))
"""


def measure(checkout: Path) -> dict[str, float]:
    """Return the seconds of each row in a checkout."""
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", ROWS],
        check=True,
        capture_output=True,
        text=True,
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(checkout)])},
    )
    return dict(json.loads(line) for line in done.stdout.splitlines())


def main() -> int:
    """Measure both checkouts in turns and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    checkouts = (chosen.other.resolve(), Path(__file__).resolve().parents[1])
    best: tuple[dict[str, float], ...] = ({}, {})
    for _ in range(chosen.rounds):
        for seconds, checkout in zip(best, checkouts, strict=True):
            for row, measured in measure(checkout).items():
                seconds[row] = min(measured, seconds.get(row, measured))
    slower = 0
    print("| row | other (s) | this (s) | this / other |\n|---|---|---|---|")
    for row, before in best[0].items():
        ratio = best[1][row] / before
        slower += ratio > TARGET
        print(f"| {row} | {before:.4f} | {best[1][row]:.4f} | {ratio:.2f} |")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
