"""Growing a program: its learners are trained layer by layer.

"Interactive Martingale Boosting" (document 004), section 4.3 and figure 3. The samples of a layer
stand at its nodes; the nodes' learners are trained side by side, each on the samples that came to
it, and send them to the next layer (`_layers`). Samples of weight 0 come along without being
trained on: a tuning set goes the same ways, so that nodes can be tuned as they are trained.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import has_fit_parameter

from margrave._indexing import select_rows
from margrave._parallel import stay_local
from margrave._typing import Codes, Floats
from margrave.martingale._again import There
from margrave.martingale._layers import (
    Key,
    Layered,
    Moves,
    Said,
    Samples,
    Tally,
    constant,
    moved,
    said_by,
)
from margrave.martingale._logistic import TunableLogistic
from margrave.martingale._program import Edge, Node
from margrave.martingale._settings import one_each

Refine = Callable[[Key, Any, Codes], Any]
"""(key of a node, its learner, the rows that came) to the learner to keep."""


class Lead(NamedTuple):
    """An edge to the layer that is placed next."""

    start: int
    key: Key
    answer: int | None


Trained = tuple[Any, Said]
Known = dict[bytes, Trained]
"""What was trained, by the samples that came to the node."""


class Grown(NamedTuple):
    """A grown program, what it counted of its training samples, and where all of them ended."""

    layered: Layered
    tally: Tally
    ends: Codes
    positions: Floats


def grow(
    samples: Samples,
    moves: Moves,
    learner: Any,
    n_levels: int,
    *,
    owner: str,
    balance: bool,
    n_jobs: int | None,
    seeds: np.random.SeedSequence,
    costs: Floats | None = None,
    refine: Refine | None = None,
    there: There | None = None,
    offset: Floats | None = None,
    told: Callable[[int], Any] | None = None,
) -> Grown:
    """Train the learners of a program, layer by layer.

    Parameters
    ----------
    samples : Samples
        What to train on, and what comes along.
    moves : Moves
        The rules.
    learner : classifier
        Cloned at each node.
    n_levels : int
        Layers of learners.
    owner : str
        Who speaks in errors.
    balance : bool
        Whether the classes weigh the same at every node.
    n_jobs : int or None
        Nodes of a layer at a time.
    seeds : SeedSequence
        One child for each node that is trained, in order, so that ``n_jobs`` changes nothing.
    costs : ndarray of shape (k,), optional
        Factors of the classes' weights at every node.
    refine : callable, optional
        Called in the job that trains a node, with its key, its learner and all rows that came.
    there : There, optional
        Nodes that stay as they are, and learners to train others of. With it, nodes may differ by
        more than their rows.
    offset : ndarray of shape (k,), optional
        What is added to the offset of every learner that is ours, but those that were there; with
        other learners, what is added at every node.
    told : callable, optional
        Called with the number of layers of learners after each.
    """
    n, k = len(samples.codes), samples.k
    total = samples.mass(np.arange(n))
    layered = Layered(moves, k, [], [], [], {}, [], np.zeros(k))
    grown = Grown(layered, Tally(samples.codes, k), np.zeros(n, np.intp), np.zeros((n, k)))
    each = np.ones(k) if costs is None else costs
    template = Learner.of(learner, owner, samples)
    if offset is not None:
        (template.by_class["offset"] if template.is_ours else layered.offset)[:] += offset
    train = partial(_train, template, samples, balance, each, layered, refine, there)
    # Where all samples take one edge, the next node has them again, and a learner without chance
    # in it would be the same again.
    known: Known | None = {} if template.is_ours and there is None else None
    here: dict[Key, Codes] = {(0,) * k: np.arange(n)}
    leads: list[Lead] = []
    with Parallel(n_jobs=n_jobs, prefer="threads") as parallel:
        for layer in range(n_levels + 1):
            places = _place(layered, layer, here, leads, samples, total, there)
            asked = {
                node: key for key, node in places.items() if layered.nodes[node].kind == "learner"
            }
            jobs = [
                (seed, here[key], key)
                for seed, key in zip(seeds.spawn(len(asked)), asked.values(), strict=True)
            ]
            trained = _trained(parallel, train, jobs, known)
            said = {}
            for node, (own, what) in zip(asked, trained, strict=True):
                layered.learners[node], said[node] = own, what
            if layer < n_levels:
                rows = [here[key] for key in asked.values()]
                layered.steps.append(moves.step(list(said.values()), rows, samples))
                if told is not None:
                    told(layer + 1)
            here, leads = _send(grown, layer, places, here, said, samples)
    return grown


def _trained(
    parallel: Parallel, train: Callable[..., Trained], jobs: list[Any], known: Known | None
) -> list[Trained]:
    """What comes of each job (seed, rows, key), in order; those with known rows are not done."""
    names = [rows.tobytes() if known is not None else key for _, rows, key in jobs]
    done: dict[Any, Trained] = {} if known is None else known
    new = [at for at, name in enumerate(names) if name not in done]
    if parallel.n_jobs != 1:  # large ones first, so that none is waited for
        new.sort(key=lambda at: -len(jobs[at][1]))
    found = parallel(delayed(train)(*jobs[at]) for at in new)
    done = done | {names[at]: one for at, one in zip(new, found, strict=True)}
    if known is not None:  # of this layer only: the next one can have no other rows again
        known.clear()
        known.update({name: done[name] for name in names})
    return [done[name] for name in names]


def _place(
    layered: Layered,
    layer: int,
    here: dict[Key, Codes],
    leads: list[Lead],
    samples: Samples,
    total: Floats,
    there: There | None,
) -> dict[Key, int]:
    """Add the nodes of a layer, and the edges to them."""
    places: dict[Key, int] = {}
    for key in sorted(here):
        rows = here[key]
        node = None if there is None else there.node(key, rows[samples.weights[rows] > 0])
        if node is None:
            kind, answer = layered.moves.kind(layer, key, samples.mass(rows), total)
            node = Node(layer, layered.moves.place(layer, key), kind, answer)
        places[key] = len(layered.nodes)
        layered.nodes.append(node)
    layered.keys.append(list(places))
    layered.edges.extend(Edge(lead.start, places[lead.key], lead.answer) for lead in leads)
    return places


def _send(
    grown: Grown,
    layer: int,
    places: dict[Key, int],
    here: dict[Key, Codes],
    said: dict[int, Said],
    samples: Samples,
) -> tuple[dict[Key, Codes], list[Lead]]:
    """Move the samples of a layer: who comes to each key of the next, and the edges there."""
    layered, positions = grown.layered, grown.positions
    alone = bool(samples.weights.all())
    coming: dict[Key, list[Codes]] = {}
    leads: dict[tuple[int, Key], int | None] = {}
    for key, node in places.items():
        rows, one = here[key], layered.nodes[node]
        what = said[node] if node in said else constant(one.answer, len(rows), layered.k)
        if alone:
            grown.tally.seen(node, rows, what.answers)
        else:  # those that came along are not counted
            counted = samples.weights[rows] > 0
            grown.tally.seen(node, rows[counted], what.answers[counted])
        if one.is_end:
            grown.ends[rows] = node
            continue
        at = None
        if what.proba is not None and layered.moves.is_real:
            positions[rows] += moved(what.proba, layered.steps[layer])
            at = positions[rows]
        for to, answer, members in layered.moves.departures(one, what.answers, at):
            coming.setdefault(to, []).append(rows[members])
            leads[node, to] = answer
        answered = layered.learners[node].classes_ if node in said else what.answers[:1]
        for to, answer in layered.moves.unreached(one, answered):
            coming.setdefault(to, [])
            leads.setdefault((node, to), answer)
    nobody = np.zeros(0, dtype=np.intp)
    # Each part is in order already, and a stable sort merges them.
    arrived = {
        key: np.sort(np.concatenate([nobody, *rows]), kind="stable") for key, rows in coming.items()
    }
    return arrived, [Lead(start, key, answer) for (start, key), answer in leads.items()]


class Learner(NamedTuple):
    """A learner to clone, and what there is to know of it once.

    Attributes
    ----------
    owner : str
        Who trains it.
    template : classifier
        The learner.
    takes_weights : bool
        Whether it can be trained with weights.
    random_states : tuple of str
        Its random states that have no number: they are given one.
    by_class : dict of str to ndarray of shape (k,)
        For ours, the parameters that have a number for each class.
    """

    owner: str
    template: Any
    takes_weights: bool
    random_states: tuple[str, ...]
    by_class: dict[str, Floats]

    @classmethod
    def of(cls, template: Any, owner: str, samples: Samples) -> Learner:
        """Look at a learner; the classes are known by their codes at the nodes."""
        states = [
            name
            for name, value in template.get_params().items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        ]
        takes_weights, by_class = has_fit_parameter(template, "sample_weight"), {}
        if is_ours(template):
            template._check_parameters()
            kind = type(template).__name__
            by_class = {
                name: one_each(getattr(template, name), samples.labels, default, name, kind)
                for name, default in (("class_cost", 1.0), ("offset", 0.0))
            }
        return cls(owner, template, takes_weights, tuple(states), by_class)

    @property
    def is_ours(self) -> bool:
        """Whether it is a TunableLogistic."""
        return bool(self.by_class)

    def trained(
        self,
        X: Any,
        codes: Codes,
        weights: Floats,
        seed: np.random.SeedSequence,
        names: Any,
        like: Any = None,
    ) -> Any:
        """A clone, trained; weights that it cannot take decide what it is trained on."""
        own = clone(self.template if like is None else like)
        if self.random_states:
            number = int(seed.generate_state(1)[0] >> 1)
            own.set_params(**dict.fromkeys(self.random_states, number))
        if self.is_ours:  # and X needs no checks any more
            if like is None:
                there = np.unique(codes).tolist()
                for name, values in self.by_class.items():
                    own.set_params(**{name: {code: values[code] for code in there}})
            if names is not None:
                own.feature_names_in_ = names
            return own._fit_arrays(X, codes, weights)
        if (weights == (1 if self.takes_weights else weights[0])).all():
            return own.fit(X, codes)
        if self.takes_weights:
            return own.fit(X, codes, sample_weight=weights)
        return own.fit(*_drawn(X, codes, weights, seed))


def is_ours(learner: Any) -> bool:
    """Whether a learner is trained as a TunableLogistic is."""
    return getattr(type(learner), "fit", None) is TunableLogistic.fit


def _train(
    learner: Learner,
    samples: Samples,
    balance: bool,
    costs: Floats,
    layered: Layered,
    refine: Refine | None,
    there: There | None,
    seed: np.random.SeedSequence,
    rows: Codes,
    key: Key,
) -> Trained:
    """Train a node, and ask it about all that came."""
    X = select_rows(samples.X, rows) if len(rows) < len(samples.codes) else samples.X
    weights = samples.balanced(rows) if balance else samples.weights[rows]
    weights = weights * costs[samples.codes[rows]]
    counted = np.flatnonzero(weights)
    kept = None if there is None else there.kept(key, rows[counted])
    if kept is not None:
        return kept, said_by(kept, X, samples.k, layered.offset, layered.moves.is_real)
    X_own = X if len(counted) == len(rows) else select_rows(X, counted)
    codes = samples.codes[rows[counted]]
    another = None if there is None else there.like(key, np.unique(codes))
    try:
        with stay_local():
            own = learner.trained(X_own, codes, weights[counted], seed, samples.names, another)
        if refine is None:
            said = said_by(own, X, samples.k, layered.offset, layered.moves.is_real)
    except Exception as error:
        error.add_note(
            f"{learner.owner} trains {type(learner.template).__name__} at each node; this was the "
            f"one at {key}, to which {len(counted)} samples came. A learner that needs many "
            "samples wants fewer levels."
        )
        raise
    if refine is not None:
        own = refine(key, own, rows)
        said = said_by(own, X, samples.k, layered.offset, layered.moves.is_real)
    if learner.is_ours and hasattr(own, "_problem"):  # one that was there has none
        own._forget_training()
    return own, said


def _drawn(
    X: Any, codes: Codes, weights: Floats, seed: np.random.SeedSequence
) -> tuple[Any, Codes]:
    """As many samples again, drawn by their weights, for learners that take none."""
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(codes), len(codes), p=weights / weights.sum())
    # One of each class at least: a learner that has not seen a class cannot answer it.
    first = np.unique(codes, return_index=True)[1]
    drawn[: len(first)] = first
    return select_rows(X, drawn), codes[drawn]
