"""The playground's page."""

from __future__ import annotations

from html import escape
from importlib import resources
from string import Template
from typing import TYPE_CHECKING

from careof import native, text
from careof.playground.choices import ASSIST, ASSISTS, DEFAULT_ASSISTS, FILE, groups
from careof.report.page import HOW, VIEWER

if TYPE_CHECKING:
    from careof.native import Json
    from careof.playground.choices import Control


def html() -> str:
    """All of it; scripts and styles are files beside it."""
    parts = [_group(name, "".join(map(_control, controls))) for name, controls in groups().items()]
    parts.insert(-1, _group("Assists", _assists()))
    return Template(resource("page.html")).substitute(
        controls="\n".join(parts),
        how=escape(HOW),
        file=escape(FILE),
        scripts="".join(f'<script src="{name}"></script>' for name in (*VIEWER, "playground.js")),
    )


def resource(name: str) -> str:
    """A file of the playground's own: a style, a script."""
    return (resources.files(__name__.rpartition(".")[0]) / name).read_text(encoding="utf-8")


def _group(name: str, body: str) -> str:
    return f"<details open><summary>{escape(name)}</summary>{body}</details>"


def _control(one: Control) -> str:
    name = escape(one.key)
    hint = f' title="{escape(one.help)}"' if one.help else ""
    if one.words:
        field = f'<select name="{name}">{"".join(_option(one, word, label) for word, label in one.words)}</select>'
    else:
        field = f'<input name="{name}" value="{escape(one.default)}" spellcheck="false">'
        if one.slider:
            words = escape(f"{one.label}, by a slider")
            field += f'<input type="range" data-of="{name}" data-writes="{one.slider}" aria-label="{words}">'
    return f"<label{hint}><span>{escape(one.label)}</span>{field}</label>"


def _option(one: Control, word: str, label: str) -> str:
    selected = " selected" if word == one.default else ""
    return f'<option value="{escape(word)}"{selected}{_preset(one, word)}>{escape(label)}</option>'


def _preset(one: Control, word: str) -> str:
    """What a preset's option tells the page of it: what is used where nothing is written."""
    if not one.key.endswith(".preset"):
        return ""
    down = _presets()[word]["down"]
    queue = down["queue"]
    shown = {
        "rate": text.rate(down["rate_bps"]),
        "delay": text.seconds(down["delay_ns"] / 1e9),
        "queue": text.size(queue["limit_bytes"])
        if queue["limit_packets"] is None
        else f"{queue['limit_packets']} packets",
    }
    return "".join(f' data-{key}="{escape(value)}"' for key, value in shown.items())


def _presets() -> dict[str, Json]:
    return {str(one["name"]): one for one in native.presets()}


def _assists() -> str:
    boxes = "".join(
        f'<label class="box"><input type="checkbox" value="{name}"{" checked" if name in DEFAULT_ASSISTS else ""}>'
        f"{name}</label>"
        for name in ASSISTS
    )
    return (
        f'<div class="boxes" id="{ASSIST}">{boxes}</div><p><button type="button" data-assists="">none</button> '
        f'<button type="button" data-assists="{"+".join(DEFAULT_ASSISTS)}">default</button></p>'
    )
