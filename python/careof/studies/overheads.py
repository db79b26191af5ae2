"""Where Mobile IP's time goes: tunnel, fragments, dogleg, handover (the paper "TCP performance in Mobile-IP").

The paper sent a file between hosts on one half-duplex Ethernet, with the mobile node at home and behind a foreign
agent, and worked out what each overhead of Mobile IP costs; then it measured handovers that are noticed by
advertisements that stay away. Here the same is simulated, with what the paper proposed as cures and with the Ethernet
of today, and part of it is carried out on Linux hosts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from careof.runs import SIMULATED
from careof.studies import Study, _overheads_linux
from careof.studies._files import as_json, refuse, write
from careof.studies._overheads_figures import Course, course, pictures
from careof.studies._overheads_rows import o1, o2, o3, o4, o5, o6, o7, times
from careof.studies._overheads_runs import (
    ACQUISITIONS,
    HAND_OFFS,
    LOST,
    PLACEMENTS,
    ROUTED,
    TODAY,
    UNASKED,
    Acquired,
    HandedOff,
    HandOff,
    Long,
    Sizes,
    TookLong,
    Transfer,
    Transferred,
    Walk,
    Walked,
    acquire,
    hand_off,
    long_transfer,
    transfer,
    tunnelled_sizes,
    walk,
)
from careof.studies._overheads_tables import CURES, tables
from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from careof.studies import Watcher

T = TypeVar("T")

TITLE = "Where Mobile IP's time goes"

FILES = 20
"""As often as the paper sent its file."""
HANDOVERS = 1000
HANDOVERS_TCP = 40
"""For each profile and each of five intervals."""
INTERVALS_S = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
INTERVALS_TCP_S = (1.0, 1.5, 2.0, 2.5, 3.0)
"""From the least that RFC 2002 recommends, and the paper with it."""
PROFILES = ("linux-2.0", "reno", "linux")


def carry_out(out: Path | None, progress: Watcher | None, *, quick: bool = False, world: str = SIMULATED) -> Study:
    """Run the paper's measurements again, and what it proposed.

    Args:
        out: a directory for the figures and `rows.json`; it is made if need be.
        progress: told how many runs are done of how many.
        quick: fewer repetitions, and none of what is beyond the paper.
        world: where to run it; on Linux hosts, in about two minutes, set-ups D and E and the handovers.

    Raises:
        OutputError: `out` cannot be written.
        WorldError: this machine has no Linux hosts to offer.
    """
    refuse(out)
    if world != SIMULATED:
        return _overheads_linux.carry_out(out, progress, world=world, quick=quick)
    study, results = _simulated(progress, quick=quick)
    if out is not None:
        drawn = pictures(_of(results, Walked), _of(results, Course)[0])
        files = {f"{picture.name}.png": picture.png for picture in drawn}
        study.files.extend(write(out, {"rows.json": as_json(study.rows_as_json()), **files}))
    return study


def _simulated(progress: Watcher | None, *, quick: bool) -> tuple[Study, list[Any]]:
    files = 3 if quick else FILES
    count = 200 if quick else HANDOVERS
    with_tcp = 30 if quick else HANDOVERS_TCP
    work: list[Callable[[Watcher], Any]] = [
        partial(transfer, Transfer(placement, repetition=repetition))
        for repetition in range(files)
        for placement in PLACEMENTS
    ]
    work += [partial(walk, Walk(f"network {a}", a, count)) for a in INTERVALS_S]
    work.append(partial(walk, Walk("network 1.0 at random", 1.0, count, clockwork=False, settings=(LOST, *UNASKED))))
    work += [partial(walk, Walk(f"tcp {a}", a, with_tcp, tcp=profile)) for a in INTERVALS_TCP_S for profile in PROFILES]
    work += [
        partial(long_transfer, Long(profile, handovers=handovers, repetition=repetition))
        for profile in PROFILES
        for handovers in (False, True)
        for repetition in range(files if handovers else 1)
    ]
    work += [partial(tunnelled_sizes, letter) for letter in ("C", "E")]
    work.append(course)
    if not quick:
        work += [partial(walk, one) for one in CURES]
        work += [partial(acquire, one, repetition) for one in ACQUISITIONS for repetition in range(30)]
        work += [partial(transfer, one) for one in (*ROUTED, *TODAY)]
        work += [
            partial(hand_off, HandOff(smooth, detection, number))
            for detection in ("link-trigger", "missed-advertisements")
            for smooth in (False, True)
            for number in range(HAND_OFFS)
        ]
    results = list(in_turn(work, progress))
    walks = _of(results, Walked)
    means = times(_of(results, Transferred))
    sizes = {one.letter: one.by_size for one in _of(results, Sizes)}
    fast = next(one for one in walks if one.of.key.startswith("network") and one.of.interval_s == INTERVALS_S[0])
    study = Study(
        title=TITLE,
        rows=[o1(means), o2(means), o3(sizes), o4(walks), o5(walks), o6(fast), o7(_of(results, TookLong))],
        tables=tables(
            means,
            walks,
            _of(results, Acquired),
            [one for one in _of(results, Transferred) if one.of.variant],
            _of(results, HandedOff),
            quick=quick,
        ),
    )
    return study, results


def _of(results: list[Any], kind: type[T]) -> list[T]:
    return [one for one in results if isinstance(one, kind)]
