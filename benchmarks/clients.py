"""How long the explorer's server takes to answer while many clients ask at once.

python benchmarks/clients.py            50 clients for 30 s: 45 ask for 500 solved answers at a time, 5 do what a page does
python benchmarks/clients.py --smoke    10 clients for 3 s, to see that it works

The server is a process of its own (`cbabo serve`), of a study of `car`. A page asks for its files, polls, and asks for an answer.
A heavy client that is told to ask later (429) does so. The aim: a page is answered within 1 s at the 95th percentile.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from cbabo import Problem, Study, problems

SERVE = "import sys; from cbabo.surfaces.cli import main; sys.argv[0] = 'cbabo'; main()"
AIM = 1.0


class Tally:
    """What the clients have measured."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.codes: dict[str, Counter[int | str]] = defaultdict(Counter)
        self._lock = threading.Lock()

    def ask(self, port: int, kind: str, method: str, path: str, body: object = None) -> int | str:
        """Send one request on a connection of its own and note how long it took."""
        begun = time.perf_counter()
        code: int | str
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"})
            response = connection.getresponse()
            response.read()
            connection.close()
            code = response.status
        except OSError as error:
            code = type(error).__name__
        with self._lock:
            self.codes[kind][code] += 1
            if code != 429:
                self.seconds[kind].append(time.perf_counter() - begun)
        return code


def main() -> None:
    """Serve a study, let the clients ask, print the latencies of every kind of request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="few clients for a short time")
    smoke = parser.parse_args().smoke
    clients, seconds, budget = (10, 3.0, 35) if smoke else (50, 30.0, 200)
    car = problems.get("car")
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(car.problem, f"sqlite:///{folder}/car.db", "car")
        study.run(car.evaluate, budget=budget)
        command = [sys.executable, "-c", SERVE, "serve", f"sqlite:///{folder}/car.db::car", "--port=0", "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            found = re.search(r"127\.0\.0\.1:(\d+)/", server.stdout.readline())
            assert found is not None
            tally = together(int(found[1]), study.problem, clients, seconds, 50 if smoke else 500)
            server.terminate()
    report(tally, clients, seconds)


def together(port: int, problem: Problem, clients: int, seconds: float, rows: int) -> Tally:
    """Let nine of ten clients ask for many answers, and the others do what a page does."""
    tally, box = Tally(), problem.box
    until = time.monotonic() + seconds
    pages = clients // 10

    def heavy(number: int) -> None:
        theta = np.random.default_rng(number).random((rows, len(box.names)))
        body = {"thresholds": [box.named(row) for row in box.from_theta(theta)]}
        while time.monotonic() < until:
            if tally.ask(port, f"predict-many, {rows} rows", "POST", "/api/predict-many", body) == 429:
                time.sleep(2.0)

    def page(number: int) -> None:
        theta = np.random.default_rng(number)
        while time.monotonic() < until:
            tally.ask(port, "page", "GET", "/")
            tally.ask(port, "follow", "GET", "/api/follow")
            limits = box.named(box.from_theta(theta.random((1, len(box.names))))[0])
            tally.ask(port, "predict", "POST", "/api/predict", {"thresholds": limits})
            time.sleep(0.2)

    work: list[tuple[Callable[[int], None], int]] = [(heavy, i) for i in range(clients - pages)]
    work += [(page, i) for i in range(pages)]
    threads = [threading.Thread(target=call, args=(number,), daemon=True) for call, number in work]
    for thread in threads:
        thread.start()
    for thread in threads[clients - pages :]:
        thread.join()
    for thread in threads:
        thread.join(max(0.0, until + 60.0 - time.monotonic()))
    return tally


def report(tally: Tally, clients: int, seconds: float) -> None:
    """Print how long requests of every kind took, and what came."""
    print(f"{clients} clients for {seconds:g} s")
    print(f"{'request':24} {'answers':>8} {'p50 s':>8} {'p95 s':>8} {'max s':>8}  status codes")
    for kind in sorted(tally.codes):
        took = tally.seconds[kind] or [float("nan")]
        middle, high = np.percentile(took, [50, 95])
        codes = ", ".join(f"{count} x {code}" for code, count in sorted(tally.codes[kind].items(), key=str))
        print(f"{kind:24} {len(took):8} {middle:8.3f} {high:8.3f} {max(took):8.3f}  {codes}")
    light = [value for kind in ("page", "follow", "predict") for value in tally.seconds[kind]]
    print(f"page, follow and predict: 95th percentile {np.percentile(light, 95):.3f} s (aim {AIM:g} s)")


if __name__ == "__main__":
    main()
