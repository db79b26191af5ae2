"""A program of the user's own in the host of a scenario's mobile node, its links and handovers around it.

The scenario's flows are left out: the program is the traffic. Its far side is the correspondent node, whose address it
finds in its environment, and where a web server listens (:mod:`careof.far_side`). Handovers go on as long as it runs.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from careof import native, toml
from careof.errors import InputError
from careof.live import LiveLine
from careof.runs import override_list, read_scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from careof.native import Json
    from careof.runs import Overrides

LONGEST = "24 h"
"""A program that still runs then is told to end."""
PORT = 80
_FLOW = "program"
_SLICE_S = 0.05


class Shell(NamedTuple):
    """What is to be started."""

    scenario: str
    words: Sequence[str]
    """The program; without any the user's shell."""
    overrides: Overrides = ()
    seed: int | None = None
    repetition: int = 0
    node: str | None = None
    """Where it runs, if not at the first mobile node."""
    peer: str | None = None
    """The far side, if not the correspondent node."""
    serve: Path | None = None
    """A directory whose files the web server there has."""
    longest: str = LONGEST
    quiet: bool = False


def run(shell: Shell, remark: Callable[[str], None]) -> int:
    """Run the program to its end; returns its exit status, 128 and the number of a signal if one ended it.

    Raises:
        ScenarioError: the scenario is none.
        InputError: it has no such node, or there is no such directory.
        WorldError: this machine has no real hosts, or there is no such program.
    """
    if shell.serve is not None and not shell.serve.is_dir():
        raise InputError(f"{shell.serve}: there is no such directory", hint="name one with --serve DIR")
    name, text = read_scenario(Path(shell.scenario))
    given = override_list(shell.overrides)
    resolved = native.check(name, text, given)
    node = _node(resolved, shell.node, "mobile", "--at")
    peer = _node(resolved, shell.peer, "correspondent", "--to")
    if node == peer:
        raise InputError(f"{node} is both ends", hint="name another far side with --to NODE")
    overrides = [*given, f"duration={toml.inline(shell.longest)}"]
    addresses = _addresses(native.overview(name, text, [*overrides, "flow=[]"]))
    far = addresses[peer]
    flow = {
        "name": _FLOW,
        "from": node,
        "to": peer,
        "kind": "command",
        "command": ["true"],
        "server": _server(far, shell.serve),
    }
    overrides.append(f"flow={toml.inline([flow])}")
    host = f"[{far}]" if ":" in far else far
    own = native.OwnProgram(
        _FLOW,
        list(shell.words) or [os.environ.get("SHELL") or "/bin/sh"],
        {
            "CAREOF_CORRESPONDENT": far,
            "CAREOF_MOBILE": addresses[node],
            "CAREOF_HTTP": f"http://{host}/",
            # A proxy of this machine cannot be reached from there.
            "no_proxy": "*",
            "NO_PROXY": "*",
        },
    )
    native.check(name, text, overrides)
    native.prepare("linux")
    with (
        _deaf() as interrupted,
        native.World(
            "linux", name, text, overrides, seed=shell.seed, repetition=shell.repetition, trace=False, own=own
        ) as world,
    ):
        for words in world.take_remarks():
            remark(words)
        if not shell.quiet:
            remark(f"at {node} ({addresses[node]}); the far side is {peer}, {far}: {own.environment['CAREOF_HTTP']}")
        line = LiveLine(None if shell.quiet else sys.stderr, world.live, in_title=not shell.words)
        try:
            return _wait(world, line, interrupted)
        finally:
            line.clear()


def _wait(world: native.World, line: LiveLine, interrupted: list[int]) -> int:
    now, end = 0.0, world.duration_s
    while now < end:
        now = world.advance(now + _SLICE_S)
        if interrupted:
            interrupted.clear()
            if not (world.live() or {"programs": 1})["programs"]:
                raise KeyboardInterrupt("interrupted before the program had started; nothing was left behind")
        for program in world.take_programs():
            if program["which"] == "command":
                return int(program["status"])
            # The far side has gone, which the program will notice by itself.
        line.draw()
    # It was told to end.
    world.finish()
    own = [one for one in world.take_programs() if one["which"] == "command"]
    return int(own[0]["status"]) if own else 1


def _node(scenario: Json, asked: str | None, role: str, option: str) -> str:
    names = [str(one["name"]) for one in scenario["nodes"]]
    if asked is not None:
        if asked not in names:
            raise InputError(f"there is no node {asked!r}", hint=f"the nodes are {', '.join(names)}")
        return asked
    found = [str(one["name"]) for one in scenario["nodes"] if one["role"] == role]
    if not found:
        raise InputError(f"the scenario has no {role} node", hint=f"name one with {option} NODE: {', '.join(names)}")
    return found[0]


def _addresses(overview: Json) -> dict[str, str]:
    """An address of each node: a mobile node's is its home address."""
    found: dict[str, str] = {}
    for link in overview["links"]:
        for node, address in zip(link["between"], link["addresses"], strict=True):
            if address is not None:
                found.setdefault(str(node), str(address))
    return found | {str(one["name"]): str(one["home_address"]) for one in overview["mobiles"]}


def _server(address: str, directory: Path | None) -> list[str]:
    # As a file, alone: it begins sooner than with all that the package imports.
    file = str(Path(__file__).with_name("far_side.py"))
    words = [sys.executable, "-I", "-S", file, address, str(PORT)]
    return words if directory is None else [*words, str(directory.absolute())]


@contextmanager
def _deaf() -> Iterator[list[int]]:
    """Leave the keys that interrupt to the program, in the same group of the terminal; says which were pressed.

    A handler, since a signal that is ignored would stay so in the program.
    """
    kinds = (signal.SIGINT, signal.SIGQUIT)
    pressed: list[int] = []
    before = [signal.signal(kind, lambda number, _: pressed.append(number)) for kind in kinds]
    try:
        yield pressed
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)
