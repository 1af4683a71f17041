"""The frontier of a dialog: what its start, its steps, its members and other ways can reach."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from margrave._typing import Floats
from margrave.confusion import Confusion
from margrave.preference import Preference
from margrave.steer._frontier import Frontier
from margrave.steer._material import Material, Option
from margrave.steer._ways import Request, Way


def offered(material: Material, start: Option, matrix: Confusion, ways: Sequence[Way]) -> Any:
    """What ways offer for half the false positives, and for half the false negatives.

    What scores the same for both is offered once.
    """
    told: list[Floats] = []
    for want in (f"fp <= {matrix.fp // 2}", f"fn <= {matrix.fn // 2}"):
        wanted = Preference(want)
        request = Request(wanted, material, material.judge(wanted), [start])
        for way in ways:
            for option in way.options(request):
                if not any(np.array_equal(option.held, held) for held in told):
                    told.append(option.held)
                    yield option


def frontier(material: Material, options: Iterable[Option]) -> Frontier:
    """The trade-offs of all cuts of the options' scores, and of each member's alone."""
    scored: dict[str, Floats] = {}
    for option in options:
        if not any(option.held is held for held in scored.values()):
            n = sum(name.split(" ")[0] == option.way for name in scored)
            scored[f"{option.way} {n + 1}" if n else option.way] = option.held
    if len(material.panel.names) > 1:
        scored |= {f"member {name}": held for name, held in material.members_alone()}
    code = material.labels.index(material.positive)
    toward = {name: _toward(held, code) for name, held in scored.items()}
    return Frontier.of(toward, material.panel.classes[material.codes], positive=material.positive)


def _toward(held: Floats, code: int) -> Floats:
    """One score toward a class."""
    if held.ndim == 1:
        return held if code == 1 else -held
    others = np.delete(held, code, axis=1)
    return np.asarray(held[:, code] - others.max(axis=1))
