"""Disks without room."""

import resource
from contextlib import contextmanager


@contextmanager
def full_disk(n_bytes):
    """No file of this process can have more bytes than these."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
