"""Revisions of the methods that campaigns compute: a row is current while it has the revision of its method.

A revision is raised by hand whenever a method's results change; renaming or rewriting code that computes the same does not
raise it. Beside each revision stands the fingerprint of a short run. `tests/bench/test_revisions.py` repeats that run and
fails where the fingerprint has changed: then raise the revision, record the new fingerprint, and compute the rows again
with `cbabo bench run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Revision:
    """One state of a method's results."""

    code: str
    """The key of campaign rows that were computed at this revision."""

    fingerprint: tuple[float, float]
    """Two weighted means over every design that a short run evaluates and answers, to 6 significant digits."""


REVISIONS: Mapping[str, Revision] = MappingProxyType(
    {
        "paper": Revision("paper-1", (0.517533, -0.00766471)),
        "all random": Revision("all-random-1", (0.48502, 0.0162995)),
        "default": Revision("default-3", (0.2762, -0.0211124)),
        "default focused": Revision("default-focused-3", (0.466648, 0.0379026)),
        "CMA-ES": Revision("CMA-ES-1", (0.494515, -0.0274668)),
        "cEI": Revision("cEI-1", (0.48196, -0.0274609)),
        "ALBO": Revision("ALBO-1", (0.4858, -0.0294515)),
        "SCBO": Revision("SCBO-1", (0.486004, -0.0276544)),
        "LogcEI": Revision("LogcEI-1", (0.48196, -0.0274609)),
        "LogcEI exact": Revision("LogcEI-exact-1", (0.482789, -0.0284168)),
        "BoTorch LogcEI": Revision("BoTorch-LogcEI-1", (0.483865, -0.0269979)),
        "Optuna": Revision("Optuna-1", (0.483334, -0.0259078)),
        "lhs plain": Revision("lhs-plain-1", (0.488875, -0.0298811)),
        "lhs strong": Revision("lhs-strong-2", (0.489651, -0.0297439)),
        "constant strictest": Revision("constant-strictest-1", (0.497135, -0.0117144)),
        "constant relaxed": Revision("constant-relaxed-1", (0.392699, -0.00616483)),
        "qLogNEHVI": Revision("qLogNEHVI-1", (0.49078, -0.0282007)),
        "plain": Revision("plain-1", (0.484103, -0.0267922)),
        "case study": Revision("case-study-2", (0.484602, -0.0147103)),
    }
)
"""The present revision of each family of methods. Methods of a family differ in settings only, and their names say in which."""
