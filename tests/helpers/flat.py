"""Flat keywords as the settings of a call, for tests that vary one setting at a time."""

import inspect
from dataclasses import fields

import vbterrier
from vbterrier.settings import Options

SPACES = (vbterrier, vbterrier.evaluate, vbterrier.linking, vbterrier.design, vbterrier.unjudged)


def grouped(call, **options):
    """Arguments of a call: settings in the object that has them in its signature, other arguments unchanged."""
    parameters = inspect.signature(next(getattr(space, call) for space in SPACES if hasattr(space, call))).parameters
    for name, part in parameters.items():
        if isinstance(part.default, Options):
            flat = [one.name for one in fields(part.default) if one.name in options and one.name not in parameters]
            if flat:
                options[name] = type(part.default)(**{one: options.pop(one) for one in flat})
    return options
