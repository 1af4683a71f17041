"""Plant one fault after another in a copy of the package, and list the tests that notice them.

``python -m tools.faults`` runs all faults, in about half an hour, and writes ``out/faults.md``;
``python -m tools.faults planted`` only those that are planted by hand. The exit code is 1 if a
planted fault or too many mutants survive, if a survivor is not explained in ``survivors.toml``, or
if an explanation there is out of date.
``--seed 2`` draws other mutants, which the tests were not written for, and only lists survivors.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tools.faults._fault import PACKAGE, ROOT, Fault
from tools.faults._mutants import SEED, all_mutants, draw_mutants
from tools.faults._run import AT_IMPORT, CRASH, TOO_LONG, run_tests
from tools.faults.planted import planted_faults

KINDS = ("planted", "mutants")
NEEDED = {"planted": 1.0, "mutants": 0.9}
"""The fraction of the faults of each kind that the tests have to notice."""
EXPLANATIONS = Path(__file__).with_name("survivors.toml")
RESULTS = ROOT / "out" / "faults.json"


def time_tests(faults: Sequence[Fault]) -> dict[str, float]:
    """Run all tests without a fault, and return how long each file takes."""
    tests = dict.fromkeys(test for fault in faults for test in fault.tests)
    unchanged = (PACKAGE / "__init__.py").read_text("utf-8")
    runs = [Fault("no fault", "__init__.py", unchanged, (test,)) for test in tests]
    seconds, failures = {}, []
    with closing(run_tests(runs, dict.fromkeys(tests, 120.0))) as results:
        for run, failed, took in results:
            seconds[run.tests[0]] = took
            failures += [f"{run.tests[0]} fails without a fault: {failed}"] if failed else []
    if failures:
        raise SystemExit("\n".join(failures))
    return seconds


def main(arguments: list[str] | None = None) -> int:
    """Run the faults that the arguments name, and write the results."""
    parser = argparse.ArgumentParser(prog="python -m tools.faults", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"by default {', '.join(KINDS)}")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="only faults with TEXT in their name"
    )
    parser.add_argument(
        "--survivors", action="store_true", help="only faults that survived or have no result yet"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="draws the mutants, by default 0")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.kinds) - set(KINDS)):
        parser.error(f"there is no kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    planted, mutants = planted_faults(), all_mutants()
    faults = {"planted": planted, "mutants": draw_mutants(mutants, options.seed)}
    digests = {fault.name: fault.digest for fault in [*planted, *mutants]}
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    results = {name: one for name, one in results.items() if one[2] == digests.get(name)}
    chosen = [
        fault
        for kind in options.kinds or KINDS
        for fault in faults[kind]
        if options.only in fault.name
        and not (options.survivors and results.get(fault.name, [""])[0])
    ]
    if not chosen and not options.survivors:
        parser.error(f"no planted or drawn fault has {options.only!r} in its name")
    began, seconds = time.monotonic(), time_tests(chosen)
    passed = f"{len(seconds)} files of tests pass without a fault"
    print(f"{passed}, {time.monotonic() - began:.0f} s", flush=True)
    for fault in chosen:
        results.pop(fault.name, None)
    with closing(run_tests(chosen, seconds)) as runs:
        for number, (fault, test, took) in enumerate(runs, 1):
            results[fault.name] = [test, round(took, 1), fault.digest]
            print(f"{number}/{len(chosen)} {fault.name}\n    {test or 'SURVIVES'}", flush=True)
            RESULTS.write_text(json.dumps(results, indent=1), "utf-8")
    # Earlier results of the same faults complete the report. Since then, tests and other files of
    # the package may have changed.
    found = {
        kind: {fault.name: results[fault.name] for fault in some if fault.name in results}
        for kind, some in faults.items()
    }
    drawn = {kind: [fault.name for fault in some] for kind, some in faults.items()}
    explanations, usual = read_explanations(), options.seed == SEED
    text, complaints = write_report(found, explanations, drawn, KINDS if usual else ["planted"])
    name = "faults.md" if usual else f"faults-seed-{options.seed}.md"
    RESULTS.with_name(name).write_text(text, "utf-8")
    print("\n".join([text.splitlines()[0], *complaints]))
    print(f"{len(chosen)} faults in {(time.monotonic() - began) / 60:.0f} minutes")
    return int(bool(complaints))


def read_explanations() -> dict[str, str]:
    """Read why mutants survive."""
    entries = tomllib.loads(EXPLANATIONS.read_text("utf-8")).get("survivor", [])
    return {entry["mutant"]: entry["why"] for entry in entries}


def write_report(
    found: Mapping[str, Mapping[str, Sequence[Any]]],
    explanations: Mapping[str, str],
    drawn: Mapping[str, Collection[str]],
    judged: Collection[str] = KINDS,
) -> tuple[str, list[str]]:
    """Write what noticed each fault and its seconds, and list what is wrong in the judged kinds.

    How many survive is judged only if there is a result of each fault that is drawn.
    """
    counts, lines, complaints = [], [], []
    for kind, results in found.items():
        survivors = [name for name, (test, *_) in results.items() if not test]
        ways = Counter(test.partition(":")[0] for test, *_ in results.values())
        others = [f", {ways[way]} by {way}" for way in (AT_IMPORT, CRASH, TOO_LONG) if ways[way]]
        counts.append(
            f"{kind}: {len(results) - len(survivors)} of {len(results)} noticed{''.join(others)}"
        )
        if kind in judged:
            allowed = (1 - NEEDED[kind]) * len(results) + 1e-9
            if len(results) == len(drawn[kind]) and len(survivors) > allowed:
                complaints.append(f"{kind}: too many survive")
            complaints += [f"survives: {name}" for name in survivors if name not in explanations]
        lines += ["", f"## {kind}", "", "| fault | noticed by | seconds |", "|---|---|---|"]
        lines += [
            f"| {_cell(name)} | {test} | {took} |"
            for name, (test, took, *_) in results.items()
            if test
        ]
        lines += ["", "Survivors:", ""] if survivors else []
        lines += [f"- `{name}`: {explanations.get(name, 'not explained')}" for name in survivors]
    noticed = {name for results in found.values() for name, (test, *_) in results.items() if test}
    if "mutants" in judged:
        complaints += [
            f"explained, but noticed: {name}" for name in explanations if name in noticed
        ]
        gone = [name for name in explanations if name not in drawn["mutants"]]
        complaints += [f"explained, but not drawn: {name}" for name in gone]
    return "\n".join(["; ".join(counts), *lines, ""]), complaints


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the children too
    sys.exit(main())
