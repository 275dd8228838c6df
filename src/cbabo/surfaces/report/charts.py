"""Charts as SVG: a curve with its uncertainty, points, cells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cbabo.display.markup import Markup, joined, tag
from cbabo.display.numbers import number
from cbabo.numerics.arrays import FloatArray

_LEFT, _RIGHT, _TOP, _BOTTOM = 62.0, 12.0, 20.0, 34.0
_DOT = 1.8


@dataclass(frozen=True)
class Axis:
    """One axis of a chart: its label and range."""

    label: str
    low: float
    high: float

    @classmethod
    def around(cls, label: str, values: FloatArray) -> Axis:
        """Return an axis that holds these values with a small margin."""
        low, high = float(values.min()), float(values.max())
        margin = 0.06 * (high - low) or 0.1 * abs(low) or 1.0
        return cls(label, low - margin, high + margin)

    def ticks(self, count: int) -> list[float]:
        """Return about this many round tick values."""
        rough = (self.high - self.low) / count
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m for m in (1.0, 2.0, 5.0, 10.0) if m * power >= 0.999 * rough) * power
        first = math.ceil(self.low / step - 1e-9)
        return [i * step for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


class Chart:
    """A chart: two axes and the elements drawn between them."""

    def __init__(self, x: Axis, y: Axis, title: str, width: float = 340.0, height: float = 230.0) -> None:
        self._x, self._y, self._title, self._width, self._height = x, y, title, width, height
        self._parts: list[Markup] = []

    def band(self, x: FloatArray, low: FloatArray, high: FloatArray) -> None:
        """Fill the region between two curves."""
        points = [*zip(x, high, strict=True), *zip(x[::-1], low[::-1], strict=True)]
        self._parts.append(tag("path", d=f"{self._path(points)}Z", class_="band"))

    def line(self, x: FloatArray, y: FloatArray, kind: str = "line") -> None:
        """Draw a curve."""
        self._parts.append(tag("path", d=self._path(list(zip(x, y, strict=True))), class_=kind))

    def points(self, x: FloatArray, y: FloatArray) -> None:
        """Draw dots; those outside the axes are left out."""
        inside = (y >= self._y.low) & (y <= self._y.high) & (x >= self._x.low) & (x <= self._x.high)
        for a, b in zip(x[inside], y[inside], strict=True):
            self._parts.append(
                tag("circle", cx=f"{self._across(a):.1f}", cy=f"{self._up(b):.1f}", r=_DOT, class_="dot")
            )

    def cells(self, values: FloatArray, good: NDArray[np.bool_]) -> None:
        """Fill the frame with cells (n x m, the first index across): the darker the larger, crossed out where not good."""
        shown = values[good] if good.any() else values
        low, span = float(shown.min()), float(np.ptp(shown)) or 1.0
        n, m = values.shape
        wide, high = (self._width - _LEFT - _RIGHT) / n, (self._height - _TOP - _BOTTOM) / m
        for i, j in np.ndindex(n, m):
            x, y = _LEFT + i * wide, self._height - _BOTTOM - (j + 1) * high
            box = {"x": f"{x:.1f}", "y": f"{y:.1f}", "width": f"{wide + 0.3:.1f}", "height": f"{high + 0.3:.1f}"}
            share = min(max((float(values[i, j]) - low) / span, 0.0), 1.0)
            opacity = f"{0.08 + 0.85 * share:.2f}"
            self._parts.append(tag("rect", **box, class_="cell", fill_opacity=opacity if good[i, j] else "0.04"))
            if not good[i, j]:
                self._parts.append(tag("path", d=f"M{x:.1f} {y + high:.1f}l{wide:.1f} {-high:.1f}", class_="not"))

    def drawing(self) -> Markup:
        """Return the chart."""
        bottom, right = self._height - _BOTTOM, self._width - _RIGHT
        frame = tag("path", d=f"M{_LEFT} {_TOP}V{bottom}H{right}", class_="frame")
        return tag(
            "svg",
            tag("title", self._title),
            *self._marks(),
            *self._parts,
            frame,
            tag("text", self._x.label, x=right, y=self._height - 4, class_="label", text_anchor="end"),
            tag("text", self._y.label, x=2, y=12, class_="label"),
            view_box=f"0 0 {self._width:g} {self._height:g}",
            width=f"{self._width:g}",
            height=f"{self._height:g}",
            role="img",
        )

    def _marks(self) -> Sequence[Markup]:
        bottom, right = self._height - _BOTTOM, self._width - _RIGHT
        across = [
            joined(
                tag("path", d=f"M{self._across(v):.1f} {_TOP}V{bottom}", class_="grid"),
                tag("text", number(v), x=f"{self._across(v):.1f}", y=bottom + 14, text_anchor="middle"),
            )
            for v in self._x.ticks(4)
        ]
        up = [
            joined(
                tag("path", d=f"M{_LEFT} {self._up(v):.1f}H{right}", class_="grid"),
                tag("text", number(v), x=_LEFT - 5, y=f"{self._up(v) + 4:.1f}", text_anchor="end"),
            )
            for v in self._y.ticks(4)
        ]
        return [*across, *up]

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        return "M" + "L".join(f"{self._across(x):.1f} {self._up(y):.1f}" for x, y in points)

    def _across(self, value: float) -> float:
        return _LEFT + (value - self._x.low) / (self._x.high - self._x.low) * (self._width - _LEFT - _RIGHT)

    def _up(self, value: float) -> float:
        share = (value - self._y.low) / (self._y.high - self._y.low)
        return self._height - _BOTTOM - min(max(share, 0.0), 1.0) * (self._height - _TOP - _BOTTOM)
