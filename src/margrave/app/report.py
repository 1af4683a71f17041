"""The HTML report of a session: one page that needs no other file.

All text from the user (labels, column names, preferences) is escaped. The page has no scripts, and
the plot is an embedded image.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
import warnings
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import margrave
from margrave._atomic_write import atomic_write
from margrave._messages import format_count, name_class
from margrave.app.request import UNUSED, Outcome, name_cell
from margrave.confusion import Confusion
from margrave.steer import LIMITS, Frontier, FrontierDisplay, Reply, SteeredClassifier

_CODE = re.compile("`([^`]+)`")
_WEIGHTS = (
    "A logistic regression on the members' log-odds gives these weights. A member with a negative "
    "weight corrects the others."
)


def page(outcome: Outcome, command: str) -> str:
    """Return the report as HTML.

    Parameters
    ----------
    outcome : Outcome
        The outcome to report.
    command : str
        The command or the script that reproduces it.
    """
    name = _text(outcome.samples.table.name)
    style = files("margrave.app").joinpath("report.css").read_text(encoding="utf-8")
    curves = _curves(outcome)
    model = outcome.model or outcome.dialog.model
    sections = [
        _header(outcome),
        _section("Confusion matrices", _matrices(outcome)),
        _section("Expected before certifying", _expected(outcome)),
        _section("Frontier", _plot(outcome, curves)),
        _section("Steps", _steps(outcome)),
        _section("Certificates", _certificates(outcome)),
        _section("How the rows were used", _roles(outcome)),
        _section("Members", _members(outcome, model, curves)),
        _section("Limitations", _limitations()),
        _section("How to reproduce this report", _reproduction(outcome, command)),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Margrave: {name}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(section for section in sections if section)
        + "\n</main>\n</body>\n</html>\n"
    )


def write_page(text: str, path: str | Path) -> None:
    """Write a report to a file, completely or not at all."""
    with atomic_write(Path(path), ".html") as temporary:
        temporary.write_text(text, encoding="utf-8")


def _text(value: Any) -> str:
    """Return the text of a value, escaped for HTML."""
    return escape(str(value))


def _section(heading: str, body: str) -> str:
    return f"<section>\n<h2>{heading}</h2>\n{body}\n</section>" if body else ""


def _table(heads: list[str], rows: list[list[str]], style: str = "") -> str:
    """Return a table; the cells are HTML."""
    top = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return (
        f'<div class="wide" tabindex="0"><table class="{style}"><thead><tr>{top}</tr></thead>'
        f"<tbody>\n{body}</tbody></table></div>"
    )


def _header(outcome: Outcome) -> str:
    """Return the header of the page, with the guarantee as its title."""
    samples, matrix = outcome.samples, outcome.start.after
    positive = ""
    if matrix.positive is not None:
        positive = f", <b>{_text(name_class(matrix.positive))}</b> is positive"
    about = (
        f"{_text(samples.table.name)} &middot; {len(samples.y):,} rows &middot; "
        f"column <b>{_text(samples.target)}</b>{positive}"
    )
    certificate, lines = outcome.certificate, list(outcome.verdict)
    state = "useless" if outcome.useless else "met" if outcome.met else "short"
    if certificate is None:
        title, details, state = "No guarantee.", "", "refused"
    else:
        del lines[: 0 if outcome.useless else 1]  # the title has the guarantees
        sentences = [_text(guarantee.sentence) for guarantee in certificate.guarantees]
        title = "<br>".join(f"{text[:1].upper()}{text[1:]}." for text in sentences)
        if outcome.useless:
            title = "Certified, but useless."
        details = (
            f"{certificate.meaning}: {'; '.join(sentences)}. The certification set has "
            f"{format_count(certificate.confusion.n, 'row')}. Goal within these "
            f"limits: {_text(certificate.goal)}. Issued {certificate.issued}."
        )
        details += "".join(f"<br>Note: {_text(note)}" for note in certificate.remarks)
    verdict = "<br>".join(map(_text, lines))
    return (
        f'<header>\n<p class="about">Margrave &middot; {about}</p>\n<h1>{title}</h1>\n'
        f'<p class="verdict {state}">{verdict}</p>\n<p class="small">{details}</p>\n</header>'
    )


def _roles(outcome: Outcome) -> str:
    """Return a bar with the number of rows in each role, and a table that explains the roles."""
    parts = outcome.sizes
    others = "earlier rows only" if outcome.samples.time is not None else "the other rows"
    learner, scored = "members are", f"members trained on {others} score each of these rows"
    train, tune, n_train = "Train only", "Train and tune", parts.train - parts.tune
    if outcome.tunes_apart:
        learner, scored = "program is", "the program is not trained on these rows"
        train, tune, n_train = "Train", "Tune", parts.train
    sizes = [
        ("train", train, n_train),
        ("tune", tune, parts.tune),
        ("certify", "Certify", parts.certify),
        ("unused", "Not used", parts.unused),
    ]
    bar = "".join(
        f'<div class="{kind}" style="flex:{n}"><span>{label} {n:,}</span></div>'
        for kind, label, n in sizes
        if n
    )
    if outcome.model:
        certified = "the decision and its guarantee were computed on them, once"
    elif outcome.refusal is not None:
        certified = "they do not support the guarantee"
    else:
        certified = "no guarantee was computed on them at this step"
    rows = [
        ["Train", f"{parts.train:,}", f"the {learner} trained on these rows"],
        ["Tune", f"{parts.tune:,}", f"the tuning set: {scored}"],
        ["Certify", f"{parts.certify:,}",
         f"the certification set, which training and steering did not use: {certified}"],
        ["Test", "0", "rows that you label from now on: <code>margrave check</code> checks the "
         "guarantee on them"],
    ]  # fmt: skip
    if parts.unused:
        rows.append(["Not used", f"{parts.unused:,}", UNUSED])
    plan = "" if parts.plan is None else f"\n<pre>{_text(parts.plan)}</pre>"
    return f'<div class="bar">{bar}</div>\n{_table(["Role", "Rows", ""], rows, "roles")}{plan}'


def _matrices(outcome: Outcome) -> str:
    """Return the matrices of the first and current step, and of the certification set."""
    start, current = outcome.start.after, outcome.dialog.reply.after
    matrices = [
        _matrix("Start, on the tuning set", start),
        _matrix("Current step, on the tuning set", current, since=start),
    ]
    certificate = None if outcome.model is None else outcome.model.certificate_
    if certificate is not None:
        intervals = {
            (cell.true, cell.predicted): f"{100 * cell.low:.1f} – {cell.high:.1%}"
            for cell in certificate.cells
        }
        matrices.append(
            _matrix("Measured on the certification set", certificate.confusion, intervals)
        )
    note = (
        "Below each count is its fraction of the true class, and in the current step its change "
        "since the start"
    )
    note += (
        f"; for the certification set, it is the two-sided interval of that fraction on new rows, "
        f"each at confidence {outcome.confidence:.10g}. The guarantee is one-sided, so its limit "
        "can be below the upper end of an interval."
        if certificate
        else "."
    )
    return f'<div class="matrices">{"".join(matrices)}</div><p class="note">{note}</p>'


def _matrix(
    caption: str,
    matrix: Confusion,
    intervals: dict[Any, str] | None = None,
    since: Confusion | None = None,
) -> str:
    predictions = [*matrix.classes, None] if matrix.n_rejected else [*matrix.classes]
    heads = "".join(
        f"<th>{'rejected' if label is None else f'predicted {_text(label)}'}</th>"
        for label in predictions
    )
    rows = []
    for true, counts in zip(matrix.classes, matrix.counts, strict=True):
        cells = [f"<th>{_text(true)}</th>"]
        for label in predictions:
            count = matrix[true, label]
            fraction = f"{count / counts.sum():.1%}" if counts.sum() else ""
            kind = "right" if label == true else "wrong"
            if label is None or not count:
                kind = "none"
            below = fraction if intervals is None else intervals[true, label]
            if since is not None and count != since[true, label]:
                below += f", {count - since[true, label]:+,}".replace("-", "−")
            cells.append(f'<td class="{kind}"><b>{count:,}</b><small>{below}</small></td>')
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f"<figure><figcaption>{caption}</figcaption>"
        '<div class="wide" tabindex="0"><table class="matrix">'
        f"<thead><tr><th></th>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
        "</figure>"
    )


def _steps(outcome: Outcome) -> str:
    """Return a table of the steps: the request, the strategy and the changes."""
    rows = []
    dialog = outcome.dialog
    for step, reply in enumerate(dialog.history):
        changes = "<br>".join(_text(change) for change in reply.changes) or "nothing"
        start = reply.strategy == "start"
        limits = reply.preference and reply.preference.limits
        requested = "start" if start else f"<code>{_text(reply.note or limits)}</code>"
        requested += f", then {_text(reply.goal)}" if limits and not reply.note else ""
        parent = dialog.parents[step]
        place = [f"from step {parent}"] if step > 0 and parent != step - 1 else []
        place += ["<b>current</b>"] if step == dialog.position else []
        numbers = [f"{_count_errors(reply.after):,}", f"{reply.after.n_rejected:,}"]
        where = "<br>".join([requested, *place])
        row = [str(step), where, _describe_reply(reply), _text(reply.strategy), *numbers]
        rows.append([*row, *(["", ""] if start else [changes, f"{reply.seconds:.1f} s"])])
    heads = ["Step", "Requested", "On the tuning set", "Strategy", "Errors", "Rejected"]
    heads += ["Changes", "Time"]
    model = outcome.model
    if model is not None and model.certificate_ is not None and model.certificate_.changes:
        changes = "<br>".join(_text(change) for change in model.certificate_.changes)
        n = f"{format_count(model.certificate_.confusion.n, 'row')} of the certification set"
        rows.append(["", "Guarantee", n, "", "", "", f"since the start:<br>{changes}", ""])
    return _table(heads, rows, "steps")


def _expected(outcome: Outcome) -> str:
    """Return a table of the rates on the tuning set, as expected, and on the certification set."""
    expected = outcome.expected
    if expected is None:
        return ""
    heads = ["Of the true class", "Tuning set", "Expected", "90% range"]
    certificate = None if outcome.model is None else outcome.model.certificate_
    heads += [] if certificate is None else ["Certification set"]
    rows = []
    for cell in expected.cells:
        measured: list[str] = []
        if certificate is not None:
            matrix = certificate.confusion
            n = sum(matrix[cell.true, label] for label in (*matrix.classes, None))
            measured = [f"{matrix[cell.true, cell.predicted] / n:.1%}" if n else ""]
        rates = [f"{cell.tuning:.1%}", "", ""]
        if cell.rate is not None and cell.low is not None:
            rates = [rates[0], f"{cell.rate:.1%}", f"{100 * cell.low:.1f} – {cell.high:.1%}"]
        if {*rates, *measured} - {"0.0%", "0.0 – 0.0%", ""}:
            rows.append([_text(name_cell(cell)), *rates, *measured])
    return (
        f"<p>{_text(outcome.describe_expected())}</p>\n{_table(heads, rows, 'members')}"
        '<p class="note">Certification sets drawn from the tuning set were certified. Certifying '
        "needs a margin, so the certified decision is stricter than that of the tuning set.</p>"
    )


def _certificates(outcome: Outcome) -> str:
    """Return the text of each certificate of the dialog, also of those at other steps."""
    return "\n".join(
        f"<h3>Certificate {number}, step {accepted.step}, issued {accepted.certificate.issued}</h3>"
        f"\n<pre>{_text(accepted.certificate)}</pre>"
        for number, accepted in enumerate(outcome.dialog.accepted, 1)
    )


def _describe_reply(reply: Reply) -> str:
    if reply.preference is None:
        return ""
    stopped = ", stopped early" if reply.cancelled else ""
    return f"met{stopped}" if reply.met else f"{format_count(reply.shortfall)} short{stopped}"


def _count_errors(matrix: Confusion) -> int:
    return int(matrix.n - np.trace(matrix.counts) - matrix.n_rejected)


def _curves(outcome: Outcome) -> Frontier | None:
    """Return the frontier; None without a positive class."""
    return None if outcome.start.after.positive is None else outcome.dialog.frontier()


def _plot(outcome: Outcome, curves: Frontier | None) -> str:
    """Return the plot of the frontier with the steps of the dialog."""
    if curves is None:
        return ""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    steps = [(reply.after.fp, reply.after.fn) for reply in outcome.dialog.history]
    buffer = io.BytesIO()
    look: Any = {"svg.fonttype": "none", "svg.hashsalt": "margrave", "font.size": 11}
    with rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # the browser uses its own fonts
        figure = Figure(figsize=(9.2, 5), layout="constrained")
        FrontierDisplay.from_frontier(
            curves, figure.subplots(), trajectory=steps, parents=outcome.dialog.parents
        )
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    image = base64.b64encode(buffer.getvalue()).decode()
    current = outcome.dialog.reply.after
    errors = [(current.fp, "false positive"), (current.fn, "false negative")]
    end = f"the current step has {' and '.join(format_count(*one) for one in errors)}"
    return (
        '<div class="wide" tabindex="0">'
        f'<img class="plot" alt="False negatives against false positives; {end}." '
        f'src="data:image/svg+xml;base64,{image}"></div>'
        '<p class="note">Points further down and to the left are better. The numbered points are '
        "the steps, on the tuning set: 0 is the start, and the arrow to a step comes from the "
        "step at which it was requested. Each curve shows what one score reaches as its threshold "
        "moves.</p>"
    )


def _members(outcome: Outcome, model: SteeredClassifier, curves: Frontier | None) -> str:
    """Return a table of the members: the weight and the false negatives of each member alone."""
    scorer, dialog = model.scorer_, outcome.dialog
    weights = dict(zip(scorer.committee.names, scorer.weights.tolist(), strict=True))
    largest = max(map(abs, weights.values())) or 1.0
    current = dialog.reply.after
    alone = {} if curves is None else _misses_alone(curves, current.fp)
    rows = []
    for name in sorted(dialog.members, key=lambda member: -weights.get(member, 0.0)):
        weight = weights.get(name, 0.0)
        width = f'<i style="width:{100 * abs(weight) / largest:.0f}%"></i>'
        row = [_text(name), f'<span class="weight">{width}</span> {weight:.2f}']
        if alone:
            row.append(f"{alone[name]:,}")
        rows.append(row)
    heads = ["Member", "Weight"]
    note = _WEIGHTS if len(weights) > 1 else "The model has a single member."
    if alone:
        heads.append(
            f"False negatives alone, with at most {format_count(current.fp, 'false positive')}"
        )
        note += f" The model has {format_count(current.fn, 'false negative')}" + (
            f" and rejects {format_count(current.n_rejected, 'row')}."
            if current.n_rejected
            else "."
        )
    return _table(heads, rows, "members") + f'<p class="note">{note}</p>'


def _misses_alone(curves: Frontier, fp: int) -> dict[str, int]:
    """Return the fewest false negatives of each member alone, with at most `fp` false positives."""
    misses = {}
    for curve in curves.curves:
        kind, _, name = curve.name.partition(" ")
        if kind == "member":
            misses[name] = int(curve.fn[np.searchsorted(curve.fp, fp, side="right") - 1])
    return misses


def _limitations() -> str:
    """Return the limitations of the guarantee as a list."""
    items = [_CODE.sub(r"<code>\1</code>", f"<li>{_text(line)}</li>") for line in LIMITS]
    return f"<ul>{''.join(items)}</ul>"


def _reproduction(outcome: Outcome, command: str) -> str:
    """Return the command, the checksum of the data, the versions and the column types."""
    table = outcome.samples.table
    data = f"data set {table.name} of the package"
    if table.digest:
        data = f"{table.name}; stored as Parquet, SHA-256 {table.digest}"
    elif table.path is not None:
        with table.path.open("rb") as file:
            data = f"{table.path.name}, SHA-256 {hashlib.file_digest(file, 'sha256').hexdigest()}"
    versions = f"Margrave {margrave.__version__}, scikit-learn {sklearn.__version__}"
    columns = [] if outcome.encoder is None else outcome.encoder.describe().splitlines()
    items = [data, versions, *columns]
    return f"<pre>{_text(command)}</pre>\n<ul>{''.join(f'<li>{_text(i)}</li>' for i in items)}</ul>"
