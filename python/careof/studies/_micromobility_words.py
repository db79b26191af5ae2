"""What is to be said about the rows and tables of the study `micromobility`."""

from __future__ import annotations

EXPLANATIONS = {
    "M1": (
        "noBuffer is above biCast: it sends as soon as the link layer is there, and biCast waits for layer 3, by "
        "when a second RTO of 2 s has begun (*first data* in the table of traces: 1.22 s and 1.72 to 1.82 s after a "
        "gap of 500 ms). BiCast is not above buffer, as section III B.1 has it; section IV has proactive schemes "
        "significantly better than reactive ones, which is what we find with each sender. The traces show why: the "
        "paths of both are ready at the same instant (0.88 s). Buffer has data there by then, what the sender "
        "repeated meanwhile included; biCast has nothing, for that repetition was lost, and waits for the next "
        "timeout. The duplicates that the paper names cost less than that wait: each takes 9 ms of the channel, a "
        "timeout takes seconds. Whether noBuffer is above buffer hangs on what comes first, the timer or the "
        "repaired path. With ns-2.26's RTO of 1 s it is the path: the announcement waits 60 ms for the channel, the "
        "beginning of the window is lost with the old radio, and the candidate keeps the rest. Tahoe, NewReno and "
        "SACK repair the loss without a timeout in half of the handovers (0.50 to 0.60 timeouts, and 1.10 with "
        "noBuffer), and two windows take 0.15 to 0.28 s less than with noBuffer. Reno cannot: the duplicate ACKs of "
        "the rest (12.8) restart its timer, which runs out at 1.47 s instead of 1.00 s. With an RTO of 200 ms, "
        "which ns-2 has from 2004 on, the timer runs out first, at 0.22 s, and again before the path is there; what "
        "was kept comes beside what was repeated (5.6 needless repetitions with Reno, 1.0 with noBuffer), and two "
        "windows take 0.12 s longer with buffer. NoBuffer is above buffer with each sender then, by the paper's "
        "mechanism (8 of 12 hold, in the table of other assumptions). The rows stay with 1 s, which is what ns-2.26 "
        "has."
    ),
    "M2": (
        "With an RTO of 1 s the first retransmission comes behind every gap up to 500 ms: one timeout. A second one "
        "comes with noBuffer where the announcement has not left the old radio before the link is gone. Buffer and "
        "biCast wait for layer 3, up to 1 s more: the longer the gap, the more often that takes longer than the "
        "timer."
    ),
    "M3": (
        "At 0 ms the beginning of the window is lost with each scheme; with buffer the rest follows, and its ACKs "
        "repair the loss without a timer, but for Reno, which needs one nearly each time. The paper gives no number "
        "for differences that are not very pronounced; what it says this beside are long gaps, where they are larger. "
        "The paper adds that biCast and noBuffer have almost the same number of timeouts. That holds at -100 ms; at 0 "
        "ms the path of noBuffer is there at once, and all but Reno repair the loss by what still comes (the traces "
        "of SACK: 0.2 and 0.95 timeouts)."
    ),
    "M4": (
        "The paper's mechanism is there, at 0 ms instead of -100 ms: packets of the window that come by the new base "
        "station are acknowledged, which restarts the timer. The traces of Reno with noBuffer show it: the last ACK "
        "before the timeout comes 0.10 s after the handover and the timeout at 1.10 s; at -100 ms as at -200 ms the "
        "last ACK comes 2 to 5 ms after the handover and the timeout 1.00 s after that. At -100 ms nothing of the "
        "window is left to come by the new base station: all of it reaches the base stations within the gap, where "
        "the old radio is gone and the candidate has no buffer. For a dip there packets would have to be under way "
        "for more than 100 ms in front of the base stations, and wires that are ten times as fast as the channel keep "
        "no queue. Reno is lowest at 0 ms therefore; the others repair that loss without a timer."
    ),
    "M5": (
        "The overlap that the paper gives is how long packets come from both base stations; layer 3 has noticed the "
        "move by then. (With the wait for it inside the overlap 7 of 14 hold: the last column of the table of other "
        "assumptions.) A short overlap saves what waits for the old radio; a longer one has each packet on the air "
        "twice, for longer. The one part that does not hold is the order of two peaks that are 0.001 apart, those of "
        "noBuffer and biCast at +200 ms: a candidate without a buffer has packets since the trigger, and sends copies "
        "as soon as its link is there, biCast when the network knows. The traces of NewReno have 7.4 duplicates a "
        "handover with noBuffer and 4.8 with biCast, and two windows take 10 ms longer. The other claims of sections "
        "III B.2 and IV hold: buffer is best where the overlap is short, above all with Reno at +100 and +200 ms, and "
        "worst where it is long."
    ),
    "M6": (
        "Reno is compared over overlaps of 0 to +300 ms, which is where the paper says so. At +100 ms and below it "
        "waits for its timer where the others do not. What the paper calls a timeout of Tahoe is not only the timer: "
        "it has Tahoe begin anew at once when duplicate ACKs come, without waiting for it. Returns to one segment are "
        "counted from traces therefore. Without timeouts of its timer Tahoe begins anew more often than Reno, and is "
        "faster with noBuffer and biCast; with buffer nothing is lost, and Reno has nothing to wait for."
    ),
}

M7 = (
    "QUIC stands beside today's senders in the table of today's senders, with and without migration. Over a domain "
    "QUIC fares as TCP does. With migration and no Mobile IP a handover costs it some 90 ms more than in a domain "
    "with a buffer, whatever the gap, and it needs nothing of the network. Multipath TCP is the kernel's, on Linux "
    "hosts: between two links of unlike kinds it stands beside both in `docs/multipath-tcp.md`; in a domain a mobile "
    "node has one radio and keeps its address, and a connection has one subflow there. Beyond that there are the "
    "named protocols side by side and in other trees, and a model of the interaction, which `careof advise` asks."
)

MODEL = (
    "A sum of spans that follow from rate, round trip, gap and overlap, with coefficients fitted on 40 draws; these "
    "are 20 others: 1 to 10 Mbit/s, round trips of 20 to 200 ms, gaps and overlaps up to 500 ms. Lost is the time at "
    "full rate that a handover costs. `careof advise --gap 200ms --rate 10Mbit/s --rtt 60ms --sender cubic` answers "
    "without simulating; `python -m careof.advice.fit` fits again."
)

ASSUMPTIONS = (
    "How many of a row's comparisons hold (without those from traces; two runs of each point, ours as many as above), "
    "and below that the throughput at gaps of 300 to 500 ms. A radio of full rate takes 55 ms for what waits of a "
    "window, one of 802.11 some 150 ms: there the trigger comes after the beginning of the window has entered the old "
    "radio's queue, which is lost, and the candidate keeps the rest."
)

TODAY = (
    "Ten runs of each point, with 95 % confidence intervals. Linux's sender with its defaults: RACK, F-RTO, "
    "timestamps, tail loss probes. A buffer that keeps the whole window and its order is best with each of them at "
    "every gap above 0: what it keeps comes before the timer runs out, or shows that a timeout was spurious. With "
    "Mobile IP alone each base station is a foreign agent, there is no domain, and assists run at the home agent: "
    "the registration takes 20 ms more, solicitation and advertisement up to some hundred, and the home agent hears "
    "of the loss after the gap only. The default assists are `replay`, `lcd-kick` and `window-clamp`: at gaps of "
    "300 to 500 ms they bring CUBIC 0.19 of the path, and BBR 0.12. With BBR and Reno `replay` alone brings the "
    "same; with CUBIC it brings 0.06, and at 0 ms less than nothing, because no loss slows CUBIC down until the "
    "home agent's store overflows (the table below). `hold-last` brings as much as the default assists to within "
    "0.01. QUIC that migrates has an address of its own at each base station, and begins to learn each path anew, "
    "as RFC 9000 has it."
)

SIDE_BY_SIDE = (
    "Ten runs of each. Interruption is from the loss of the old base station, or with an overlap from the arrival "
    "at the new one, to the confirmation through the new one (with Cellular IP, which confirms nothing, to its host "
    "route); with the stall it is a run's median. *Ended early* counts every copy: with a trigger and no buffer the "
    "candidate drops what comes before the mobile node. Messages are counted once a link, renewals of host routes "
    "included."
)

CROSSED = (
    "Means over the twenty handovers of repetition 0; windows and numbers in segments. `careof run {scenario} --out "
    "RUN --plots` with what is in the last column makes the run with its trace, and `careof explain RUN` tells its "
    "handovers. *Lost* is what ended before the mobile node, copies that a candidate drops among it. *Undone* are "
    "timeouts that turned out to be spurious, by F-RTO, by timestamps or by D-SACKs. What is seen: CUBIC fills the "
    "queue of the radio, and 53 segments are under way when a handover comes; with BBR 22 are. With noBuffer and "
    "biCast all of them are lost, and nothing but the timer says so. It runs out behind every gap up to 500 ms: "
    "from 300 ms on, when nothing of the window comes by the new base station, both schemes are alike and do not "
    "depend on the gap. BBR's timer runs out at 0.51 s; CUBIC's queue has made the round trip longer, and its timer "
    "runs out at 0.74 s. BBR has its window again two seconds later, CUBIC about half of it. With buffer CUBIC "
    "loses what had waited at the old radio for longer than the trigger is ahead, some 22 segments, which selective "
    "ACKs tell it at 0.33 s: no timeout, and a window that is cut once. BBR's short queue is all kept, and nothing "
    "is repeated. Replay keeps all for both. CUBIC then sees no loss over a row of handovers: its window grows to "
    "thousands of segments, until the home agent's store overflows (288 segments lost and a silence of 7.87 s, in "
    "the mean of its handovers). With the default assists `window-clamp` bounds what is under way, and little is "
    "lost or repeated; the timeout in the gap is spurious, and undone. BBR sends no more than the path takes, and "
    "does as well with `replay` alone. Hold-last keeps the last packets of the flow alone; their ACKs tell the "
    "sender what is missing as soon as the home agent knows the new path, and it repeats all of that."
)

TRACED = (
    "Means over the twenty handovers of repetition 0: instants in seconds behind the handover, numbers of a handover. "
    "`careof run {scenario} --out RUN --plots` with what is in the last column makes the run with its trace: "
    "`RUN/events.parquet`, the graphs beside it, and `careof explain RUN`. *Slow starts* are all returns to a window "
    "of one segment: by a timeout, or, with Tahoe, by three duplicate ACKs. *Needless* repetitions are of segments "
    "that had arrived or still did. Without a handover two windows take 0.34 s."
)
