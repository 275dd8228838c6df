"""Soak test: studies whose drivers, workers, guardians and databases are killed again and again.

Counted are: evaluations that were told as stored and are not there with the same outputs (lost), evaluations told twice,
outputs that are not those of their design (wrong), and processes that outlive their driver (orphans). All of them must be 0.

    python benchmarks/soak.py            # 10,000 evaluations, 200 kills, 40 outages, half on SQLite and half on PostgreSQL
    python benchmarks/soak.py --smoke    # 200 evaluations, to see that it works
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from cbabo import Constraint, Objective, Problem, Real, Settings, Study
from cbabo.domain.evaluations import Evaluation

SIZE = 200
"""Evaluations of one study."""
WORKERS = 4
TARGETS = {"driver": 0.5, "worker": 0.35, "guardian": 0.15}
"""What is killed, and how often."""
PATIENCE = 15.0
"""Seconds after the death of a driver by which all that it started must be gone."""
MARK = "CBABO_SOAK"


def simulate(point: dict[str, float]) -> dict[str, float]:
    """Take a few hundredths of a second; every design has outputs of its own."""
    time.sleep(0.01 + 0.02 * point["width"] % 0.02)
    return _outputs(point)


def problem() -> Problem:
    """Return the problem of all studies."""
    variables = [Real("width", 0.5, 3.0), Real("height", 0.5, 3.0)]
    return Problem("soak", variables, Objective("mass"), [Constraint("stress", "<=", low=1.0, high=9.0)])


def drive(url: str, name: str, budget: int, ledger: str) -> None:
    """Run a study, as a driver process; every evaluation is written down once it is told as stored."""
    told = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(evaluation: Evaluation) -> None:
        os.write(told, f"{evaluation.id} {evaluation.state} {evaluation.outputs.get('mass')!r}\n".encode())

    Study.open(url, name).run(simulate, budget=budget, workers=WORKERS, asynchronous=True, on_result=note)


@dataclass
class Tally:
    """What was done, and what went wrong."""

    evaluations: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    outages: int = 0
    lost: int = 0
    twice: int = 0
    wrong: int = 0
    orphans: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0

    def add_study(self, study: Study, ledger: Path, budget: int) -> None:
        """Compare what is stored with what was told, and with the simulator."""
        rows = {row.id: row for row in study.evaluations}
        told = [line.split() for line in ledger.read_text().splitlines()]
        for id, state, mass in told:
            row = rows.get(int(id))
            self.lost += row is None or row.state != state or repr(row.outputs.get("mass")) != mass
        self.twice += len(told) - len({id for id, _, _ in told})
        for row in rows.values():
            if row.state == "complete":
                self.wrong += dict(row.outputs) != _outputs(dict(row.point))
            elif row.state == "failed":
                self.failed[str(row.failure)] += 1
        self.unfinished += budget - sum(row.state in ("complete", "failed") for row in rows.values())
        self.evaluations += len(rows)

    @property
    def clean(self) -> bool:
        """Whether nothing was lost, doubled, mixed up or left."""
        return not (self.lost or self.twice or self.wrong or self.orphans or self.unfinished)


class SQLite:
    """A database file; an outage is a foreign program that locks it."""

    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._file = folder / "soak.db"
        self.url = f"sqlite:///{self._file}"

    def fail(self, chance: random.Random) -> None:
        """Keep the file locked for some seconds."""
        connection = sqlite3.connect(self._file, timeout=60.0, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        time.sleep(chance.uniform(1.0, 4.0))
        connection.close()


class PostgreSQL:
    """A server of our own; an outage is its crash and restart."""

    name = "postgresql"

    def __init__(self, programs: Path, place: Path, port: int) -> None:
        self._programs, self._place, self._port = programs, place, port
        self.url = f"postgresql://soak@127.0.0.1:{port}/postgres"

    def control(self, *words: str) -> None:
        """Start or stop the server."""
        options = f"-c port={self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
        command = [self._programs / "pg_ctl", "--pgdata=data", "--log=server.log", "-w", "-t", "60"]
        command += [f"--options={options}"] if "start" in words else []
        quiet: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        subprocess.run([*command, *words], cwd=self._place, check=True, **quiet, **_unprivileged())

    def fail(self, chance: random.Random) -> None:
        """Let the server crash, and start it again after a moment."""
        self.control("--mode=immediate", "stop")
        time.sleep(chance.uniform(0.0, 4.0))
        self.control("start")


@contextmanager
def postgresql() -> Iterator[PostgreSQL]:
    """Start a server in a temporary folder, and remove both afterwards."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: float(folder.parent.name))
    on_path = shutil.which("initdb")
    if not folders and on_path is None:
        raise SystemExit(
            "soak: no PostgreSQL server found; install Debian's package postgresql, or give --storage sqlite"
        )
    programs = folders[-1] if folders else Path(str(on_path)).resolve().parent
    place = Path(tempfile.mkdtemp(prefix="cbabo-soak-", dir="/tmp"))
    user = _unprivileged()
    if user:
        os.chown(place, user["user"], user["group"])
    words = [programs / "initdb", "--pgdata=data", "--username=soak", "--auth=trust", "--encoding=UTF8", "--locale=C"]
    subprocess.run(words, cwd=place, check=True, stdout=subprocess.DEVNULL, **user)
    server = PostgreSQL(programs, place, 20_000 + os.getpid() % 20_000)
    try:
        server.control("start")
        yield server
    finally:
        with suppress(subprocess.CalledProcessError):
            server.control("--mode=immediate", "stop")
        shutil.rmtree(place, ignore_errors=True)


def soak(database: SQLite | PostgreSQL, folder: Path, sizes: list[int], kills: int, outages: int, seed: int) -> Tally:
    """Run studies one after the other while things are killed."""
    chance, tally = random.Random(seed), Tally()
    settings = Settings.paper().replace(inner_steps=2, hidden_width=8, initial_evaluations=SIZE - 20, batch_size=10)
    for number, size in enumerate(sizes):
        name = f"soak-{number}"
        ledger = folder / f"{database.name}-{number}.txt"
        ledger.touch()
        study = Study.create(problem(), database.url, name, seed=number, settings=settings)
        share = lambda total: total * (number + 1) // len(sizes) - total * number // len(sizes)  # noqa: B023, E731
        events = ["kill"] * share(kills) + ["outage"] * share(outages)
        chance.shuffle(events)
        marks = sorted(chance.sample(range(5, max(6 + len(events), int(0.95 * size))), len(events)))
        driver, mark = _start(database.url, name, size, ledger)
        for event, when in zip(events, marks, strict=True):
            while _told(ledger) < when and driver.poll() is None:
                time.sleep(0.02)
            time.sleep(chance.uniform(0.0, 0.3))
            if event == "outage":
                database.fail(chance)
                tally.outages += 1
                continue
            target = chance.choices(list(TARGETS), list(TARGETS.values()))[0]
            tally.kills[_kill(driver, target, chance)] += 1
            if driver.poll() is not None or target == "driver":
                driver.wait()
                tally.orphans += _left(mark)
                driver, mark = _start(database.url, name, size, ledger)
        for _ in range(5):
            if driver.wait() == 0:
                break
            driver, mark = _start(database.url, name, size, ledger)
        tally.orphans += _left(mark)
        tally.add_study(study, ledger, size)
        print(f"{database.name} study {number + 1} of {len(sizes)}: {tally}", flush=True)
    return tally


def _outputs(point: dict[str, float]) -> dict[str, float]:
    return {"mass": point["width"] ** 2 + point["height"], "stress": 9.0 / (point["width"] * point["height"] + 0.1)}


def _start(url: str, name: str, budget: int, ledger: Path) -> tuple[subprocess.Popen[bytes], str]:
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    words = [sys.executable, __file__, "--drive", url, name, str(budget), str(ledger)]
    return subprocess.Popen(words, env={**os.environ, MARK: mark}, start_new_session=True), mark


def _told(ledger: Path) -> int:
    return ledger.read_bytes().count(b"\n")


def _kill(driver: subprocess.Popen[bytes], target: str, chance: random.Random) -> str:
    """Kill the target, or the driver where there is no such process at the moment; return what was killed."""
    script = {"worker": "worker.py", "guardian": "guard.py"}.get(target)
    if script is not None:
        with suppress(psutil.Error):
            found = [p for p in psutil.Process(driver.pid).children() if any(w.endswith(script) for w in p.cmdline())]
            if found:
                chance.choice(found).kill()
                return target
    driver.kill()
    driver.wait()
    return "driver"


def _left(mark: str) -> int:
    """Count what a dead driver has left after some time."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = 0
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                found += process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE
        if not found or time.monotonic() > deadline:
            return found
        time.sleep(0.1)


def _unprivileged() -> dict[str, Any]:
    """Say as whom to run the server, which refuses to be root's."""
    if os.geteuid() != 0:
        return {}
    import pwd

    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    entry = known.get("postgres") or known["nobody"]
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


def main() -> int:
    """Run the soak test and print its tally."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--outages", type=int, default=40)
    parser.add_argument("--storage", choices=["sqlite", "postgresql", "both"], default="both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--smoke", action="store_true", help="200 evaluations, 6 kills, 2 outages")
    parser.add_argument("--drive", nargs=4, help=argparse.SUPPRESS)
    stated = parser.parse_args()
    if stated.drive:
        url, name, budget, ledger = stated.drive
        drive(url, name, int(budget), ledger)
        return 0
    evaluations, kills, outages = (200, 6, 2) if stated.smoke else (stated.evaluations, stated.kills, stated.outages)
    kinds = ["sqlite", "postgresql"] if stated.storage == "both" else [stated.storage]
    count = max(1, round(evaluations / len(kinds) / SIZE))
    sizes = [max(20, evaluations // len(kinds) // count)] * count
    clean = True
    with tempfile.TemporaryDirectory(prefix="cbabo-soak-") as place:
        folder = Path(place)
        for kind in kinds:
            begun = time.monotonic()
            if kind == "sqlite":
                tally = soak(SQLite(folder), folder, sizes, kills // len(kinds), outages // len(kinds), stated.seed)
            else:
                with postgresql() as server:
                    tally = soak(server, folder, sizes, kills // len(kinds), outages // len(kinds), stated.seed)
            print(
                f"{kind}: {tally.evaluations} evaluations, {sum(tally.kills.values())} kills {dict(tally.kills)}, ",
                end="",
            )
            print(f"{tally.outages} outages in {time.monotonic() - begun:.0f} s")
            print(f"    lost {tally.lost}, told twice {tally.twice}, wrong outputs {tally.wrong}, ", end="")
            print(f"orphans {tally.orphans}, unfinished {tally.unfinished}, failed {dict(tally.failed)}")
            clean &= tally.clean
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
