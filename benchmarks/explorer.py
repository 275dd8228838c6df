"""From slider to picture: how long the exported explorer of a study of `car` takes, in a real browser.

    python benchmarks/explorer.py [--smoke]

A movement of a slider is an event; the picture is there when the browser has painted the frame after it. Also prints the file's
size, how long after the page is asked for the first answer is there, and how long after a movement the map of two limits is: a
coarse picture first, and the complete one when nothing of it changes any more. Needs Chromium.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from cbabo import Study, problems
from cbabo.surfaces.document import document
from cbabo.surfaces.page import single_file

BUDGET = 200
MOVE = """async ([slider, share]) => {
    const e = document.querySelectorAll("#rows input[type=range]")[slider];
    const begun = performance.now();
    e.value = Number(e.max) - share * (Number(e.max) - Number(e.min));
    e.dispatchEvent(new Event("input"));
    await new Promise((painted) => requestAnimationFrame(() => {
        const channel = new MessageChannel();
        channel.port1.onmessage = painted;
        channel.port2.postMessage(0);
    }));
    const took = performance.now() - begun;
    await new Promise((rested) => setTimeout(rested, 30));
    return took;
}"""

MAP = """async () => {
    const frame = document.getElementById("map-frame");
    const e = document.querySelectorAll("#rows input[type=range]")[0];
    const begun = performance.now();
    let coarse = null, last = begun;
    const watch = new MutationObserver(() => {
        last = performance.now();
        if (coarse === null && frame.getAttribute("aria-busy") === "false") coarse = last;
    });
    watch.observe(frame, { subtree: true, childList: true, attributes: true });
    e.value = Number(e.value) - 0.07 * (Number(e.max) - Number(e.min));
    e.dispatchEvent(new Event("input"));
    e.dispatchEvent(new Event("change"));
    await new Promise((rested) => setTimeout(rested, 4000));
    watch.disconnect();
    return [coarse - begun, last - begun];
}"""


def main(smoke: bool) -> None:
    """Run the study, export it, move its sliders."""
    car = problems.get("car")
    with tempfile.TemporaryDirectory() as folder:
        study = Study.create(car.problem, f"sqlite:///{folder}/car.db", "car")
        study.run(car.evaluate, budget=35 if smoke else BUDGET)
        page = Path(folder) / "car.html"
        page.write_text(single_file(document(study.model(), "car")), encoding="utf-8")
        print(f"file: {page.stat().st_size / 1e6:.2f} MB")
        times = moved(page.as_uri(), 2 if smoke else 20, len(study.problem.box.names))
    print(f"slider to picture: median {np.median(times):.0f} ms, 95th percentile {np.percentile(times, 95):.0f} ms")


def moved(address: str, steps: int, sliders: int) -> list[float]:
    """Move every slider step by step; return the milliseconds of each movement."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(address, wait_until="commit")
        page.wait_for_function("document.querySelector('#status')?.textContent.trim()")
        print(f"first answer: {page.evaluate('performance.now()'):.0f} ms")
        page.locator("#map-section").scroll_into_view_if_needed()
        page.wait_for_timeout(5000)
        maps = np.array([page.evaluate(MAP) for _ in range(2 if steps < 10 else 5)])
        coarse, complete = np.median(maps, axis=0)
        print(f"map after a movement: coarse {coarse:.0f} ms, complete {complete:.0f} ms in the median")
        times = [page.evaluate(MOVE, [i, 0.02 * step]) for i in range(sliders) for step in range(steps)]
        browser.close()
    return times


if __name__ == "__main__":
    main("--smoke" in sys.argv[1:])
