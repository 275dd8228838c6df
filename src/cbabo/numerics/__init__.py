"""Numerical tools that know nothing of a problem: arrays, seeds, threads, quasi-random points, small optimisers, a codec."""
