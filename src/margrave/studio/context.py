"""What every request needs: the studio's parts, and the user."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated

from fastapi import Depends, Request

from margrave.steer import Account, SplitSizes
from margrave.studio.job_table import TooMany
from margrave.studio.jobs import Jobs
from margrave.studio.settings import Settings
from margrave.studio.store import BUSY, Conflict, DialogRow, Store
from margrave.studio.views import Record, support_record
from margrave.studio.workspace import Workspace

ELSEWHERE = (
    " Another dialog on this table has used the same rows for certification: a choice between "
    "models that were certified on the same rows makes the stated confidence too high."
)
_EXPORTS, _EXPORTS_OF_USER = 12, 4  # that run or wait


@dataclass(eq=False)
class Studio:
    """A running studio.

    Attributes
    ----------
    settings : Settings
        The address and the limits.
    store : Store
        The database.
    workspace : Workspace
        The dialogs in memory.
    jobs : Jobs
        The jobs.
    saves : bool
        Whether dialogs outlive the process; those of a notebook do not.
    """

    settings: Settings
    store: Store
    workspace: Workspace
    jobs: Jobs
    saves: bool = True
    _uploaders: set[str] = field(default_factory=set)
    _exporters: Counter[str] = field(default_factory=Counter)
    _turn: Lock = field(default_factory=Lock)
    _export: Lock = field(default_factory=Lock)

    def close(self) -> None:
        """Interrupt the running jobs, which continue at the next start, and close the store."""
        try:
            self.jobs.close(timeout=5)
        finally:
            self.store.close()

    @contextmanager
    def uploading(self, owner: str) -> Iterator[None]:
        """Allow one upload of a user at a time, so that no user blocks all threads."""
        with self._turn:
            if owner in self._uploaders:
                raise TooMany("Another file of yours is being read; wait until it is done.")
            self._uploaders.add(owner)
        try:
            yield
        finally:
            with self._turn:
                self._uploaders.discard(owner)

    @contextmanager
    def exporting(self, owner: str) -> Iterator[None]:
        """Make one file of a model at a time; only a few requests may wait in their threads."""
        with self._turn:
            if self._exporters[owner] >= _EXPORTS_OF_USER:
                raise TooMany("Other files of yours are being made; wait until they are done.")
            if self._exporters.total() >= _EXPORTS:
                raise TooMany("Too many files are being made; try again in a minute.")
            self._exporters[owner] += 1
        try:
            with self._export:
                yield
        finally:
            with self._turn:
                self._exporters[owner] -= 1
                self._exporters += Counter()  # drops users without exports

    def check_idle(self, owner: str, dialog_id: str) -> None:
        """Refuse to wait for a job that works on a user's dialog."""
        self.store.dialog(owner, dialog_id)  # refuses another user's dialog
        if self.jobs.table.of_dialog(dialog_id) is not None:
            raise Conflict(BUSY)

    def _certified_elsewhere(self, owner: str, row: DialogRow) -> bool:
        """Whether another dialog on the same table has used its certification set."""
        dialogs = self.store.dialogs(owner)
        others = [other for other in dialogs if other.id != row.id and other.accounts]
        tables = {other.table_id for other in others} - {None}
        if row.table_id is None or not tables:
            return False
        digests = {
            self.store.table(owner, id_).facts["digest"] for id_ in tables if id_ is not None
        }
        return self.store.table(owner, row.table_id).facts["digest"] in digests

    def record(self, owner: str, dialog_id: str) -> Record:
        """A dialog as the page shows it, read from the store."""
        self.workspace.catch_up(owner, dialog_id)
        job = self.jobs.table.of_dialog(dialog_id)  # first: what it stores is read after it
        stored = self.store.overview(owner, dialog_id)
        row, table = stored.dialog, stored.table
        facts, choices = row.facts or {}, row.choices
        steps = [step.record for step in stored.steps]
        accepted = [model.record for model in stored.acceptances]
        confidence, certify = choices.get("confidence", 0.95), facts.get("certify")
        left = fraction_left(certify, row.accounts)
        opened = first_confidence(certify, row.accounts)
        elsewhere = ELSEWHERE if self._certified_elsewhere(owner, row) else ""
        support = []
        if facts:
            sizes = SplitSizes(**facts["parts"], certify_by_class=dict(facts["sizes"]))
            support = support_record(sizes, 1 - (1 - (opened or confidence)) * (left or 1))
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
            "support": support,
            "confidence": confidence,
            "n": facts.get("n", 0),
            "position": row.position,
            "undone": list(row.undone),
            "can_undo": row.position > 0,
            "can_redo": bool(row.undone),
            "steps": steps,
            "accepted": accepted,
            "left": describe_left(certify, left) + elsewhere,
            "used_up": left == 0,
            "opened": opened,
            "job": None if job is None else self.jobs.record(job),
            "saved": self.saves,
            "updated": row.updated,
        }


def first_confidence(certify: Record | None, accounts: list[Record]) -> float | None:
    """The confidence of the first use of the certification set; None if it is unused."""
    for account in accounts:
        if certify is not None and account["samples"] == certify["name"]:
            return round(1 - float(account["delta"]), 9)
    return None


def fraction_left(certify: Record | None, accounts: list[Record]) -> float:
    """The fraction that is left of the error probability of the certification set."""
    for account in accounts:
        if certify is not None and account["samples"] == certify["name"]:
            ledger = Account(certify["name"], account["delta"], tuple(account["used"]))
            return ledger.left / ledger.delta
    return 1.0


def describe_left(certify: Record | None, fraction: float) -> str:
    """Describe what is left of the certification set."""
    if certify is None:
        return "There is no certification set, so no model can be certified."
    rows = f"{certify['n']:,} rows"
    if fraction == 1:
        return f"No step of this dialog has used the certification set ({rows})."
    if fraction == 0:
        return (
            f"The certification set ({rows}) is used up: another guarantee needs new labelled rows."
        )
    return (
        f"{fraction:.0%} of the error probability of the certification set ({rows}) is left for "
        "another guarantee."
    )


def get_studio(request: Request) -> Studio:
    """Return the studio that serves a request."""
    studio: Studio = request.app.state.studio
    return studio


def get_user(request: Request) -> str:
    """Return the key of the user that the guard has identified."""
    user: str = request.scope["state"]["user"]
    return user


StudioParameter = Annotated[Studio, Depends(get_studio)]
UserParameter = Annotated[str, Depends(get_user)]
