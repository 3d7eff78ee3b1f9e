"""Other evaluation tools' ways to our computations."""
