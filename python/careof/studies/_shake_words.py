"""What is to be said about the rows of the study `shake`."""

from __future__ import annotations

EXPLANATIONS = {
    "S1": (
        "Means of the runs. D sends a packet by any link whatever waits there, DQ by the one where it arrives "
        "first, so D overtakes itself by whole queues. Jitter puts DQ out of order as well, three packets of 384 "
        "kbit/s at 100 ms, and then the gap closes instead of growing."
    ),
    "S2": (
        "A single link with the rate of all, and the same sender, is the measure. DQ is out of order even without "
        "jitter: half the measured round trip, which is its delay, has the queue in it that its virtual queue "
        "counts, too. Three duplicate ACKs cost this sender half its window; what that costs grows with rate, "
        "links and jitter."
    ),
    "S3": (
        "A window of 65,535 B in a round trip of 0.6 s is 874 kbit/s: more than one link of 384 kbit/s carries "
        "and less than three do, so that a second link gains. The paper's 300 kbit/s are a third of what such a "
        "window gives; how much of its buffer the server's kernel let be in flight is not said."
    ),
    "S4": "Jitter reorders within each link here, so one link of 384 kbit/s is slowed down by 100 ms, too.",
    "S5": (
        "The sender takes three duplicate ACKs for a loss, and jitter makes it halve its window again and again. "
        "Each file more adds as much as the first, as in the paper, but from a third of its 300 kbit/s. A sender "
        "that learns how far packets are out of order, as Linux does, is in the table: it has half the sum and "
        "more by itself."
    ),
    "S6": (
        "The paper measured a real network and says nothing of its jitter but what it is like. What two and three "
        "links gain hangs on it: the table has other values, and about 20 ms have the paper's factors. "
        "Acknowledgements of three links fit into 64 kbit/s up, so that several files are not capped by it here."
    ),
    "S7": (
        "DQ with careof's resequencer at the mobile node, everything else as in the paper. Both transfers begin slowly."
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
    "finished). Where losses hold CUBIC back a path is never full: two paths lose as much as one, and what their "
    "sum is a single flow cannot have."
)
