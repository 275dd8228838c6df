"""Rows of a benchmark that are written as they are measured, so that a stopped one goes on where it was."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import pandas as pd

COLUMNS = ("tool", "problem", "seed", "measure", "value")


class Rows:
    """Measured numbers by tool, problem and seed: in memory, and in a CSV file if one is given."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.found: dict[tuple[str, str, int], dict[str, float]] = {}
        if path is not None and path.exists():
            with path.open(newline="", encoding="utf-8") as file:
                for tool, problem, seed, measure, value in list(csv.reader(file))[1:]:
                    self.found.setdefault((tool, problem, int(seed)), {})[measure] = float(value)

    def has(self, tool: str, problem: str, seed: int) -> bool:
        """Tell whether this was measured."""
        return (tool, problem, seed) in self.found

    def add(self, tool: str, problem: str, seed: int, row: Mapping[str, float]) -> None:
        """Keep what was measured; all of it is in the file, or nothing."""
        self.found[tool, problem, seed] = dict(row)
        if self.path is None:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        with part.open("w", newline="", encoding="utf-8") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(COLUMNS)
            table.writerows(
                (*key, measure, f"{value:.6g}")
                for key in sorted(self.found)
                for measure, value in self.found[key].items()
            )
        part.replace(self.path)

    def table(self, tool: str, problems: Sequence[str], seeds: Sequence[int], summed: Sequence[str] = ()) -> str:
        """Return one tool's table as Markdown: a line for each problem, means over the seeds, but sums of counts.

        Of measures whose names begin with "largest" the largest is shown.
        """
        lines = []
        for problem in problems:
            rows = [self.found[key] for seed in seeds if (key := (tool, problem, seed)) in self.found]
            if not rows:
                continue
            frame = pd.DataFrame(rows)
            line = {
                name: column.sum() if name in summed else column.max() if name.startswith("largest") else column.mean()
                for name, column in frame.items()
            }
            lines.append({"problem": problem, "seeds": len(rows), **line})
        if not lines:
            return ""
        frame = pd.DataFrame(lines)
        text = [f"| {' | '.join(map(str, frame.columns))} |", "|---" + "|---:" * (len(frame.columns) - 1) + "|"]
        for line in frame.itertuples(index=False):
            text.append(f"| {' | '.join(value if isinstance(value, str) else f'{value:.4g}' for value in line)} |")
        return "\n".join(text)
