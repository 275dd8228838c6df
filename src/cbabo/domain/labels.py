"""Names, units and labels: what may be written in a file, a template or on a command line."""

from __future__ import annotations

from cbabo.errors import InputError, shown


def check_name(kind: str, name: object) -> str:
    """Refuse names that could not be written in a file, a template or on a command line."""
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"{kind}: the name must be a non-empty string, got {shown(name)}")
    if name != name.strip() or not name.isprintable() or any(c in name for c in "={}"):
        raise InputError(
            f"{kind} {shown(name)}: a name may not hold '=', '{{', '}}', line breaks or spaces at its ends"
        )
    return str(name)


def check_unit(owner: str, unit: object) -> str:
    """Refuse units that could not be printed in a table."""
    if not isinstance(unit, str) or not unit.isprintable():
        raise InputError(f"{owner}: the unit must be a printable string, got {shown(unit)}")
    return str(unit)


def check_label(owner: str, label: object) -> str:
    """Refuse labels that are no text, or that could not be told apart in a table."""
    if not isinstance(label, str):
        raise InputError(f"{owner}: a label must be text, got {shown(label)}; write it in quotes")
    if not label or label != label.strip() or not label.isprintable():
        raise InputError(
            f"{owner}: a label must be printable text without spaces at its ends and not empty, got {shown(label)}"
        )
    return str(label)
