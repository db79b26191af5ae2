"""`careof completions SHELL` and `careof man DIR`: the parser of the command line for shells and `man`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

import shtab

from careof import native, studies
from careof.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_DIRECTORIES: Final = ("DIR", "RUN", "A", "B")
"""Metavariables of paths that are directories."""

_NAMES: Final[dict[tuple[str, str], Callable[[], list[str]]]] = {
    ("careof presets", "name"): lambda: [str(one["name"]) for one in native.presets()],
    ("careof study", "name"): studies.names,
}
"""Arguments whose values have names, though the parser takes any word, to answer a wrong one with the nearest."""


_EXIT_STATUS = {
    "careof": "0: done; 1: the run failed; 2: asked for wrongly, with a hint.",
    "careof shell": "That of the program, or 128 and the number of the signal that ended it; 1: the run failed; "
    "2: asked for wrongly, with a hint.",
}
"""What the exit status says: of all commands, and of those that differ."""


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """What lets `shell` complete commands, options, files and names of the command `parser`."""
    for command in (parser, *_below(parser)):
        for action in command._actions:  # noqa: SLF001 (there is no other way)
            names = _NAMES.get((command.prog, action.dest))
            if names is not None:
                action.choices = names()
            elif action.type is Path or action.metavar == "FILE":
                # That is where shtab looks for it.
                vars(action)["complete"] = shtab.DIRECTORY if action.metavar in _DIRECTORIES else shtab.FILE
    return shtab.complete(parser, shell)


def pages(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Manual pages by the names of their files: one of the whole, and one of each command."""
    commands = (parser, *_below(parser))
    return {f"{command.prog.replace(' ', '-')}.1": _page(command) for command in commands}


def write_pages(parser: argparse.ArgumentParser, directory: Path) -> None:
    """Write `pages` to a directory, which is made if it is not there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, page in pages(parser).items():
            (directory / name).write_text(page, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"cannot write manual pages to {directory}: {error.strerror}") from error


def _page(parser: argparse.ArgumentParser) -> str:
    name = parser.prog.replace(" ", "-")
    described = parser.description or ""
    lines = [
        f'.TH "{_plain(name.upper())}" "1" "" "careof {_plain(native.__version__)}" ""',
        ".SH NAME",
        f"{_plain(name)} \\- {_plain(described[:1].lower() + described[1:].rstrip('.'))}",
        ".SH SYNOPSIS",
        _plain(parser.format_usage().partition(": ")[2]),
    ]
    arguments = [one for one in parser._actions if not isinstance(one, argparse._SubParsersAction)]  # noqa: SLF001
    for heading, chosen in (
        ("ARGUMENTS", [one for one in arguments if not one.option_strings]),
        ("OPTIONS", [one for one in arguments if one.option_strings]),
    ):
        if chosen:
            lines.append(f".SH {heading}")
        for action in chosen:
            lines += [".TP", _invocation(action), _plain((action.help or "") % vars(action))]
    inner = list(_inner(parser))
    if inner:
        lines.append(".SH COMMANDS")
    for command, described in inner:
        lines += [".TP", f"\\fB{_plain(command.prog.replace(' ', '-'))}\\fP(1)", _plain(described)]
    if parser.epilog:
        lines += [".SH NOTES", _plain(parser.epilog)]
    lines += [
        ".SH EXIT STATUS",
        _plain(_EXIT_STATUS.get(parser.prog, _EXIT_STATUS["careof"])),
        ".SH SEE ALSO",
        "\\fBcareof\\fP(1), \\fBcareof\\-agent\\fP(1)",
    ]
    return "\n".join(lines) + "\n"


def _invocation(action: argparse.Action) -> str:
    """How an argument is written: `--seed N`."""
    value = action.metavar or "|".join(str(one) for one in action.choices or ()) or action.dest.upper()
    value = f"\\fI{_plain(str(value))}\\fP"
    if not action.option_strings:
        return value
    options = ", ".join(f"\\fB{_plain(one)}\\fP" for one in action.option_strings)
    return options if action.nargs == 0 else f"{options} {value}"


def _plain(text: str) -> str:
    """A text that means nothing to roff, in one line."""
    line = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("'", "\\(aq")
    return f"\\&{line}" if line.startswith(".") else line


def _inner(parser: argparse.ArgumentParser) -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """The commands of a parser, each with what it does in a few words."""
    for action in parser._actions:  # noqa: SLF001
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for described in action._choices_actions:  # noqa: SLF001
                yield action.choices[described.dest], described.help or ""


def _below(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for command, _ in _inner(parser):
        yield command
        yield from _below(command)
