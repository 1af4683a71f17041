"""The vendored files, and what tests ask of a page, in a real browser under the studio's policy."""

import http.server
import threading
from functools import partial
from pathlib import Path

import pytest
from tests.studio.browser import NARROW, Watch, axe, new_page, overflow, until

VENDOR = Path(__file__).resolve().parents[2] / "src/margrave/studio/static/vendor"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
INDEX = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Parts</title>
<link rel="icon" href="data:,"><script type="module" src="app.js"></script></head>
<body><main><h1>Parts</h1><div id="root"></div><div id="chart"></div></main></body></html>"""
PARTS = """
import {html, render, useEffect, useErrorBoundary, useRef, useState} from "./vendor/preact.js";
globalThis.log = [];
function Item({name}) {
  const [clicks, count] = useState(0);
  useEffect(() => { log.push(`in ${name}`); return () => log.push(`out ${name}`); }, []);
  return html`<button class="item" style="margin: 1px" onClick=${() => count(clicks + 1)}>
    ${name}${clicks}</button>`;
}
function Fails({now}) {
  if (now) throw new Error("broken");
  return "whole";
}
function Guard({children}) {
  const [error] = useErrorBoundary();
  return error ? html`<p id="guard">${error.message}</p>` : children;
}
function App() {
  const [names, set] = useState(["a", "b", "c"]);
  const [failed, fail] = useState(false);
  const root = useRef(null);
  return html`<div ref=${root} style=${{color: "rgb(0, 0, 128)"}}>
    <button id="turn" onClick=${() => set([...names].reverse())}>turn</button>
    <button id="drop" onClick=${() => set(names.slice(1))}>drop</button>
    <button id="fail" onClick=${() => fail(true)}>fail</button>
    ${names.map((name) => html`<${Item} key=${name} name=${name} />`)}
    <${Guard}><${Fails} now=${failed} /><//></div>`;
}
render(html`<${App} />`, document.getElementById("root"));
"""
CHART = """
await import("./vendor/echarts.js");
const element = document.getElementById("chart");
Object.assign(element.style, {width: "400px", height: "300px"});
globalThis.drawn = echarts.init(element, null, {renderer: location.hash.slice(1)});
drawn.on("finished", () => { globalThis.finished = true; });
drawn.setOption({
  animation: !matchMedia("(prefers-reduced-motion: reduce)").matches,
  aria: {enabled: true, label: {description: "A line, points and bars."}},
  legend: {}, dataZoom: [{type: "inside"}, {type: "slider"}], xAxis: {type: "value"}, yAxis: {},
  tooltip: {formatter: (reported) => Object.assign(document.createElement("b"), {
    className: "tip", textContent: `${reported.seriesName} <i>${reported.value}</i>`})},
  series: [
    {type: "line", name: "line", step: "end", data: [[0, 0], [1, 2], [2, 1]],
      markArea: {data: [[{xAxis: 0}, {xAxis: 1}]]}, markLine: {data: [{yAxis: 1}]}},
    {type: "bar", name: "bar", data: [[2, 1]]},
    {type: "scatter", name: "points", symbolSize: 30, data: [[1, 1], [2, 2]]},
  ],
});
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A folder on a local port, sent with the policy, and the vendored files in it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "vendor").symlink_to(VENDOR)
    (folder / "index.html").write_text(INDEX)
    (folder / "app.js").write_text(PARTS)
    (folder / "chart.html").write_text(INDEX.replace("app.js", "chart.js"))
    (folder / "chart.js").write_text(CHART)
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Handler, directory=str(folder))
    )
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


def test_parts_keep_their_state_and_errors_stay_in_their_guard(open_page, site):
    page = open_page(site[1])
    items = page.locator(".item")
    items.nth(1).click()
    page.click("#turn")
    items.nth(0).click()
    assert [text.strip() for text in items.all_inner_texts()] == ["c1", "b1", "a0"]
    page.click("#drop")
    page.click("#fail")
    assert page.inner_text("#guard") == "broken"
    until(page, "log.includes('out c')")
    assert page.evaluate("log") == ["in a", "in b", "in c", "out c"]
    shown = page.evaluate("getComputedStyle(document.querySelector('#root > div')).color")
    assert shown == "rgb(0, 0, 128)"
    assert axe(page) == []


@pytest.mark.parametrize("renderer", ["canvas", "svg"])
def test_charts_draw_and_tell(open_page, site, renderer):
    page = open_page(f"{site[1]}chart.html#{renderer}", reduced_motion=True)
    until(page, "globalThis.finished")
    assert page.locator(f"#chart {renderer}").count() == 1
    assert page.get_attribute("#chart", "aria-label") == "A line, points and bars."
    x, y = page.evaluate("drawn.convertToPixel('grid', [2, 2])")
    page.locator("#chart").hover(position={"x": x - 8, "y": y - 8})  # beside the line, on the point
    assert page.locator(".tip").inner_text() == "points <i>2,2</i>"


def test_a_watch_notes_what_should_not_happen(browser, site):
    page, watch = new_page(browser, allow=("meant",))
    page.goto(site[1])
    page.evaluate("console.log('meant'); console.warn('odd')")
    page.evaluate("setTimeout(() => { throw new Error('late'); }); document.body.style.margin = 0")
    page.evaluate("document.body.innerHTML = '<p style=\"color: red\">x</p>'")
    page.evaluate("fetch('http://elsewhere.invalid/').catch(() => {})")
    page.context.close()
    reported = "\n".join(watch.problems)
    assert "console.warning: odd" in reported
    assert "uncaught: late" in reported
    assert "Content Security Policy" in reported
    assert "elsewhere.invalid" in reported
    assert "meant" not in reported


def test_requests_to_other_machines_are_noted():
    class Context:
        def on(self, *_):
            """Nothing happens here."""

    watch = Watch(Context())
    for url in ("data:,x", "blob:http://127.0.0.1/1", "http://127.0.0.1:1/x", "https://cdn.test/a"):
        watch.request(url)
    assert watch.problems == ["request to another machine: https://cdn.test/a"]


def test_axe_and_overflow_find_what_is_wrong(open_page, site):
    page = open_page(site[1], viewport=NARROW)
    assert overflow(page) == []
    page.evaluate(
        "root.innerHTML = '<input><p class=\"pale\">pale</p>';"
        "Object.assign(document.querySelector('.pale').style,"
        " {color: '#ccc', background: '#fff', width: '500px'})"
    )
    found = axe(page)
    assert [line.split(":")[0] for line in found] == ["serious color-contrast", "critical label"]
    assert [line.split(":")[0] for line in overflow(page)] == ["p.pale"]
    assert axe(page, "h1") == []
