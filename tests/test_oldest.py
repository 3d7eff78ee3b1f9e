"""The oldest versions that are tested are those that the package says it supports."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]


def requirements():
    """What pyproject.toml asks for, itself and with the extras that tests need."""
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [Requirement(line) for line in (*project["dependencies"], *project["optional-dependencies"]["test"])]


def pinned():
    lines = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    return dict(re.fullmatch(r"([\w.-]+)==(\S+)", line).groups() for line in lines if not line.startswith("#"))


def test_the_oldest_environment_has_every_minimum():
    versions = {canonicalize_name(name): Version(version) for name, version in pinned().items()}
    checked = 0
    for requirement in requirements():
        name = canonicalize_name(requirement.name)
        assert versions[name] in requirement.specifier, requirement
        least = [Version(one.version) for one in requirement.specifier if one.operator == ">="]
        # 2.2 is 2.2.0.
        assert least == [versions[name]], requirement
        checked += 1
    assert checked > 25
