"""The style sheet of the HTML report, for print, light and dark screens."""

STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6878; --page: #f4f5f7; --card: #fff;
  --line: #dfe3e9; --good: #0f7b5a; --bad: #b8430b; --good-tint: #e5f4ee; --bad-tint: #fdeee4;
  --none-tint: #eef0f3; --train: #8794a8; --tune: #3d6fb4; --certify: #0f7b5a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ee; --soft: #9ba6b5; --page: #12161c; --card: #1b2129; --line: #323a46;
    --good: #4cc79b; --bad: #f0945e; --good-tint: #17332a; --bad-tint: #3b261a;
    --none-tint: #262d37; --train: #6b788c; --tune: #4a7fc8; --certify: #1d8f6b; }
  .plot { filter: invert(1) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
header { padding: 1.5rem 0 1rem; }
h1 { font-size: clamp(1.6rem, 4.4vw, 2.7rem); line-height: 1.15; margin: .4rem 0 .8rem;
  letter-spacing: -.015em; text-wrap: balance; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 0 0 .9rem; }
.about, .small, .note { color: var(--soft); margin: 0; }
.note { font-size: .88rem; margin-top: .8rem; }
.verdict { border-left: 4px solid var(--bad); background: var(--bad-tint); padding: .7rem 1rem;
  margin: 1.2rem 0 0; border-radius: 0 6px 6px 0; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px;
  padding: 1.3rem 1.4rem; margin-top: 1.1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
th { text-align: left; font-weight: 600; font-size: .85rem; color: var(--soft); }
th, td { padding: .45rem .7rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child > * { border-bottom: 0; }
th:first-child, td:first-child { padding-left: 0; }
.roles td:nth-child(2), .members td:nth-child(3), .steps td:nth-child(5) { text-align: right; }
.roles th:nth-child(2), .members th:nth-child(3), .steps th:nth-child(5) { text-align: right; }
.roles td:first-child { font-weight: 600; }
.roles td:nth-child(2) { width: 6rem; }
.steps td:last-child { white-space: nowrap; }
.bar { display: flex; gap: 3px; height: 46px; margin-bottom: .9rem; border-radius: 6px;
  overflow: hidden; }
.bar div { display: flex; align-items: center; min-width: 4px; overflow: hidden; color: #fff; }
.bar span { padding: 0 .8rem; white-space: nowrap; font-size: .9rem; font-weight: 600; }
.train, .unused { background: var(--train); } .tune { background: var(--tune); }
.certify { background: var(--certify); }
.matrices { display: grid; gap: 1.2rem;
  grid-template-columns: repeat(auto-fit, minmax(280px, 1fr)); }
figure { margin: 0; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: .5rem; font-size: .95rem; }
.matrix { border-collapse: separate; border-spacing: 3px; }
.matrix th, .matrix td { border: 0; padding: .45rem .5rem; }
.matrix td { border-radius: 6px; text-align: right; }
.matrix thead th { text-align: right; vertical-align: bottom; }
.matrix tbody th { vertical-align: middle; padding-left: 0; }
.matrix b { display: block; font-size: 1.2rem; line-height: 1.2; }
.matrix small { color: var(--soft); white-space: nowrap; letter-spacing: -.01em; }
.right { background: var(--good-tint); } .right b { color: var(--good); }
.wrong { background: var(--bad-tint); } .wrong b { color: var(--bad); }
.none { background: var(--none-tint); }
.plot { display: block; width: 100%; height: auto; }
.weight { display: inline-block; width: 9rem; height: .6rem; background: var(--none-tint);
  border-radius: 3px; margin-right: .6rem; overflow: hidden; }
.weight i { display: block; height: 100%; background: var(--tune); }
ul { margin: .3rem 0 0; padding-left: 1.2rem; overflow-wrap: anywhere; } li { margin: .25rem 0; }
code, pre { font: .9em/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
pre { background: var(--none-tint); padding: .8rem 1rem; border-radius: 6px; margin: 0 0 .8rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
@media print { body { background: none; } section { break-inside: avoid; } }
"""
