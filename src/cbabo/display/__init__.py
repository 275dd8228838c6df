"""How values are shown: numbers as people read them, HTML tables, and matplotlib figures.

It computes nothing, and is given the values that it shows. It imports the modules of these values for type checking only, so that
a problem, an answer and a model may each have a method that shows it.
"""
