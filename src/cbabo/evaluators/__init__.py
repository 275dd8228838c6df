"""Running the simulator: as a function or a command, here or in worker processes, with nothing left behind.

Nothing is imported here, because the worker and guardian processes must start quickly.
"""
