"""What a problem is: variables, constraints, objective, evaluations, focus, and how these are written down."""
