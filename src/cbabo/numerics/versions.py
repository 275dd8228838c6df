"""Versions of this package and of what it computes with, as they are recorded in studies, model files and reports."""

from __future__ import annotations

from importlib import metadata

_RECORDED = ("cbabo", "numpy", "scipy", "torch", "botorch", "gpytorch")


def versions() -> dict[str, str]:
    """Return the installed versions by package name; packages that are not installed are left out."""
    found = {}
    for name in _RECORDED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
