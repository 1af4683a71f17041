"""The ledger: which part of the error probability δ of certification data is used, and by what.

Choosing among ten certified candidates on the same samples breaks a guarantee at δ = 5 % in 8 to
34 % of the cases: it depends on the number of samples and on how the candidates are correlated
(``python -m benchmarks.certificates``).
Therefore each certificate uses a part of δ, whatever its outcome: the first one uses all of it, so
that a second one is refused; or it uses a half, the next one a quarter, and so on. The account
belongs to the rows of a table, not to one dialog on them: another seed draws another certification
set of the same rows, and to keep the best of ten seeds is the same choice.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import date
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from margrave._atomic_write import atomic_write, resolve_file
from margrave._errors import ParameterError
from margrave._file_lock import lock_file, open_regular
from margrave._validation import check_parameters, is_number
from margrave.steer._certificate import Use
from margrave.steer._files import FileError
from margrave.steer._order_statistic import GuaranteeError
from margrave.steer._row_hashes import Hashes, hash_rows

# The number of hashes that stand for the rows of a table. Of m rows of a table of n > 8,192 rows,
# about r = 8,192 m / n can be compared with it: 82 of 10,000 rows of a million. The standard error
# of the fraction of known rows is at most 0.5 / √r, or 0.006 if m = n. With probability exp(-r) no
# row can be compared, and the data seem to be new.
_KEPT = 8192
# Data belong to an account that knows this fraction of their rows. It knows a half of a table to
# which as many new rows were added, and a half of the hashes of a table with another choice of
# features (a row has two hashes: of the features, and of the complete table). A quarter is below
# both, by more than the error above. A few rows that two tables have in common by chance or by
# mistake do not make them the same data.
_SAME = 0.25
_FORMAT = 2  # of the file of a ledger
_ODD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class RowSample:
    """A sample of the rows of a table that two tables can be compared by: the smallest hashes.

    Attributes
    ----------
    hashes : ndarray of uint64
        The smallest hashes of rows, each once, sorted.
    """

    hashes: Hashes

    @classmethod
    def of(cls, *tables: Any, counted: bool = False) -> RowSample:
        """Sample the rows of tables; the order of rows, and of a data frame's columns, is free.

        With `counted`, a row that occurs several times is identified together with this number:
        other rows of a few discrete columns have the same values, but not as often each.
        """
        hashes = [hash_rows(_sort_columns(table)) for table in tables]
        return cls.merged([_with_counts(own) for own in hashes] if counted else hashes)

    @classmethod
    def merged(cls, hashes: Sequence[Hashes]) -> RowSample:
        """Merge samples of rows."""
        return cls(np.unique(np.concatenate(hashes))[:_KEPT])

    def known_fraction(self, rows: RowSample) -> float:
        """Estimate the fraction of some rows that are among those of this sample."""
        limits = [one.hashes[-1] for one in (self, rows) if len(one.hashes) == _KEPT]
        new = rows.hashes[rows.hashes <= min(limits)] if limits else rows.hashes
        return float(np.isin(new, self.hashes).mean()) if len(new) else 0.0

    def to_text(self) -> str:
        """Return the hashes as text, for JSON."""
        return base64.b64encode(self.hashes.astype("<u8").tobytes()).decode("ascii")

    @classmethod
    def from_text(cls, text: str) -> RowSample:
        """Read what :meth:`to_text` returned."""
        return cls(np.frombuffer(base64.b64decode(text, validate=True), "<u8").astype(np.uint64))


def _with_counts(hashes: Hashes) -> Hashes:
    values, counts = np.unique(hashes, return_counts=True)
    return values + (counts - 1).astype(np.uint64) * _ODD


def _sort_columns(table: Any) -> Any:
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return table.iloc[:, np.argsort([str(name) for name in table.columns], kind="stable")]
    return table


@dataclass(frozen=True)
class Grant:
    """The permission to use certification data.

    Attributes
    ----------
    part : float
        The part of the error probability that may be used.
    number : int
        The number of the use, from 1.
    earlier : tuple of Use
        The uses before it.
    """

    part: float
    number: int = 1
    earlier: tuple[Use, ...] = ()


@dataclass(frozen=True, eq=False)
class Account:
    """The error probability of the certification data of a table, and how much of it is used.

    Attributes
    ----------
    delta : float
        The error probability: one minus the confidence of the first certificate.
    rows : RowSample
        Identifies the rows.
    target : str or None
        The name of the column with the labels.
    uses : tuple of Use
        The uses, in order.

    Examples
    --------
    >>> from margrave.datasets import load
    >>> from margrave.steer import Dialog
    >>> X, y = load("pima", return_X_y=True)
    >>> dialog = Dialog.from_data(X, y, committee="logistic", random_state=0)
    >>> reply = dialog.prefer("fn <= 30%")
    >>> model = dialog.accept(reserve=True)
    >>> account = dialog.certification
    >>> round(account.left, 3), account.used_up, [use.preference for use in account.uses]
    (0.025, False, ['fn <= 30%'])
    """

    delta: float
    rows: RowSample
    target: str | None = None
    uses: tuple[Use, ...] = ()

    def __post_init__(self) -> None:
        delta, uses = self.delta, self.uses
        hashes: Any = getattr(self.rows, "hashes", None)
        is_sample = isinstance(hashes, np.ndarray) and hashes.dtype == np.uint64
        is_sample = is_sample and hashes.ndim == 1 and 0 < len(hashes) <= _KEPT
        is_tuple = isinstance(uses, tuple) and all(isinstance(use, Use) for use in uses)
        is_delta = is_number(delta) and (0 < delta < 1 or (delta == 0 and not uses))
        # The parts of merged accounts may be more than delta in total.
        rules = {
            "delta": ("a number between 0 and 1", is_delta),
            "rows": ("a sample of rows", is_sample and bool((hashes[1:] > hashes[:-1]).all())),
            "target": ("a string or None", isinstance(self.target, str | None)),
            "uses": (
                "a tuple of uses with different names",
                is_tuple and len({use.name for use in uses}) == len(uses),
            ),
        }
        check_parameters(self, rules)

    @property
    def used_up(self) -> bool:
        """Whether no further certificate is possible on these data."""
        return bool(self.uses) and not self.left

    @property
    def left(self) -> float:
        """The error probability that is left."""
        used = sum(use.part for use in self.uses)
        return 0.0 if used >= self.delta * (1 - 1e-9) else self.delta - used

    def part_of(self, name: str, delta: float, reserve: bool) -> float:
        """Return what a request may use: the same as before, if it is the same request."""
        return self.grant(name).part if self.has(name) else self.next_part(delta, reserve)

    def next_part(self, delta: float, reserve: bool) -> float:
        """Return what the next certificate may use: all that is left, or half with `reserve`.

        Raises
        ------
        GuaranteeError
            If nothing is left, or if the first certificate has another confidence.
        """
        if not self.left:
            raise GuaranteeError(
                "The certification data are used up. Earlier guarantees on the same rows: "
                f"{'; '.join(map(str, self.uses))}. Choosing among several guarantees tested on "
                "the same rows would break them more often than the confidence says. Use newly "
                "labelled rows; or set reserve for the first guarantee, which keeps half of the "
                "error probability for later ones.",
                code="used_up",
                n_certificates=len(self.uses),
                uses=[use.to_dict() for use in self.uses],
            )
        if abs(delta - self.delta) > 1e-12:
            raise GuaranteeError(
                "All guarantees on the same certification data need the same confidence, here "
                f"{1 - self.delta:.10g}; got {1 - delta:.10g}.",
                code="confidence",
                confidence=1 - self.delta,
                received=1 - delta,
            )
        return self.left / 2 if reserve else self.left

    def with_use(self, use: Use) -> Account:
        """Return the account after another use."""
        return replace(self, uses=(*self.uses, use))

    def has(self, name: str) -> bool:
        """Whether a request is one of the uses."""
        return any(use.name == name for use in self.uses)

    def grant(self, name: str) -> Grant:
        """Return what the use of a request may take."""
        at = [use.name for use in self.uses].index(name)
        return Grant(self.uses[at].part, at + 1, self.uses[:at])

    def to_dict(self) -> dict[str, Any]:
        """Describe the account in values that JSON can hold."""
        uses = [asdict(use) for use in self.uses]
        return {
            "delta": self.delta,
            "target": self.target,
            "rows": self.rows.to_text(),
            "uses": uses,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Account:
        """Read what :meth:`to_dict` returned, of an account that has uses.

        Raises
        ------
        FileError
            If it is damaged.
        """
        try:
            uses = tuple(Use(**use) for use in record["uses"])
            if not uses:
                raise ValueError("the account has no uses")
            rows = RowSample.from_text(record["rows"])
            return cls(record["delta"], rows, record["target"], uses)
        except Exception as error:
            raise FileError(
                "An account of the ledger is damaged: without it nobody knows which certification "
                "data are used up. Restore the ledger.",
                code="damaged",
                name="account",
            ) from error


class Ledger:
    """The accounts of certification data: which guarantees have used them, and what is left.

    Each dialog has a ledger of its own unless you pass one. Pass the same ledger to all dialogs on
    your data, so that they cannot certify on the same rows again and again.

    The ledger recognises data by the values of their rows. Data do not become new if you reorder
    the rows, or the columns of a data frame; if you add, leave out or repeat rows; or if you change
    the seed. Other features do not make them new either, if `table` of :meth:`Dialog.from_data` is
    the complete table. If you add, remove or recode a column of that table, or change `target`, the
    data seem to be new; likewise if you leave out rows of a table of a few different ones, whose
    rows cannot be told apart.

    A subclass can keep the accounts elsewhere: it overrides :meth:`open`.

    Parameters
    ----------
    target : str, default=None
        The name of the column with the labels. Each target has accounts of its own.

    See Also
    --------
    FileLedger : A ledger in a file, for several processes.

    Examples
    --------
    >>> from margrave import datasets
    >>> from margrave.steer import Dialog, GuaranteeError, Ledger
    >>> X, y = datasets.load("pima", return_X_y=True)
    >>> ledger = Ledger()
    >>> for seed in range(2):
    ...     dialog = Dialog.from_data(
    ...         X, y, committee="logistic", random_state=seed, ledger=ledger
    ...     )
    ...     reply = dialog.prefer("fn <= 30%", strategies=["move"])
    ...     try:
    ...         print(dialog.accept().certificate_.guarantees[0].sentence)
    ...     except GuaranteeError as error:
    ...         print(error.code)
    at most 30% of pos predicted neg
    used_up
    """

    def __init__(self, target: str | None = None) -> None:
        self.target = target
        self.in_memory: list[Account] = []  # stays empty where a subclass keeps them elsewhere
        self._lock = Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = Lock()

    @contextmanager
    def open(self) -> Iterator[list[Account]]:
        """Open the accounts for changes; nobody else has them open at the same time.

        Yields
        ------
        list of Account
            The accounts. Changes of the list are kept if the block ends without an error; they are
            durable when it has ended.
        """
        with self._lock:
            accounts = list(self.in_memory)
            yield accounts
            self.in_memory = accounts

    def read(self) -> Sequence[Account]:
        """Return the accounts.

        Returns
        -------
        sequence of Account
        """
        with self.open() as accounts:
            return tuple(accounts)

    def snapshot(self) -> Ledger:
        """Copy the accounts of the target, as they are now.

        Returns
        -------
        Ledger
            A ledger in memory.
        """
        ledger = Ledger(self.target)
        ledger.in_memory = [one for one in self.read() if one.target == self.target]
        return ledger

    def account(self, rows: RowSample, delta: float = 0.0) -> Account:
        """Return the account of some rows; one of `delta` without uses if there is none.

        Parameters
        ----------
        rows : RowSample
            The rows.
        delta : float, default=0.0
            The error probability of a new account.

        Returns
        -------
        Account
            If several accounts know these rows, one with the uses of all of them.
        """
        return self._merge(self.accounts_of(self.read(), rows), rows, delta)

    @contextmanager
    def use(
        self, rows: RowSample, *, name: str, preference: str, delta: float, reserve: bool = False
    ) -> Iterator[Grant]:
        """Record a use of certification data before they are looked at, and then its outcome.

        Parameters
        ----------
        rows : RowSample
            The rows.
        name : str
            Identifies the request: the same request again is the same use.
        preference : str
            What to guarantee.
        delta : float
            The error probability.
        reserve : bool, default=False
            Whether to use only half of what is left.

        Yields
        ------
        Grant
            What may be used.

        Raises
        ------
        GuaranteeError
            If nothing is left.
        """
        with self.open() as accounts:
            same = self.accounts_of(accounts, rows)
            account = self._merge(same, rows, delta)
            is_new = not account.has(name)
            if is_new:
                part, today = account.next_part(delta, reserve), date.today().isoformat()
                account = account.with_use(Use(part, today, preference, "unfinished", name))
                accounts[:] = [*(one for one in accounts if one not in same), account]
        try:
            yield account.grant(name)
        except GuaranteeError as error:
            if error.used_up:
                error.fields["use_number"] = account.grant(name).number
                self._conclude(rows, name, "refused")
            elif is_new:
                self._conclude(rows, name, None)
            raise
        self._conclude(rows, name, "certified")

    def add(self, accounts: Sequence[Account]) -> None:
        """Add accounts that were kept elsewhere.

        Parameters
        ----------
        accounts : sequence of Account
            The accounts; one of the same rows gets their uses.
        """
        for account in accounts:
            with self.open() as known:
                same = self.accounts_of(known, account.rows)
                merged = self._merge([*same, account], account.rows, account.delta)
                known[:] = [*(one for one in known if one not in same), merged]

    def _conclude(self, rows: RowSample, name: str, outcome: str | None) -> None:
        """Record the outcome of a use; without one, remove the use."""
        with self.open() as accounts:
            for account in self.accounts_of(accounts, rows):
                uses = [
                    replace(use, outcome=outcome) if use.name == name and outcome else use
                    for use in account.uses
                    if use.name != name or outcome is not None
                ]
                if tuple(uses) != account.uses:
                    accounts.remove(account)
                    accounts += [replace(account, uses=tuple(uses))] if uses else []

    def accounts_of(self, accounts: Sequence[Account], rows: RowSample) -> list[Account]:
        """Return the accounts of some rows."""
        return [
            account
            for account in accounts
            if account.target == self.target and account.rows.known_fraction(rows) >= _SAME
        ]

    def _merge(self, accounts: Sequence[Account], rows: RowSample, delta: float) -> Account:
        """Merge accounts, and add rows."""
        samples = [rows.hashes, *(account.rows.hashes for account in accounts)]
        return Account(
            min((account.delta for account in accounts), default=delta),
            RowSample.merged(samples),
            self.target,
            _merge_uses([use for account in accounts for use in account.uses]),
        )


def _merge_uses(uses: Sequence[Use]) -> tuple[Use, ...]:
    """List each use once, by date: with the largest part, and its outcome if it has one."""
    merged: dict[str, Use] = {}
    for use in uses:
        known = merged.get(use.name, use)
        outcome = use.outcome if known.outcome == "unfinished" else known.outcome
        part, earliest = max(known.part, use.part), min(known.date, use.date)
        merged[use.name] = replace(known, part=part, outcome=outcome, date=earliest)
    return tuple(sorted(merged.values(), key=lambda use: use.date))


class FileLedger(Ledger):
    """A ledger in a file, which several processes can use at the same time.

    Parameters
    ----------
    path : str or Path
        The file, in a folder that exists. It is created with the first use. A symbolic link is
        followed.
    target : str, default=None
        The name of the column with the labels.

    Raises
    ------
    OSError
        If the path is a folder or a device, or may not be written.
    ParameterError
        If its folder does not exist.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from margrave import datasets
    >>> from margrave.steer import Dialog, FileLedger
    >>> X, y = datasets.load("pima", return_X_y=True)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "certification.json")
    ...     dialog = Dialog.from_data(
    ...         X, y, committee="logistic", random_state=0, ledger=FileLedger(path)
    ...     )
    ...     reply = dialog.prefer("fn <= 30%", strategies=["move"])
    ...     model = dialog.accept()
    ...     other = Dialog.from_data(
    ...         X, y, committee="logistic", random_state=1, ledger=FileLedger(path)
    ...     )
    ...     other.certification.used_up
    True
    """

    def __init__(self, path: str | Path, target: str | None = None) -> None:
        super().__init__(target)
        file = resolve_file(Path(path))
        if not file.parent.is_dir():
            allowed = "a file in a folder that exists"
            raise ParameterError.of("FileLedger", "path", allowed, str(path))
        self.path = str(file)
        self._written = False

    @contextmanager
    def open(self) -> Iterator[list[Account]]:
        """Open the accounts for changes; other threads and processes wait.

        Yields
        ------
        list of Account
            The accounts.

        Raises
        ------
        FileError
            If the file is damaged; or missing, after this ledger has written it.
        """
        path = Path(self.path)
        lock = path.with_name(f".{path.name}.lock")  # nothing is written to it
        with os.fdopen(open_regular(lock, os.O_RDWR | os.O_CREAT), "r+b") as file:
            lock_file(file, wait=True)
            accounts = self._read(path)
            before = list(accounts)
            yield accounts
            if accounts != before:
                records = [one.to_dict() for one in accounts]
                record = {"format": _FORMAT, "digest": _digest(records), "accounts": records}
                with atomic_write(path, ".json") as temporary:
                    temporary.write_text(json.dumps(record, indent=1), encoding="utf-8")
                self._written = True

    def _read(self, path: Path) -> list[Account]:
        """Read the accounts; a file that cannot be read is an error, never an empty ledger."""
        try:
            content = path.read_bytes()
        except FileNotFoundError as error:
            if not self._written:
                return []
            raise FileError(
                f"The ledger {self.path!r} is missing: without it nobody knows which "
                "certification data are used up. Restore the file.",
                code="missing",
                name=self.path,
            ) from error
        try:
            record = json.loads(content)
            records = record["accounts"]
            if record["format"] != _FORMAT or not isinstance(records, list):
                raise ValueError("the file has another format")
            if record["digest"] != _digest(records):
                raise ValueError("the accounts were changed")
            return [Account.from_dict(account) for account in records]
        except Exception as error:
            raise FileError(
                f"The ledger {self.path!r} is damaged, or not a ledger that this version of "
                "Margrave wrote: without it nobody knows which certification data are used up. "
                "Restore the file.",
                code="damaged",
                name=self.path,
            ) from error


def _digest(records: Any) -> str:
    """Return a digest of the accounts in a file, whatever its spaces and line ends."""
    return blake2b(json.dumps(records).encode(), digest_size=16).hexdigest()
