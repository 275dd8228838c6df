"""A study: trials, the run loop, imports and the public object."""
