"""The contracts of the frames, the one tie rule, reading and writing."""
