"""Readers and writers of files: ids stay text, and errors name their line."""
