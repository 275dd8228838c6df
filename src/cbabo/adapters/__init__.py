"""Runs of other tools, read as tables and written from studies; what they need is imported when it is used."""
