"""The runs behind the study `vertical`: one scenario, and what each run changes in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from careof.runs import run
from careof.studies._vertical_observed import Observed

if TYPE_CHECKING:
    from careof.native import Json
    from careof.runs import Run
    from careof.studies import Watcher

SCENARIO = """\
title = "Vertical handover between WaveLAN and GSM"
description = \"\"\"
Scenario 1 of the thesis, download: a laptop with a co-located care-of address leaves its WaveLAN for a GSM data call
during a bulk transfer. Both links stay up, so that no packet is lost.
\"\"\"
duration = "160 s"

[links]
wavelan = "wavelan"
gsm = "gsm-csd"

[mobility]
early_requests = 0
protocol = "mobile-ipv4"
care_of = "co-located"
routing = "triangle"

[[handover]]
at = "12 s"
from = "wavelan"
to = "gsm"
style = "make-before-break"
queued = "drain-late"

[[flow]]
name = "netperf"
from = "correspondent"
to = "mobile"
kind = "bulk"
tcp = { profile = "linux-2.0", window = "16 KiB", mss = "1420 B" }
"""

_NAME = "careof/studies/vertical.toml"
_FLOW = "netperf"

_WAVELAN_ROUND_S = 0.066
"""A window of eleven segments takes about this long over WaveLAN."""
_GSM_SEGMENT_S = 1.55
"""A full segment takes about this long over GSM."""


@dataclass(frozen=True)
class Setup:
    """One run of the study."""

    key: str
    title: str
    overrides: tuple[str, ...] = ()
    handover_at_s: float = 12.0
    shift_s: float = _WAVELAN_ROUND_S
    """The handover's instant moves within this span to see how far the results hang on it."""
    upload: bool = False
    old: str = "wavelan"
    new: str = "gsm"


SETUPS = (
    Setup("download", "WaveLAN to GSM, download, window 16 KiB, MSS 1420"),
    Setup(
        "download-1460",
        "WaveLAN to GSM, download, window 16 KiB, MSS 1460",
        # The tunnel's header makes 1520 bytes of such a segment. Without DF the home agent fragments it; with
        # DF its ICMP would bring the sender down to 1440.
        ("flow.0.tcp.mss=1460 B", "flow.0.tcp.pmtu_discovery=false"),
    ),
    Setup(
        "window-4096",
        "WaveLAN to GSM, download, window 4096, MSS 1024",
        ("flow.0.tcp.window=4096 B", "flow.0.tcp.mss=1024 B"),
    ),
    Setup(
        "window-2144",
        "WaveLAN to GSM, download, window 2144, MSS 536",
        ("flow.0.tcp.window=2144 B", "flow.0.tcp.mss=536 B"),
    ),
    Setup(
        "back",
        "GSM to WaveLAN, download, window 16 KiB, MSS 1420",
        ("handover.0.from=gsm", "handover.0.to=wavelan"),
        handover_at_s=70.0,
        shift_s=_GSM_SEGMENT_S,
        old="gsm",
        new="wavelan",
    ),
    Setup(
        "upload",
        "WaveLAN to GSM, upload, window 16 KiB, MSS 1460",
        # Triangle routing: what the mobile node sends is not tunnelled, a full segment fits the MTU.
        ("flow.0.from=mobile", "flow.0.to=correspondent", "flow.0.tcp.mss=1460 B"),
        upload=True,
    ),
)


def overrides(setup: Setup, phase: float = 0.0) -> list[str]:
    """What `setup` changes in the scenario; `phase`, from 0 to 1, moves the handover within its span."""
    at = round((setup.handover_at_s + phase * setup.shift_s) * 1e6)
    return [*setup.overrides, f"handover.0.at={at} us"]


def observe(setup: Setup, phase: float = 0.0, progress: Watcher | None = None) -> Observed:
    """Carry out one run and look at it."""
    return look_at(run(SCENARIO, set=overrides(setup, phase), progress=progress), setup)


def look_at(result: Run, setup: Setup) -> Observed:
    """Look at a run that was made as `setup` says."""
    way = "up" if setup.upload else "down"
    ends = ("mobile", "correspondent") if setup.upload else ("correspondent", "mobile")
    return Observed(
        result.events,
        flow=_FLOW,
        sender=ends[0],
        receiver=ends[1],
        old=f"{setup.old}.{way}",
        new=f"{setup.new}.{way}",
        scenario=result.scenario,
    )


def link(scenario: Json, name: str) -> Json:
    """A link of a resolved scenario."""
    return next(one for one in scenario["links"] if one["name"] == name)
