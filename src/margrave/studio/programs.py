"""A martingale program, measured on the tuning set, as the API sends it."""

from __future__ import annotations

import math
from typing import Literal, Self

from margrave import ParameterError, martingale
from margrave.steer import Dialog, Reply
from margrave.studio.store import Conflict
from margrave.studio.views import Label, Matrix, View


class Node(View):
    """A node of a program, with its local matrix on the tuning set.

    `outcomes` counts the rows that pass through it, by their class (row) and by the class that the
    end of their path predicts (column); of a rejected row, by its votes.
    """

    id: str
    votes: list[int]
    layer: int
    kind: Literal["learner", "constant", "frozen", "empty", "leaf"]
    predicted: Label | None
    sizes: list[int]
    reach: float
    advantages: list[float | None]
    weak: bool
    confusion: Matrix
    outcomes: list[list[int]]
    tuned: str | None


class Edge(View):
    """An edge of a program, with the `outcomes` of the rows that take it."""

    start: str
    end: str
    predicted: Label | None
    flow: list[int]
    outcomes: list[list[int]]


class NodeEdit(View):
    """A node that the current step has tuned, with its local matrix before and after."""

    votes: list[int]
    preference: str
    before: Matrix
    after: Matrix


class Program(View):
    """The martingale program of a step, measured on the tuning set.

    `edits` are the nodes that this step has tuned, and `n_changed` counts the rows whose prediction
    this has changed.
    """

    step: int
    n_levels: int
    classes: list[Label]
    positive: Label | None
    threshold: float
    nodes: list[Node]
    edges: list[Edge]
    edits: list[NodeEdit]
    n_changed: int

    @classmethod
    def of(cls, dialog: Dialog, threshold: float) -> Self:
        """Describe the program at the current step; nodes below the threshold are weak."""
        program, tuned = current_program(dialog), _tuned(dialog)
        weak, labels = set(dialog.weak_nodes(threshold)), [*program.classes, None]
        nodes, outcomes = [], program.node_outcomes.tolist()
        for place, node in enumerate(program.nodes):
            votes = _votes(node)
            advantages = program.advantages[place].tolist()
            nodes.append(
                Node(
                    id=_id(votes),
                    votes=list(votes),
                    layer=node.layer,
                    kind=node.kind,
                    predicted=labels[-1 if node.prediction is None else node.prediction],
                    sizes=program.sizes[place].tolist(),
                    reach=program.reach[place].max(),
                    advantages=[None if math.isnan(one) else one for one in advantages],
                    weak=votes in weak,
                    confusion=Matrix.model_validate(program.confusion(place)),
                    outcomes=outcomes[place],
                    tuned=tuned.get(votes),
                )
            )
        edges = [
            Edge(
                start=nodes[edge.start].id,
                end=nodes[edge.end].id,
                predicted=labels[-1 if edge.prediction is None else edge.prediction],
                flow=flow,
                outcomes=own,
            )
            for edge, flow, own in zip(
                program.edges, program.flow.tolist(), program.outcomes.tolist(), strict=True
            )
        ]
        return cls(
            step=dialog.position,
            n_levels=program.n_levels,
            classes=list(program.classes),
            positive=program.positive,
            threshold=threshold,
            nodes=nodes,
            edges=edges,
            edits=[
                NodeEdit(
                    votes=list(votes),
                    preference=str(tuning.preference),
                    before=Matrix.model_validate(tuning.before),
                    after=Matrix.model_validate(tuning.after),
                )
                for votes, tuning in dialog.reply.node_results
            ],
            n_changed=dialog.compare(dialog.parents[dialog.position], dialog.position).n_changed,
        )


def current_program(dialog: Dialog) -> martingale.Program:
    """The program at the current step of a dialog; refuse if there is none."""
    program = dialog.program
    if program is None:
        raise Conflict("There is no program at the current step of this dialog.")
    return program


def _votes(node: martingale.Node) -> tuple[int, ...]:
    return tuple(int(vote) for vote in node.position)


def _id(votes: tuple[int, ...]) -> str:
    return "-".join(map(str, votes))


def node_votes(dialog: Dialog, name: str) -> tuple[int, ...]:
    """The votes of a node that can be tuned."""
    for node in current_program(dialog).nodes:
        votes = _votes(node)
        if _id(votes) == name:
            if node.kind != "learner":
                break
            return votes
    raise ParameterError.of("node_votes", "node", "a node of the program with a learner", name)


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
