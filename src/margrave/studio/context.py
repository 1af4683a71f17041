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
from margrave.studio.store import BUSY, Conflict, Store
from margrave.studio.views import Record, support_record
from margrave.studio.workspace import Workspace

_EXPORTS, _EXPORTS_OF_USER = 12, 4  # that run or wait
_READ_ONLY = {"read_only": True, "link": None, "job": None, "can_undo": False, "can_redo": False}


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
        """Make one file of a model at a time; only a few requests may wait in their threads.

        Readers of a shared link count as one user, apart from the owner of the dialog.
        """
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

    def record(self, owner: str, dialog_id: str, *, reads_only: bool = False) -> Record:
        """A dialog as the page shows it to its owner, or to who has its read-only link."""
        self.workspace.catch_up(owner, dialog_id)
        job = self.jobs.table.of_dialog(dialog_id)  # first: what it stores is read after it
        stored = self.store.overview(owner, dialog_id)
        row, table = stored.dialog, stored.table
        facts, choices = row.facts or {}, row.choices
        steps = [step.record for step in stored.steps]
        accepted = [model.record for model in stored.acceptances]
        confidence, certify = choices.get("confidence", 0.95), facts.get("certify")
        account = self.workspace.account(row)
        left, opened = 1.0, None  # what is left, and the confidence of the first guarantee
        if account is not None and account.uses:
            left, opened = account.left / account.delta, round(1 - account.delta, 9)
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
            "left": describe_left(certify, account, left, with_uses=not reads_only),
            "used_up": left == 0,
            "opened": opened,
            "job": None if job is None else self.jobs.record(job),
            "saved": self.saves,
            "updated": row.updated,
            "link": self.link(row.id, row.share_key),
            "read_only": False,
        } | (_READ_ONLY if reads_only else {})

    def link(self, dialog_id: str, key: str | None) -> str | None:
        """The address of a dialog's read-only view; None without a key.

        The key is in the fragment, which browsers do not send: it is in no log of a proxy.
        """
        return None if key is None else f"{self.settings.addresses()[-1]}#/s/{dialog_id}/{key}"


def describe_left(
    certify: Record | None, account: Account | None, fraction: float, *, with_uses: bool
) -> str:
    """Describe what is left of the certification data, and what has used them.

    The uses may belong to other dialogs, which readers of a shared link must not see.
    """
    if certify is None or account is None:
        return "There is no certification set, so no model can be certified."
    rows = f"{certify['n']:,} rows"
    if not account.uses:
        return f"No guarantee has used the certification set ({rows})."
    if account.used_up:
        left = (
            f"The certification set ({rows}) is used up: another guarantee needs new labelled rows."
        )
    else:
        left = (
            f"{fraction:.0%} of the error probability of the certification set ({rows}) is left "
            "for another guarantee."
        )
    uses = f" Guarantees on the rows of this table: {'; '.join(map(str, account.uses))}."
    return left + uses if with_uses else left


def get_studio(request: Request) -> Studio:
    """Return the studio that serves a request."""
    studio: Studio = request.app.state.studio
    return studio


def get_user(request: Request) -> str:
    """Return the key of the user that the guard has identified."""
    user: str = request.scope["state"]["user"]
    return user


def reads_only(request: Request) -> bool:
    """Whether the request came with the key of a read-only link."""
    answer: bool = request.scope["state"]["reads_only"]
    return answer


StudioParameter = Annotated[Studio, Depends(get_studio)]
UserParameter = Annotated[str, Depends(get_user)]
ReadsOnlyParameter = Annotated[bool, Depends(reads_only)]
