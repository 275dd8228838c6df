"""Run by alembic: apply revisions on the connection that `cbabo.storage.database` hands over."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], render_as_batch=True)
context.run_migrations()
