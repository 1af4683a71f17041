"""A martingale program as plain records, measured on the tuning set."""

from __future__ import annotations

import math

import numpy as np

from margrave.martingale import Program
from margrave.steer import Dialog, Reply
from margrave.studio.store import Conflict
from margrave.studio.views import Record, matrix_record


def current_program(dialog: Dialog) -> Program:
    """The program at the current step of a dialog; refuse if there is none."""
    program = dialog.program
    if program is None:
        raise Conflict("There is no program at the current step of this dialog.")
    return program


def node_id(votes: tuple[float, ...]) -> str:
    """The identifier of a node, made of its votes."""
    return "-".join(str(int(vote)) for vote in votes)


def node_votes(dialog: Dialog, name: str) -> tuple[int, ...]:
    """The votes of a node that can be tuned."""
    for node in current_program(dialog).nodes:
        if node_id(node.position) == name:
            if node.kind != "learner":
                raise ValueError(f"Node {name!r} has no learner, so it cannot be tuned.")
            return tuple(int(vote) for vote in node.position)
    raise ValueError(f"There is no node {name!r} in this program.")


def call_of(reply: Reply) -> str | None:
    """A step that tunes or grows a program, as a call for a script; None for other steps."""
    if reply.strategy == "nodes":
        wants = {votes: str(node.preference) for votes, node in reply.node_results}
        return f"tune_nodes({wants!r})"
    return f"grow({reply.levels})" if reply.strategy == "grow" else None


def _tuned(dialog: Dialog) -> dict[tuple[int, ...], str]:
    """The last preference of each tuned node, on the path to the current step."""
    preferences: dict[tuple[int, ...], str] = {}
    at = dialog.position
    while at:
        for votes, node in dialog.history[at].node_results:
            preferences.setdefault(votes, str(node.preference))
        at = dialog.parents[at]
    return preferences


def program_record(dialog: Dialog, threshold: float) -> Record:
    """The program: nodes with their local matrices, and edges."""
    program = current_program(dialog)
    weak = [node_id(votes) for votes in dialog.weak_nodes(threshold)]
    reach, advantages, sizes = program.reach, program.advantages, program.sizes
    labels, tuned = program.classes, _tuned(dialog)
    nodes = []
    for place, node in enumerate(program.nodes):
        name = node_id(node.position)
        nodes.append(
            {
                "id": name,
                "votes": [int(vote) for vote in node.position],
                "layer": node.layer,
                "kind": node.kind,
                "predicted": None if node.prediction is None else labels[node.prediction],
                "sizes": sizes[place].tolist(),
                "reach": float(np.max(reach[place])),
                "advantages": [None if math.isnan(a) else a for a in advantages[place].tolist()],
                "weak": name in weak,
                "matrix": matrix_record(program.confusion(place)),
                "tuned": tuned.get(tuple(int(vote) for vote in node.position)),
            }
        )
    ids = [node["id"] for node in nodes]
    return {
        "levels": program.n_levels,
        "n": int(sizes[0].sum()),
        "classes": list(labels),
        "positive": program.positive,
        "threshold": threshold,
        "nodes": nodes,
        "edges": [
            {
                "start": ids[edge.start],
                "end": ids[edge.end],
                "predicted": None if edge.prediction is None else labels[edge.prediction],
                "flow": flow,
            }
            for edge, flow in zip(program.edges, program.flow.tolist(), strict=True)
        ],
        "weak": weak,
    }
