"""A transistor amplifier with an emitter follower, simulated by ngspice: 7 variables, 4 limits. Needs the Debian package ngspice.

The least power for a gain, an upper cut-off frequency, an input resistance, and a swing: how far the output can move either way
before a transistor saturates or carries no current, the least of three values.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from cbabo import Constraint, Objective, Problem, Real
from cbabo.domain.space import Point
from cbabo.errors import EvaluationError
from cbabo.numerics.arrays import FloatArray

PROBLEM = Problem(
    "circuit",
    [
        Real("bias_top", 2e4, 1e6, log=True, unit="ohm"),
        Real("bias_bottom", 5e3, 5e5, log=True, unit="ohm"),
        Real("collector1", 5e2, 5e4, log=True, unit="ohm"),
        Real("emitter1", 1e1, 2e3, log=True, unit="ohm"),
        Real("bypassed1", 1e2, 2e4, log=True, unit="ohm"),
        Real("emitter2", 2e2, 2e4, log=True, unit="ohm"),
        Real("supply", 3.0, 12.0, unit="V"),
    ],
    Objective("power", unit="mW"),
    [
        Constraint("gain", ">=", low=15.0, high=24.0, unit="dB"),
        Constraint("upper", ">=", low=300.0, high=1200.0, unit="kHz"),
        Constraint("swing", ">=", low=0.4, high=1.5, unit="V"),
        Constraint("input", ">=", low=80.0, high=115.0, unit="kohm"),
    ],
)
LOAD = 5e3
"""The resistance of the load, ohm."""
SATURATION = 0.3
"""Least voltage across a transistor that still amplifies, V."""
VALUES = 7
"""Of a design: the outputs, of which the swing is the least of three."""
NETLIST = """amplifier with an emitter follower
.model npn1 npn (is=1e-14 bf=200 vaf=80 cje=10p cjc=4p tf=0.4n rb=100)
vcc vcc 0 {supply}
vin in 0 dc 0 ac 1
rs in s 1k
cin s b1 2.2u
rt vcc b1 {bias_top}
rb b1 0 {bias_bottom}
q1 c1 b1 e1 npn1
rc1 vcc c1 {collector1}
re1 e1 m1 {emitter1}
rm1 m1 0 {bypassed1}
cm1 m1 0 100u
q2 vcc c1 e2 npn1
re2 e2 0 {emitter2}
cout e2 out 10u
rl out 0 {load}
cl out 0 200p
"""
SWEEP = "ac dec 20 1 100meg"


def evaluate(point: Point) -> dict[str, float]:
    """Simulate one design."""
    y = evaluate_many(np.array([[float(point[name]) for name in PROBLEM.space.names]]))[0]
    if not np.isfinite(y).all():
        raise EvaluationError("ngspice found no operating point, or the gain has no cut-off frequency in the sweep")
    return dict(zip(PROBLEM.outputs, y.tolist(), strict=True))


def evaluate_many(X: FloatArray) -> FloatArray:
    """Simulate designs, n x d, in one process; outputs n x q, NaN where ngspice fails."""
    power, gain, upper, swings, resistance = evaluate_parts(X)
    return np.column_stack([power, gain, upper, swings.min(axis=1), resistance])


def evaluate_parts(X: FloatArray) -> list[FloatArray]:
    """Simulate designs; for each output its value, n x 1, or for the swing the values that it is the least of, n x 3."""
    return np.split(_simulated(X), [1, 2, 3, 6], axis=1)


def _simulated(X: FloatArray) -> FloatArray:
    if not len(X):
        return np.zeros((0, VALUES))
    names = PROBLEM.space.names
    first = dict(zip(names, X[0].tolist(), strict=True))
    with tempfile.TemporaryDirectory() as folder:
        lines = [
            NETLIST.format(load=LOAD, **first),
            ".control",
            "set wr_singlescale",
            "set wr_vecnames = 0",
            "set numdgt = 10",
        ]
        for i, x in enumerate(X):
            p = dict(zip(names, x.tolist(), strict=True))
            values = {
                "rt": p["bias_top"],
                "rb": p["bias_bottom"],
                "rc1": p["collector1"],
                "re1": p["emitter1"],
                "rm1": p["bypassed1"],
                "re2": p["emitter2"],
                "vcc": p["supply"],
            }
            lines += [f"alter {name} = {value!r}" for name, value in values.items()]
            lines += [
                "op",
                f"wrdata op{i}.data i(vcc) v(vcc) v(c1) v(e1) v(e2)",
                SWEEP,
                f"wrdata ac{i}.data vm(out) real(i(vin)) imag(i(vin))",
            ]
            lines += ["destroy all"]
        Path(folder, "amplifier.cir").write_text("\n".join([*lines, "quit", ".endc", ".end", ""]), encoding="ascii")
        subprocess.run(["ngspice", "-b", "amplifier.cir"], cwd=folder, capture_output=True, check=False)
        return np.array(
            [_outputs(x, Path(folder, f"op{i}.data"), Path(folder, f"ac{i}.data")) for i, x in enumerate(X)]
        )


def _outputs(x: FloatArray, operating: Path, sweep: Path) -> FloatArray:
    """Return the values of one design from what ngspice wrote; NaN where it wrote nothing of use."""
    try:
        current, supply, collector, emitter, follower = np.atleast_2d(np.loadtxt(operating))[0, 1:]
        frequency, gain, real, imaginary = np.loadtxt(sweep).T
    except (OSError, ValueError):
        return np.full(VALUES, np.nan)
    middle = int(np.argmin(np.abs(frequency - 2e3)))
    decibels = 20.0 * np.log10(np.maximum(gain, 1e-12))
    level = decibels[middle] - 3.0
    upper = _crossing(frequency[middle:], decibels[middle:], level)
    resistance = 1.0 / abs(complex(real[middle], imaginary[middle]))
    drawn = follower * LOAD / (LOAD + x[PROBLEM.space.names.index("emitter2")])
    swings = [collector - emitter - SATURATION, supply - collector, drawn]
    return np.array([-1e3 * supply * current, decibels[middle], upper / 1e3, *swings, resistance / 1e3])


def _crossing(frequency: FloatArray, decibels: FloatArray, level: float) -> float:
    """Return the first frequency at which the gain falls to a level; NaN if it does not."""
    below = np.flatnonzero(decibels < level)
    if not len(below):
        return float("nan")
    i = int(below[0])
    share = (decibels[i - 1] - level) / (decibels[i - 1] - decibels[i])
    return float(frequency[i - 1] * (frequency[i] / frequency[i - 1]) ** share)
