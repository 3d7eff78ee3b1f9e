"""Numbers in, numbers out. NumPy only: no frame, no file and no host library reaches this floor."""
