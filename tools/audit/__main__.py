"""Attack the studio, the library and the command; print what held, and exit with 1 if not all did.

``python -m tools.audit`` runs all parts, in about half an hour; ``python -m tools.audit requests``
only one of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from time import perf_counter

from tools.audit._attacks import Attack, failure_list, table

PARTS = ("requests", "uploads", "model_files", "inputs", "commands", "kills", "stores", "load")
SMALL = {
    "requests": 15, "uploads": 4, "model_files": 4, "inputs": 20, "commands": 2, "kills": 1,
    "stores": 1, "load": 2,
}  # fmt: skip
"""For `--small`, the number of attacks of each kind in a part."""


def part(name: str) -> Callable[[int, int | None], Iterator[Attack]]:
    """Return the function that runs a part, from its module."""
    return import_module(f"tools.audit.{name}").run  # type: ignore[no-any-return]


def main(arguments: list[str] | None = None) -> int:
    """Run the parts that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m tools.audit", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"by default {', '.join(PARTS)}")
    parser.add_argument("--seed", type=int, default=0, help="seed of what is chosen at random")
    parser.add_argument(
        "--count", type=int, help="number of attacks of each kind; by default as many as there are"
    )
    parser.add_argument("--small", action="store_true", help="a few attacks of each kind")
    parser.add_argument("--all", action="store_true", help="print every failure")
    options = parser.parse_args(arguments)
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    attacks: list[Attack] = []
    for name in options.parts or PARTS:
        start = perf_counter()
        found = list(part(name)(options.seed, SMALL[name] if options.small else options.count))
        attacks += found
        failed = sum(len(attack.failures) for attack in found)
        seconds = perf_counter() - start
        print(f"{name}: {failed} failed, {seconds:.0f} s", file=sys.stderr, flush=True)
    print(table(attacks))
    if failures := failure_list(attacks, None if options.all else 12):
        print(failures)
    return int(any(attack.failures for attack in attacks))


if __name__ == "__main__":
    sys.exit(main())
