"""The memory: tables, migrations, the lock, and the learner's state as bytes. No torch, no mathematics."""
