"""Reference of the command line, generated from its commands: ``.. command-line::``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import typer.main
from measures import table
from sphinx.util.docutils import SphinxDirective

from vbterrier.cli import app as application

_OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docutils import nodes
    from sphinx.application import Sphinx


def commands(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands with their whole names, groups opened."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{name} {word}")
        else:
            yield f"{name} {word}", command


def plain(text: str | None) -> str:
    """A text of the command line in which nothing is markup but the names of options."""
    words = " ".join((text or "").split()).translate({ord(mark): f"\\{mark}" for mark in "\\*`|_@"})
    return _OPTION.sub(r"``\1``", words)


def default(parameter: Any) -> str:
    """What stands where an option is not given."""
    given = parameter.default() if callable(parameter.default) else parameter.default
    if parameter.required:
        return "required"
    if given is None or given in ([], ()):
        return ""
    shown = ", ".join(map(str, given)) if isinstance(given, (list, tuple)) else str(getattr(given, "value", given))
    return f"``{shown}``" if shown else ""


def described(name: str, command: Any) -> Iterator[str]:
    """A section of a command."""
    parameters = [parameter for parameter in command.params if parameter.name != "help"]
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    usage = " ".join(parameter.name.upper() + ("..." if parameter.nargs != 1 else "") for parameter in arguments)
    yield from (name, "-" * len(name), "", *(plain(part) + "\n" for part in (command.help or "").split("\n\n")))
    yield from (".. code-block:: console", "", f"   $ {name} {usage} [OPTIONS]".replace("  ", " "), "")
    rows = [
        (
            f"``{parameter.name.upper()}``"
            if parameter in arguments
            else ", ".join(f"``{word}``" for word in (*parameter.opts, *parameter.secondary_opts)),
            plain(getattr(parameter, "help", "")),
            default(parameter),
        )
        for parameter in parameters
    ]
    if rows:
        yield from table(("option", "meaning", "default"), rows, "25 55 20", "parameters")


class CommandLine(SphinxDirective):
    """All commands, a section each."""

    def run(self) -> list[nodes.Node]:
        """The sections."""
        group = typer.main.get_command(application)
        lines = [line for name, command in commands(group, "vbterrier") for line in described(name, command)]
        return self.parse_text_to_nodes("\n".join(lines), allow_section_headings=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
