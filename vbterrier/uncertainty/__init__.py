"""Intervals of means over topics, and of what is not known about each topic."""
