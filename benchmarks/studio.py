"""The time that the studio adds to the library's, and the time until its page is ready.

The server runs in a process of its own, as for users, with Spambase loaded; the library's dialog on
the same table runs in this one. Both get the same requests in turns. The page opens in the Chromium
of the system, if there is one.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import httpx
import numpy as np
from playwright.sync_api import Page, sync_playwright
from threadpoolctl import threadpool_limits
from tools.system import chromium

from benchmarks._timing import Comparison
from benchmarks.steer import requests
from margrave import datasets
from margrave.steer import Dialog
from margrave.studio.job_table import JobTable
from margrave.studio.store import Ended, Store
from margrave.studio.workspace import Workspace

STEPS = 50
COMMITTEE: list[str] | None = None  # the library's; the default one, as the studio's
INSTANT = 0.1  # seconds; users perceive this as instantaneous
_BACK_OR_FORTH = """async (forth) => {
  const shown = () => document.querySelector('[aria-current="step"]')?.textContent ?? "";
  const before = shown(), start = performance.now();
  const keys = {key: "z", ctrlKey: true, shiftKey: forth, bubbles: true};
  document.body.dispatchEvent(new KeyboardEvent("keydown", keys));
  while (shown() === before && performance.now() - start < 10000)
    await new Promise(requestAnimationFrame);
  return (performance.now() - start) / 1000;
}"""
FRAME = 0.016  # seconds; a handler that takes longer drops frames
POINTS = 5000
# A step of a drag: the handler, the search on the frontier, and the new numbers in the matrix.
_DRAG = """async ([x, y]) => {
  const cell = document.querySelector('[data-cell="0,1"]'), start = performance.now();
  cell.dispatchEvent(new PointerEvent("pointermove", {clientX: x, clientY: y, bubbles: true}));
  await null;
  const seconds = (performance.now() - start) / 1000;
  await new Promise(requestAnimationFrame);
  return [seconds, cell.textContent];
}"""
# When the confusion matrix is drawn for the first time.
_MATRIX = """new MutationObserver((_, watch) => {
  if (!document.querySelector("[role=grid] [role=gridcell]")) return;
  watch.disconnect();
  requestAnimationFrame(() => { window.matrixAt = performance.now() / 1000; });
}).observe(document, {childList: true, subtree: true});"""


@contextmanager
def studio(table: str, folder: str, *more: str) -> Iterator[tuple[httpx.Client, str, float]]:
    """Run a studio: a client, the dialog's path, and seconds until it accepts requests."""
    start = perf_counter()
    command = [sys.executable, "-m", "margrave", "studio", table, *more, "--port", "0"]
    command += ["--no-browser", "--store", f"sqlite:///{folder}/studio.db"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        if process.stdout is None:
            raise RuntimeError("The studio has no output.")
        url = process.stdout.readline().split(": ", 1)[1].strip()
        address, _, place = url.partition("#/d/")
        base, _, token = address.partition("?token=")
        headers = {"X-Margrave": "1", "Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=base, headers=headers, timeout=300) as client:
            path = f"/api/dialogs/{place.split('/')[0]}"
            job = client.get(path).json()["job"]
            if job is not None:
                wait_for_job(client, job)
            yield client, path, perf_counter() - start
    finally:
        process.kill()
        process.communicate()


def wait_for_job(client: httpx.Client, job: dict[str, Any]) -> None:
    """Wait for the end of a job, unless it was done before the server responded."""
    if job["state"] in ("waiting", "running"):
        last = ""
        with client.stream("GET", f"/api/jobs/{job['id']}/events") as events:
            for line in events.iter_lines():
                last = line if line.startswith("data: ") else last
        job = json.loads(last.removeprefix("data: "))
    if job["state"] != "done":
        raise RuntimeError(f"A job ended as {job['state']}: {job['error']}")


def time_request(
    client: httpx.Client, path: str, limit: str, at: int, strategies: list[str] | None
) -> float:
    """Time a request until its reply is saved, in seconds."""
    start = perf_counter()
    body = {"wants": [limit], "keep": False, "at": at, "strategies": strategies}
    wait_for_job(client, client.post(f"{path}/prefer", json=body).json())
    return perf_counter() - start


def on_spambase(n_rows: int | None = None) -> Iterator[Comparison]:
    """Time the first edit, replies against the library's, the store, the page, long histories."""
    bunch = datasets.load("spambase", as_frame=True)
    with TemporaryDirectory() as folder:
        frame, table, more = bunch.frame, "spambase", []
        if n_rows is not None:
            frame = frame.sample(n_rows, random_state=0)
            table, more = str(Path(folder) / "mails.csv"), ["--target", "target"]
            frame.to_csv(table, index=False)
        with studio(table, folder, *more) as (client, path, seconds):
            yield Comparison("command to first edit, Spambase", "30 s", seconds, 30.0, 1.0)
            threadpool_limits(1)  # as in the studio
            X, y = frame.drop(columns="target"), frame["target"]
            dialog = Dialog.from_data(X, y, committee=COMMITTEE, positive="spam", random_state=0)
            yield replies(client, path, dialog, requests(dialog)[:: 1 if n_rows is None else 5])
            yield durable_steps(dialog, 100 if n_rows is None else 8)
            if chromium() is not None:
                yield from page(client, path, STEPS if n_rows is None else 8)


def replies(client: httpx.Client, path: str, dialog: Dialog, limits: list[str]) -> Comparison:
    """Time the same requests to the library and to the studio, in turns."""
    ours, theirs = [], []
    for limit in limits:
        start = perf_counter()
        dialog.goto(0)
        dialog.prefer(limit)
        theirs.append(perf_counter() - start)
        ours.append(time_request(client, path, limit, 0, None))
    what = f"reply through the studio, saved; median of {len(limits)} requests"
    return Comparison(what, "Dialog.prefer", float(np.median(ours)), float(np.median(theirs)), 1.3)


def durable_steps(dialog: Dialog, n_steps: int) -> Comparison:
    """Time until the store has a step on disk: the 95th percentile."""
    seconds = []
    with TemporaryDirectory() as folder, Store(f"sqlite:///{folder}/studio.db") as store:
        store.add_user("local")
        workspace = Workspace(store, live_bytes=1 << 30)
        stored = store.add_dialog("local", "Spambase", None, {"kind": "committee"}).id
        workspace.ready(stored, dialog)
        jobs = JobTable(store, waiting=1)
        with workspace.changing("local", stored) as live:
            for number in range(n_steps):
                dialog.prefer(f"fp <= {number}", keep=False, at=0, strategies=["move"])
                job = jobs.add("local", "prefer", stored, {})
                jobs.claim(training=False)
                start = perf_counter()
                ended = Ended(job.id, jobs.process, 1, {"state": "done"})
                workspace.write(stored, live, ended=ended)
                seconds.append(perf_counter() - start)
    what = f"a step is on disk; 95th percentile of {n_steps}"
    return Comparison(what, "0.05 s", float(np.percentile(seconds, 95)), 0.05, 1.0)


def address(client: httpx.Client) -> str:
    """The address to open in a browser, with the token."""
    token = client.headers["Authorization"].removeprefix("Bearer ")
    return f"{client.base_url}?token={token}"


def page(client: httpx.Client, path: str, steps: int) -> Iterator[Comparison]:
    """Time the first paint and undo with a long history, and measure the size of the page."""
    at = f"{address(client)}#/d/{path.rsplit('/', 1)[1]}/frontier"
    executable = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        opened = browser.new_page()
        sizes: list[int] = []
        opened.on("response", lambda response: sizes.append(_size(response)))
        opened.add_init_script(_MATRIX)
        opened.goto(at)
        opened.wait_for_selector("canvas")
        paint = opened.evaluate(
            "performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
        )
        yield Comparison("first paint after the response of the server", "1 s", paint, 1.0, 1.0)
        matrix = opened.evaluate("window.matrixAt")
        yield Comparison("the matrix is on the screen", "1 s", matrix, 1.0, 1.0)
        yield Comparison("page size, MB", "1.5 MB", sum(sizes) / 1e6, 1.5, 1.0)
        short = back_and_forth(opened)
        have = len(client.get(path).json()["steps"])
        for number in range(max(0, steps - have)):
            time_request(client, path, f"fp <= {number}", have - 1, ["move"])
        opened.reload()
        opened.wait_for_selector("canvas")
        what = f"going back and forth, {steps} steps of history ({short * 1000:.0f} ms with {have})"
        long = back_and_forth(opened)
        yield Comparison(what, "0.1 s, perceived as instantaneous", long, INSTANT, 1.0)
        yield drag(opened, client.get(f"{path}/frontier").json(), 200)
        browser.close()


def drag(opened: Page, frontier: dict[str, Any], n_steps: int) -> Comparison:
    """Time the preview while a cell is dragged, with many points on the frontier."""
    many = np.arange(POINTS)
    dense = {**frontier["curves"][0], "fp": many.tolist(), "fn": many[::-1].tolist()}
    best = [{"name": dense["name"], "fp": int(fp), "fn": int(POINTS - 1 - fp)} for fp in many]
    body = {**frontier, "n_positive": POINTS, "n_negative": POINTS, "curves": [dense], "best": best}
    opened.route("**/api/**/frontier*", lambda route: route.fulfill(json=body))
    opened.reload()
    opened.wait_for_selector("canvas")
    box = opened.locator('[data-cell="0,1"]').bounding_box()
    if box is None:
        raise RuntimeError("The page shows no matrix.")
    x, y = box["x"] + 20, box["y"] + 20
    opened.mouse.move(x, y)
    opened.mouse.down()
    opened.mouse.move(x, y - 20)  # the cell takes the pointer
    far = [10 - abs(step % 20 - 10) for step in range(1, n_steps + 1)]  # up and down again
    seconds, shown = zip(
        *(opened.evaluate(_DRAG, [x, y - 20 - 4 * steps]) for steps in far), strict=True
    )
    if any(now == before for before, now in pairwise(shown)):
        raise RuntimeError("A step of the drag did not change the number in the cell.")
    opened.mouse.up()
    opened.unroute("**/api/**/frontier*")
    what = f"preview of a dragged cell, {POINTS:,} points; 95th percentile of {n_steps} steps"
    return Comparison(what, "16 ms, a frame", float(np.percentile(seconds, 95)), FRAME, 1.0)


def back_and_forth(opened: Page, times: int = 5) -> float:
    """Time from Ctrl-Z or Ctrl-Shift-Z until the page shows the other step: median seconds."""
    keys = [False, True] * times
    return float(np.median([opened.evaluate(_BACK_OR_FORTH, forth) for forth in keys]))


def _size(response: Any) -> int:
    return int(response.headers.get("content-length", 0)) if "/api/" not in response.url else 0
