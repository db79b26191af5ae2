"""What a run came to in a few sentences: what its handovers cost the applications, why, and what may help.

Everything is read off the summary, nothing is measured anew. What may help follows the table
of docs/studies/vertical.md, "What to do about which handover".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof import text
from careof.experience import of_video, of_voice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from careof.native import Json

MOST_TOLD = 3
"""Handovers that have a sentence each; of more, one speaks of all."""
_MOSTLY = 0.8
"""What part of a silence is called nearly all of it."""


def verdict(summary: Json, scenario: Json) -> list[str]:
    """Sentences: what happened at each handover, how often applications were left waiting, what may help.

    `summary` and `scenario` are a run's. A run without flows or handovers has what there is to say of it, if anything.
    """
    handovers = [one for one in summary["handovers"] if one["longest_silence_s"] is not None]
    sentences = _of_handovers(handovers, several="nodes" in (scenario["mobility"] or {}))
    if summary["handovers"] and not handovers:
        sentences.append("No flow waited for data at a handover or after it.")
    sentences += _of_stalls(summary, moved=bool(handovers))
    sentences += of_voice(summary) + of_video(summary)
    sentences += _of_remedies(handovers, summary, scenario)
    return sentences


def _of_handovers(handovers: Sequence[Json], *, several: bool) -> list[str]:
    if len(handovers) <= MOST_TOLD:
        return [_of_handover(one) for one in handovers]
    ranked = sorted(handovers, key=lambda one: float(one["longest_silence_s"]))
    median, worst = ranked[(len(ranked) - 1) // 2], ranked[-1]
    who = f"{len(handovers)} handovers" + (" of several nodes" if several else "")
    middle, most = (text.seconds(one["longest_silence_s"]) for one in (median, worst))
    return [
        f"In {who} the longest silence was {middle} in the median and {most} at worst.",
        f"The worst: {_lowered(_of_handover(worst))}",
    ]


def _of_handover(one: Json) -> str:
    node = f"{one['node']} moved" if "node" in one else "The mobile node moved"
    flow = _silent_flow(one)
    silence = float(one["longest_silence_s"])
    where = f"from {one['from']} to {one['to']} at {text.seconds(one['at_s'])}"
    reasons = _reasons(one, flow, silence)
    longest = f"{text.seconds(silence)} at most{f': {reasons}' if reasons else ''}"
    return f"{node} {where}, and {flow['name']} got nothing new for {longest}."


def _reasons(one: Json, flow: Json, silence: float) -> str:
    """Why it was silent: how much of it no path was ready, and what TCP did in the rest."""
    if one["ready_at_s"] is None:
        return "the new path was not ready before the next handover or the end of the run"
    without, rest = _parts(one, flow, silence)
    after = _of_transport(flow)
    if without >= _MOSTLY * silence:
        return f"for {text.seconds(without)} of it no path was ready"
    if without > 0:
        return f"for {text.seconds(without)} no path was ready, then {text.seconds(rest)} passed{after}"
    return f"a path was ready all the time{after.replace(',', ', but', 1)}" if after else ""


def _of_transport(flow: Json) -> str:
    """What TCP met from the handover on, as far as it explains waiting."""
    timeouts, spurious = int(flow["timeouts"]), int(flow["spurious_timeouts"])
    again, vain = int(flow["segments_retransmitted"]), int(flow["unnecessary_retransmissions"])
    if timeouts and (spurious or vain):
        needless = f", {spurious} of them in vain" if spurious else ""
        repeated = f", and {_counted(vain, 'segment')} that had arrived came again" if vain else ""
        return f", TCP's timer expired {_times(timeouts)}{needless}{repeated}"
    if timeouts:
        return f", TCP waited for its retransmission timer {_times(timeouts)}"
    if again:
        return f", {_counted(again, 'segment')} had to be sent again"
    return ""


def _of_stalls(summary: Json, *, moved: bool) -> list[str]:
    flows = summary["flows"]
    if not flows:
        return []
    stalls = sum(int(flow["stalls"]) for flow in flows)
    threshold = text.seconds(summary["stall_threshold_s"])
    if stalls:
        stalled = text.seconds(sum(float(flow["stalled_s"]) for flow in flows))
        which = [str(flow["name"]) for flow in flows if flow["stalls"]]
        names = which[0] if len(which) == 1 else f"{len(which)} flows"
        return [f"In all, {names} stalled {_times(stalls)} for {threshold} or more, {stalled} together."]
    if moved:
        return [f"No flow stalled for {threshold} or more."]
    silences = [flow for flow in flows if flow["longest_silence_s"] is not None]
    if not silences:
        return []
    worst = max(silences, key=lambda flow: float(flow["longest_silence_s"]))
    return [f"The longest silence was {text.seconds(worst['longest_silence_s'])} ({worst['name']})."]


def _of_remedies(handovers: Sequence[Json], summary: Json, scenario: Json) -> list[str]:
    """What may help against the longest silence of all."""
    if not handovers:
        return []
    worst = max(handovers, key=lambda one: float(one["longest_silence_s"]))
    if worst["ready_at_s"] is None:
        return []
    flow = _silent_flow(worst)
    without, rest = _parts(worst, flow, float(worst["longest_silence_s"]))
    tips = []
    if _of_transport(flow) and rest > without / 4 and not scenario["assists"]:
        slows = without == 0 and _slows(worst, str(flow["name"]), summary, scenario)
        tips.append(_CLAMP if slows else _DEFAULT)
    if without > rest and worst["style"] == "break-before-make":
        tips.append('style = "make-before-break" leaves no gap, where both links can be up at once')
    return [f"To try: {'; '.join(tips)}."] if tips else []


_DEFAULT = "--set assist=default, with which agents keep and repeat what a path loses"
_CLAMP = (
    "--set assist.use=window-clamp --set assist.window-clamp.from=always, which keep the queue in front of the slower "
    "link short"
)


def _slows(one: Json, name: str, summary: Json, scenario: Json) -> bool:
    """Whether the new link is at most half as fast as the old one in the direction of a flow."""
    target = next(str(flow["to"]) for flow in summary["flows"] if flow["name"] == name)
    mobile = {str(node["name"]) for node in scenario["nodes"] if node["role"] == "mobile"}
    way = "down" if target in mobile else "up"
    rates = {str(link["name"]): link[way]["rate_bps"] for link in scenario["links"] if way in link}
    old, new = rates.get(str(one["from"])), rates.get(str(one["to"]))
    return bool(old and new and new * 2 <= old)


def _silent_flow(one: Json) -> Json:
    name = one["longest_silence_flow"]
    flow: Json = next(flow for flow in one["flows"] if flow["name"] == name)
    return flow


def _parts(one: Json, flow: Json, silence: float) -> tuple[float, float]:
    """Of the silence the seconds in which no path was ready, and the others."""
    begin = float(flow["longest_silence_at_s"])
    gap = min(float(one["interruption_s"]), float(one["ready_at_s"]) - float(one["at_s"]))
    ready = float(one["ready_at_s"])
    without = max(min(ready, begin + silence) - max(begin, ready - gap), 0.0)
    return without, silence - without


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")


def _lowered(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:] if sentence.startswith("The ") else sentence
