"""The literature that the problems come from, each reference written once."""

from __future__ import annotations

from typing import Final

CEC2006: Final = (
    "Liang et al., Problem definitions and evaluation criteria for the CEC 2006 special session on "
    "constrained real-parameter optimization, technical report, Nanyang Technological University, 2006"
)
CEC2010: Final = (
    "Mallipeddi and Suganthan, Problem definitions and evaluation criteria for the CEC 2010 competition on "
    "constrained real-parameter optimization, technical report, Nanyang Technological University, 2010"
)
SCBO: Final = "Eriksson and Poloczek, Scalable constrained Bayesian optimization, AISTATS 2021"
GARDNER: Final = "Gardner et al., Bayesian optimization with inequality constraints, ICML 2014"
KEANE: Final = (
    "Keane, Experiences with optimizers in structural design, Conference on Adaptive Computing in "
    "Engineering Design and Control, 1994"
)
BO_ENGINEERING: Final = (
    "Yu, Picard and Ahmed, BOEngineeringBenchmark, https://github.com/rosenyu304/BOEngineeringBenchmark, commit 8e843f2"
)
VESSEL: Final = (
    "Kannan and Kramer, An augmented Lagrange multiplier based method for mixed integer discrete continuous "
    "optimization and its applications to mechanical design, Journal of Mechanical Design, 1994"
)
BEAM: Final = (
    "Amir and Hasegawa, Nonlinear mixed-discrete structural optimization, Journal of Structural Engineering, 1989"
)
GEARBOX: Final = (
    "Golinski, An adaptive optimization system applied to machine synthesis, Mechanism and Machine Theory, 1973"
)
CEC2020: Final = (
    "Kumar et al., A test-suite of non-convex constrained optimization problems from the real-world and "
    "some baseline results, Swarm and Evolutionary Computation, 2020"
)
SIDE_IMPACT: Final = (
    "Youn et al., Reliability-based design optimization for crashworthiness of vehicle side impact, "
    "Structural and Multidisciplinary Optimization, 2004"
)
FIREFLY: Final = (
    "Gandomi, Yang and Alavi, Mixed variable structural optimization using firefly algorithm, Computers & "
    "Structures, 2011"
)
WELDED_BEAM: Final = (
    "Ragsdell and Phillips, Optimal design of a class of welded structures using geometric programming, Journal of "
    "Engineering for Industry, 1976"
)
