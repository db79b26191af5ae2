"""What is to be said about the rows of the study `shake`."""

from __future__ import annotations

EXPLANATIONS = {
    "S1": (
        "The paper says of Figure 5 (a) and (b), 64 and 128 kbit/s, that DQ outperforms D, and of (c) that nothing "
        "is gained: 384 kbit/s is shown and not judged. A difference counts beyond its 95 % interval. D sends a "
        "packet by any link whatever waits there, DQ by the one where it arrives first, so D overtakes itself by "
        "whole queues without any jitter. Jitter puts DQ out of order as well and leaves D as it is; so the gap "
        "grows with the links and not with jitter. `careof run FILE --out DIR` and `careof explain DIR` show both."
    ),
    "S2": (
        "A single link with the rate of all, the same jitter and the same sender is the measure. DQ is out of "
        "order even without jitter: half the measured round trip, which is its delay, has the queue in it that its "
        "virtual queue counts, too. Three duplicate ACKs cost this sender half its window; what that costs grows "
        "with rate and links."
    ),
    "S3": (
        "A window of 65,535 B in a round trip of 0.6 s is 874 kbit/s: more than one link of 384 kbit/s carries and "
        "less than three do, so that a second link gains. Over a link that is quick enough the rate between the "
        "ends of a short and a long file is the window by the round trip that the sender measures, less a segment "
        "that does not fit and one that waits for its acknowledgement. The paper's 300 kbit/s are a third of what "
        "such a window gives; how much of its buffer the server's kernel let be in flight is not said."
    ),
    "S4": "Jitter reorders within each link here, so one link of 384 kbit/s is slowed down by 100 ms, too.",
    "S5": (
        "The sender takes three duplicate ACKs for a loss, and jitter makes it halve its window again and again. "
        "Each file more adds as much as the first, as in the paper, but from a third of its 300 kbit/s. That it is "
        "jitter within a link as much as that between links shows S4: one link alone falls to 151 kbit/s here. A "
        "sender that learns how far packets are out of order, as Linux does, is in the table: it has half the sum "
        "and more by itself."
    ),
    "S6": (
        "The paper measured a real network and says nothing of its jitter but what it is like. What two and three "
        "links gain hangs on it: the table has other values. Acknowledgements of three links fit into 64 kbit/s "
        "up, so that several files are not capped by it here."
    ),
    "S7": (
        "DQ with careof's resequencer at the mobile node, everything else as in the paper. The sum is what one "
        "link of 1,152 kbit/s carries of the same file, as in S2: three files over a link each, one for each, "
        "begin three times as often and slowly only up to a third of the rate, and not even one link with the sum "
        "comes up to nine tenths of them. Both measures are shown."
    ),
}

LEFT_OPEN = (
    "384 kbit/s, three links, one file of 4 MB, a buffer of 256,000 B: goodput in kbit/s by jitter, and that of a "
    "sender of today's Linux."
)
PROFILES = (
    "One flow of Linux CUBIC without end over two paths whose order jitter leaves alone, Mbit/s; in brackets "
    "without a resequencer. The last column is what mqvpn published of the same pairs, on other hardware, with "
    'QUIC and BBR in the tunnel: each path alone, both without a buffer and with its best one ("-": not '
    "finished). Where losses hold CUBIC back a path is never full: `auto` sends copies by the other one, and what both "
    "lose is so rare that the flow has more than both by themselves."
)
