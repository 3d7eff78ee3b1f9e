"""Messages that name parameters of the library, in the words of the command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# Parameters whose options are called otherwise.
_OTHERS = {"client": "dask"}
# Not those of a measure, as in BNDCG(seed=1,prior='pool')@10.
_PARAMETER = re.compile(r"(?<![\w(,'\"=-])([a-z][a-z_]*)=(?=(\S?))")
_ENDS = frozenset(".,;:)")


def in_options(message: str, command: Any, arguments: Sequence[str]) -> str:
    """A message whose parameters are named as the options of the command that was called.

    Parameters
    ----------
    message
        What the library says.
    command
        Click's command, or the group of those that may have been called.
    arguments
        What stood behind its name.
    """
    words = iter(arguments)
    while hasattr(command, "commands"):
        known = command.commands
        called = next((word for word in words if word in known), None)
        if called is None:
            return message
        command = known[called]
    options = {each.name: each.opts[0] for each in command.params if each.opts[0].startswith("--")}

    def worded(found: re.Match[str]) -> str:
        name, after = found[1], found[2]
        option = options.get(_OTHERS.get(name, name)) or options.get(name.removeprefix("n_"))
        if option is None:
            return found[0]
        return f"{option}=" if after and after not in _ENDS else option

    return _PARAMETER.sub(worded, message)
