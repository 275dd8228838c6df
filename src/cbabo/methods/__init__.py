"""The two methods, paper and default: their settings, what they propose, answer and refine, and the state between iterations."""
