"""Make the pictures of the studio in the guide: ``python -m tools.screenshots``.

It runs the studio on Spambase with a store of its own, holds a short dialog in a Chromium of the
system, and writes docs/images/studio-*.png.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.studio import address, studio, time_request, wait_for_job
from playwright.sync_api import Browser, Page, sync_playwright
from tools.system import chromium

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDE, TALL = {"width": 1440, "height": 900}, {"width": 1280, "height": 1100}


def shot(browser: Browser, url: str, name: str, ready: str, size: dict[str, int] = TALL) -> Page:
    """Open an address, wait until something is there, and keep a picture."""
    page = browser.new_page(viewport=size, reduced_motion="reduce", color_scheme="light")  # type: ignore[arg-type]
    page.goto(url)
    page.wait_for_selector(ready)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"studio-{name}.png")
    return page


def drag(browser: Browser, url: str, true: str, predicted: str) -> None:
    """Keep a picture of the matrix while a cell of it is dragged to fewer rows."""
    page = shot(browser, url, "matrix", "canvas", WIDE)
    cell = page.get_by_role("gridcell", name=f"true {true} predicted {predicted}:")
    box = cell.bounding_box()
    if box is None:
        raise RuntimeError("The cell is not shown.")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 40, steps=4)
    page.wait_for_selector(".chart-over[data-kind=preview]")
    page.screenshot(path=IMAGES / "studio-matrix.png")


def main() -> int:
    """Make all of them."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, studio("spambase", folder) as (client, path, _):
        base = address(client)
        for want, at in (("fp <= 40", 0), ("fp <= 20", 1), ("fn <= 60", 1), ("fp <= 20", 3)):
            time_request(client, path, want, at, None)
        client.post(f"{path}/goto", json={"step": 2})
        table = client.get(path).json()["table"]["id"]
        body = {"table": table, "target": "target", "kind": "program", "levels": 5}
        begun = client.post("/api/dialogs", json=body).json()
        wait_for_job(client, begun["job"])
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            here = f"{base}#/d/{path.rsplit('/', 1)[1]}"
            shot(browser, f"{base}#/new/{table}", "start", ".parts-bar")
            drag(browser, f"{here}/frontier", "nonspam", "spam")
            shot(browser, f"{here}/frontier", "frontier", "canvas")
            program = f"{base}#/d/{begun['dialog']['id']}/program"
            shot(browser, program, "program", "svg [role=button], svg [tabindex]")
            job = client.post(f"{path}/accept", json={"confidence": 0.95}).json()
            wait_for_job(client, job)
            shot(browser, f"{here}/certify", "certify", ".certificate-sheet")
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
