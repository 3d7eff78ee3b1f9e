"""What tests of frames share."""

import pytest


@pytest.fixture
def stored(tmp_path):
    """Write a text or bytes to a file: its path."""

    def write(content, name="input"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write
