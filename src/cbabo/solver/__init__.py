"""The constrained problem on the surrogates: for one threshold, for discrete variables, and for many at once."""
