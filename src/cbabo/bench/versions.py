"""Versions of the code that computes a method: a hash over the modules that it imports, directly or not.

Only this package's modules count, and of these only the code: comments, docstrings and layout do not. So an edit of a table or of
the command line leaves a campaign's rows valid, and an edit of the network leaves those of methods that have none.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path

_PACKAGE = "cbabo"
_APART = (
    "cbabo.bench.truth",  # read for its fixed thresholds: how its optima were found does not matter
    # what a model makes when first asked for it; methods that ask for it name it
    "cbabo.decisions.recommend",
    "cbabo.solver.library",
    "cbabo.network.distillation",
)


def version(modules: tuple[str, ...], stated: str = "", apart: tuple[str, ...] = ()) -> str:
    """Return a short hash of the code behind these modules and of what else was stated, such as settings.

    apart: modules that do not count, nor what only they import.
    """
    digest = hashlib.sha256(stated.encode())
    for name in sorted(closure(modules, apart)):
        digest.update(f"{name}\n{_code(name)}\n".encode())
    return digest.hexdigest()[:10]


def closure(modules: tuple[str, ...], apart: tuple[str, ...] = ()) -> frozenset[str]:
    """Return these modules of the package and all that they import, lazily or not, but for what is set apart."""
    found: set[str] = set()
    todo = list(modules)
    while todo:
        name = todo.pop()
        if name not in found and name not in apart:
            found.add(name)
            todo += _imported(name)
    return frozenset(found)


@cache
def _imported(name: str) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(_tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {_home(node.module, alias.name) for alias in node.names}
    return frozenset(m for m in found if m.startswith(f"{_PACKAGE}.") and m not in _APART and _file(m))


def _home(module: str, name: str) -> str:
    """Return the module that a name comes from: what a package only passes on does not depend on all that it passes on."""
    if not module.startswith(_PACKAGE) or (file := _file(module)) is None:
        return module
    if file.name == "__init__.py":
        if _file(f"{module}.{name}"):
            return f"{module}.{name}"
        for node in _tree(module).body:
            if isinstance(node, ast.ImportFrom) and node.module and name in {a.asname or a.name for a in node.names}:
                original = next(a.name for a in node.names if name == (a.asname or a.name))
                return _home(node.module, original)
    return module


@cache
def _code(name: str) -> str:
    """Return a module's code without comments and docstrings."""
    tree = _tree(name)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [part for part in body if not _is_text(part)] or [ast.Pass()]  # type: ignore[attr-defined]
    return ast.unparse(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _tree(name: str) -> ast.Module:
    file = _file(name)
    assert file is not None
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _file(name: str) -> Path | None:
    """Return a module's source; None where the name is not a module but something in one."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)
