"""A swept wing by vortex lattice and beam elements, computed by OpenAeroStruct: 7 variables, 3 limits. Needs openaerostruct.

The least fuel for a flight at Mach 0.84, with limits on the largest failure index of the tubular spar (below zero it holds), on
the missing lift (as a share of the weight) and on how far the tip bends.
"""

from __future__ import annotations

import contextlib
import io
import os
from functools import cache
from typing import Any

import numpy as np

from cbabo import Constraint, Objective, Problem, Real
from cbabo.domain.space import Point
from cbabo.errors import EvaluationError
from cbabo.numerics.arrays import FloatArray

PROBLEM = Problem(
    "wing",
    [
        Real("twist_tip", -5.0, 5.0, unit="deg"),
        Real("twist_middle", -5.0, 5.0, unit="deg"),
        Real("thickness", 0.08, 0.2),
        Real("spar_tip", 0.001, 0.02, log=True, unit="m"),
        Real("spar_middle", 0.002, 0.05, log=True, unit="m"),
        Real("spar_root", 0.002, 0.1, log=True, unit="m"),
        Real("alpha", 3.0, 12.0, unit="deg"),
    ],
    Objective("fuel", unit="t"),
    [
        Constraint("overstress", "<=", low=-0.5, high=0.0),
        Constraint("missing_lift", "<=", low=-0.2, high=0.2),
        Constraint("bending", "<=", low=1.2, high=3.0, unit="m"),
    ],
)
ELEMENTS = 5
"""Beam elements of one half of the wing, each with two stresses."""


def evaluate(point: Point) -> dict[str, float]:
    """Simulate one design."""
    parts = _parts(np.array([float(point[name]) for name in PROBLEM.space.names]))
    return {name: float(part.max()) for name, part in zip(PROBLEM.outputs, parts, strict=True)}


def evaluate_many(X: FloatArray) -> FloatArray:
    """Simulate designs, n x d; outputs n x q, NaN where the simulation fails."""
    return np.column_stack([part.max(axis=1) for part in evaluate_parts(X)])


def evaluate_parts(X: FloatArray) -> list[FloatArray]:
    """Simulate designs, n x d; for each output the values that it is the largest of, n x parts; NaN where it fails."""
    rows = []
    for x in X:
        try:
            rows.append(_parts(x))
        except EvaluationError:
            rows.append([np.full(count, np.nan) for count in (1, 2 * ELEMENTS, 1, 1)])
    return [np.array(part) for part in zip(*rows, strict=True)]


def _parts(x: FloatArray) -> list[FloatArray]:
    model = _model()
    model.set_val("wing.twist_cp", np.array([x[0], x[1], 0.0]))
    model.set_val("wing.geometry.t_over_c_cp", x[[2]])
    model.set_val("wing.thickness_cp", x[3:6])
    model.set_val("alpha", x[6])
    model.set_val("point.coupled.wing.disp", 0.0)  # Every evaluation starts from the same state.
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        try:
            model.run_model()
        except Exception as error:  # OpenMDAO raises many kinds of errors where the coupling does not converge.
            _model.cache_clear()  # Infinite states would make every further run fail.
            raise EvaluationError(f"OpenAeroStruct: {error}") from error
    fuel, failure, missing, moved = (
        np.array(model.get_val(name)).ravel()  # A copy: the next run overwrites what the model returns.
        for name in ("point.fuelburn", "point.wing_perf.failure", "point.L_equals_W", "point.coupled.wing.disp")
    )
    return [fuel / 1000.0, failure, missing, moved[[2]]]


@cache
def _model() -> Any:
    """Return the model, set up once for each process."""
    os.environ.setdefault("OPENMDAO_REPORTS", "0")
    import openmdao.api as om
    from openaerostruct.integration.aerostruct_groups import AerostructGeometry, AerostructPoint
    from openaerostruct.meshing.mesh_generator import generate_mesh

    mesh, _ = generate_mesh(
        {"num_y": 2 * ELEMENTS + 1, "num_x": 2, "wing_type": "CRM", "symmetry": True, "num_twist_cp": 3}
    )
    surface = {
        "name": "wing",
        "symmetry": True,
        "S_ref_type": "wetted",
        "fem_model_type": "tube",
        "thickness_cp": np.array([0.1, 0.2, 0.3]),
        "twist_cp": np.zeros(3),
        "mesh": mesh,
        "CL0": 0.0,
        "CD0": 0.015,
        "k_lam": 0.05,
        "t_over_c_cp": np.array([0.15]),
        "c_max_t": 0.303,
        "with_viscous": True,
        "with_wave": False,
        "E": 70.0e9,
        "G": 30.0e9,
        "yield": 500.0e6,
        "safety_factor": 2.5,
        "mrho": 3.0e3,
        "fem_origin": 0.35,
        "wing_weight_ratio": 2.0,
        "struct_weight_relief": False,
        "distributed_fuel_weight": False,
        "exact_failure_constraint": True,
    }
    problem = om.Problem(reports=False)
    given = om.IndepVarComp()
    for name, value, unit in (
        ("v", 248.136, "m/s"),
        ("alpha", 5.0, "deg"),
        ("Mach_number", 0.84, None),
        ("re", 1.0e6, "1/m"),
        ("rho", 0.38, "kg/m**3"),
        ("CT", 17.0e-6 * 9.80665, "1/s"),
        ("R", 11.165e6, "m"),
        ("W0", 0.4 * 3e5, "kg"),
        ("speed_of_sound", 295.4, "m/s"),
        ("load_factor", 1.0, None),
        ("empty_cg", np.zeros(3), "m"),
    ):
        given.add_output(name, val=value, units=unit)
    problem.model.add_subsystem("given", given, promotes=["*"])
    problem.model.add_subsystem("wing", AerostructGeometry(surface=surface))
    inputs = ["v", "alpha", "Mach_number", "re", "rho", "CT", "R", "W0", "speed_of_sound", "empty_cg", "load_factor"]
    problem.model.add_subsystem("point", AerostructPoint(surfaces=[surface]), promotes_inputs=inputs)
    for source, target in {
        "local_stiff_transformed": "coupled.wing.local_stiff_transformed",
        "nodes": "coupled.wing.nodes",
        "mesh": "coupled.wing.mesh",
        "radius": "wing_perf.radius",
        "thickness": "wing_perf.thickness",
        "cg_location": "total_perf.wing_cg_location",
        "structural_mass": "total_perf.wing_structural_mass",
        "t_over_c": "wing_perf.t_over_c",
    }.items():
        problem.model.connect(f"wing.{source}", f"point.{target}")
    problem.model.connect("wing.nodes", "point.wing_perf.nodes")
    problem.setup()
    problem.set_solver_print(level=-1)
    return problem
