"""What is to be said about the rows and tables of the study `micromobility`."""

from __future__ import annotations

EXPLANATIONS = {
    "M1": (
        "A trigger 100 ms ahead is earlier than what waits in the old radio takes to leave (13 packets, 55 ms), so "
        "the candidate has the whole window. After a long gap it delivers the window in order: the timeout meanwhile"
        " was spurious and costs one slow start. Without a buffer the window is lost, and the retransmission, too, "
        "if it falls into the gap. The paper's disorder, old packets among retransmissions, needs a buffer that "
        "lacks the beginning of the window: with a trigger 50 ms ahead and RTOs from 1 s buffer is worst for Reno, "
        "as the paper has it (see the table of other assumptions). noBuffer and biCast differ by the path repair "
        "alone, 5 ms here: the link layer tells at once, and the paper does not say how long its layer 3 takes to "
        "notice a move."
    ),
    "M2": (
        "Without a buffer there is one timeout where the first retransmission comes behind the gap and two where it "
        "falls into it: a step between 200 and 300 ms. With RTOs from 1 s there is one at every gap, which is "
        "constant."
    ),
    "M3": (
        "At 0 ms Tahoe and SACK repair a lost queue without a timer; the others need it, unless a buffer keeps the "
        "packets."
    ),
    "M4": (
        "The paper's mechanism is there, at 0 ms: packets of the window that come by the new base station are "
        "acknowledged, which restarts the timer, and the timeout comes that much later after the handover (traced "
        "below). At -100 ms nothing is acknowledged before the timeout, so it comes as with -200 ms. Reno and "
        "NewReno dip at 0 ms therefore; Tahoe and SACK need no timer there. The traced runs are those of repetition "
        "0; `careof run` of the scenario in `docs/studies/micromobility.md` makes the trace."
    ),
    "M5": (
        "Each base station has a radio of full rate. While both send, a packet of the old one's queue and one of the"
        " new one's arrive by turns: each second ACK is a duplicate, no three come in a row, and nothing is sent "
        "again. So a longer overlap costs nothing. With a buffer what the candidate has kept since the trigger "
        "arrives at once and for the second time: its duplicate ACKs make the sender repeat a segment, which keeps "
        "buffer below."
    ),
    "M6": (
        "Soft handovers lose nothing here and repeat nothing but with a buffer, so the four senders are alike within"
        " 2 %. The paper's repeated reductions of Reno's window need three duplicate ACKs in a row (M5)."
    ),
}

M7 = (
    "The simulator has neither QUIC nor Multipath TCP. What there is beyond the paper: today's senders, and the "
    "named protocols side by side."
)

ASSUMPTIONS = (
    "How many of a row's comparisons hold (rows without the traced ones), and below that the throughput at gaps of "
    "300 to 500 ms. A trigger 50 ms ahead comes after a part of the window has entered the old radio's queue: that "
    "part is lost and the rest is kept."
)

TODAY = (
    "Linux's sender with its defaults: RACK, F-RTO, timestamps, tail loss probes. A buffer that keeps the whole "
    "window and its order is best with each of them at every gap: the timeout was spurious, and timestamps or F-RTO "
    "undo it. With Mobile IP alone each base station is a foreign agent, there is no domain, and assists run at the "
    "home agent: the registration takes 20 ms more, solicitation and advertisement up to some hundred, and the home "
    "agent hears of the loss after the gap only."
)

SIDE_BY_SIDE = (
    "Interruption is from the loss of the old base station, or with an overlap from the arrival at the new one, to "
    "the confirmation through the new one (with Cellular IP, which confirms nothing, to its host route); with the "
    "stall it is a run's median. *Ended early* counts every copy: with a trigger and no buffer the candidate drops "
    "what comes before the mobile node. Messages are counted once a link, renewals of host routes included."
)
