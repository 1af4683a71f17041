"""Lists of dialogs tell whether an accepted model is useless, without reading its certificate."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """From version 0006, whose certificates do not say so."""
    op.add_column("acceptances", sa.Column("useless", sa.Boolean(), nullable=True))


def downgrade() -> None:
    """Back to version 0006."""
    with op.batch_alter_table("acceptances") as batch:
        batch.drop_column("useless")
