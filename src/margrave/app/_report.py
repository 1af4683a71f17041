"""A request and what came of it, as one HTML page that needs no other file.

Everything that is a user's (labels, names of columns, what was asked) is escaped; there is no
script, and the plot is an image inside the page.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import warnings
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import margrave
from margrave._atomic_write import atomic_write
from margrave.app._job import Outcome
from margrave.app._page_style import STYLE
from margrave.confusion import Confusion
from margrave.steer._frontier import Frontier
from margrave.steer._frontier_display import FrontierDisplay
from margrave.steer._reply import Reply
from margrave.steer._scorer import Scorer, find_regions
from margrave.steer._steered import LIMITS, SteeredClassifier

_CODE = re.compile("`([^`]+)`")


def page(outcome: Outcome, command: str) -> str:
    """The page.

    Parameters
    ----------
    outcome : Outcome
        What is told.
    command : str
        How to get it again.
    """
    name = _text(outcome.samples.table.name)
    curves = _curves(outcome)
    model = outcome.model or outcome.dialog.model
    parts = [
        _promise(outcome),
        _section(
            "Why it can be trusted" if outcome.model else "Who saw which rows", _roles(outcome)
        ),
        _section("The confusion matrix", _matrices(outcome)),
        _section("What it cost", _steps(outcome)),
        _section("What was possible", _plot(outcome, curves)),
        _section("Who decides", _members(outcome, model, curves)),
        _section("Limits", _limits()),
        _section("How to get it again", _again(outcome, command)),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Margrave: {name}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(part for part in parts if part)
        + "\n</main>\n</body>\n</html>\n"
    )


def write_page(text: str, path: str | Path) -> None:
    """Write a page beside its place and rename it: all of it or nothing."""
    with atomic_write(Path(path), ".html") as beside:
        beside.write_text(text, encoding="utf-8")


def _text(words: Any) -> str:
    """Words that cannot be taken for HTML."""
    return escape(str(words))


def _section(head: str, body: str) -> str:
    return f"<section>\n<h2>{head}</h2>\n{body}\n</section>" if body else ""


def _table(heads: list[str], rows: list[list[str]], style: str = "") -> str:
    """A table; the cells are HTML already."""
    top = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return (
        f'<div class="wide"><table class="{style}"><thead><tr>{top}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _promise(outcome: Outcome) -> str:
    """The head of the page: what is promised, in large words."""
    samples, matrix = outcome.samples, outcome.start.after
    positive = "" if matrix.positive is None else f", <b>{_text(matrix.positive)}</b> is positive"
    about = (
        f"{_text(samples.table.name)} &middot; {len(samples.y):,} rows &middot; "
        f"column <b>{_text(samples.target)}</b>{positive}"
    )
    certificate = None if outcome.model is None else outcome.model.certificate_
    if certificate is None:
        large, small, state = "No promise.", "", "refused"
    else:
        told = [_text(guarantee.sentence) for guarantee in certificate.guarantees]
        large = "<br>".join(f"{one[:1].upper()}{one[1:]}." for one in told)
        small = (
            f"With confidence {certificate.confidence:.10g}, for new rows like the "
            f"{certificate.confusion.n:,} it was set on. Issued {certificate.issued}."
        )
        small += "".join(f"<br>Note: {_text(note)}" for note in certificate.remarks)
        state = "kept" if outcome.met else "short"
    verdict = (
        f'<p class="verdict {state}">{_text(outcome.evaluate())}</p>' if state != "kept" else ""
    )
    return (
        f'<header>\n<p class="about">Margrave &middot; {about}</p>\n<h1>{large}</h1>\n'
        f'<p class="small">{small}</p>\n{verdict}</header>'
    )


def _roles(outcome: Outcome) -> str:
    """Who saw which rows: a bar and its legend."""
    parts = outcome.parts
    shares = [
        ("train", "Train only", parts.train - parts.tune),
        ("tune", "Train and tune", parts.tune),
        ("certify", "Certify", parts.certify),
        ("unused", "Not used", parts.unused),
    ]
    bar = "".join(
        f'<div class="{kind}" style="flex:{n}"><span>{word} {n:,}</span></div>'
        for kind, word, n in shares
        if n
    )
    judged = "earlier rows only" if outcome.samples.time is not None else "the other rows"
    untried = "they do not support a promise" if outcome.refusal else "no promise was tried on them"
    seen = "that no step had seen; " + (
        "the decision was set on them, once" if outcome.model else untried
    )
    rows = [
        ["Train", f"{parts.train:,}", "the members learn from them"],
        ["Tune", f"{parts.tune:,}", f"each judged by members that were trained on {judged}"],
        ["Certify", f"{parts.certify:,}", f"rows {seen}"],
        ["Test", "0", "rows you label from now on: <code>margrave check</code> holds the promise "
         "against them"],
    ]  # fmt: skip
    if parts.unused:
        rows.append(["Not used", f"{parts.unused:,}", "more rows of groups that certify"])
    return f'<div class="bar">{bar}</div>\n{_table(["Part", "Rows", ""], rows, "roles")}'


def _matrices(outcome: Outcome) -> str:
    """Before, after and on the certify rows."""
    start, last = outcome.start.after, outcome.dialog.reply.after
    shown = [_matrix("Before, on the tuning rows", start), _matrix("After, on the same rows", last)]
    certificate = None if outcome.model is None else outcome.model.certificate_
    if certificate is not None:
        shares = {
            (cell.true, cell.answer): f"{100 * cell.low:.1f} – {cell.high:.1%}"
            for cell in certificate.cells
        }
        shown.append(_matrix("As promised, on the certify rows", certificate.confusion, shares))
    note = "Below a count its share of the row" + (
        f"; on the certify rows the interval for new rows, each two-sided at confidence "
        f"{outcome.confidence:.10g} (the promise is one-sided, so it can be below an upper end)."
        if certificate
        else "."
    )
    return f'<div class="matrices">{"".join(shown)}</div><p class="note">{note}</p>'


def _matrix(head: str, matrix: Confusion, shares: dict[Any, str] | None = None) -> str:
    answers = [*matrix.classes, None] if matrix.n_rejected else [*matrix.classes]
    heads = "".join(
        f"<th>{'rejected' if answer is None else f'called {_text(answer)}'}</th>"
        for answer in answers
    )
    rows = []
    for true, counts in zip(matrix.classes, matrix.counts, strict=True):
        cells = [f"<th>{_text(true)}</th>"]
        for answer in answers:
            count = matrix[true, answer]
            share = f"{count / counts.sum():.1%}" if counts.sum() else ""
            kind = "right" if answer == true else "wrong"
            if answer is None or not count:
                kind = "none"
            told = share if shares is None else shares[true, answer]
            cells.append(f'<td class="{kind}"><b>{count:,}</b><small>{told}</small></td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<figure><figcaption>{head}</figcaption><div class="wide"><table class="matrix">'
        f"<thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        "</figure>"
    )


def _steps(outcome: Outcome) -> str:
    """Each request, what it changed and how it was met."""
    rows = []
    for step, reply in enumerate(outcome.dialog.history):
        changes = "<br>".join(_text(change) for change in reply.changes) or "nothing"
        start = reply.strategy == "start"
        asked = "start" if start else f"<code>{_text(reply.note or reply.preference)}</code>"
        changed = "" if start else changes
        took = "" if start else f"{reply.seconds:.1f} s"
        errors = f"{_errors(reply.after):,}"
        rows.append(
            [str(step), asked, _standing(reply), _text(reply.strategy), errors, changed, took]
        )
    heads = ["Step", "Asked", "On the tuning rows", "Way", "Errors", "Changed", "Time"]
    model = outcome.model
    if model is not None and model.certificate_ is not None and model.certificate_.changes:
        changes = "<br>".join(_text(change) for change in model.certificate_.changes)
        n = f"{model.certificate_.confusion.n:,} certify rows"
        rows.append(["", "the promise", n, "", "", f"since the start:<br>{changes}", ""])
    return _table(heads, rows, "steps")


def _standing(reply: Reply) -> str:
    if reply.preference is None:
        return ""
    stopped = ", stopped early" if reply.cancelled else ""
    return f"met{stopped}" if reply.met else f"{reply.shortfall:g} short{stopped}"


def _errors(matrix: Confusion) -> int:
    return int(matrix.n - np.trace(matrix.counts) - matrix.n_rejected)


def _curves(outcome: Outcome) -> Frontier | None:
    """What was reachable; nothing without a positive class."""
    return None if outcome.start.after.positive is None else outcome.dialog.frontier()


def _plot(outcome: Outcome, curves: Frontier | None) -> str:
    """The curves with the steps of the dialog."""
    if curves is None:
        return ""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    steps = [(reply.after.fp, reply.after.fn) for reply in outcome.dialog.history]
    drawn = io.BytesIO()
    look: Any = {"svg.fonttype": "none", "svg.hashsalt": "margrave", "font.size": 11}
    with rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser has other fonts
        figure = Figure(figsize=(9.2, 5), layout="constrained")
        FrontierDisplay.from_frontier(curves, figure.subplots(), trajectory=steps)
        figure.savefig(drawn, format="svg", transparent=True, metadata={"Date": None})
    image = base64.b64encode(drawn.getvalue()).decode()
    last = outcome.dialog.reply.after
    said = f"step {len(steps)} has {last.fp:,} false alarms and {last.fn:,} misses"
    return (
        f'<img class="plot" alt="Misses against false alarms; {said}." '
        f'src="data:image/svg+xml;base64,{image}">'
        '<p class="note">Low and to the left is good. The numbers are the steps above, on the '
        "tuning rows. Each curve is what one score can do when its cut is moved.</p>"
    )


def _members(outcome: Outcome, model: SteeredClassifier, curves: Frontier | None) -> str:
    """The members, what they weigh, and how each would do alone."""
    scorer, dialog = model.scorer_, outcome.dialog
    used = dict(zip(scorer.committee.names, scorer.weights.tolist(), strict=True))
    largest = max(used.values()) or 1.0
    last, alone = dialog.reply.after, _alone(curves, dialog.reply.after.fp if curves else 0)
    rows = []
    for name in sorted(dialog.members, key=lambda one: -used.get(one, 0.0)):
        weight = used.get(name, 0.0)
        width = f'<i style="width:{100 * weight / largest:.0f}%"></i>'
        row = [_text(name), f'<span class="weight">{width}</span> {weight:.2f}']
        if alone:
            row.append(f"{alone[name]:,}")
        rows.append(row)
    heads = ["Member", "Weight"]
    note = "One member decides alone."
    if len(used) > 1:
        note = _weighed(scorer)
    if alone:
        heads.append(f"Misses alone, with {last.fp:,} false alarms at most")
        note += f" Together they miss {last.fn:,}" + (
            f", and give no answer to {last.n_rejected:,}." if last.n_rejected else "."
        )
    return _table(heads, rows, "members") + f'<p class="note">{note}</p>'


def _weighed(scorer: Scorer) -> str:
    """What the weights of a committee are."""
    regions = find_regions(scorer.combine)
    if regions is None:
        return (
            "Weights are those by the rank margin; the score is the mean of theirs and of a "
            "logistic regression on all members."
        )
    parted = f"The rows are parted into {regions.leaves.n} regions, and one member answers in each"
    if regions is scorer.combine:
        return f"{parted}. A weight is the share of the tuning rows that a member answers."
    return (
        f"{parted}; the score is the mean of its score and of the committee's. A weight is the "
        "mean of the share of the tuning rows that a member answers and of that by the rank margin."
    )


def _alone(curves: Frontier | None, fp: int) -> dict[str, int]:
    """The fewest misses of each member by itself, with so many false alarms."""
    found = {}
    for curve in () if curves is None else curves.curves:
        kind, _, name = curve.name.partition(" ")
        if kind == "member":
            found[name] = int(curve.fn[np.searchsorted(curve.fp, fp, side="right") - 1])
    return found


def _limits() -> str:
    """What the promise does not say, as a list."""
    items = [_CODE.sub(r"<code>\1</code>", f"<li>{_text(line)}</li>") for line in LIMITS]
    return f"<ul>{''.join(items)}</ul>"


def _again(outcome: Outcome, command: str) -> str:
    """The command, the versions, and what tells the data from others."""
    path = outcome.samples.table.path
    data = f"data set {outcome.samples.table.name} of the package"
    if outcome.samples.table.digest:
        data = (
            f"{outcome.samples.table.name}; kept as Parquet, SHA-256 {outcome.samples.table.digest}"
        )
    elif path is not None:
        with path.open("rb") as file:
            data = f"{path.name}, SHA-256 {hashlib.file_digest(file, 'sha256').hexdigest()}"
    versions = f"Margrave {margrave.__version__}, scikit-learn {sklearn.__version__}"
    encoder = outcome.dialog.model.scorer_.committee.encoder
    columns = [] if encoder is None else encoder.describe().splitlines()
    items = [data, versions, *columns]
    return f"<pre>{_text(command)}</pre>\n<ul>{''.join(f'<li>{_text(i)}</li>' for i in items)}</ul>"
