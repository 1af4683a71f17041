"""A dialog over a martingale program, steered node by node.

"Interactive Martingale Boosting" (document 004), section 4.3, "Granularity of interaction", and
figure 3: the user looks at the local confusion matrices of the nodes, on the holdout samples, and
edits them (I-ALL), is led to the weak ones (I-SELECT), and grows the program. (I-ROOT, an edit of
the global matrix, is `Dialog.prefer` with its way "retune".)

What was made by hand stays: requests from there on begin with the program of the last such step.
As in the document, nodes are tuned to the same samples that they are shown on; what is promised is
set on others.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Any, cast

from threadpoolctl import threadpool_limits

from margrave._rules import is_count, is_number
from margrave.martingale import NotMetWarning, Program, Step, Tuning
from margrave.preference import Preference
from margrave.steer._files import Saved
from margrave.steer._history import Conversation
from margrave.steer._material import Material, Option
from margrave.steer._members import Progress
from margrave.steer._program_at import ProgramAt, Votes
from margrave.steer._reply import Reply

NODES, GROW = "nodes", "grow"


class ProgramSteps(Saved, Conversation):
    """What a dialog can do where its model is a martingale program."""

    _path: str | None
    _material: Material

    @property
    def program(self) -> Program | None:
        """The martingale program that answers where the dialog stands, on the tuning samples.

        Its counts are the local confusion matrices of the nodes, and its ends answer as the current
        model does, a moved decision included (where that gives no answer: by their votes). None if
        the model is no program, or was trained on the tuning samples.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="program", random_state=0)
        >>> program = dialog.program
        >>> print(program)
        Program of 3 levels, 10 nodes: 6 learner, 4 leaf
        >>> print(program.confusion(program.at((0, 1))))
        pos is positive  called neg  called pos  rejected
        true neg                 30          13         0
        true pos                 30          31         0
        """
        steered = ProgramAt.of(self.reply.option, self._material)
        return None if steered is None else steered.program()

    def weak_nodes(self, threshold: float = 0.3) -> tuple[Votes, ...]:
        """Nodes of the program to be asked about first (I-SELECT).

        Parameters
        ----------
        threshold : float, default=0.3
            A node is weak if its advantage, the share of right answers less ½, is smaller for some
            class. With 1 all nodes that can be asked are given.

        Returns
        -------
        tuple of tuple of int
            Their votes, in the order in which the program grows; of nodes with a learner to which
            tuning samples of all its classes come.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="program", random_state=0)
        >>> dialog.weak_nodes(0.1)
        ((0, 1), (0, 2), (1, 1), (2, 0))
        """
        if not is_number(threshold):
            raise ValueError(
                f"Dialog.weak_nodes needs threshold to be a number; got {threshold!r}."
            )
        return tuple(self._steered("weak_nodes").weak(threshold))

    def tune_nodes(
        self,
        wants: Mapping[Votes, Preference | str | None],
        *,
        callback: Callable[[Step], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Ask for the local confusion matrices of nodes (I-ALL).

        The nodes are tuned on the tuning samples that come to them; those below get other samples
        and are trained again, with their settings. What was asked of the global matrix where the
        dialog stands still holds: if its decision had been moved for it, that is moved anew, by
        the rule of the way "move"; else most votes win.

        Parameters
        ----------
        wants : mapping from votes to Preference or str
            What is wanted of which node, such as ``{(0, 0): "fp <= 9"}`` for the root.
        callback : callable, optional
            Called with a :class:`~margrave.martingale.Step` after each node; a true answer leaves
            the others as they are.
        stop : callable, optional
            Asked after each node; a true answer likewise.

        Returns
        -------
        Reply
            With way "nodes"; ``asked`` has the account of each node, ``note`` tells of it, and
            ``met`` is about the global preference.

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="program", random_state=0)
        >>> reply = dialog.tune_nodes({(0, 0): "fn <= 20"})
        >>> print(reply.note)
        (0, 0) fn <= 20: met
        >>> dialog.program.confusion(0).fn
        20
        """
        steered, stand, began = self._steered("tune_nodes"), self.position, perf_counter()
        asked = _checked_wants(wants, steered)
        stopped = stop or (lambda: False)
        with warnings.catch_warnings(), threadpool_limits(1):  # matrices are small
            warnings.simplefilter("ignore", NotMetWarning)  # the reply tells
            tuned = steered.model.tune(
                asked,
                steered.rows,
                steered.labels,
                granularity="all",
                positive=self._material.positive,
                callback=lambda step: bool(callback and callback(step)) or stopped(),
            )
        tuning = cast(Tuning, tuned.tuning_)
        told = tuning.asked
        if not told and not tuning.cancelled:
            raise ValueError(
                "Dialog.tune_nodes needs nodes to which tuning samples of every class come that "
                f"they know, to be judged by; to none of {', '.join(map(str, asked))} they do. "
                "weak_nodes(1) gives those that can be asked."
            )
        preference = self.reply.preference
        if all(_met_before(one) for _, one in told):
            option = replace(steered.option, way=NODES)
        else:
            option = steered.with_program(NODES, tuned, preference)
        note = _told(told, () if tuning.cancelled else sorted(asked.keys() - tuning.nodes.keys()))
        return self._taken(option, stand, began, note, cancelled=tuning.cancelled, asked=told)

    def grow(
        self,
        levels: int = 1,
        *,
        callback: Callable[[Progress], Any] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> Reply:
        """Grow the program by some levels; nodes that are there stay, tuned ones too.

        What was asked of the global matrix still holds, as in :meth:`tune_nodes`.

        Parameters
        ----------
        levels : int, default=1
            How many more.
        callback : callable, optional
            Called with a :class:`Progress` after each level; a true answer stops there.
        stop : callable, optional
            Asked after each level; a true answer stops there.

        Returns
        -------
        Reply
            With way "grow".

        Examples
        --------
        >>> from margrave import datasets
        >>> from margrave.steer import Dialog
        >>> X, y = datasets.load("pima", return_X_y=True)
        >>> dialog = Dialog.from_data(X, y, committee="program", random_state=0)
        >>> dialog.grow(2).note
        'grown by 2 levels to 5'
        """
        steered, stand, began = self._steered("grow"), self.position, perf_counter()
        if not is_count(levels):
            raise ValueError(
                f"Dialog.grow needs levels to be a whole number of at least 1; got {levels!r}."
            )
        model, name = steered.model, self.reply.option.scorer.panel.names[0]
        done, cancelled = 0, False
        while done < levels and not cancelled:
            with threadpool_limits(1):  # matrices are small
                model = model.grow()
            done += 1
            told = callback is not None and callback(Progress(done, levels, name))
            cancelled = done < levels and bool(told or (stop is not None and stop()))
        option = steered.with_program(GROW, model, self.reply.preference)
        note = f"grown by {done} level{'' if done == 1 else 's'} to {model.n_levels}"
        return self._taken(option, stand, began, note, cancelled=cancelled)

    def _steered(self, method: str) -> ProgramAt:
        """The current program, or why there is none."""
        found = ProgramAt.of(self.reply.option, self._material)
        if found is None:
            raise ValueError(
                f"Dialog.{method} needs a dialog over a martingale program that was not trained "
                "on the tuning samples: Dialog.from_data(X, y, committee='program'), or "
                "Dialog(model, X_tune, y_tune) with a trained MartingaleBoostClassifier."
            )
        return found

    def _taken(
        self,
        option: Option,
        stand: int,
        began: float,
        note: str,
        *,
        cancelled: bool,
        asked: tuple[tuple[Votes, Tuning], ...] = (),
    ) -> Reply:
        """A step of the program, kept."""
        wanted, after = self.reply.preference, self._material.matrix(option.answers)
        reply = Reply(
            wanted,
            wanted is None or wanted.met(after),
            self.confusion,
            after,
            option.way,
            perf_counter() - began,
            1,
            True,
            cancelled,
            note,
            asked,
            option=option,
        )
        self._keep(reply, stand)
        return reply

    def _keep(self, reply: Reply, stand: int) -> None:
        """Add a step, and write it down if that was asked for."""
        self._history.add(reply, stand)
        if self._path is not None:
            self.save(self._path)

    def _base(self) -> tuple[Option, Material]:
        """Where requests begin: the program as last made by hand, or the start; and its samples."""
        history, at = self._history, self.position
        while at and history.replies[at].way not in (NODES, GROW):
            at = history.parents[at]
        option, material = history.replies[at].option, self._material
        if at == 0:
            return option, material
        panel = option.scorer.panel
        return option, replace(material, panel=panel, raw=panel.raw(material.X.X))


def _checked_wants(
    wants: Mapping[Votes, Preference | str | None], steered: ProgramAt
) -> dict[Votes, Preference | str]:
    """What is wanted of nodes that are there."""
    owner = "Dialog.tune_nodes"
    if not isinstance(wants, Mapping):
        raise TypeError(
            f"{owner} needs a mapping from the votes of nodes to preferences, such as "
            f"{{(0, 0): 'fp <= 9'}}; got {type(wants).__name__}."
        )
    asked = {key: want for key, want in wants.items() if want is not None}
    if not asked:
        raise ValueError(f"{owner} needs a preference for at least one node; got none.")
    nodes = steered.model.program_.nodes
    there = [nodes[place].position for place in sorted(steered.model.learners_)]
    for key in asked:
        if key not in there:
            shown = ", ".join(str(tuple(map(int, one))) for one in there[:6])
            more = f", ... ({len(there)} in all)" if len(there) > 6 else ""
            raise ValueError(
                f"{owner} needs nodes with a learner, by their votes: {shown}{more}; got {key!r}."
            )
    return asked


def _met_before(node: Tuning) -> bool:
    return node.preference is not None and node.preference.met(node.before)


def _told(asked: tuple[tuple[Votes, Tuning], ...], others: Iterable[Any]) -> str:
    """Which node was asked for what, what became of it, and which could not be asked."""
    parts = []
    for votes, node in asked:
        said = f"{node.shortfall:g} short"
        if node.met:
            said = "met before" if _met_before(node) else "met"
        parts.append(f"{votes} {node.preference}: {said}")
    parts += [f"{votes} cannot be asked: samples of some class do not come" for votes in others]
    return "; ".join(parts) if parts else "no node was asked"
