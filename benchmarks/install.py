"""What an installation costs: the size of site-packages, package by package, and how long imports take.

    python benchmarks/install.py

prints the figures of the environment whose Python runs it. Import times are wall times of whole processes, the best of five,
with the time of a bare interpreter beside them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

MODULES = ("", "cbabo", "cbabo.study.study", "cbabo.answering.model")


def main() -> None:
    """Print sizes and times."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--top", type=int, default=12, help="how many packages to list")
    parser.add_argument("--repeats", type=int, default=5, help="processes for each import")
    parser.add_argument("--smoke", action="store_true", help="one process for each import")
    wanted = parser.parse_args()
    place = Path(sysconfig.get_path("purelib"))
    sizes = {entry.name: size(entry) for entry in place.iterdir()}
    print(f"{place}: {sum(sizes.values()) / 2**20:.0f} MiB in {len(list(place.glob('*.dist-info')))} packages")
    for name, number in sorted(sizes.items(), key=lambda item: -item[1])[: wanted.top]:
        print(f"{number / 2**20:8.0f} MiB  {name}")
    for module in MODULES:
        seconds = min(importing(module) for _ in range(1 if wanted.smoke else wanted.repeats))
        print(f"{seconds:8.2f} s    {f'import {module}' if module else 'a bare interpreter'}")


def size(path: Path) -> int:
    """Return the bytes on disk in a file or folder."""
    files = [path] if path.is_file() else [Path(folder) / name for folder, _, names in os.walk(path) for name in names]
    return sum(on_disk(file.lstat()) for file in files)


def on_disk(status: os.stat_result) -> int:
    """Return what a file takes: whole blocks where the system tells them."""
    blocks = getattr(status, "st_blocks", None)
    return status.st_size if blocks is None else int(blocks) * 512


def importing(module: str) -> float:
    """Return the seconds that a process takes to import a module and end."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {module}" if module else ""], check=True)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
