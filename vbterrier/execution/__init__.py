"""Parallel, distributed and streamed execution."""
