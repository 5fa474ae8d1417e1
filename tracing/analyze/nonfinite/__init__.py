"""The first NaN or inf of a run: its origin, its readers, and its elements."""
