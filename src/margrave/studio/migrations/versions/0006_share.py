"""A dialog can have a read-only link, whose secret is kept with it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """From version 0005."""
    op.add_column("dialogs", sa.Column("share_key", sa.Text(), nullable=True))


def downgrade() -> None:
    """Back to version 0005; the links are lost."""
    with op.batch_alter_table("dialogs") as batch:
        batch.drop_column("share_key")
