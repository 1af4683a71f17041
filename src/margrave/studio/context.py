"""What every request needs: the studio's parts, and who asks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Any

from fastapi import Depends, Request
from threadpoolctl import threadpool_limits

from margrave.steer._ledger import Account
from margrave.studio.jobs import Cancelled, Handle, Job, TooMany
from margrave.studio.lines import Lines
from margrave.studio.settings import Settings
from margrave.studio.store import Conflict, DialogRow, NotFound, Store
from margrave.studio.views import Record, support_record
from margrave.studio.workspace import Workspace

ELSEWHERE = (
    " Another dialog on this table has a certificate already: who chooses between models that were "
    "certified on the same rows breaks promises more often than they say."
)
BUSY = "The dialog is at work; wait for it, or stop it first."


@dataclass(eq=False)
class Studio:
    """A running studio.

    Attributes
    ----------
    settings : Settings
        Where and how much.
    store : Store
        What is durable.
    workspace : Workspace
        What is in memory.
    queue : Lines
        Long work.
    saves : bool
        Whether dialogs outlive the process; a notebook's do not.
    """

    settings: Settings
    store: Store
    workspace: Workspace
    queue: Lines
    saves: bool = True
    _uploaders: set[str] = field(default_factory=set)
    _turn: Lock = field(default_factory=Lock)

    def submit(self, owner: str, kind: str, dialog_id: str, work: Any, *given: Any) -> Job:
        """Let work on a dialog be done, if nothing else works on it.

        Raises
        ------
        Conflict
            If something does.
        """

        def run(handle: Handle) -> Record:
            # Jobs share the cores: more threads in each would only wait for each other.
            threadpool_limits(1, user_api="openmp")  # of this thread alone
            try:
                found: Record = work(self.workspace, owner, dialog_id, handle, *given)
            except NotFound:  # the dialog was deleted meanwhile
                raise Cancelled from None
            return found

        with self._turn:
            if self.queue.of_dialog(dialog_id) is not None:
                raise Conflict(BUSY)
            return self.queue.submit(owner, kind, dialog_id, run)

    @contextmanager
    def uploading(self, owner: str) -> Iterator[None]:
        """One upload of a user at a time, so that none keeps all threads waiting."""
        with self._turn:
            if owner in self._uploaders:
                raise TooMany("A file of yours is being read; wait for it.")
            self._uploaders.add(owner)
        try:
            yield
        finally:
            with self._turn:
                self._uploaders.discard(owner)

    def idle(self, owner: str, dialog_id: str) -> DialogRow:
        """A user's dialog that nothing works on."""
        row = self.store.dialog(owner, dialog_id)
        if self.queue.of_dialog(dialog_id) is not None:
            raise Conflict(BUSY)
        return row

    def _elsewhere(self, owner: str, row: DialogRow) -> bool:
        """Whether another dialog on the same table has looked at its certify samples."""
        others = [one for one in self.store.dialogs(owner) if one.id != row.id and one.accounts]
        tables = {one.table_id for one in others} - {None}
        if row.table_id is None or not tables:
            return False
        known = {self.store.table(owner, one).facts["digest"] for one in tables if one is not None}
        return self.store.table(owner, row.table_id).facts["digest"] in known

    def record(self, owner: str, dialog_id: str) -> Record:
        """A dialog as the page shows it: all from the store."""
        self.workspace.catch_up(owner, dialog_id)
        row = self.store.dialog(owner, dialog_id)
        facts, choices = row.facts or {}, row.choices
        steps = [step.record for step in self.store.steps(dialog_id)]
        accepted = [one.record for one in self.store.acceptances(dialog_id)]
        job = self.queue.of_dialog(dialog_id)
        table = None if row.table_id is None else self.store.table(owner, row.table_id)
        confidence, certify = choices.get("confidence", 0.95), facts.get("certify")
        share, opened = share_left(certify, row.accounts), opened_at(certify, row.accounts)
        sizes = [(label, n) for label, n in facts.get("sizes", ())]
        return {
            "id": row.id,
            "title": row.title,
            "table": None if table is None else {"id": table.id, "name": table.name},
            "target": choices.get("target"),
            "kind": choices["kind"],
            "state": row.state,
            "error": row.error,
            "classes": facts.get("classes", []),
            "positive": facts.get("positive"),
            "members": facts.get("members", choices.get("members") or []),
            "parts": facts.get("parts"),
            "support": support_record(sizes, 1 - (1 - (opened or confidence)) * (share or 1)),
            "confidence": confidence,
            "n": facts.get("n", 0),
            "position": row.position,
            "undone": list(row.undone),
            "can_undo": row.position > 0,
            "can_redo": bool(row.undone),
            "steps": steps,
            "accepted": accepted,
            "left": left_of(certify, share) + (ELSEWHERE if self._elsewhere(owner, row) else ""),
            "used_up": share == 0,
            "opened": opened,
            "job": None if job is None else job.record(),
            "saved": self.saves,
            "updated": row.updated.isoformat(),
        }


def opened_at(certify: Record | None, accounts: list[Record]) -> float | None:
    """The confidence at which the certify samples were first looked at."""
    for account in accounts:
        if certify is not None and account["samples"] == certify["name"]:
            return round(1 - float(account["delta"]), 9)
    return None


def share_left(certify: Record | None, accounts: list[Record]) -> float:
    """Which share is left of what may be spent on the certify samples."""
    for account in accounts:
        if certify is not None and account["samples"] == certify["name"]:
            spent = Account(certify["name"], account["delta"], tuple(account["used"]))
            return spent.left / spent.delta
    return 1.0


def left_of(certify: Record | None, share: float) -> str:
    """What is left of the certify samples, in a sentence."""
    if certify is None:
        return "Nothing was set aside for a certificate."
    n = f"{certify['n']:,} certify samples"
    if share == 1:
        return f"No step of this dialog has looked at the {n}: all are left for a promise."
    if share == 0:
        return f"The {n} are spent: another promise needs fresh ones."
    return f"{share:.0%} of what may be spent on the {n} is left."


def the_studio(request: Request) -> Studio:
    """The studio that a request came to."""
    found: Studio = request.app.state.studio
    return found


def the_user(request: Request) -> str:
    """Who asks, as the guard has found."""
    found: str = request.scope["state"]["user"]
    return found


TheStudio = Annotated[Studio, Depends(the_studio)]
TheUser = Annotated[str, Depends(the_user)]
