"""What the study `crosslayer` says about its rows and tables."""

from __future__ import annotations


def _line(text: str) -> str:
    return " ".join(text.split())


C1 = _line("""
    Multiples of T where every path over the Internet takes T (eq. 19) and those of one domain t (eq. 20). The
    text of the paper that we have was extracted from a PDF; it contradicts itself, as the readings below show,
    and Table 1 is what section 4.4 states in words. Equations 19 and 20 cannot both be exact: with T_MAP-oAR
    above 0, T_CN-MAP and T_CN-oAR are not the same where the MAP is on the way. So HMIPv6 has two readings: t =
    0 gives the multiples of T that section 4.4 names, any t above 0 more than these.
""")

C2 = _line("""
    By equations 16 to 18. For the two lines of HMIPv6 the other readings are in the table.
""")

TCP_CM_TUNNEL = _line("""
    The home agent tunnels, so that T_CN-oAR and T_CN-nAR are the delays of the ways over it. The correspondent
    is told by a datagram of its own, sent when the home agent has accepted.
""")

OTHERS_TUNNEL = _line("""
    Of the 3 T_CN-nAR in Table 1 two are the registration with the correspondent, which there is not where the
    home agent tunnels, and the way of the data back is not counted: it then takes what TCP-CM takes.
""")

AS_FR = "As FR."

NONE_TUNNEL = _line("""
    Table 1 has no line for it. The sender has a window to go on with, and what it sends reaches the home agent
    after the update; duplicate acknowledgements then have it repeat what was lost, as soon as TCP-CM's datagram
    would. TCP-CM saves time where the outage is longer than the sender's timer: see the table of times without
    a link.
""")

TCP_CM_STRAIGHT = _line("""
    Before its update the mobile node proves to the correspondent that it is reached at its new address (return
    routability, RFC 6275 section 5.2.5): 2 T_CN-nAR that the model leaves out. The home test of before still
    serves; without it the test would take 2 (T_CN-HA + T_HA-nAR) where that is longer.
""")

MOBILE_TCP_STRAIGHT = _line("""
    Return routability as with TCP-CM (2 T_CN-nAR). The option goes with the first segment that goes straight,
    when the correspondent has acknowledged the update; Table 1 counts that, and not the way of the data back.
""")

FREEZE_STRAIGHT = _line("""
    Return routability as with TCP-CM (2 T_CN-nAR). The window opens when the correspondent has acknowledged the
    update: what it sends sooner goes to the old care-of address. Table 1 counts the acknowledgements that open
    it, and not the way of the data back.
""")

FAST_RETRANSMIT_STRAIGHT = _line("""
    As Freeze TCP: its three acknowledgements are sent when the correspondent has acknowledged the update. New
    data makes as many at about that time.
""")

NONE_STRAIGHT = _line("""
    Table 1 has no line for it. After return routability and the update new data arrives and makes duplicate
    acknowledgements; one more round trip brings back what was lost.
""")

C3 = _line("""
    From the home registration to the first new data, {count} files with one handover each, 11 Mbit/s; means
    with their 95 % confidence intervals. The text of the paper has no figure.
""")

C4 = _line("""
    {count} files with one handover each, 11 Mbit/s, the mobile node sends and the correspondent sends. A sender
    on the mobile node stands still meanwhile, and its RTO is what it was (section 3.2.1). One at the
    correspondent is not told of the beginning (section 3.1), and its RTO grows until it is told of the end. It
    then has the initial RTO until the first round trip R of the new path makes it 3 R by equations 1 to 3 (K =
    4). Before return routability that round trip leads over the home agent twice.
""")

C5 = _line("""
    In the same runs. BWE is the sender's estimate when it is told, by Westwood's filter, of what the old path
    delivered. The standard sender's window falls to one segment by its timeouts and has to grow again. That of a
    sender on the mobile node is left alone by section 3.2.1; what was in flight when the link went is lost, and
    nothing repeats it but its timer.
""")

C6 = _line("""
    Mean throughput of {count} files each (kbyte/s), 95 % confidence intervals by Student's t, the same instants
    with both senders. Falls: each mean is below that with fewer handovers, and the last beyond the intervals.
    Above: the interval of the paired differences is above 0 at every point. Grows: those of the fewest and the
    most handovers do not overlap.
""")

C6_FAST = _line("""
    Over 0.5 s Reno is far from filling 11 Mbit/s: in congestion avoidance the window grows by a segment each
    round trip. The first round trip that TCP-CM measures leads over the home agent and is twice as long as those
    after it, so that BWE times R is more than the window was: with one handover the file is faster than with
    none. With many, BWE is that of a transfer which has hardly begun, and the lead shrinks.
""")

C6_UP = _line("""
    By section 3.2.1 a sender on the mobile node repeats nothing and goes on with what was left of its timer: what
    was in flight when the link went is lost, the timer brings it back, and with it slow start. What is gained is
    that the timer has not backed off.
""")

C7 = _line("""
    The radio loses packets by two states, {burst} in a row in the mean, as many in either direction; the files and
    instants of C6. TCP-CM over HMIPv6 and FMIPv6 is in C2.
""")

LOSSES = "kbyte/s, {count} files each, {handovers} handovers, {rate} Mbit/s."

READINGS = _line("""
    T is a path over the Internet, t one within a domain. The first line of a protocol is what section 4.4
    states. In the code: `python/careof/studies/_crosslayer_model.py`, for any delays.
""")

SETS = _line("""
    Milliseconds, one way, and the times from the sending of the last segment that the old path delivered to the
    first new data at the application: Table 1 for TCP-CM with these delays, and what was simulated.
""")

GAPS = _line("""
    All delays 50 ms, the home agent tunnels. Shown is what is above the time without a link (ms); by Table 1 it
    is {equation:.0f} for TCP-CM, whatever that time. The sender's timer goes off 1, 3 and 7 s after the last
    acknowledgement: standard TCP, and FR after the first of these, wait for the next one. Freeze TCP was warned
    a round trip ahead, and no timer runs.
""")

THROUGHPUT = _line("""
    kbyte/s, {count} files each. In brackets the handovers that the file met in the mean, where it ended before
    the others.
""")

ASSUMED = "What the paper does not say, what is taken, and from which of its words."
MISSING = "What of section 5 today's simulator does not have."

TODAY = _line("""
    A bulk flow over one handover with {gap:g} s without a link, the home agent's tunnel, {rate} Mbit/s on either
    cell, a queue of one bandwidth-delay product (20 packets at least): medians of {phases} instants of the
    handover, spread over a round trip. First the effective data resumption time above the {gap:g} s (ms), then
    what the application was given in the {after:g} s after the new link was up (% of what the cell carries). The
    least possible for a changed sender is the home registration and the round trip of what it is told and sends,
    for *replay* the registration and the way from the home agent. *Replay* and careof's defaults change no end
    host; Freeze TCP is warned a round trip ahead.
""")

WALKS = _line("""
    The mobile node begins somewhere in the home network and moves evenly, at {speeds} m/s, through a network every
    {apart} m. Mean throughput of {count} files each (kbyte/s), 95 % confidence intervals, in brackets the handovers
    that a file met in the mean; who is slower meets more of them. The lead is of the same file with both senders.
""")

PROTOCOLS = _line("""
    Milliseconds, one way, and the times from the sending of the last segment that the old path delivered to the
    first new data at the application, with route optimisation. With fast handovers every two nodes have a path of
    their own; with HMIPv6 all ways to an access router lead over its mobility anchor point.
""")

ROAMED = {
    "fmipv6": _line("""
        The update to the previous router is sent a round trip between the routers ahead, so that the tunnel is there
        as the old link goes. The new router keeps what comes before the mobile node: nothing is lost, and no sender
        notices. The model loses it, and has a timeout that it takes for a round trip (eq. 9 to 11); RFC 2988, which
        the paper cites for it, has none below 1 s.
    """),
    "fmipv6-reactive": _line("""
        Between the routers the update, the handover's initiation and its acknowledgement, and what the previous
        router has kept since its link layer told it that the mobile node has left. Where the routers are far apart
        the correspondent knows the new address before (H, L).
    """),
    "hmipv6-intra": _line("""
        The model waits for a timeout that takes a round trip (eq. 12). Here the data that comes behind the local
        registration makes duplicate acknowledgements, and no timer has to go off.
    """),
    "hmipv6-inter": _line("""
        As within a domain, and with return routability (2 T_CN-nAR), which the model leaves out. The previous
        anchor point sends nothing on (`map_forwarding = "off"`), as in the model.
    """),
    "tcp-cm-fmipv6": _line("""
        Nothing is lost, so that there is nothing for TCP-CM to have repeated.
    """),
    "tcp-cm-fmipv6-reactive": _line("""
        As without TCP-CM, where what the previous router has kept comes before the correspondent could be told.
    """),
    "tcp-cm-hmipv6-intra": _line("""
        No Binding Update tells a correspondent of moves within a domain. TCP-CM tells it by a datagram when the
        anchor point has accepted, and gets data no sooner than duplicate acknowledgements do. Equation 17 counts
        neither the way of the last segment, T_CN-MAP + T_MAP-oAR, which the other sums begin with, nor that of the
        acknowledgement.
    """),
    "tcp-cm-hmipv6-inter": _line("""
        With return routability (2 T_CN-nAR), which the model leaves out; the home registration goes through the
        anchor point, and so do the update and the data. The third reading in the table of readings is this without
        return routability.
    """),
}
"""Why each is what it is."""
