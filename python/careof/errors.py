"""What careof raises.

::

    CareofError
    ├── InputError              what was asked for makes no sense; exit status 2
    │   ├── ScenarioError       the scenario file, or an override of it
    │   ├── WorldError          the chosen world cannot do it, or not on this machine
    │   ├── OutputError         nothing can be written there
    │   ├── NotARunError        that directory holds no run
    │   └── NotATableError      that file holds no table of a sweep
    ├── RunError                the run itself went wrong; exit status 1
    │   ├── ConservationError   packets appeared or vanished without a cause
    │   └── ClusterError        the Dask cluster cannot be reached, or cannot do it
    └── InternalError           a fault of careof; exit status 1

``str(error)`` is the message for people. Where there is something to do about it, ``error.hint`` says what.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class CareofError(Exception):
    """Root of everything careof raises on purpose."""

    exit_status = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class InputError(CareofError):
    """What was asked for makes no sense. Nothing has been run and nothing written."""

    exit_status = 2


class ScenarioError(InputError):
    """The scenario cannot be read or means nothing.

    The message names file, line, column, key and value of each fault, and already holds its hints.
    """


class WorldError(InputError):
    """The world that was chosen cannot do what the scenario asks for, or not on this machine."""


class OutputError(InputError):
    """Nothing can be written where the output was to go."""


class NotARunError(InputError):
    """A directory that should hold a run does not."""


class NotATableError(InputError):
    """A file that should hold the table of a sweep does not."""


class RunError(CareofError):
    """The run went wrong after it had begun."""


class ConservationError(RunError):
    """After the run, packets sent were not packets delivered, dropped, queued and in flight."""


class ClusterError(RunError):
    """The Dask cluster cannot be reached, is lost, or has workers that cannot do it."""


class InternalError(CareofError):
    """The native module gave up: a fault of careof, whatever it was asked for."""


def did_you_mean(name: str, known: Sequence[str], otherwise: str) -> str:
    """A hint for a name that there is not: the known one that is nearest to it, or else what `otherwise` says."""
    import difflib

    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]}?" if near else otherwise
