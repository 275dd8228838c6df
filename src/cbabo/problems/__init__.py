"""The benchmark problems that come with the package, as frozen instances beside their known optimum.

All have the same form: minimise f(x) subject to c_j(x) <= theta_j, for every theta in a box; theta = 0 is the
classical problem. Five suites: "paper" (the 16 of the method's paper), "variant" (7 as the literature states
them), "active" (10 in boxes where the limits bind), "rough" (noise, kinks, several basins, failing designs) and
"categorical" (2 with a choice of materials).
`get("three_truss")` returns one, `names()` lists all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType
from typing import get_args

from cbabo.errors import InputError
from cbabo.problems.active import ACTIVE
from cbabo.problems.materials import CATEGORICAL
from cbabo.problems.paper import PAPER
from cbabo.problems.rough import ROUGH
from cbabo.problems.shipped import Optimum, ShippedProblem, Suite
from cbabo.problems.variant import VARIANT

__all__ = ["Optimum", "ShippedProblem", "Suite", "get", "names"]

_CATALOGUE: Mapping[str, ShippedProblem] = MappingProxyType(
    {s.name: s for s in (*PAPER, *VARIANT, *ACTIVE, *ROUGH, *CATEGORICAL)}
)


def get(name: str) -> ShippedProblem:
    """Return the shipped problem of this name, the same instance every time.

    >>> get("three_truss").problem.space.names
    ('x1', 'x2')
    """
    if not isinstance(name, str) or name not in _CATALOGUE:
        advice = _near(name, names()) or "cbabo.problems.names() lists them"
        raise InputError(f"problem: expected the name of a shipped problem, got {name!r}; {advice}")
    return _CATALOGUE[name]


def names(suite: Suite | None = None) -> tuple[str, ...]:
    """List the names of the shipped problems, of one suite or of all.

    >>> names("paper")[:3]
    ('g01', 'g04', 'g07')
    """
    suites: tuple[str, ...] = get_args(Suite)
    if suite is not None and suite not in suites:
        advice = _near(suite, suites) or "leave it out for all problems"
        raise InputError(f"suite: expected {', '.join(suites[:-1])} or {suites[-1]}, got {suite!r}; {advice}")
    return tuple(s.name for s in _CATALOGUE.values() if suite in (None, s.suite))


def _near(given: object, known: Sequence[str]) -> str:
    near = get_close_matches(str(given).lower(), known)
    return f"did you mean {' or '.join(near)}?" if near else ""
