"""Make the pictures of the studio in the guide: ``python -m tools.screenshots``.

It runs the studio on Spambase with a store of its own, holds a short dialog in a Chromium of the
system, and writes docs/images/studio-*.png.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.studio import address, studio, wait_for_job
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright
from tools.system import chromium

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
WIDE = ViewportSize(width=1440, height=900)
TALL = ViewportSize(width=1280, height=1100)
HIGH = ViewportSize(width=1280, height=1400)


def shot(browser: Browser, url: str, name: str, ready: str, size: ViewportSize = TALL) -> Page:
    """Open an address, wait until something is there, and keep a picture."""
    page = browser.new_page(viewport=size, reduced_motion="reduce", color_scheme="light")
    page.goto(url)
    page.wait_for_selector(ready)
    page.wait_for_load_state("networkidle")
    page.screenshot(path=IMAGES / f"studio-{name}.png")
    return page


def edit(page: Page, true: str, predicted: str, limit: str) -> None:
    """Type a limit into a cell of the matrix, and wait until the page has read it."""
    page.get_by_role("gridcell", name=f"true {true} predicted {predicted}:").click()
    page.keyboard.type(limit)
    page.wait_for_selector("#matrix-sentence li")


def press(page: Page, name: str, shown: str) -> None:
    """Press a button, and wait until the page shows what the selector names."""
    page.get_by_role("button", name=name, exact=True).first.click()
    page.wait_for_selector(shown)
    page.wait_for_load_state("networkidle")


def plan(browser: Browser, url: str) -> None:
    """Choose a table for a new dialog, and state a guarantee, for which the split is planned."""
    page = shot(browser, url, "start", ".parts-bar", HIGH)
    page.get_by_label("Planned guarantee").fill("fp <= 2%")
    page.wait_for_selector(".planned-facts")
    page.screenshot(path=IMAGES / "studio-start.png")


def steer(browser: Browser, url: str) -> None:
    """Hold the dialog of the tutorial: a limit, one limit too many, back, and a certificate."""
    page = shot(browser, f"{url}/frontier", "matrix", "canvas", WIDE)
    edit(page, "nonspam", "spam", "2%")
    page.wait_for_selector(".chart-over[data-kind=preview]")
    page.screenshot(path=IMAGES / "studio-matrix.png")
    press(page, "Apply", ".reply-head >> text=met")
    edit(page, "spam", "nonspam", "5%")
    page.set_viewport_size(HIGH)
    press(page, "Apply", ".alternatives")
    page.screenshot(path=IMAGES / "studio-alternatives.png")
    press(page, "Go back", ".trail-line-here [data-step='1']")
    shot(browser, f"{url}/frontier", "frontier", "canvas").close()
    page.goto(f"{url}/certify")
    page.wait_for_selector(".foreseen-matrices")
    page.screenshot(path=IMAGES / "studio-expected.png")
    press(page, "Certify this model", "text=Use it and certify")
    press(page, "Use it and certify", ".certificate-sheet")
    page.screenshot(path=IMAGES / "studio-certify.png")


def main() -> int:
    """Make all of them."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder, studio("spambase", folder) as (client, path, _):
        base = address(client)
        table = client.get(path).json()["table"]["id"]
        body = {"table": table, "target": "target", "kind": "program", "levels": 5}
        begun = client.post("/api/dialogs", json=body).json()
        wait_for_job(client, begun["job"])
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            plan(browser, f"{base}#/new/{table}")
            program = f"{base}#/d/{begun['dialog']['id']}/program"
            shot(browser, program, "program", "svg [role=button], svg [tabindex]")
            steer(browser, f"{base}#/d/{path.rsplit('/', 1)[1]}")
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
