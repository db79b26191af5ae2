"""What the study `overheads` says about its rows and tables."""

from __future__ import annotations

import math


def _line(text: str) -> str:
    return " ".join(text.split())


O1 = _line("""
    The ratios are held to ±{band:.0%}. The paper's files take {least:.1f} to {most:.1f} s longer than ours,
    whatever they cross: something that costs a file of this size about the same on every path, and so none of the
    three overheads. Its hosts are not described well enough to say what; ours cost nothing.
""")

O2 = _line("""
    C/A, D/B, (C - E)/A, and E/A without D/B. By that sum the paper's own times give {again} %; how it came to 80 %
    for the dogleg is lost with its equations. The band is that of C/A in O1. Our shares are of a shorter time (O1),
    and so are larger.
""")

O3 = _line("""
    Counted on the tunnel's link in a file of {size:,} B, which is whole segments with either MTU. In
    packets/foreign-agent-cell.pcapng of `careof run scenarios/overheads/c.toml --capture foreign-agent-cell` they are
    what tshark finds by `ip.flags.mf == 1` and `ip.frag_offset > 0`.
""")

O4 = _line("""
    The band is the 95 % confidence interval of our mean, by Student's t as everywhere here, and 2.5 has to lie in it.
    To the time of finding out, the
    registration adds its round trip, about 1 ms, which only the shortest intervals notice. With random intervals
    (RFC 1256: from three quarters of a to a) and the margin of half an interval that they ask for, finding out
    takes longer than with a clock.
""")

O5 = _line(f"""
    What resumes the transfer is the first of the sender's doubling timeouts after the registration: RTO · (2^k - 1)
    after the last segment, for the first k that is late enough. So the latency hangs on how a and the first RTO
    fall together, and is no fixed multiple of a: see the parts. Over all phases of a doubling it would be 1/ln 2 =
    {1 / math.log(2):.2f} times the network's; the paper's 3.5 to 4 a are 1.4 to 1.6 times its 2.5 a, the band of ours.
    What is held to both is the mean over five intervals: at 1 s alone it is below. The paper names neither its TCP
    nor the intervals it measured;
    {{era}} is the profile of its time, and 1 s the least interval that RFC 2002 recommends.
""")

O6 = _line("""
    The paper's 25 ms is 2.5 times 10 ms: the time to find out, which is held to it by its 95 % confidence interval.
    It leaves out the registration, whose messages take their time whatever a is: with it our handovers take longer,
    and are not held to anything.
""")

O7 = "The paper's 13 % are a sum, not a measurement: six times 4 s on 180 s."

TABLE_1 = _line("""
    Correspondent, home agent and foreign agent are on one half-duplex Ethernet of 10 Mbit/s; away, the mobile node
    is on another behind the foreign agent: `scenarios/overheads/a.toml` to `e.toml`.
""")

TABLE_2 = "D tunnels acknowledgements alone. `careof explain` on a run of each says what each overhead took."

INTERVALS = _line("""
    Three missed advertisements, cells that overlap. The cost is that of the home agent's advertisements as IP: 44
    bytes, for it has no care-of address to tell; those of a foreign agent have 48.
""")

CURES = _line("""
    a = 1 s, a download by the profile `linux`, means of {count} handovers with their 95 % confidence intervals,
    counted from the loss of the old link. The paper asked for a change of Mobile IP and of both TCPs; the assist
    `fast-retransmit` is at the mobile node alone, and acts after outages of at most 200 ms unless told otherwise: once
    its timer has run out, as in the paper's handovers, a sender takes no notice of duplicate acknowledgements. The
    default assists (`replay` and its company), at the home agent, do not depend on that.
""")

ROUTES = _line("""
    Means of {count} transfers with their 95 % confidence intervals.
    With route optimisation the correspondent, which runs careof, tunnels to the foreign agent itself, and the
    dogleg is gone; in C its datagrams are still cut in two. A reverse tunnel sends what the mobile node sends by
    way of the home agent, too: D gets a dogleg, and E one for its acknowledgements.
""")

HAND_OFF = _line("""
    `scenarios/smooth-handoff.toml` with a file of 6 MB, in segments that fit the tunnel: two cells of a campus 60 ms
    from home, means of {count} handovers with their 95 % confidence intervals. Smooth hand-off sends on what still
    comes by the old tunnel; what was lost before the new agent told the old one stays lost, and with
    advertisements that is what was sent until three were missed.
""")

ACQUISITION = _line("""
    Link trigger, no overlap, {count} handovers each. Without the checks for conflicts the handover is {saved:.2f} %
    shorter than with both; the thesis behind `vertical` cites 96 % for a client that does not check (section 4.2).
""")

TODAY = _line("""
    TCP is the profile `linux`. On a switch the dogleg takes no time from anybody, for the home agent receives and
    sends at once. What is left is the tunnel's header, and the second fragment where fragments are allowed.
""")

LINUX = _line("""
    Kernel {kernel}: its Reno without what the 1990s did not have (profile `legacy`), on an emulated cable of 10
    Mbit/s; agents and mobile node are those that `careof-agent` runs.
""")

LINUX_O1 = _line("""
    The kernel's times are held to the simulator's, ±{band:.0%}; those of the paper have its hosts in them.
""")

LINUX_O4 = "The band is the 95 % confidence interval of our mean, and 2.5 has to lie in it."
