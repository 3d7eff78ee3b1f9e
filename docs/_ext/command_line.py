"""Reference of the command line, generated from its commands.

``.. command-line::`` lists them; each has a page in ``reference/commands``, written when a build begins.
"""

from __future__ import annotations

import re
from itertools import chain
from typing import TYPE_CHECKING, Any

import typer.main
from docutils import nodes
from examples import links, uses, write
from measures import table
from sphinx.util.docutils import SphinxDirective

from vbterrier.cli import app as application

FOLDER = "reference/commands"
_OPTION = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """The default of an option, as text."""
    value = parameter.default() if callable(parameter.default) else parameter.default
    if parameter.required:
        return "required"
    if value is None or value in ([], ()) or getattr(parameter, "is_flag", False):
        return ""
    text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(getattr(value, "value", value))
    return f"``{text}``" if text else ""


def slug(name: str) -> str:
    """The name of a command's page: ``queries-power`` of ``vbterrier queries power``."""
    return name.removeprefix("vbterrier ").replace(" ", "-")


def described(name: str, command: Any) -> Iterator[str]:
    """The page of a command: what it does, its call, its arguments and options by group, and examples."""
    parameters = [parameter for parameter in command.params if parameter.name != "help"]
    arguments = [parameter for parameter in parameters if parameter.param_type_name == "argument"]
    usage = " ".join(parameter.name.upper() + ("..." if parameter.nargs != 1 else "") for parameter in arguments)
    yield from (":orphan:", "", name, "=" * len(name), "", ":doc:`/reference/command-line`", "")
    yield from (plain(part) + "\n" for part in (command.help or "").split("\n\n"))
    yield from (".. code-block:: console", "", f"   $ {name} {usage} [OPTIONS]".replace("  ", " "), "")
    groups: dict[str, list[tuple[str, ...]]] = {}
    for parameter in parameters:
        is_argument = parameter in arguments
        heading = "Arguments" if is_argument else getattr(parameter, "rich_help_panel", None) or "Options"
        names = [parameter.name.upper()] if is_argument else [*parameter.opts, *parameter.secondary_opts]
        row = ", ".join(f"``{word}``" for word in names), plain(getattr(parameter, "help", "")), default(parameter)
        groups.setdefault(heading, []).append(row)
    for heading, rows in groups.items():
        yield from (heading, "-" * len(heading), "")
        head = ("argument" if heading == "Arguments" else "option", "meaning", "default")
        yield from table(head, rows, "25 55 20", "parameters")
    used = (examples for words, examples in uses().items() if f"{words} ".startswith(f"{name} "))
    yield from links(tuple(dict.fromkeys(chain.from_iterable(used))))


def all_commands() -> dict[str, Any]:
    """All commands by whole name."""
    return dict(commands(typer.main.get_command(application), "vbterrier"))


def write_pages(_app: Sphinx) -> None:
    """Write the pages of all commands."""
    write(FOLDER, {slug(name): "\n".join(described(name, command)) for name, command in all_commands().items()})


class CommandLine(SphinxDirective):
    """A table of all commands, whose rows have the anchors of the sections that this page once had."""

    def run(self) -> list[nodes.Node]:
        """The table."""
        every = all_commands()
        rows = [
            (f":doc:`{name} <commands/{slug(name)}>`", plain((command.help or "").split("\n\n")[0]))
            for name, command in every.items()
        ]
        tables = self.parse_text_to_nodes("\n".join(table(("command", "what it does"), rows, "30 70", "names")))
        body = next(iter(tables[0].findall(nodes.tbody)))
        for name, row in zip(every, body.children, strict=True):
            row.children[0].children[0].insert(0, nodes.target("", "", ids=[nodes.make_id(name)]))
        return tables


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("command-line", CommandLine)
    app.connect("builder-inited", write_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
