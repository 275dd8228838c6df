"""What helps to choose limits: recommendations and trade-offs."""
