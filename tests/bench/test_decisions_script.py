"""The benchmark of the decision tools, on a small model: every tool is measured, and the truths are true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmark_scripts import script
from cbabo.bench.truth import truth


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.mark.parametrize("tool", ["prices", "reach", "conflict", "atlas", "recommend"])
def test_every_tool_has_a_table(tool: str, models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [tool, "--problems", "rc_beam", "--evaluations", "30", "--thresholds", "2", "--models", str(models)]
    script("decisions").main(words)
    header, row = (line.split(",") for line in capsys.readouterr().out.splitlines())
    assert header[:2] == ["problem", "seed"]
    assert row[:2] == ["rc_beam", "0"]
    assert len(header) == len(row) > 5


def test_true_prices_are_those_of_the_formula() -> None:
    """The three-bar truss at c1 alone: its volume is inverse to the stress that is allowed, f = 263.9 * 2 / (2 + c1)."""
    functions = script("decisions").TrueFunctions("three_truss")
    limits = np.array([2.0, 10.0, 10.0])
    known = truth("three_truss").strictest
    assert functions.prices(limits, 0.5 * known.x)[0] / 10.0 == pytest.approx(2.0 * known.f / 4.0**2, rel=1e-3)
