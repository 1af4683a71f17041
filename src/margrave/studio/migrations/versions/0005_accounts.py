"""The accounts of certification data belong to rows, in the whole store, and not to dialogs.

A dialog's account becomes one of the rows of its table. If the table is gone, its rows cannot be
known again: no model of this dialog can be certified any more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from margrave.steer import Account, Ledger, RowSample, Use
from margrave.studio.uploads import frame_of

revision = "0005"
down_revision = "0004"

Record = dict[str, Any]

_dialogs = sa.table(
    "dialogs",
    sa.column("id", sa.Text()),
    sa.column("table_id", sa.Text()),
    sa.column("updated", sa.DateTime(timezone=True)),
    sa.column("choices", sa.JSON()),
    sa.column("facts", sa.JSON()),
    sa.column("accounts", sa.JSON()),
    sa.column("refused", sa.JSON()),
    sa.column("row_hashes", sa.LargeBinary()),
)
_steps = sa.table(
    "steps",
    sa.column("dialog_id", sa.Text()),
    sa.column("number", sa.Integer()),
    sa.column("preference", sa.Text()),
)
_acceptances = sa.table(
    "acceptances", sa.column("dialog_id", sa.Text()), sa.column("record", sa.JSON())
)
_tables = sa.table("tables", sa.column("id", sa.Text()), sa.column("data", sa.LargeBinary()))


def upgrade() -> None:
    """From version 0004."""
    accounts = op.create_table(
        "accounts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=True),
        sa.Column("delta", sa.Double(), nullable=False),
        sa.Column("uses", sa.JSON(), nullable=False),
        sa.Column("hashes", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_accounts_target", "accounts", ["target"])
    op.add_column("dialogs", sa.Column("refused", sa.JSON(), nullable=True))
    op.add_column("dialogs", sa.Column("row_hashes", sa.LargeBinary(), nullable=True))
    connection = op.get_bind()
    ledgers: dict[str | None, Ledger] = {}
    for dialog in connection.execute(sa.select(_dialogs)).mappings().all():
        values: Record = {"refused": [use for one in dialog["accounts"] for use in one["refused"]]}
        facts, target = dialog["facts"], dialog["choices"].get("target")
        if facts is not None and facts.get("certify") is not None:
            rows = _rows_of(connection, dialog["table_id"], dialog["choices"])
            certify = None if rows is None else {"n": facts["certify"]["n"]}
            values["facts"] = {**facts, "certify": certify}
            if rows is not None:
                values["row_hashes"] = _bytes_of(rows)
                ledger = ledgers.setdefault(target, Ledger(target))
                ledger.add(
                    [
                        Account(one["delta"], rows, target, tuple(_uses(connection, dialog, one)))
                        for one in dialog["accounts"]
                    ]
                )
        changed = sa.update(_dialogs).where(_dialogs.c.id == dialog["id"])
        connection.execute(changed.values(**values))
    found = [account for ledger in ledgers.values() for account in ledger.read()]
    for account in found:
        record = account.to_dict()
        hashes = _bytes_of(account.rows)
        values = {name: record[name] for name in ("target", "delta", "uses")}
        connection.execute(sa.insert(accounts).values(hashes=hashes, **values))
    with op.batch_alter_table("dialogs") as batch:
        batch.alter_column("refused", nullable=False)
        batch.drop_column("accounts")


def _rows_of(connection: sa.Connection, table_id: str | None, choices: Record) -> RowSample | None:
    """Sample the rows of a dialog's table, as training does; None if the table is gone."""
    query = sa.select(_tables.c.data).where(_tables.c.id == table_id)
    data = connection.execute(query).scalar()
    if data is None:
        return None
    frame: Any = frame_of(data)
    table = frame.drop(columns=choices["target"])
    others = [choices.get("group"), choices.get("time"), *(choices.get("drop") or ())]
    return RowSample.of(table.drop(columns=[name for name in others if name in table]), table)


def _bytes_of(rows: RowSample) -> bytes:
    return rows.hashes.astype("<u8").tobytes()


def _uses(connection: sa.Connection, dialog: sa.RowMapping, account: Record) -> Iterator[Use]:
    """Describe the uses of a dialog's account, each by a name of its own."""
    models = sa.select(_acceptances.c.record).where(_acceptances.c.dialog_id == dialog["id"])
    certified = {one["use_number"]: one for one in connection.execute(models).scalars()}
    refused = {use["use_number"]: use for use in account["refused"]}
    for number, part in enumerate(account["used"], 1):
        name, day = f"{dialog['id']} {number}", dialog["updated"].date().isoformat()
        if number in certified:
            record = certified[number]
            yield Use(part, record["issued"], record["preference"], "certified", name)
        else:
            step = refused.get(number, {}).get("step")
            wanted = sa.select(_steps.c.preference).where(
                _steps.c.dialog_id == dialog["id"], _steps.c.number == step
            )
            preference = connection.execute(wanted).scalar() or ""
            outcome = "refused" if number in refused else "unfinished"
            yield Use(part, day, preference, outcome, name)


def downgrade() -> None:
    """Back to version 0004; the accounts are lost."""
    op.drop_table("accounts")
    with op.batch_alter_table("dialogs") as batch:
        batch.add_column(
            sa.Column("accounts", sa.JSON(), nullable=False, server_default=sa.text("'[]'"))
        )
        batch.drop_column("refused")
        batch.drop_column("row_hashes")
