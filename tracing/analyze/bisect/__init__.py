"""Find the compiler pass that first makes a result bad, and a small input that shows it."""
