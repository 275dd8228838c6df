"""benchmarks/rough.py: how answers are judged, and which problems names stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmark_scripts import script
from cbabo import Study, problems
from cbabo.bench.truth import truth

subjects, rough, rough_tables = script("subjects"), script("rough"), script("rough_tables")


def test_known_optima_lose_nothing_and_others_are_judged_by_feasibility_only() -> None:
    subject, known = subjects.subject("three_truss"), truth("three_truss")
    assert subject.thresholds.shape == (200, 3)
    assert np.array_equal(subject.thresholds[:100], known.thresholds)
    worth = subject.judged(known.x, np.full(100, 0.5))
    assert (worth.feasible, worth.stated) == (100.0, 50.0)
    assert [worth.loss, worth.gap, worth.lowest] == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)
    strictest = subject.judged(np.tile(known.strictest.x, (200, 1)), np.ones(200))
    assert strictest.feasible == 100.0
    assert strictest.loss == pytest.approx(100.0 * ((known.strictest.f - known.f) / known.span).mean())


def test_an_infeasible_answer_loses_all_and_its_gap_is_negative() -> None:
    known = truth("three_truss")
    worth = subjects.subject("three_truss").judged(np.tile(known.relaxed.x, (10, 1)), np.ones(10))
    assert (worth.feasible, worth.loss) == (0.0, 100.0)
    assert worth.gap < 0.0


def test_an_answer_better_than_the_best_known_has_a_negative_loss() -> None:
    subject, known = subjects.subject("three_truss"), truth("three_truss")
    worse = subjects.Subject(
        subject.problem,
        type(known)(known.name, known.thresholds, known.f + 0.1 * known.span, known.x, known.strictest, known.relaxed),
        subject.evaluator,
        subject.exact,
    )
    assert worse.judged(known.x, np.ones(100)).loss == pytest.approx(-10.0)


def test_a_failing_answer_loses_all() -> None:
    subject = subjects.subject("three_truss")
    failing = subjects.Subject(
        subject.problem, subject.known, subject.evaluator, lambda X: np.full((len(X), 4), np.nan)
    )
    worth = failing.judged(subject.known.x[:5], np.ones(5))
    assert (worth.loss, worth.returned) == (100.0, 0.0)
    assert subject.judged(subject.known.x[:5], np.ones(5)).returned == 100.0


def test_designs_that_fail_do_not_count_as_breaking_limits_in_the_calibration() -> None:
    rows = pd.DataFrame({"stated": [98.0, 98.0, 90.0], "feasible": [49.0, 90.0, 0.0], "returned": [50.0, np.nan, 0.0]})
    assert rough_tables.too_sure(rows) == pytest.approx(0.5 * (0.0 + 8.0))


def test_names_and_groups() -> None:
    assert subjects.chosen(["simulators", "g06", "wing"]) == ["circuit", "bracket", "wing", "g06"]
    everything = subjects.chosen([])
    assert {*problems.names("rough"), *subjects.SIMULATORS} == set(everything)
    assert [subjects.group_of(name) for name in ("wing", "stop", "g06")] == ["simulators", "kinks", "other"]


@pytest.mark.parametrize("name", ["three_truss", "rc_beam_mixed"])
def test_margins_make_answers_by_the_surrogates_more_probable(name: str) -> None:
    shipped = problems.get(name)
    study = Study.create(shipped.problem, "sqlite://", seed=0)
    study.run(shipped.evaluate, budget=20, in_process=True)
    thresholds = truth(name).thresholds[:4]
    stated = [rough.by_surrogate(study.model(), thresholds, aim).feasible for aim in (None, 0.8, 0.98)]
    assert (stated[0] <= stated[1] + 1e-9).all()
    assert (stated[1] <= stated[2] + 1e-9).all()


def test_lines_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "lines.csv"
    rough.append(path, [line("g06", 0), line("g06", 1)])
    table = rough.read(path)
    assert list(table.columns) == rough.COLUMNS
    assert table["lowest"].tolist() == [-0.25, -0.25]
    path.write_text("problem,seed\n")
    with pytest.raises(SystemExit, match="expected the columns problem, seed, settings"):
        rough.read(path)


def line(name: str, seed: int, answers: str = "direct", *, loss: float = 1.5, settings: str = "default") -> rough.Line:
    worth = subjects.Judgement(90.0, 98.0, loss, loss, -0.25, 100.0)
    return rough.Line(name, seed, settings, answers, 40, 100, 0, 99.0, 2.5, worth)


def test_tables_compare_the_same_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The difference to an earlier commit is of runs that both have."""
    path = tmp_path / "lines.csv"
    ours = [line("truss10", 0, loss=4.0), line("truss10", 1, loss=6.0), line("stop", 0, loss=2.0)]
    theirs = [
        line("truss10", 0, loss=10.0, settings="revision abc"),
        line("stop", 0, loss=9.0, settings="revision abc"),
    ]
    rough.append(path, ours + theirs)
    rough_tables.main(["loss", "--results", str(path), "--earlier", "abc"])
    rows = {row.split("|")[1].strip(): row for row in capsys.readouterr().out.splitlines()}
    assert [cell.split(" ")[0] for cell in rows["truss10"].split(" | ")[2:]] == ["5.00", "10.00", "-6.00"]
    assert [cell.split(" ")[0] for cell in rows["**kinks**"].split(" | ")[2:]] == ["3.50", "9.50", "-6.50"]


def test_calibration_says_how_far_stated_is_from_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "lines.csv"
    kinds = [
        ("surrogate@0.8", 5.0),
        ("surrogate@0.9", 6.0),
        ("surrogate@0.98", 7.0),
        ("margin-free", 2.0),
        ("direct", 3.0),
    ]
    rough.append(path, [line("stop", seed, kind, loss=loss) for seed in (0, 1) for kind, loss in kinds])
    rough_tables.main(["calibration", "--results", str(path)])
    rows = capsys.readouterr().out.splitlines()
    assert "| stop | 2 | +8.0 | +8.0 | +8.0 | -1.0 | 5.00 |" in rows
    assert "| **kinks**, largest distance |  | 8.0 | 8.0 | 8.0 | 1.0 | 5.00 |" in rows


@pytest.mark.parametrize("table", rough_tables.TABLES)
def test_every_table_is_printed_from_the_committed_results(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    rough_tables.main([table])
    head, rule, *_ = capsys.readouterr().out.splitlines()
    assert head.count("|") == rule.count("|") > 2
