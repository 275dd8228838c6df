"""Optuna studies: their trials as a table of old runs, and a study's evaluations as trials.

An Optuna study holds the objective as a trial's value, and raw outputs as numbers in its user attributes. A constraint of Optuna
is stored as a slack, which is at most 0 where it holds; the limit behind it cannot be told from it, so that it becomes a column
"constraint NAME" of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from cbabo.domain.categorical import Categorical
from cbabo.domain.evaluations import Evaluation
from cbabo.domain.problem import Problem
from cbabo.domain.space import AnyVariable, Integer, Real
from cbabo.errors import InputError, MissingExtraError, shown
from cbabo.numerics.arrays import is_number
from cbabo.storage.urls import hide_passwords

if TYPE_CHECKING:
    import optuna

    from cbabo.study.study import Study

SCHEME = "optuna://"
"""How the address of an Optuna study begins: optuna://STORAGE::NAME."""


def read_optuna(address: str, problem: Problem) -> tuple[pd.DataFrame, int]:
    """Return the complete trials of an Optuna study as a table, and how many others it has.

    address: optuna://STORAGE::NAME, where STORAGE is a URL that Optuna knows, or a journal file; without ::NAME the storage must
    hold one study. Columns are the parameters, the objective, the numbers among the user attributes, and the constraints.
    """
    url, _, name = address.removeprefix(SCHEME).partition("::")
    with _optuna() as optuna:
        storage = _storage(optuna, url, create=False)
        names = optuna.get_all_study_names(storage)
        if name not in names and (name or len(names) != 1):
            known = ", ".join(map(repr, sorted(names))) or "none"
            raise InputError(
                f"{hide_passwords(address)}: expected the name of a study after '::', got {shown(name)}; there are: {known}"
            )
        study = optuna.load_study(study_name=name or names[0], storage=storage)
        if len(study.directions) != 1:
            raise InputError(
                f"{hide_passwords(address)}: the study has {len(study.directions)} objectives; "
                "store all but one of them as user attributes, and import a study with one"
            )
        trials = study.get_trials(deepcopy=False)
        complete = [trial for trial in trials if trial.state == optuna.trial.TrialState.COMPLETE]
    return pd.DataFrame([_row(trial, problem) for trial in complete]), len(trials) - len(complete)


def write_optuna(study: Study, address: str, limits: Mapping[str, float] | None = None) -> int:
    """Write the evaluations of a study as trials of a new Optuna study, and return how many.

    Outputs become user attributes. limits: the thresholds of which the constraints' slacks are stored, since Optuna keeps no raw
    outputs of constraints; None: the nominal ones. Failed evaluations become failed trials.
    """
    problem = study.problem
    url, _, name = address.removeprefix(SCHEME).partition("::")
    thresholds = problem.box.complete(limits or {})
    with _optuna() as optuna:
        storage = _storage(optuna, url, create=True)
        wanted = name or study.name
        if wanted in optuna.get_all_study_names(storage):
            raise InputError(
                f"{hide_passwords(address)}: there is a study {wanted!r} already; choose another name after '::'"
            )
        made = optuna.create_study(study_name=wanted, storage=storage, direction=problem.objective.direction)
        rows = [row for row in study.evaluations if row.state in ("complete", "failed")]
        distributions = {v.name: _distribution(optuna, v) for v in problem.variables}
        made.add_trials([_trial(optuna, problem, row, thresholds, distributions) for row in rows])
    return len(rows)


def _row(trial: optuna.trial.FrozenTrial, problem: Problem) -> dict[str, Any]:
    outputs = {name: value for name, value in trial.user_attrs.items() if is_number(value) or isinstance(value, list)}
    found: dict[str, Any] = dict(trial.params)
    for name, value in outputs.items():
        if isinstance(value, list):
            found |= {f"{name}[{i}]": part for i, part in enumerate(value)}
        else:
            found[name] = value
    found.setdefault(problem.objective.name, trial.value)
    return found | {f"constraint {name}": slack for name, slack in _constraints(trial).items()}


def _constraints(trial: optuna.trial.FrozenTrial) -> dict[str, float]:
    """Return the slacks of a trial, by name, or by number where an older Optuna stored them."""
    named = getattr(trial, "constraints", None)
    if named:
        return dict(named)
    return {str(i): slack for i, slack in enumerate(trial.system_attrs.get("constraints") or ())}


def _trial(
    optuna: Any, problem: Problem, row: Evaluation, thresholds: Mapping[str, float], distributions: Mapping[str, Any]
) -> Any:
    state = optuna.trial.TrialState.COMPLETE if row.state == "complete" else optuna.trial.TrialState.FAIL
    stated = {"params": dict(row.point), "distributions": dict(distributions), "state": state}
    if row.state == "failed":
        return optuna.trial.create_trial(**stated, user_attrs={"failure": row.failure})
    slacks = {}
    for c in problem.constraints:
        limit = thresholds[c.name] if c.limit is None else c.limit
        for output in c.output_names:
            name = c.name if len(c.output_names) == 1 else f"{c.name} ({output})"
            slacks[name] = c.sign * (row.outputs[output] - limit)
    return optuna.trial.create_trial(
        **stated, value=row.outputs[problem.objective.name], user_attrs=dict(row.outputs), constraints=slacks
    )


def _distribution(optuna: Any, variable: AnyVariable) -> Any:
    kinds = optuna.distributions
    if isinstance(variable, Integer):
        return kinds.IntDistribution(variable.low, variable.high)
    if isinstance(variable, Real):
        return kinds.FloatDistribution(variable.low, variable.high, log=variable.log)
    values = variable.values if isinstance(variable, Categorical) else map(float, variable.values)
    return kinds.CategoricalDistribution(tuple(values))


def _storage(optuna: Any, url: str, *, create: bool) -> Any:
    """Open a storage of Optuna; nothing is created where one is only read."""
    if not url:
        raise InputError(
            "optuna: expected optuna://STORAGE::NAME, such as optuna://sqlite:///trials.db::truss, got no storage"
        )
    file = re.sub(r"^sqlite:///", "", url)
    is_file = url.startswith("sqlite:///") or "://" not in url
    if not create and is_file and not Path(file).is_file():
        raise InputError(f"optuna: there is no file {file}; check the path")
    if "://" in url:
        return optuna.storages.RDBStorage(url)
    return optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(url))


@contextmanager
def _optuna() -> Iterator[Any]:
    """Import Optuna, and turn its errors of storages and databases into one sentence."""
    try:
        import optuna
    except ModuleNotFoundError as error:
        raise MissingExtraError("optuna: Optuna is not installed; pip install optuna") from error
    from sqlalchemy.exc import SQLAlchemyError

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield optuna
    except (SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        first = hide_passwords(str(error).splitlines()[0])
        raise InputError(f"optuna: the storage cannot be used ({first}); check its address") from error
    finally:
        optuna.logging.set_verbosity(before)
