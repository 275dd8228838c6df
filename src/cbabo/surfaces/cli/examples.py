"""The files that `cbabo init` writes: a commented study and a simulator small enough to read."""

from __future__ import annotations

STUDY = """\
# A study in one file. Check it with: cbabo check study.yaml     Run it with: cbabo run study.yaml
# For help while you type, in editors that know JSON Schema: cbabo check --schema > study.schema.json, and the line
# yaml-language-server: $schema=study.schema.json

problem:
  name: cantilever
  variables:                      # what you may choose
    - {name: width, type: real, low: 20, high: 100, unit: mm}
    - {name: height, type: real, low: 40, high: 200, unit: mm}     # log: true spreads it on a logarithmic scale
    - {name: wall, type: discrete, values: [3, 4, 5, 6, 8, 10], unit: mm}
    - {name: ribs, type: integer, low: 0, high: 4}
    # one of several labels without an order: {name: material, type: categorical, values: [steel, aluminium, titanium]}
  objective: {name: mass, unit: kg, direction: minimize}           # or maximize; or short: "minimize mass [kg]"
  constraints:                    # limits on outputs: [low..high] where a limit may still move, one number where not
    - stress <= [80..250] MPa
    - {name: deflection, sense: "<=", low: 2, high: 10, unit: mm, nominal: 5}
    - {name: frequency, sense: ">=", low: 20, high: 60, unit: Hz}
    - buckling >= 1.5
    # one limit on several outputs, all must obey:  {name: members, low: 1, high: 3, outputs: [s1, s2, s3]}
    # a second limit on the same output:            {name: frequency_max, low: 80, high: 99, outputs: frequency}
  # What you know need not be learned; names that are no plain words stand in backquotes, as `outer diameter`:
  # relations: [height <= 4*width, 2*wall <= width - 10]   # between variables; no design that breaks one is ever proposed
  # derived:                      # outputs that are formulas of variables (then exact) or of other outputs; may be limited
  #   slenderness: height/width
  #   reserve: 250/stress

evaluator:                        # how one design is simulated: a Python function ...
  python: simulator:evaluate      # evaluate(point) in simulator.py beside this file
  # ... or a command, started in a fresh folder for every evaluation:
  # command: python {here}/simulator.py {width} {height} {wall} {ribs}
  # templates: {beam.inp: beam.inp.template}    # input files with {width} and so on; inputs.json is always there
  # outputs: stdout                             # name=value lines, or a file such as results.json
  # timeout: 600                                # seconds, then the whole process tree is killed
  # retries: 1                                  # after a timeout, or one of retry_return_codes

# Limits, bounds and units may change later: edit this file, then cbabo amend study.yaml. What was measured is kept.
study:
  storage: sqlite:///cantilever.db              # beside this file; or postgresql://user@host/name
  seed: 0
  settings: {preset: default}
  budget: 200                                   # evaluations in all; cbabo run --budget overrides it
  # until: 0.5%                                 # end earlier, when the answers have converged to this share of the span
"""

SIMULATOR = '''\
"""A hollow cantilever beam of steel with a load at its tip; stands in for your own simulator."""

import math
import sys

LENGTH, LOAD, TIP_MASS = 1.0, 5_000.0, 20.0  # m, N, kg
STEEL_E, STEEL_RHO = 210e9, 7850.0  # Pa, kg/m3


def evaluate(point):
    """Return the mass and what is limited, for one design in mm."""
    b, h, t = (point[name] / 1000 for name in ("width", "height", "wall"))
    area = b * h - (b - 2 * t) * (h - 2 * t)
    inertia = (b * h**3 - (b - 2 * t) * (h - 2 * t) ** 3) / 12
    mass = STEEL_RHO * area * LENGTH + point["ribs"] * STEEL_RHO * (b - 2 * t) * (h - 2 * t) * t
    stiffness = 3 * STEEL_E * inertia / LENGTH**3
    stress = LOAD * LENGTH * h / 2 / inertia
    panel = LENGTH / (point["ribs"] + 1)
    buckling_stress = 3.6 * STEEL_E * (t / b) ** 2 * (1 + (b / panel) ** 2)
    return {
        "mass": mass,
        "stress": stress / 1e6,
        "deflection": 1000 * LOAD / stiffness,
        "frequency": math.sqrt(stiffness / (TIP_MASS + 0.24 * mass)) / (2 * math.pi),
        "buckling": buckling_stress / stress,
    }


if __name__ == "__main__":
    names = ("width", "height", "wall", "ribs")
    for name, value in evaluate(dict(zip(names, map(float, sys.argv[1:])))).items():
        print(f"{name}={value!r}")
'''
