"""The variant suite: 7 problems as the literature states them, several with integer or discrete variables.

They stand beside the paper's forms of the same functions, which relax or alter them; g06 is here because the
paper's tables name it and mean g04; keane18_bounded is Keane's bump in a box where it has a finite optimum.
"""

from __future__ import annotations

from typing import Final

from cbabo.problems import analytic, engineering, references
from cbabo.problems.shipped import Optimum, ShippedProblem, stated

_THICKNESSES = tuple(0.0625 * i for i in range(1, 100))
_VESSEL_BOUNDS = [(0.0625, 6.1875), (0.0625, 6.1875), (10.0, 200.0), (10.0, 200.0)]
_VESSEL_BOX = [(0.0, 10.0), (0.0, 10.0), (0.0, 1000.0), (0.0, 100.0)]
_STEEL_AREAS = (
    *(0.2, 0.4, 0.44, 0.6, 0.62, 0.79, 0.8, 0.88, 0.93, 1.0, 1.2, 1.24, 1.32, 1.4, 1.55, 1.58, 1.6, 1.76),
    *(1.8, 1.86, 2.0, 2.17, 2.2, 2.37, 2.4, 2.48, 2.64, 2.79, 2.8, 3.0, 3.08, 3.1, 3.16, 3.41, 3.52, 3.6),
    *(3.72, 3.95, 3.96, 4.0, 4.03, 4.2, 4.34, 4.4, 4.65, 4.74, 4.8, 5.0, 5.28, 5.4, 5.53, 5.72, 6.0, 6.16),
    *(6.32, 6.6, 7.11, 7.2, 7.8, 7.9, 8.0, 8.4, 8.69, 9.0, 9.48, 10.27, 11.06, 11.85, 12.0, 13.0, 14.0, 15.0),
)

G06: Final = ShippedProblem(
    stated("g06", bounds=[(13.0, 100.0), (0.0, 100.0)], box=[(0.0, 15.0), (0.0, 1.0)]),
    "variant",
    analytic.g06,
    source=references.CEC2006,
    optimum=Optimum(-6961.813875580138, (14.095, 0.8429607892154802)),
    notes="Not in the paper, whose rows called g06 are g04; the threshold box is this package's.",
)
KEANE18_BOUNDED: Final = ShippedProblem(
    stated("keane18_bounded", bounds=[(0.0, 10.0)] * 18, box=[(0.0, 0.7), (0.0, 100.0)]),
    "variant",
    analytic.keane,
    source=references.KEANE,
    notes="c1's limit stays below 0.75, so that the optimum is finite; f is still minus infinity at x = 0, "
    "which is infeasible.",
)
PRESSURE_VESSEL_MIXED: Final = ShippedProblem(
    stated(
        "pressure_vessel_mixed",
        _VESSEL_BOUNDS,
        _VESSEL_BOX,
        discrete={"x1": _THICKNESSES, "x2": _THICKNESSES},
    ),
    "variant",
    engineering.pressure_vessel,
    source=references.VESSEL,
    optimum=Optimum(6059.714335, (0.8125, 0.4375, 42.09844559585492, 176.63659584243945)),
    notes="Thicknesses are multiples of 1/16 inch.",
)
PRESSURE_VESSEL_CONT: Final = ShippedProblem(
    stated("pressure_vessel_cont", _VESSEL_BOUNDS, _VESSEL_BOX),
    "variant",
    engineering.pressure_vessel,
    source=references.VESSEL,
    optimum=Optimum(5885.3327736, (0.7781686413751053, 0.3846491626279018, 40.31961872409872, 200.0)),
    notes="Thicknesses are continuous.",
)
RC_BEAM_MIXED: Final = ShippedProblem(
    stated(
        "rc_beam_mixed",
        bounds=[(0.2, 15.0), (28.0, 40.0), (5.0, 10.0)],
        box=[(0.0, 10.0), (0.0, 500.0)],
        integers=["x2"],
        discrete={"x1": _STEEL_AREAS},
    ),
    "variant",
    engineering.rc_beam_literature,
    source=f"{references.BEAM}; {references.FIREFLY}",
    optimum=Optimum(359.208, (6.32, 34.0, 8.5)),
    notes="The steel area is what standard bars add up to, and the depth is whole.",
)
SPEED_REDUCER11: Final = ShippedProblem(
    stated(
        "speed_reducer11",
        bounds=[(2.6, 3.6), (0.7, 0.8), (17.0, 28.0), (7.3, 8.3), (7.3, 8.3), (2.9, 3.9), (5.0, 5.5)],
        box=[(0.0, 10.0)] * 11,
        integers=["x3"],
    ),
    "variant",
    engineering.speed_reducer11,
    source=f"{references.GEARBOX}; {references.CEC2020}",
    optimum=Optimum(
        2994.471066,
        (3.5, 0.7, 17.0, 7.3, 7.715319911478244, 3.3502146660958325, 5.28665446498022),
    ),
    notes="The number of teeth is whole.",
)
CAR_MIXED: Final = ShippedProblem(
    stated(
        "car_mixed",
        bounds=[(0.5, 1.5), (0.45, 1.35), *[(0.5, 1.5)] * 5, *[(0.192, 0.345)] * 2, *[(-30.0, 30.0)] * 2],
        box=[(0.0, 10.0)] * 10,
        discrete={"x8": (0.192, 0.345), "x9": (0.192, 0.345)},
    ),
    "variant",
    engineering.car,
    source=f"{references.SIDE_IMPACT}; {references.FIREFLY}",
    optimum=Optimum(
        22.84298,
        (
            *(0.5, 1.1163655865806426, 0.5, 1.302197191181912, 0.5, 1.5, 0.5),
            *(0.345, 0.345, -19.56153013282081, 0.0),
        ),
    ),
    notes="Materials are one of two; the design reaches 22.8429692, a little below the printed figure.",
)

VARIANT: Final = (
    *(G06, KEANE18_BOUNDED, PRESSURE_VESSEL_MIXED, PRESSURE_VESSEL_CONT),
    *(RC_BEAM_MIXED, SPEED_REDUCER11, CAR_MIXED),
)
"""The suite in order."""
