"""Database URLs: which are understood, and how they are named in messages without their passwords."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from cbabo.errors import InputError

_USER_AND_PASSWORD = re.compile(r"(\w+://[^\s:/@]*):\S*@")
_PASSWORD_OPTION = re.compile(r"(\w*(?:password|passwd|passphrase)\w*=)[^\s&;'\"]+", re.IGNORECASE)


def read_url(url: str) -> URL:
    """Read a database URL, or say in one sentence what is wrong with it, without showing a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # ValueError: the port is not a number
        _, at, rest = str(url).rpartition("@")  # what stands before may be a password
        raise InputError(
            'storage: expected a URL such as "sqlite:///study.db" or "postgresql://user@host:5432/name", '
            f"got {hide_passwords(f'...@{rest}' if at else repr(url))}"
        ) from error
    if parsed.get_backend_name() == "postgresql":
        if "@" in (parsed.host or ""):
            raise InputError("storage: a password with @ in it must be written with %40 instead")
        return parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() != "sqlite":
        raise InputError(f"storage: only sqlite and postgresql are supported, got {parsed.get_backend_name()!r}")
    if parsed.host:
        raise InputError(
            "storage: sqlite takes three slashes, as in sqlite:///study.db (four for an absolute path), "
            f"got {hide_passwords(repr(url))}"
        )
    return parsed


def label(url: URL) -> str:
    """Name the database in messages, without its password."""
    hidden = {name: "***" for name in url.query if _PASSWORD_OPTION.match(f"{name}=x")}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def hide_passwords(text: str) -> str:
    """Return a text in which the passwords of database URLs are replaced by ***."""
    return _PASSWORD_OPTION.sub(r"\1***", _USER_AND_PASSWORD.sub(r"\1:***@", text))


def sqlite_file(url: URL) -> Path | None:
    """Return the file of a SQLite database; None for others, and for one in memory."""
    in_memory = url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:")
    return None if in_memory else Path(str(url.database))
