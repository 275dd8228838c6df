"""Alembic's scripts: how a database of one revision becomes one of the next."""
