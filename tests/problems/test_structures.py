"""Trusses and frames against formulas of statics."""

import numpy as np
import pytest

from cbabo.problems.structures import YOUNG, Frame, Truss


def test_a_bar_stretches_by_hookes_law():
    truss = Truss(np.array([[0, 1]]), held=(0, 1, 3), loads=np.array([[0.0], [0.0], [50.0], [0.0]]))
    forces, moved, lengths = truss.solve(np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([[4.0], [8.0]]))
    assert forces[:, 0, 0] == pytest.approx([50.0, 50.0])
    assert moved[:, 2, 0] == pytest.approx([1000.0 * 50.0 * 2.0 / (YOUNG * a) for a in (4.0, 8.0)])
    assert lengths[:, 0] == pytest.approx([2.0, 2.0])


def test_two_bars_share_a_load_by_equilibrium_and_designs_may_differ_in_shape():
    truss = Truss(np.array([[0, 2], [1, 2]]), held=(0, 1, 2, 3), loads=np.array([[0.0]] * 5 + [[-10.0]]))
    nodes = np.array([[[-1.0, h], [1.0, h], [0.0, 0.0]] for h in (1.0, 2.0)])
    forces, _, lengths = truss.solve(nodes, np.ones((2, 2)))
    for row, h in enumerate((1.0, 2.0)):
        assert forces[row, :, 0] == pytest.approx([5.0 * lengths[row, 0] / h] * 2)


def test_a_cantilever_bends_as_in_the_textbook():
    frame = Frame(
        nodes=np.array([[0.0, 0.0], [0.0, 1.5], [0.0, 3.0]]),
        beams=np.array([[0, 1], [1, 2]]),
        held=(0, 1, 2),
        loads=np.array([[0.0, 0.0]] * 6 + [[7.0, 0.0], [0.0, -20.0], [0.0, 0.0]]),
    )
    axial, moments, moved = frame.solve(np.full((1, 2), 30.0), np.full((1, 2), 500.0))
    assert moved[0, 6, 0] == pytest.approx(1000.0 * 7.0 * 3.0**3 / (3.0 * YOUNG * 1e-4 * 500.0))
    assert np.abs(moments[0, 0, 0, 0]) == pytest.approx(21.0)
    assert np.abs(moments[0, 1, :, 0]) == pytest.approx([10.5, 0.0], abs=1e-9)
    assert axial[0, :, 1] == pytest.approx([-20.0, -20.0])
    assert moved[0, 7, 1] == pytest.approx(-1000.0 * 20.0 * 3.0 / (YOUNG * 30.0))


def test_many_designs_are_solved_as_each_alone():
    truss = Truss(np.array([[0, 1]]), held=(0, 1, 3), loads=np.array([[0.0], [0.0], [50.0], [0.0]]))
    nodes, areas = np.array([[0.0, 0.0], [2.0, 0.0]]), np.linspace(1.0, 9.0, 2300)[:, None]
    many = truss.solve(nodes, areas)[1]
    assert many[2250] == pytest.approx(truss.solve(nodes, areas[2250:2251])[1][0])
    assert truss.solve(nodes, areas[:0])[0].shape == (0, 1, 1)
