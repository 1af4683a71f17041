"""The ledger of the store: one for all users, because their tables may have the same rows.

Its accounts outlive the dialogs, tables and users that they come from.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from threading import Lock

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from margrave.steer import Account, Ledger, RowSample
from margrave.studio._tables import AccountRow
from margrave.studio.store import Store

_LOCK_KEY = 0x6C656467  # "ledg", among the advisory locks of a PostgreSQL database
_FEW = 500  # ids in a query; more would exceed what a database allows
# The smallest hashes of some rows that an account is first asked for. It is theirs if it knows a
# quarter of them, and then it knows none of these with a probability of 1e-16 (0.75 ** 128).
_PROBES = 128


class AccountCache:
    """The accounts that were read from a store, by their ids; it holds what the store holds.

    An account costs a millisecond to decode and the store never changes it, so that only new ones
    are read.
    """

    def __init__(self) -> None:
        self._known: dict[str | None, dict[int, Account]] = {}
        self._lock = Lock()

    def read(self, session: Session, target: str | None) -> dict[int, Account]:
        """Return the accounts of a target, by their ids in order.

        Parameters
        ----------
        session : Session
            A transaction; all that it sees is committed.
        target : str or None
            The name of the column with the labels.

        Returns
        -------
        dict of int to Account
        """
        of_target = AccountRow.target == target
        ids = session.scalars(select(AccountRow.id).where(of_target).order_by(AccountRow.id)).all()
        with self._lock:
            known = self._known.get(target, {})
        missing = [id_ for id_ in ids if id_ not in known]
        if missing:
            query = select(AccountRow).where(of_target)
            if len(missing) <= _FEW:
                query = query.where(AccountRow.id.in_(missing))
            known = known | {row.id: read_account(row) for row in session.scalars(query)}
        accounts = {id_: known[id_] for id_ in ids}
        with self._lock:
            if accounts:
                self._known[target] = accounts
            else:
                self._known.pop(target, None)
        return accounts


class StoreLedger(Ledger):
    """The accounts of one target, in a store.

    Parameters
    ----------
    store : Store
        The store.
    target : str or None
        The name of the column with the labels.
    cache : AccountCache, optional
        The accounts that were read before.
    """

    def __init__(self, store: Store, target: str | None, cache: AccountCache | None = None) -> None:
        super().__init__(target)
        self._store = store
        self._cache = AccountCache() if cache is None else cache

    @contextmanager
    def open(self) -> Iterator[list[Account]]:
        """Open the accounts for changes, in one transaction; others wait, of any process.

        Yields
        ------
        list of Account
            The accounts.
        """
        with self._store.write() as session:
            if self._store.is_shared:
                session.execute(select(func.pg_advisory_xact_lock(_LOCK_KEY)))
            ids = {account: id_ for id_, account in self._cache.read(session, self.target).items()}
            accounts = list(ids)
            yield accounts
            gone = [ids[account] for account in ids.keys() - set(accounts)]
            for first in range(0, len(gone), _FEW):
                session.execute(
                    delete(AccountRow).where(AccountRow.id.in_(gone[first : first + _FEW]))
                )
            session.add_all(make_row(account) for account in accounts if account not in ids)

    def read(self) -> Sequence[Account]:
        """Return the accounts, without waiting for others.

        Returns
        -------
        sequence of Account
        """
        with self._store.read() as session:
            return list(self._cache.read(session, self.target).values())

    def accounts_of(self, accounts: Sequence[Account], rows: RowSample) -> list[Account]:
        """Return the accounts of some rows; compare only those that know some of them."""
        probes = rows.hashes[:_PROBES]
        near = [account for account in accounts if _knows_any(account.rows.hashes, probes)]
        return super().accounts_of(near, rows)


def _knows_any(hashes: NDArray[np.uint64], probes: NDArray[np.uint64]) -> bool:
    """Whether sorted hashes have one of some others."""
    at = np.searchsorted(hashes, probes)
    return bool((hashes.take(at, mode="clip") == probes).any()) if len(hashes) else False


def read_rows(data: bytes) -> RowSample:
    """Return the rows that :func:`bytes_of_rows` has written."""
    return RowSample(np.frombuffer(data, "<u8").astype(np.uint64, copy=False))


def bytes_of_rows(rows: RowSample) -> bytes:
    """Return the hashes of rows, the same on all machines."""
    return rows.hashes.astype("<u8").tobytes()


def read_account(row: AccountRow) -> Account:
    """Return the account that a row holds; a damaged one is an error."""
    rows = base64.b64encode(row.hashes).decode("ascii")
    record = {"delta": row.delta, "target": row.target, "uses": row.uses, "rows": rows}
    return Account.from_dict(record)


def make_row(account: Account) -> AccountRow:
    """Return a row that holds an account."""
    return AccountRow(
        target=account.target,
        delta=account.delta,
        uses=[asdict(use) for use in account.uses],
        hashes=bytes_of_rows(account.rows),
    )
