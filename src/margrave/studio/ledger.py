"""The ledger of the store: one for all users, because their tables may have the same rows.

Its accounts outlive the dialogs, tables and users that they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

import numpy as np
from sqlalchemy import func, select

from margrave.steer import Account, Ledger, RowSample, Use
from margrave.studio._tables import AccountRow
from margrave.studio.store import Store

_LOCK_KEY = 0x6C656467  # "ledg", among the advisory locks of a PostgreSQL database


class StoreLedger(Ledger):
    """The accounts of one target, in a store.

    Parameters
    ----------
    store : Store
        The store.
    target : str or None
        The name of the column with the labels.
    """

    def __init__(self, store: Store, target: str | None) -> None:
        super().__init__(target)
        self._store = store
        self._query = select(AccountRow).filter_by(target=target).order_by(AccountRow.id)

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
            known = {read_account(row): row for row in session.scalars(self._query)}
            accounts = list(known)
            yield accounts
            for account, row in known.items():
                if account not in accounts:
                    session.delete(row)
            session.add_all(make_row(account) for account in accounts if account not in known)

    def read(self) -> Sequence[Account]:
        """Return the accounts, without waiting for others.

        Returns
        -------
        sequence of Account
        """
        with self._store.read() as session:
            return [read_account(row) for row in session.scalars(self._query)]


def read_account(row: AccountRow) -> Account:
    """Return the account that a row holds."""
    rows = RowSample(np.frombuffer(row.hashes, "<u8").astype(np.uint64))
    return Account(row.delta, rows, row.target, tuple(Use(**use) for use in row.uses))


def make_row(account: Account) -> AccountRow:
    """Return a row that holds an account."""
    return AccountRow(
        target=account.target,
        delta=account.delta,
        uses=[asdict(use) for use in account.uses],
        hashes=account.rows.hashes.astype("<u8").tobytes(),
    )
