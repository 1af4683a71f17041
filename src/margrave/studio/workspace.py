"""Dialogs that are alive, and the store behind them.

The store has everything that the page shows as saved; a dialog in memory is a convenience that can
be dropped at any time and is put together again from its pieces. So memory is bounded by dropping
those that were not used for longest, and a killed studio comes back where it was.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from margrave._indexing import select_rows
from margrave.app._job import Parts
from margrave.app._samples import Samples
from margrave.export._graph import ExportError
from margrave.steer._dialog import Dialog
from margrave.steer._ledger import Account
from margrave.steer._steered import SteeredClassifier
from margrave.steer._steps import (
    StoredModel,
    StoredStep,
    dump_model,
    dump_start,
    dump_step,
    restore_dialog,
)
from margrave.steer._tuning_data import Candidate
from margrave.studio import views
from margrave.studio.choices import Source, samples
from margrave.studio.programs import call_of
from margrave.studio.store import Conflict, DialogRow, Store
from margrave.studio.uploads import frame_of

if TYPE_CHECKING:
    import pandas

# What a dialog takes in memory, as a multiple of what it began with in the store (measured on
# Spambase: 8 MB there, 30 MB alive).
_TIMES = 4
_TABLES = 4  # as a share of that: what tables in memory may take


@dataclass(eq=False)
class Live:
    """A dialog in memory.

    Attributes
    ----------
    dialog : Dialog
        The dialog.
    size : int
        Roughly how many bytes it takes.
    pinned : bool
        Whether it is a notebook's, which the store cannot bring back.
    lock : RLock
        Held by who changes it.
    slow : list of Candidate
        What the dear ways offered, for the frontier.
    dear_from : Candidate or None
        What they began with.
    strategies : dict of int to list
        Which ways a step was allowed, until it is stored.
    accounts : list of dict
        What was spent of certify samples, as it is stored.
    refused : list of dict
        The looks at the samples set aside that ended in a refusal.
    frame : DataFrame or None
        The tuning samples as the user has them.
    """

    dialog: Dialog
    size: int
    pinned: bool = False
    lock: Any = field(default_factory=threading.RLock)
    slow: list[Candidate] = field(default_factory=list)
    dear_from: Candidate | None = None
    strategies: dict[int, list[str] | None] = field(default_factory=dict)
    accounts: list[dict[str, Any]] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)
    frame: pandas.DataFrame | None = None

    def refuse(self, look: dict[str, Any]) -> None:
        """Keep a look at the samples set aside that ended in a refusal."""
        acceptance = self.dialog._ledger
        if acceptance.part is not None:
            name = acceptance.part.name
            number = len(acceptance.accounts[name].used)
            self.refused.append({"look": number, "samples": name, **look})

    def account_records(self) -> list[dict[str, Any]]:
        """What was spent of certify samples, to be stored."""
        return [
            {
                "samples": one.samples,
                "delta": one.delta,
                "used": list(one.used),
                "refused": [look for look in self.refused if look["samples"] == one.samples],
            }
            for one in self.dialog._ledger.accounts.values()
        ]

    @property
    def offers(self) -> list[Candidate]:
        """What the dear ways offered, if requests still begin where they began."""
        return self.slow if self.dear_from is self.dialog._base()[0] else []


class Workspace:
    """All dialogs of a studio.

    Parameters
    ----------
    store : Store
        Where they are durable.
    live_bytes : int
        About how much memory live ones may take.
    """

    def __init__(self, store: Store, live_bytes: int) -> None:
        self.store = store
        self.live_bytes = live_bytes
        self._live: OrderedDict[str, Live] = OrderedDict()
        self._frames: OrderedDict[str, pandas.DataFrame] = OrderedDict()
        self._loading: dict[str, threading.Lock] = {}
        self.closing = False
        self._lock = threading.Lock()

    # Tables

    def frame(self, owner: str, table: str) -> pandas.DataFrame:
        """A user's table."""
        self.store.table(owner, table)  # is it theirs
        with self._lock:
            if table in self._frames:
                self._frames.move_to_end(table)
                return self._frames[table]
        found = frame_of(self.store.table_data(owner, table))
        with self._lock:
            self._frames[table] = found
            sizes = [int(one.memory_usage(deep=True).sum()) for one in self._frames.values()]
            while len(sizes) > 1 and sum(sizes) > self.live_bytes // _TABLES:
                self._frames.popitem(last=False)
                del sizes[0]
        return found

    def samples(self, owner: str, table: str, choices: dict[str, Any]) -> Samples:
        """A user's table, as choices make samples of it."""
        source = source_of(self.store.table(owner, table).facts)
        return samples(self.frame(owner, table), source, choices)

    # Dialogs

    def live(self, owner: str, dialog_id: str) -> Live:
        """A dialog in memory; it is put together if it is not there."""
        row = self.store.dialog(owner, dialog_id)
        if row.state != "ready":
            raise Conflict("This dialog is not trained yet.")
        with self._lock:
            loading = self._loading.setdefault(dialog_id, threading.Lock())
        with loading:
            with self._lock:
                if dialog_id in self._live:
                    self._live.move_to_end(dialog_id)
                    return self._live[dialog_id]
            live = self._loaded(dialog_id)
            self.keep(dialog_id, live)
            return live

    def _loaded(self, dialog_id: str) -> Live:
        """A dialog from its pieces."""
        pieces = self.store.pieces(dialog_id)
        accounts = [Account(a["samples"], a["delta"], tuple(a["used"])) for a in pieces.accounts]
        dialog = restore_dialog(
            pieces.base,
            [StoredStep(step.parent, step.piece) for step in pieces.steps if step.number],
            pieces.position,
            pieces.undone,
            accounts,
            [StoredModel(one.step, one.record["samples"], one.piece) for one in pieces.acceptances],
        )
        size = _TIMES * (len(pieces.base) + sum(len(step.piece) for step in pieces.steps))
        refused = [look for account in pieces.accounts for look in account["refused"]]
        return Live(dialog, size, accounts=pieces.accounts, refused=refused)

    def keep(self, dialog_id: str, live: Live) -> None:
        """Have a dialog in memory, and drop others if they are too many."""
        with self._lock:
            self._live[dialog_id] = live
            self._live.move_to_end(dialog_id)
        self._trim()

    def _trim(self) -> None:
        """Drop dialogs that nobody works on, the longest unused first, down to the limit."""
        with self._lock:
            total = sum(one.size for one in self._live.values())
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
        """Drop a dialog from memory: what is in the store counts. A notebook's only if deleted."""
        with self._lock:
            live = self._live.get(dialog_id)
            if live is not None and (deleted or not live.pinned):
                del self._live[dialog_id]
            if deleted:
                self._loading.pop(dialog_id, None)

    @property
    def n_live(self) -> int:
        """How many dialogs are in memory."""
        return len(self._live)

    @contextmanager
    def held(self, owner: str, dialog_id: str) -> Iterator[Live]:
        """A dialog that nobody else changes meanwhile, and that stays in memory."""
        while True:
            live = self.live(owner, dialog_id)
            live.lock.acquire()
            with self._lock:
                if self._live.get(dialog_id) is live:
                    break
            live.lock.release()  # it was dropped before it was held
        try:
            yield live
        finally:
            live.lock.release()
            self._trim()

    @contextmanager
    def changing(self, owner: str, dialog_id: str) -> Iterator[Live]:
        """A dialog to be changed; what was done is durable at the end, or undone."""
        with self.held(owner, dialog_id) as live:
            try:
                yield live
            finally:
                self.write(dialog_id, live)

    def write(self, dialog_id: str, live: Live) -> None:
        """Make all steps of a dialog durable, and where it stands."""
        history = live.dialog._history
        try:
            stored = self.store.steps(dialog_id)
            for number in range(len(stored), len(history.replies)):
                parent, reply = history.parents[number], history.replies[number]
                more = {
                    "call": call_of(live.dialog, number),
                    "strategies": live.strategies.pop(number, None),
                }
                piece = b"" if live.pinned else dump_step(live.dialog, number)
                record = views.step_record(reply, number, parent) | more
                self.store.add_step(
                    dialog_id, number, parent, record, piece, position=number, undone=[]
                )
                live.size += _TIMES * len(piece)
            self.store.set_position(dialog_id, history.at, list(history.undone))
        except BaseException:
            self.forget(dialog_id)
            raise

    def ready(self, dialog_id: str, dialog: Dialog, parts: Parts, pinned: bool) -> None:
        """A dialog is trained: store what it begins with, and have it in memory."""
        base = b"" if pinned else dump_start(dialog)
        part = dialog._ledger.part
        facts = {
            "classes": list(dialog.classes),
            "positive": dialog.confusion.positive,
            "members": list(dialog.members),
            "parts": asdict(parts),
            "n": dialog.confusion.n,
            "certify": None if part is None else {"name": part.name, "n": len(part.codes)},
            "sizes": views.certify_sizes(dialog),
        }
        start = views.step_record(dialog.history[0], 0, None)
        self.store.set_ready(dialog_id, base, facts, start, b"")
        live = Live(dialog, _TIMES * len(base), pinned=pinned)
        self.keep(dialog_id, live)
        self.write(dialog_id, live)
        self.write_accepted(dialog_id, live)

    def adopt(self, owner: str, title: str, dialog: Dialog) -> str:
        """A notebook's dialog; it lives as long as its process."""
        row = self.store.add_dialog(owner, title, None, {"kind": kind_of(dialog)})
        part, n = dialog._ledger.part, dialog.confusion.n
        certify = 0 if part is None else len(part.codes)
        parts = Parts(n if dialog._data.trained_on else 0, n, certify, 0)
        self.ready(row.id, dialog, parts, pinned=True)
        return row.id

    def write_accepted(self, dialog_id: str, live: Live, reserve: bool = False) -> None:
        """Make accepted models durable, and what was spent for them, or for a refusal."""
        acceptance, accounts = live.dialog._ledger, live.account_records()
        try:
            known = len(self.store.acceptances(dialog_id))
            for number, one in enumerate(acceptance.accepted[known:], start=known + 1):
                record = views.accepted_record(one, number, can_export(one.model))
                record |= {"samples": one.samples, "reserve": reserve}
                piece = dump_model(one)
                self.store.add_acceptance(dialog_id, number, one.step, record, piece, accounts)
            if accounts != live.accounts:
                self.store.set_accounts(dialog_id, accounts)
                live.accounts = accounts
        except BaseException:
            self.forget(dialog_id)
            raise

    def catch_up(self, owner: str, dialog_id: str) -> None:
        """Write down what was done with a notebook's dialog outside of the page."""
        with self._lock:
            live = self._live.get(dialog_id)
        if live is not None and live.pinned and live.lock.acquire(blocking=False):
            try:
                self.store.dialog(owner, dialog_id)  # is it theirs
                self.write(dialog_id, live)
                self.write_accepted(dialog_id, live)
            finally:
                live.lock.release()

    # What samples look like to their user

    def tuning_frame(self, owner: str, dialog_id: str) -> pandas.DataFrame:
        """The tuning samples as the user has them; the index is their place in the table."""
        live, row = self.live(owner, dialog_id), self.store.dialog(owner, dialog_id)
        if live.frame is None:
            live.frame = self._tuning_frame(owner, row, live.dialog)
        return live.frame

    def _tuning_frame(self, owner: str, row: DialogRow, dialog: Dialog) -> pandas.DataFrame:
        import pandas

        tuning_data = dialog._data
        at = tuning_data.at
        if row.table_id is not None and at is not None:
            return self.samples(owner, row.table_id, row.choices).X.iloc[at]
        known, places = tuning_data.X.X, None
        if dialog._given is not None and at is not None:
            known, places = select_rows(dialog._given, at), at
        if not isinstance(known, pandas.DataFrame):
            dense = known.toarray() if hasattr(known, "toarray") else np.asarray(known)
            known = pandas.DataFrame(dense, columns=[f"x{j}" for j in range(dense.shape[1])])
        return known.set_axis(pandas.RangeIndex(len(known)) if places is None else places)


def source_of(facts: dict[str, Any]) -> Source:
    """Where a stored table is from."""
    return Source(**facts["source"])


def can_export(model: SteeredClassifier) -> bool:
    """Whether a model can be written as ONNX."""
    try:
        model.to_onnx()
    except (ExportError, ImportError):
        return False
    return True


def kind_of(dialog: Dialog) -> str:
    """Whether a dialog steers a program."""
    return "committee" if dialog.program is None else "program"
