"""What the playground's controls are, and the scenario that their values say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from careof import native, toml
from careof.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    Choices = Mapping[str, str]

FILE = "handover.toml"
"""What the scenario is called that the page shows."""


@dataclass(frozen=True)
class Control:
    """One control. Its value is a text: one of `words`, where there are some, or else a quantity as in a scenario."""

    key: str
    label: str
    default: str
    words: tuple[tuple[str, str], ...] = ()
    """What can be chosen, each with how the page calls it."""
    slider: str | None = None
    """What a slider beside the text writes: ``rate``, ``duration`` or ``packets``."""
    help: str = ""


def _named(*words: str) -> tuple[tuple[str, str], ...]:
    return tuple((word, word) for word in words)


_OF_PROFILE = ("", "the profile's")

ASSISTS = (
    "replay", "hold-last", "lcd-kick", "freeze", "fast-retransmit", "ack-hold", "window-clamp", "path-queue",
    "buffer-forward", "bicast", "snoop", "ebsn", "split", "m-tcp", "rto-reset", "tcp-cm", "mobile-tcp", "tcp-ho",
    "demo-vegas", "rto-fast-decrease", "mss-clamp", "black-hole",
)  # fmt: skip
"""The assists, as ``[assist]`` knows them."""
DEFAULT_ASSISTS = ("replay", "lcd-kick", "window-clamp")
"""What ``default`` stands for."""

_FLOWS = {
    "download": ("correspondent", "mobile", {"kind": "bulk"}),
    "upload": ("mobile", "correspondent", {"kind": "bulk"}),
    "pages": (
        "mobile",
        "correspondent",
        {"kind": "request-response", "request": "400 B", "response": "60 kB", "think": "200 ms"},
    ),
    "voice": ("correspondent", "mobile", {"kind": "paced", "rate": "64 kbit/s", "message": "160 B"}),
}

_MAKE, _BREAK = "make-before-break", "break-before-make"
_CO_LOCATED, _TWO_AGENTS, _ONE_AGENT = "co-located", "foreign-agents", "foreign-agent"


def groups() -> dict[str, list[Control]]:
    """All controls, by the heading that they are under."""
    presets = tuple((str(one["name"]), f"{one['name']}: {one['summary']}") for one in native.presets())
    return {
        "Old link": _link("old", "wifi-good", presets),
        "New link": _link("new", "lte", presets),
        "Handover": [
            Control(
                "style",
                "style",
                _BREAK,
                _named(_BREAK, _MAKE),
                help="Whether the old link goes before the new one comes, or both are up together.",
            ),
            Control(
                "interruption",
                "interruption",
                "500 ms",
                slider="duration",
                help="How long no link is up: break-before-make only.",
            ),
            Control(
                "overlap",
                "overlap",
                "",
                slider="duration",
                help="How long both links are up: make-before-break only. Without it, to the end.",
            ),
            Control(
                "queued",
                "queued packets",
                "drop",
                _named("drop", "drop-with-icmp", "drain-late", "re-route"),
                help="What becomes of packets that wait for the old link.",
            ),
            Control(
                "address",
                "care-of address",
                _CO_LOCATED,
                (
                    (_CO_LOCATED, "changes: the node's own"),
                    (_TWO_AGENTS, "changes: a foreign agent at each link"),
                    (_ONE_AGENT, "stays: one foreign agent at both links"),
                ),
                help="Whether the mobile node has another care-of address afterwards.",
            ),
            Control("notice", "notice", "0 s", slider="duration", help="How long before it the handover is announced."),
        ],
        "TCP": [
            Control(
                "profile",
                "profile",
                "linux",
                _named("linux", "linux-2.0", "tahoe", "reno", "newreno", "sack", "vegas"),
                help="What a host of that kind has.",
            ),
            Control(
                "variant",
                "variant",
                "",
                (_OF_PROFILE, *_named("linux", "linux-2.0", "tahoe", "reno", "newreno", "sack", "vegas")),
                help="Loss recovery.",
            ),
            Control(
                "congestion",
                "congestion control",
                "",
                (_OF_PROFILE, *_named("cubic", "reno", "vegas", "westwood", "bbr", "bbr3")),
            ),
            Control("flow", "what flows", "download", _named(*_FLOWS)),
        ],
        "Run": [
            Control("at", "handover at", "10 s"),
            Control("duration", "duration", "30 s", help="At most a minute."),
            Control("seed", "seed", "1", help="A whole number; another one draws other random numbers."),
        ],
    }


ASSIST = "assist"
"""The key of the assists: names with ``+`` between them."""


def _link(which: str, preset: str, presets: tuple[tuple[str, str], ...]) -> list[Control]:
    return [
        Control(f"{which}.preset", "preset", preset, presets),
        Control(f"{which}.rate", "rate", "", slider="rate", help="Both ways. Without it, the preset's."),
        Control(f"{which}.delay", "delay", "", slider="duration", help="One way. Without it, the preset's."),
        Control(
            f"{which}.queue",
            "queue",
            "",
            slider="packets",
            help="Room before the serialiser. Without it, the preset's.",
        ),
    ]


def complete(given: Choices) -> dict[str, str]:
    """Values of all controls: those given, and the default of each other.

    Raises:
        InputError: there is no such control, or what is chosen is none of its words.
    """
    controls = {one.key: one for group in groups().values() for one in group}
    known = [*controls, ASSIST]
    for key in given:
        if key not in known:
            raise InputError(f"there is no control {key!r}", hint=did_you_mean(key, known, f"{', '.join(known)}"))
    values = {key: given.get(key, one.default).strip() for key, one in controls.items()}
    for key, one in controls.items():
        words = [word for word, _ in one.words]
        if words and values[key] not in words:
            otherwise = f"one of {', '.join(filter(None, words))}"
            raise InputError(
                f"{key}: {values[key]!r} cannot be chosen", hint=did_you_mean(values[key], words, otherwise)
            )
    return values | {ASSIST: given.get(ASSIST, "default").strip()}


def scenario(given: Choices) -> str:
    """The scenario file of some choices; those that are not given have their defaults.

    Whether a quantity makes sense says whoever reads the scenario.

    Raises:
        InputError: see :func:`complete`.
    """
    chosen = complete(given)
    foreign = chosen["address"] != _CO_LOCATED
    links = {
        **{which: _link_value(chosen, which) for which in ("old", "new")},
        "ethernet": {"preset": "ethernet-1g", "delay": "10 ms"},
        **_backhauls(chosen["address"]),
    }
    mobility: dict[str, object] = {"care_of": "foreign-agent" if foreign else _CO_LOCATED, "routing": "reverse-tunnel"}
    if "bicast" in _names(chosen[ASSIST]):
        mobility["simultaneous_bindings"] = True
    source, target, application = _FLOWS[chosen["flow"]]
    tcp: dict[str, object] = {key: chosen[key] for key in ("profile", "variant", "congestion") if chosen[key]}
    if chosen["flow"] == "voice":
        tcp["nagle"] = False
    flow = {"name": chosen["flow"], "from": source, "to": target, **application, "tcp": tcp}
    head = {"title": f"{chosen['old.preset']} to {chosen['new.preset']}", "duration": chosen["duration"]}
    parts = [
        [*_lines(head), f"seed = {_number(chosen['seed'])}"],
        ["[links]", *_lines(links)],
        ["[mobility]", *_lines(mobility)],
        ["[[handover]]", *_lines(_handover(chosen))],
        ["[[flow]]", *_lines(flow)],
        ["[assist]", f"use = {_assists(chosen[ASSIST])}"],
    ]
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


def commands(given: Choices) -> list[str]:
    """Command lines that make the page's runs of its scenario file: without an assist, and as chosen."""
    chosen = f"careof run {FILE}"
    if complete(given)[ASSIST] in ("", "none"):
        return [chosen]
    return [f"{chosen} --set {WITHOUT} --out run/before", f"{chosen} --out run/after"]


WITHOUT = "assist=none"
"""The override by which a run has no assist."""


def _link_value(chosen: Choices, which: str) -> object:
    preset, changed = chosen[f"{which}.preset"], ("rate", "delay", "queue")
    value: dict[str, object] = {key: chosen[f"{which}.{key}"] for key in changed if chosen[f"{which}.{key}"]}
    if chosen["address"] != _CO_LOCATED:
        value["between"] = [_agent(chosen["address"], which), "mobile"]
    return {"preset": preset, **value} if value else preset


def _agent(address: str, which: str) -> str:
    return "foreign-agent-both" if address == _ONE_AGENT else f"foreign-agent-{which}"


def _backhauls(address: str) -> dict[str, object]:
    """Links from the home agent to the foreign agents, as fast as the server's."""
    if address == _CO_LOCATED:
        return {}
    agents = dict.fromkeys(_agent(address, which) for which in ("old", "new"))
    return {
        agent.replace("foreign-agent", "backhaul"): {"preset": "ethernet-1g", "between": ["home-agent", agent]}
        for agent in agents
    }


def _handover(chosen: Choices) -> dict[str, str]:
    value = {"at": chosen["at"], "from": "old", "to": "new", "style": chosen["style"], "queued": chosen["queued"]}
    only = "overlap" if chosen["style"] == _MAKE else "interruption"
    return value | {key: chosen[key] for key in (only, "notice") if chosen[key]}


def _assists(words: str) -> str:
    names = _names(words)
    if sorted(names) == sorted(DEFAULT_ASSISTS):
        names = ["default"]
    return toml.inline(names[0] if len(names) == 1 else names or "none")


def _names(words: str) -> list[str]:
    return [word.strip() for word in words.split("+") if word.strip()]


def _number(words: str) -> str:
    # A seed is a number; anything else is quoted, and refused by whoever reads the scenario.
    return words if words.isascii() and words.isdigit() else toml.inline(words)


def _lines(values: Mapping[str, object]) -> Iterable[str]:
    return (f"{key} = {toml.inline(value)}" for key, value in values.items())
