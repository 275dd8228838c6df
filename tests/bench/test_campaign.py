from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cbabo.bench import campaign as module
from cbabo.bench.campaign import ROUGH_SECONDS, Campaign, Estimates, Progress, Row, Unit, append, read_rows, run
from cbabo.bench.methods import METHODS, Measures
from cbabo.bench.revisions import REVISIONS
from cbabo.errors import EvaluationError, InputError, RunStoppedError
from cbabo.problems import names


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text("name: small\nproblems: [gkxwc1, gkxwc2]\nmethods: [paper, LogcEI]\nseeds: 2\nn: [1, 5]\n")
    return path


def fake(problem: str, method: str, seed: int, n: int) -> Measures:
    return {"row": list(range(n)), "value": seed + 0.1 + n}


class TestReading:
    def test_a_campaign_is_a_grid(self, file: Path) -> None:
        campaign = Campaign.read(file)
        assert len(campaign.units) == 2 * 2 * (1 + 2)
        assert Unit("gkxwc1", "LogcEI", 1, 5) in campaign.units
        assert campaign.results == file.with_suffix(".csv")

    def test_a_method_that_answers_all_rows_stands_there_once(self, file: Path) -> None:
        units = Campaign.read(file).units
        assert {unit.n for unit in units if unit.method == "paper"} == {100}
        assert len(set(units)) == len(units)

    def test_the_seeds_come_last(self, file: Path) -> None:
        seeds = [unit.seed for unit in Campaign.read(file).units]
        assert seeds == sorted(seeds)

    def test_a_suite_stands_for_its_problems(self, file: Path) -> None:
        file.write_text("name: all\nproblems: [paper]\nmethods: [paper]\nseeds: 1\n")
        assert [unit.problem for unit in Campaign.read(file).units] == list(names("paper"))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (("gkxwc1", "gkxwc9"), "small.yaml: problem: .* did you mean"),
            (("[paper, LogcEI]", "[best]"), "unknown method 'best'; expected one of paper, default"),
            (("seeds: 2", "seeds: many"), "seeds: input should be a valid integer"),
            (("seeds: 2", "seeds: 0"), "greater than or equal to 1"),
            (("[1, 5]", "[101]"), "less than or equal to 100"),
            (("seeds: 2", "sedes: 2"), "sedes: unknown key; did you mean seeds"),
        ],
    )
    def test_a_wrong_campaign_gets_one_sentence(self, file: Path, change: tuple[str, str], words: str) -> None:
        file.write_text(file.read_text().replace(*change))
        with pytest.raises(InputError, match=words) as caught:
            Campaign.read(file)
        assert "\n" not in str(caught.value)

    def test_a_missing_file_is_named_once(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot be read") as caught:
            Campaign.read(tmp_path / "none.yaml")
        assert str(caught.value).count("none.yaml") == 1

    @pytest.mark.parametrize("path", sorted(Path("benchmarks/campaigns").glob("*.yaml")), ids=lambda path: path.stem)
    def test_the_shipped_campaigns_are_sound(self, path: Path) -> None:
        assert Campaign.read(path).name == path.stem


class TestRows:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        path, unit = tmp_path / "rows.csv", Unit("car", "LogcEI", 1, 2)
        measures: Measures = {"row": [2, 3], "best objective": [1 / 3, float("inf")], "suggest seconds": 1e-7}
        append(path, unit, 12.345, measures)
        row = read_rows([path])[0]
        assert row.unit == unit
        assert row.seconds == 12.3
        assert row.code == METHODS["LogcEI"].code
        assert row.current
        assert row.measures["row"] == [2.0, 3.0]
        assert row.measures["best objective"] == [pytest.approx(1 / 3, rel=1e-11), float("inf")]
        assert row.measures["suggest seconds"] == 1e-7
        assert len(path.read_text().splitlines()) == 2

    def test_the_latest_row_of_a_unit_counts(self, tmp_path: Path) -> None:
        units = [Unit("car", "paper", seed, 100) for seed in (0, 1, 0)]
        for value, unit in enumerate(units):
            append(tmp_path / f"{value % 2}.csv", unit, 1.0, {"value": value})
        rows = read_rows([tmp_path / "0.csv", tmp_path / "1.csv"])
        assert sorted((row.seed, row.measures["value"]) for row in rows) == [(0, 2.0), (1, 1.0)]

    @pytest.mark.parametrize("kept", [5, 40, 120])
    def test_a_line_that_a_kill_cut_short_is_left_out_and_removed(self, tmp_path: Path, kept: int) -> None:
        path = tmp_path / "rows.csv"
        for seed in range(3):
            append(path, Unit("car", "paper", seed, 100), 1.0, {"value": [seed] * 3})
        content = path.read_bytes()
        path.write_bytes(content[:kept])
        left = read_rows([path])
        assert len(left) == max(0, content[:kept].count(b"\n") - 1)
        append(path, Unit("car", "paper", 9, 100), 1.0, {"value": [9] * 3})
        assert read_rows([path])[:-1] == left
        assert read_rows([path])[-1].seed == 9

    def test_no_file_no_rows(self, tmp_path: Path) -> None:
        assert read_rows([tmp_path / "none.csv"]) == []

    def test_a_foreign_file_gets_one_sentence(self, tmp_path: Path) -> None:
        path = tmp_path / "old.csv"
        path.write_text("problem,method,seed,n,code,metric,value\ncar,paper,0,1,x,direct feasible,0.7\n")
        with pytest.raises(InputError, match="move the file away"):
            read_rows([path])

    def test_rows_of_another_revision_are_not_current(self) -> None:
        assert not Row("car", "paper", 0, 100, "another", 1.0, {}).current
        assert not Row("car", "forgotten", 0, 100, "x", 1.0, {}).current


class TestRunning:
    def test_finished_units_are_rows_and_are_not_computed_again(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "measure", fake)
        campaign = Campaign.read(file)
        told: list[Progress] = []
        run(campaign, 2, told.append)
        assert [progress.done for progress in told] == list(range(1, 13))
        assert {progress.unit for progress in told} == set(campaign.units)
        assert told[-1].left == 0.0
        assert campaign.pending() == []
        found = {row.unit: row.measures["value"] for row in read_rows([campaign.results])}
        assert found[Unit("gkxwc2", "LogcEI", 1, 5)] == 1 + 0.1 + 5
        before = campaign.results.read_text()
        run(campaign, 2, told.append)
        assert campaign.results.read_text() == before

    def test_a_raised_revision_makes_its_rows_due_and_no_others(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        campaign = Campaign.read(file)
        for unit in campaign.units:
            append(campaign.results, unit, 1.0, {})
        raised = {"paper": replace(REVISIONS["paper"], code="paper-next")}
        monkeypatch.setattr("cbabo.bench.methods.REVISIONS", {**REVISIONS, **raised})
        assert campaign.pending() == [unit for unit in campaign.units if unit.method == "paper"]

    def test_a_failing_unit_is_told_and_the_others_go_on(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def measure(problem: str, method: str, seed: int, n: int) -> Measures:
            if problem == "gkxwc1" and method == "paper":
                raise EvaluationError("no luck") if seed else ValueError("two\nlines")
            return {"value": 1.0}

        monkeypatch.setattr(module, "measure", measure)
        campaign = Campaign.read(file)
        told: list[Progress] = []
        with pytest.raises(RunStoppedError, match="2 of 12 units failed"):
            run(campaign, 1, told.append, _AtOnce())
        failures = [progress.failure for progress in told if progress.failure is not None]
        assert len(failures) == 2
        assert all("\n" not in failure for failure in failures)
        assert campaign.pending() == [Unit("gkxwc1", "paper", seed, 100) for seed in (0, 1)]

    def test_an_executor_gets_all_units_at_once(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "measure", fake)
        campaign = Campaign.read(file)
        run(campaign, 1, lambda progress: None, _AtOnce())
        assert len(read_rows([campaign.results])) == 12

    def test_a_broken_executor_ends_the_run_with_a_sentence(self, file: Path) -> None:
        with pytest.raises(RunStoppedError, match="every finished unit is stored"):
            run(Campaign.read(file), 1, lambda progress: None, _AtOnce(cancelled=True))

    def test_killed_and_resumed_is_complete(self, tmp_path: Path) -> None:
        file = tmp_path / "many.yaml"
        file.write_text("name: many\nproblems: [active]\nmethods: [constant strictest]\nseeds: 12\n")
        command = [
            sys.executable,
            "-c",
            "import cbabo.surfaces.cli; cbabo.surfaces.cli.main()",
            "bench",
            "run",
            str(file),
        ]
        process = subprocess.Popen([*command, "--workers", "1"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        results, deadline = file.with_suffix(".csv"), time.monotonic() + 120.0
        try:
            while not (results.exists() and results.read_bytes().count(b"\n") > 5):
                assert time.monotonic() < deadline
                time.sleep(0.01)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        with results.open("ab") as end:
            end.write(b"car_active,constant str")
        campaign = Campaign.read(file)
        done = len(read_rows([results]))
        assert 5 <= done < 120
        assert len(campaign.pending()) == 120 - done
        run(campaign, 1, lambda progress: None, _AtOnce())
        assert campaign.pending() == []
        assert results.read_bytes().count(b"\n") == 121


class TestEstimates:
    def test_seconds_come_from_the_kind_else_the_method_else_a_constant(self, file: Path) -> None:
        campaign = Campaign.read(file)
        assert Estimates.of(campaign).seconds(campaign.units[0]) == ROUGH_SECONDS
        other = file.with_name("other.csv")
        for seed, seconds in enumerate((10.0, 20.0)):
            append(other, Unit("gkxwc1", "LogcEI", seed, 5), seconds, {})
        append(other, Unit("car", "LogcEI", 0, 5), 60.0, {})
        estimates = Estimates.of(campaign)
        assert estimates.seconds(Unit("gkxwc1", "LogcEI", 7, 5)) == 15.0
        assert estimates.seconds(Unit("gkxwc2", "LogcEI", 7, 5)) == 30.0
        assert estimates.seconds(Unit("gkxwc2", "paper", 7, 100)) == ROUGH_SECONDS


def test_measures_are_compact_json(tmp_path: Path) -> None:
    append(tmp_path / "rows.csv", Unit("car", "paper", 0, 100), 1.0, {"a": [1.0, 0.1 + 0.2], "b": 2.0})
    text = (tmp_path / "rows.csv").read_text().splitlines()[1].split(",", 6)[6]
    assert json.loads(text.strip('"').replace('""', '"')) == {"a": [1, 0.3], "b": 2}


class _AtOnce(Executor):
    """Computes when asked, in this process."""

    def __init__(self, *, cancelled: bool = False) -> None:
        self._cancelled = cancelled

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        if self._cancelled:
            future.cancel()
            future.set_running_or_notify_cancel()
        else:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:
                future.set_exception(error)
        return future
