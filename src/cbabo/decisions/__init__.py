"""What helps to decide: recommendations, trade-offs, audits, what can be fixed early, robust designs, other questions."""
