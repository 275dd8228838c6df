"""Matplotlib figures of values that are given; these modules are imported when a figure is drawn: matplotlib is optional."""
