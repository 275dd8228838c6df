"""`python -m cbabo` is the command line."""

from __future__ import annotations

from cbabo.surfaces.cli import main

if __name__ == "__main__":
    main()
