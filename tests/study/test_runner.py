from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest

from cbabo import Constraint, Discrete, Integer, Objective, Problem, Settings, Study
from cbabo.domain.evaluations import Evaluations
from cbabo.errors import EvaluationError, InputError, RunStoppedError, StudyError
from learned import QUICK
from simulators import simulate_beam, simulate_valley, valley

DEFAULT = Settings.default().replace(initial_evaluations=30)
WIDE = Settings.paper().replace(inner_steps=10, horizon=6)
"""The paper's method with its own network, whose matrices are large enough for several threads."""

DRIVER = textwrap.dedent("""
    import os, signal, sys
    sys.path.insert(0, {tests!r})
    from cbabo import Study
    from cbabo.methods import default, paper
    from simulators import simulate_beam

    driver = os.getpid()

    def die():
        os.kill(driver, signal.SIGKILL)

    def evaluate(point):
        from cbabo.domain.current import current_evaluation
        if {where!r} == "evaluating" and current_evaluation.get() == {number}:
            die()
        return simulate_beam(point)

    def on_result(evaluation):
        if {where!r} == "stored" and evaluation.id == {number}:
            die()

    def dying(fit):
        def fit_or_die(*arguments, **options):
            if {where!r} == "learning" and len(study.evaluations) == {number}:
                die()
            return fit(*arguments, **options)
        return fit_or_die

    default.fit_calibrated, paper.fit_plain = dying(default.fit_calibrated), dying(paper.fit_plain)
    study = Study.open({url!r}, "beam")
    study.run(evaluate, budget={budget}, asynchronous={asynchronous}, on_result=on_result)
""")


@pytest.fixture
def study(beam: Problem, url: str) -> Study:
    return Study.create(beam, url, settings=QUICK)


def content(evaluations: Evaluations) -> list[tuple[object, ...]]:
    return [(row.id, row.state, row.kind, dict(row.point), dict(row.outputs)) for row in evaluations]


def broken_at(*ids: int):
    """An evaluator whose evaluations of these numbers raise."""

    def evaluate(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        if current_evaluation.get() in ids:
            raise ValueError("mesh did not converge")
        return simulate_beam(point)

    return evaluate


def test_a_run_spends_its_budget_and_no_more(study: Study) -> None:
    told = []
    study.run(simulate_beam, budget=37, on_result=told.append)
    evaluations = study.evaluations
    assert [row.id for row in told] == list(range(1, 38))
    assert len(evaluations.complete) == 37
    first = evaluations[0]
    assert first.outputs == simulate_beam(dict(first.point))  # raw, with the number that nobody asked for
    assert first.started is not None
    assert first.seconds is not None
    assert first.worker is not None
    assert str(os.getpid()) not in first.worker  # a process of its own
    study.run(simulate_beam, budget=37)
    assert len(study.evaluations) == 37


def learned(study: Study) -> int:
    """How many batches were chosen by what was measured."""
    from cbabo.methods.learner import Learner

    return Learner.from_bytes(study._store.learner()[1]).iteration - 1


@pytest.mark.parametrize(
    ("settings", "asynchronous", "budgets"),
    [
        (QUICK, False, (7, 30, 33, 33, 57, 60)),
        (QUICK, True, (7, 30, 33, 33, 57, 60)),
        (WIDE, False, (12, 31, 40)),
        (DEFAULT, False, (7, 30, 33, 33, 42, 45)),
        (DEFAULT, True, (7, 30, 33, 33, 42, 45)),
    ],
    ids=["quick", "quick, asynchronous", "wide", "default", "default, asynchronous"],
)
def test_a_budget_spent_in_pieces_gives_the_same_to_the_last_bit(
    beam: Problem, tmp_path: Path, settings: Settings, asynchronous: bool, budgets: tuple[int, ...]
) -> None:
    whole = Study.create(beam, f"sqlite:///{tmp_path}/whole.db", settings=settings)
    whole.run(simulate_beam, budget=budgets[-1], asynchronous=asynchronous, in_process=True)
    assert learned(whole) == (budgets[-1] - 30) // 5
    pieces = Study.create(beam, f"sqlite:///{tmp_path}/pieces.db", settings=settings)
    for budget in budgets:
        pieces.run(simulate_beam, budget=budget, asynchronous=asynchronous, in_process=True)
    assert content(pieces.evaluations) == content(whole.evaluations)
    assert pieces._store.learner() == whole._store.learner()


@pytest.mark.parametrize(
    ("settings", "asynchronous", "kills", "budget"),
    [
        (WIDE, False, [("learning", 40)], 45),
        (QUICK, True, [("learning", 40)], 45),
        (DEFAULT, False, [("stored", 37), ("learning", 40), ("evaluating", 43)], 45),
        (DEFAULT, True, [("evaluating", 38)], 45),
    ],
    ids=["wide", "quick, asynchronous", "default", "default, asynchronous"],
)
def test_killed_and_resumed_equals_uninterrupted(
    beam: Problem, tmp_path: Path, settings: Settings, asynchronous: bool, kills: list[tuple[str, int]], budget: int
) -> None:
    """Killed in the middle of an evaluation, after one, and while learning between two batches; the learner's state included.

    So two processes, with other threads and hash seeds, also agree to the last bit.
    """
    environment = {**os.environ, "PYTHONHASHSEED": "7", "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    url = f"sqlite:///{tmp_path}/killed.db"
    study = Study.create(beam, url, settings=settings)
    tests = str(Path(__file__).parents[1])
    whole = Study.create(beam, f"sqlite:///{tmp_path}/whole.db", settings=settings)
    for where, number in kills:
        code = DRIVER.format(tests=tests, url=url, where=where, number=number, budget=budget, asynchronous=asynchronous)
        driver = subprocess.Popen([sys.executable, "-c", code], env=environment)
        whole.run(simulate_beam, budget=budget, asynchronous=asynchronous)  # meanwhile; nothing to do the second time
        assert driver.wait() == -signal.SIGKILL
        assert len(study.evaluations.complete) == (number - 1 if where == "evaluating" else number)
    assert learned(whole) > 1
    study.run(simulate_beam, budget=budget, asynchronous=asynchronous)
    assert content(study.evaluations) == content(whole.evaluations)
    assert study._store.learner() == whole._store.learner()


def test_failures_are_stored_and_the_run_goes_on(study: Study) -> None:
    study.run(broken_at(2, 31), budget=35)
    failed = study.evaluations.failed
    assert [row.id for row in failed] == [2, 31]
    assert failed[0].failure == "ValueError: mesh did not converge"
    assert [row.cause for row in failed] == ["design", "design"]
    assert {row.cause for row in study.evaluations.complete} == {None}
    assert "Traceback" in failed[0].log
    assert len(study.evaluations.complete) == 33


def test_a_hopeless_run_stops(study: Study) -> None:
    with pytest.raises(RunStoppedError, match=r"last 3 evaluations failed in a row .*mesh did not converge"):
        study.run(broken_at(*range(4, 100)), budget=50, stop_after_failures=3)
    assert [row.state for row in study.evaluations] == ["complete"] * 3 + ["failed"] * 3
    study.run(simulate_beam, budget=10)
    assert len(study.evaluations) == 10


def test_scattered_failures_are_not_hopeless(study: Study) -> None:
    study.run(broken_at(*range(2, 40, 2)), budget=40, stop_after_failures=2)
    assert len(study.evaluations) == 40


def test_what_is_worth_another_try_gets_it(study: Study) -> None:
    tries = []

    def licence(point: dict[str, float]) -> dict[str, float]:
        tries.append(point)
        if len(tries) % 3:
            raise EvaluationError("no licence", retryable=True)
        return simulate_beam(point)

    study.run(licence, budget=2, retries=2, in_process=True)
    assert len(study.evaluations.complete) == 2
    assert len(tries) == 6
    study.run(licence, budget=3, retries=1, in_process=True)
    assert study.evaluations[2].failure == "no licence"


def test_plain_failures_are_not_tried_again(study: Study) -> None:
    tries = []

    def broken(point: dict[str, float]) -> dict[str, float]:
        tries.append(point)
        raise ValueError("wrong")

    study.run(broken, budget=3, retries=5, in_process=True)
    assert len(tries) == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_workers_with_every_kind_of_trouble(study: Study, asynchronous: bool) -> None:
    def troubled(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        number = current_evaluation.get()
        if number == 3:
            raise ValueError("no")
        if number == 5:
            time.sleep(1000)
        if number == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        if number == 9:
            return {**simulate_beam(point), "stress": float("nan")}
        if number == 11:
            return {"mass": 1.0}
        return simulate_beam(point)

    study.run(troubled, budget=36, workers=3, timeout=2.0, asynchronous=asynchronous)
    reasons = {row.id: str(row.failure) for row in study.evaluations.failed}
    assert sorted(reasons) == [3, 5, 7, 9, 11]
    for number, words in ((3, "ValueError"), (5, "within 2 s"), (7, "signal 9"), (9, "finite"), (11, "'stress'")):
        assert words in reasons[number]
    assert [row.id for row in study.evaluations.failed_designs] == [3, 5, 7, 9, 11]  # it has ended two processes
    assert len(study.evaluations.complete) == 31


def test_a_timeout_alone_uses_a_worker_process(study: Study) -> None:
    def slow(point: dict[str, float]) -> dict[str, float]:
        time.sleep(1000)
        return simulate_beam(point)

    study.run(slow, budget=1, timeout=0.5)
    assert "within 0.5 s" in str(study.evaluations[0].failure)


def test_any_executor_will_do(study: Study) -> None:
    with ThreadPoolExecutor(4) as threads:
        study.run(simulate_beam, budget=40, executor=threads, workers=4, asynchronous=True)
    with ProcessPoolExecutor(2) as processes:
        study.run(simulate_beam, budget=50, executor=processes)
    assert len(study.evaluations.complete) == 50


def test_nothing_is_measured_twice_while_others_are_under_way(url: str) -> None:
    """With the default settings, asynchronously, with four evaluations in flight; but one initial design, to detect noise."""
    study = Study.create(valley(), url, settings=DEFAULT)

    def slow(point: dict[str, float]) -> dict[str, float]:
        time.sleep(0.02)
        return simulate_valley(point)

    with ThreadPoolExecutor(4) as threads:
        study.run(slow, budget=55, executor=threads, workers=4, asynchronous=True)
    x = study.evaluations.x
    assert len(study.evaluations.complete) == 55
    distances = {(j, i): float(abs(x[i] - x[j]).max()) for i in range(55) for j in range(i)}
    (repeat,) = (pair for pair, distance in distances.items() if distance <= 1e-5)
    assert max(repeat) < 30


def test_asked_and_not_yet_told_is_pending_for_the_default_settings_too(url: str) -> None:
    study = Study.create(valley(), url, settings=DEFAULT)
    study.run(simulate_valley, budget=30)
    first, second = study.ask(5), study.ask(5)
    points = [t.point for t in (*first, *second)]
    assert len({tuple(p.values()) for p in points}) == 10
    for trial in (*second, *first):
        study.tell(trial.id, simulate_valley(trial.point))
    assert len(study.evaluations.complete) == 40


def test_the_pending_ones_are_known_and_batches_wait(study: Study) -> None:
    running: list[tuple[int, int]] = []
    lock, several = threading.Lock(), threading.Event()
    active = 0

    def watch(point: dict[str, float]) -> dict[str, float]:
        nonlocal active
        from cbabo.domain.current import current_evaluation

        with lock:
            active += 1
            number = current_evaluation.get() or 0
            running.append((number, active))
            if active > 4:
                several.set()
        several.wait(60)
        time.sleep(0.1 if number > 30 else 0.0)
        with lock:
            active -= 1
        return simulate_beam(point)

    with ThreadPoolExecutor(8) as threads:
        study.run(watch, budget=45, executor=threads, workers=8)
    together = dict(running)
    assert max(together.values()) > 4
    assert max(count for number, count in together.items() if number > 30) <= 5  # never beyond its batch of five


def test_a_foreign_executor_gets_its_time_kept_here(study: Study) -> None:
    release = threading.Event()

    def hang(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        if current_evaluation.get() == 2:
            release.wait(60)
        return simulate_beam(point)

    with ThreadPoolExecutor(4) as threads:
        study.run(hang, budget=6, executor=threads, workers=2, timeout=1.0)
        release.set()
    (given_up,) = study.evaluations.failed
    assert (given_up.id, given_up.failure, given_up.cause) == (2, "no answer within 1 s", "set-up")
    assert len(study.evaluations.failed_designs) == 0  # we gave it up; that says nothing about the design
    assert len(study.evaluations.complete) == 5


def take_a_while(point: dict[str, float]) -> dict[str, float]:
    time.sleep(0.15)
    return simulate_beam(point)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_time_in_an_executors_queue_does_not_count(study: Study, kind: type[Executor]) -> None:
    """The last of sixteen waits for 2.25 s, more than the limit; the start of a process does not count either."""
    with kind(1) as executor:
        study.run(take_a_while, budget=16, executor=executor, workers=16, timeout=2.0)
    assert [row.failure for row in study.evaluations.failed] == []
    assert all(row.seconds is not None and row.seconds < 2.0 for row in study.evaluations)


def slow_at_two(point: dict[str, float]) -> dict[str, float]:
    from cbabo.domain.current import current_evaluation

    if current_evaluation.get() == 2:
        time.sleep(5.0)
    return simulate_beam(point)


def test_a_process_pool_gets_its_time_kept_too(study: Study) -> None:
    with ProcessPoolExecutor(2) as executor:
        study.run(slow_at_two, budget=6, executor=executor, workers=6, timeout=2.0)
    assert [(row.id, row.failure) for row in study.evaluations.failed] == [(2, "no answer within 2 s")]


def test_a_run_whose_workers_all_hang_stops_and_blames_no_design(study: Study) -> None:
    release = threading.Event()

    def hang(point: dict[str, float]) -> dict[str, float]:
        release.wait(60)
        return simulate_beam(point)

    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(RunStoppedError, match="no evaluation has begun for 0.5 s, because 1 that were given up"):
            study.run(hang, budget=4, executor=threads, workers=2, timeout=0.05)
        release.set()
    assert [row.state for row in study.evaluations] == ["failed", "running", "running"]
    assert len(study.evaluations.failed_designs) == 0
    study.run(simulate_beam, budget=4)
    assert len(study.evaluations.complete) == 3


def die(point: dict[str, float]) -> dict[str, float]:
    os._exit(3)


def test_a_broken_executor_stops_the_run_and_loses_nothing(study: Study) -> None:
    with ProcessPoolExecutor(1) as processes, pytest.raises(RunStoppedError, match="executor broke"):
        study.run(die, budget=3, executor=processes)
    assert len(study.evaluations.running) >= 1
    study.run(simulate_beam, budget=3)
    assert len(study.evaluations.complete) == 3


def test_what_a_dead_run_left_may_be_marked_as_failed(study: Study) -> None:
    def interrupt(point: dict[str, float]) -> dict[str, float]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        study.run(interrupt, budget=2, in_process=True)
    assert [row.state for row in study.evaluations] == ["running"]
    study.run(simulate_beam, budget=3, on_interrupted="fail")
    assert [row.state for row in study.evaluations] == ["failed", "complete", "complete"]
    assert "interrupted" in str(study.evaluations[0].failure)
    assert study.evaluations[0].cause == "set-up"


def test_what_was_asked_for_by_hand_is_left_alone(study: Study) -> None:
    (mine,) = study.ask()
    study.run(simulate_beam, budget=5)
    assert [row.id for row in study.evaluations.running] == [mine.id]
    assert len(study.evaluations) == 5
    study.tell(mine.id, simulate_beam(mine.point))


@pytest.mark.parametrize(
    "wrong",
    [
        {"budget": -1},
        {"budget": 1.5},
        {"workers": 0},
        {"retries": -1},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": "soon"},
        {"stop_after_failures": 0},
        {"on_interrupted": "ignore"},
        {"evaluate": 3},
    ],
)
def test_wrong_arguments_get_one_sentence(study: Study, wrong: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"run: {next(iter(wrong))} must be"):
        study.run(**{"evaluate": simulate_beam, **wrong})  # type: ignore[arg-type]
    assert len(study.evaluations) == 0


def test_every_design_of_a_small_space_is_evaluated_once(url: str, caplog: pytest.LogCaptureFixture) -> None:
    problem = Problem(
        "grid",
        [Integer("a", 1, 3), Discrete("b", [0.5, 1.0, 4.0])],
        Objective("f"),
        [Constraint("c", "<=", low=1.0, high=9.0)],
    )
    study = Study.create(problem, url, settings=QUICK.replace(initial_evaluations=4, batch_size=4))
    study.run(lambda p: {"f": p["a"] + p["b"], "c": 9.0 / (p["a"] * p["b"])}, budget=60)
    designs = {(row.point["a"], row.point["b"]) for row in study.evaluations}
    assert len(study.evaluations.complete) == len(designs) == 9
    assert "all designs of this space were evaluated" in caplog.text
    with pytest.raises(StudyError, match="every design of this space was asked for"):
        study.ask()


def test_a_design_that_crashes_its_process_costs_one_evaluation(study: Study) -> None:
    def crash(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        if current_evaluation.get() == 2:
            os.kill(os.getpid(), signal.SIGSEGV)
        return simulate_beam(point)

    study.run(crash, budget=4)
    assert [row.state for row in study.evaluations] == ["complete", "failed", "complete", "complete"]
    assert "SIGSEGV" in str(study.evaluations[1].failure)


def test_a_penalty_value_is_a_failure_that_names_its_evaluation(study: Study, caplog: pytest.LogCaptureFixture) -> None:
    def penalised(point: dict[str, float]) -> dict[str, float]:
        from cbabo.domain.current import current_evaluation

        return {**simulate_beam(point), "mass": 1e308} if current_evaluation.get() in (3, 31) else simulate_beam(point)

    study.run(penalised, budget=36)
    assert [row.id for row in study.evaluations.failed_designs] == [3, 31]
    assert (
        "evaluation 3 failed: the output 'mass' is out of range: 1e+308 is not between -1e+150 and 1e+150"
        in caplog.text
    )
    assert study.evaluations[2].outputs["mass"] == 1e308  # what came is kept
    assert study.model().predict({"stress": 5.0, "frequency": 3.0}).probability_feasible > 0.5


def test_a_simulator_that_cannot_be_sent_is_refused_before_anything_begins(study: Study) -> None:
    lock = threading.Lock()

    def locked(point: dict[str, float]) -> dict[str, float]:
        with lock:
            return simulate_beam(point)

    with pytest.raises(InputError, match="cannot be sent to a worker .* in_process=True"):
        study.run(locked, budget=3)
    assert len(study.evaluations) == 0
    study.run(locked, budget=3, in_process=True)
    assert len(study.evaluations.complete) == 3
