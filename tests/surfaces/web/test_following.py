"""How soon the server's model follows a study."""

from __future__ import annotations

import time

import pandas as pd
import pytest

from cbabo import Study
from cbabo.surfaces.web.following import Follower
from simulators import simulate_beam

AT: dict[str, float] = {"width": 1.234, "ribs": 2}


def test_the_model_of_a_run_that_has_ended_is_made_without_a_rest(
    study: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = Follower(study)
    holder: list[str | None] = ["a run"]
    monkeypatch.setattr(Study, "optimiser", property(lambda _: holder[0]))
    study.add(pd.DataFrame([{**AT, **simulate_beam(AT)}]))
    follower._next_learning = time.monotonic() + 1000.0  # As after a model that took minutes.
    follower._next_look = 0.0
    follower.evaluations()
    assert not follower.learning
    assert len(follower.reading.evaluations) < len(study.evaluations)
    holder[0] = None
    follower._next_look = 0.0
    until = time.monotonic() + 30
    while len(follower.reading.evaluations) < len(study.evaluations):
        follower.evaluations()
        assert time.monotonic() < until
        time.sleep(0.05)
