"""The dialogs in memory, and the store behind them.

The store has everything that the page shows as saved. A dialog in memory is a cache: it can be
dropped at any time and restored from the store. This limits the memory, since the least recently
used dialogs are dropped first, and a killed studio restarts in the same state.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from margrave.app import Samples
from margrave.export import can_export
from margrave.steer import Account, Dialog, RowSample, SteeredClassifier, has_few_values
from margrave.studio import views
from margrave.studio._engine import damaged
from margrave.studio.choices import Source, samples
from margrave.studio.ledger import AccountCache, StoreLedger, bytes_of_rows, read_rows
from margrave.studio.programs import call_of
from margrave.studio.store import (
    AcceptanceRow,
    Conflict,
    DialogRow,
    Ended,
    Pieces,
    Record,
    StepRow,
    Store,
)
from margrave.studio.uploads import frame_of

if TYPE_CHECKING:
    import pandas

# The size of a dialog in memory, as a multiple of its initial size in the store (measured on
# Spambase: 8 MB in the store, 30 MB in memory).
_TIMES = 4
_TABLES = 4  # tables in memory may take one part in so many of the memory for dialogs


@dataclass(eq=False)
class Live:
    """A dialog in memory.

    Attributes
    ----------
    dialog : Dialog
        The dialog.
    size : int
        Approximate size in bytes.
    pinned : bool
        Whether it belongs to a notebook, and cannot be restored from the store.
    revision : int
        The revision of the stored dialog that it has.
    n_steps, n_accepted : int
        The numbers of its steps and accepted models that are stored.
    stored : dict
        Its position and the refusals, as stored.
    refused : list of dict
        The guarantees that were refused on the certification set.
    strategies : dict of int to list
        The strategies that a step was allowed to use, until it is stored.
    lock : RLock
        Held by the thread that changes the dialog.
    frame : DataFrame or None
        The tuning set as in the user's table.
    """

    dialog: Dialog
    size: int
    pinned: bool = False
    revision: int = 0
    n_steps: int = 0
    n_accepted: int = 0
    stored: Record = field(default_factory=dict)
    refused: list[Record] = field(default_factory=list)
    strategies: dict[int, list[str] | None] = field(default_factory=dict)
    lock: Any = field(default_factory=threading.RLock)
    frame: pandas.DataFrame | None = None

    def refuse(self, number: int, terms: Record) -> None:
        """Record a guarantee that was refused on the certification set, with the use's number."""
        known = [{name: use.get(name, False) for name in terms} for use in self.refused]
        if terms not in known:  # repeating it is the same use
            self.refused.append({"use_number": number, **terms})

    def state(self) -> Record:
        """The position and the refusals, as plain data."""
        dialog, refused = self.dialog, list(self.refused)
        return {"position": dialog.position, "undone": list(dialog.undone), "refused": refused}

    @property
    def is_stored(self) -> bool:
        """Whether the store has all of it."""
        sizes = len(self.dialog.history), len(self.dialog.accepted)
        return sizes == (self.n_steps, self.n_accepted) and self.state() == self.stored


class Workspace:
    """The dialogs of a studio.

    Parameters
    ----------
    store : Store
        The database.
    live_bytes : int
        Approximate memory for all dialogs, in bytes.
    """

    def __init__(self, store: Store, live_bytes: int) -> None:
        self.store = store
        self.live_bytes = live_bytes
        self._live: OrderedDict[str, Live] = OrderedDict()
        self._frames: OrderedDict[str, tuple[pandas.DataFrame, int]] = OrderedDict()
        self._loading: dict[str, tuple[threading.Lock, int]] = {}
        self._accounts = AccountCache()
        self._lock = threading.Lock()

    # Tables

    def frame(self, owner: str, table: str) -> pandas.DataFrame:
        """A user's table."""
        self.store.table(owner, table)  # refuses another user's table
        with self._loading_alone(table):
            with self._lock:
                if table in self._frames:
                    self._frames.move_to_end(table)
                    return self._frames[table][0]
            try:
                frame = frame_of(self.store.table_data(owner, table))
            except (ValueError, OSError) as error:
                raise damaged() from error
            size = int(frame.memory_usage(deep=True).sum())
            with self._lock:
                self._frames[table] = frame, size
                total = sum(size for _, size in self._frames.values())
                while len(self._frames) > 1 and total > self.live_bytes // _TABLES:
                    total -= self._frames.popitem(last=False)[1][1]
            return frame

    @contextmanager
    def _loading_alone(self, name: str) -> Iterator[None]:
        """Let one thread at a time load a table or a dialog; those that wait find it in memory."""
        with self._lock:
            lock, n = self._loading.get(name, (threading.Lock(), 0))
            self._loading[name] = lock, n + 1
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, n = self._loading.pop(name)
                if n > 1:
                    self._loading[name] = lock, n - 1

    def samples(self, owner: str, table: str, choices: Record) -> Samples:
        """The samples of a user's table, with the user's choices."""
        source = source_of(self.store.table(owner, table).facts)
        return samples(self.frame(owner, table), source, choices)

    # The certification data

    def ledger(self, choices: Record) -> StoreLedger:
        """The ledger for dialogs with these choices."""
        return StoreLedger(self.store, choices.get("target"), self._accounts)

    def account(self, row: DialogRow) -> Account | None:
        """The account of a dialog's certification data; None if it has no certification set."""
        with self._lock:
            live = self._live.get(row.id)
        if live is not None and live.pinned:
            return live.dialog.certification
        hashes = self.store.row_hashes(row.id)
        return None if hashes is None else self.ledger(row.choices).account(read_rows(hashes))

    def used_up(self, data: Samples, choices: Record) -> bool:
        """Whether guarantees have used up the rows that a dialog would be certified on."""
        ledger = self.ledger(choices)
        if choices["certify"] is None or not ledger.read():
            return False
        table = data.table.frame.drop(columns=data.target)
        independent = choices["duplicates"] == "independent"
        counted = independent or has_few_values(data.X, encoded=True)
        return ledger.account(RowSample.of(data.X, table, counted=counted)).used_up

    # Dialogs

    def live(self, owner: str, dialog_id: str) -> Live:
        """A dialog in memory; it is restored from the store if needed."""
        row = self.store.dialog(owner, dialog_id)
        if row.state != "ready":
            raise Conflict("This dialog is not trained yet.")
        with self._loading_alone(dialog_id):
            with self._lock:
                live = self._live.get(dialog_id)
                if live is not None:
                    self._live.move_to_end(dialog_id)
            if live is None:
                live = self._load(dialog_id)
                self.keep(dialog_id, live)
            elif live.revision != row.revision and not live.pinned:
                self._update(dialog_id, live)
            return live

    def _load(self, dialog_id: str) -> Live:
        """Restore a dialog from the store."""
        pieces = self.store.pieces(dialog_id)
        live = Live(Dialog.restore(pieces.base), _TIMES * len(pieces.base), n_steps=1)
        live.dialog.ledger = self.ledger(pieces.dialog.choices)
        self._add(live, pieces)
        return live

    def _update(self, dialog_id: str, live: Live) -> None:
        """Add what another process has stored, unless a change is being made here."""
        if live.lock.acquire(blocking=False):
            try:
                if live.is_stored:
                    self._add(live, self.store.pieces(dialog_id, live.n_steps, live.n_accepted))
            except BaseException:
                self.forget(dialog_id)
                raise
            finally:
                live.lock.release()

    def _add(self, live: Live, pieces: Pieces) -> None:
        """Add steps and accepted models from the store."""
        row, models = pieces.dialog, pieces.acceptances
        steps = [step.piece for step in pieces.steps if step.number]
        live.dialog.update(
            steps,
            [model.piece for model in models],
            {
                "position": row.position,
                "undone": row.undone,
                "accounts": [],
                "accepted": [
                    *live.dialog.dump_state()["accepted"],
                    *({"step": one.step, "samples": one.record["samples"]} for one in models),
                ],
            },
        )
        live.refused = list(row.refused)
        live.n_steps, live.n_accepted = len(live.dialog.history), len(live.dialog.accepted)
        live.revision, live.stored = row.revision, live.state()
        live.size += _TIMES * sum(map(len, steps))

    def keep(self, dialog_id: str, live: Live) -> None:
        """Put a dialog into memory, and drop others to stay within the limit."""
        with self._lock:
            self._live[dialog_id] = live
            self._live.move_to_end(dialog_id)
        self._trim()

    def _trim(self) -> None:
        """Drop unlocked dialogs, the least recently used first, until the limit is met."""
        with self._lock:
            total = sum(live.size for live in self._live.values())
            for dialog_id in list(self._live)[:-1]:
                live = self._live[dialog_id]
                if (
                    total > self.live_bytes
                    and not live.pinned
                    and live.lock.acquire(blocking=False)
                ):
                    total -= live.size
                    del self._live[dialog_id]
                    live.lock.release()

    def forget(self, dialog_id: str, *, deleted: bool = False) -> None:
        """Drop a dialog from memory; a dialog of a notebook only if it is deleted."""
        with self._lock:
            live = self._live.get(dialog_id)
            if live is not None and (deleted or not live.pinned):
                del self._live[dialog_id]

    @property
    def n_live(self) -> int:
        """The number of dialogs in memory."""
        return len(self._live)

    @contextmanager
    def changing(self, owner: str, dialog_id: str) -> Iterator[Live]:
        """Lock a dialog for changes; drop it from memory if not all of them were stored."""
        while True:
            live = self.live(owner, dialog_id)
            live.lock.acquire()
            with self._lock:
                if self._live.get(dialog_id) is live:
                    break
            live.lock.release()  # it was dropped before it was locked
        try:
            yield live
        finally:
            if not live.is_stored:
                self.forget(dialog_id)
            live.lock.release()
            self._trim()

    def write(
        self,
        dialog_id: str,
        live: Live,
        *,
        ended: Ended | None = None,
        idle: bool = False,
        accepted: Record | None = None,
        **values: Any,
    ) -> None:
        """Store all changes of a dialog in one transaction.

        Parameters
        ----------
        dialog_id : str
            The id of the dialog.
        live : Live
            The dialog.
        ended : Ended, optional
            The job that made the changes, and that ends with them.
        idle : bool, default=False
            Whether to refuse the changes while the dialog has an unfinished job.
        accepted : dict, optional
            What the record of a new accepted model has besides, such as the terms of its request.
        **values
            Further values for :meth:`Store.change`.
        """
        dialog, state = live.dialog, live.state()
        if ended is None and not values and live.is_stored:
            return
        steps = [
            StepRow(
                number=number,
                parent=dialog.parents[number],
                record=views.step_record(
                    dialog.history[number], number, dialog.parents[number] if number else None
                )
                | {
                    "call": call_of(dialog.history[number]),
                    "strategies": live.strategies.pop(number, None),
                },
                piece=b"" if live.pinned or not number else dialog.dump_step(number),
            )
            for number in range(live.n_steps, len(dialog.history))
        ]
        models = [
            AcceptanceRow(
                number=number,
                step=one.step,
                record=views.accepted_record(one, number, _can_export(one.model))
                | {"samples": one.samples, "reserve": False, **(accepted or {})},
                piece=one.model.to_bytes(),
            )
            for number, one in enumerate(dialog.accepted, 1)
            if number > live.n_accepted
        ]
        live.revision = self.store.change(
            dialog_id,
            steps=steps,
            acceptances=models,
            ended=ended,
            idle=idle,
            revision=live.revision if live.n_steps and not live.pinned else None,
            **state,
            **values,
        )
        live.n_steps, live.n_accepted = len(dialog.history), len(dialog.accepted)
        live.stored = state
        live.size += _TIMES * sum(len(step.piece) for step in steps)

    def ready(
        self,
        dialog_id: str,
        dialog: Dialog,
        *,
        ended: Ended | None = None,
        pinned: bool = False,
        **values: Any,
    ) -> None:
        """Store a trained dialog, with further values of its row, and keep it in memory."""
        base = b"" if pinned else dialog.dump_start()
        rows, sizes = dialog.table_rows, dialog.sizes
        facts = {
            "classes": list(dialog.classes),
            "positive": dialog.confusion.positive,
            "members": list(dialog.members),
            "parts": views.parts_record(sizes),
            "n": dialog.confusion.n,
            "certify": None if rows is None else {"n": sizes.certify},
            "sizes": list(sizes.certify_by_class.items()) if sizes.certify else [],
        }
        values |= {"state": "ready", "error": None, "facts": facts, "base": base}
        values["row_hashes"] = None if rows is None else bytes_of_rows(rows)
        live = Live(dialog, _TIMES * len(base), pinned=pinned)
        self.write(dialog_id, live, ended=ended, **values)
        self.keep(dialog_id, live)

    def adopt(self, owner: str, title: str, dialog: Dialog) -> str:
        """Add the dialog of a notebook, which lasts as long as the process; return its id."""
        row = self.store.add_dialog(owner, title, None, {"kind": kind_of(dialog)})
        self.ready(row.id, dialog, pinned=True)
        return row.id

    def catch_up(self, owner: str, dialog_id: str) -> None:
        """Store the steps of a notebook's dialog that were taken in Python."""
        with self._lock:
            live = self._live.get(dialog_id)
        if live is not None and live.pinned and live.lock.acquire(blocking=False):
            try:
                self.store.dialog(owner, dialog_id)  # refuses another user's dialog
                self.write(dialog_id, live)
            finally:
                live.lock.release()

    # The tuning set

    def tuning_frame(self, owner: str, dialog_id: str) -> pandas.DataFrame:
        """The tuning set as in the user's table; the index is the row number there."""
        live, row = self.live(owner, dialog_id), self.store.dialog(owner, dialog_id)
        if live.frame is None:
            live.frame = self._tuning_frame(owner, row, live.dialog)
        return live.frame

    def _tuning_frame(self, owner: str, row: DialogRow, dialog: Dialog) -> pandas.DataFrame:
        import pandas

        at = dialog.rows().at
        if row.table_id is not None and at is not None:
            return self.samples(owner, row.table_id, row.choices).X.iloc[at]
        X = dialog.tuning_samples()
        if not isinstance(X, pandas.DataFrame):
            dense = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
            X = pandas.DataFrame(dense, columns=[f"x{j}" for j in range(dense.shape[1])])
        return X.set_axis(pandas.RangeIndex(len(X)) if at is None else at)


def source_of(facts: Record) -> Source:
    """The source of a stored table."""
    return Source(**facts["source"])


def _can_export(model: SteeredClassifier) -> bool | None:
    """Whether a model can be exported to ONNX; None without the extra, which tells."""
    return can_export(model) if find_spec("skl2onnx") is not None else None


def kind_of(dialog: Dialog) -> str:
    """The kind of a dialog: "committee" or "program"."""
    return "committee" if dialog.program is None else "program"
