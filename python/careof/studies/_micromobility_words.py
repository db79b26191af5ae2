"""What is to be said about the rows and tables of the study `micromobility`."""

from __future__ import annotations

EXPLANATIONS = {
    "M1": (
        "noBuffer is above biCast, as the paper has it: it sends as soon as the link layer is there, and biCast "
        "waits for layer 3, by when a second RTO of 2 s has begun. Buffer is below noBuffer with Reno: the trigger "
        "comes after the beginning of the window has entered the old radio's queue (20 packets take some 150 ms of "
        "the channel), which is lost; the candidate keeps the rest, whose ACKs restart the timer, and Reno waits "
        "for it. The others have partial or selective ACKs, or go back, and gain from what was kept: buffer is "
        "level with noBuffer and never below biCast, which gets nothing at all. For buffer to be below biCast its "
        "copies would have to harm more than the loss of the window: in `careof run "
        "scenarios/micromobility/one-channel.toml` they do not."
    ),
    "M2": (
        "With an RTO of 1 s the first retransmission comes behind every gap up to 500 ms: one timeout. Buffer and "
        "biCast wait for layer 3, up to 1 s more: the longer the gap, the more often that takes longer than the "
        "timer."
    ),
    "M3": (
        "At 0 ms the beginning of the window is lost with each scheme; with buffer the rest follows, and its ACKs "
        "repair the loss without a timer, but for Reno, which needs one nearly each time. Throughputs differ by "
        "0.09 to 0.1, most of it biCast's wait for layer 3."
    ),
    "M4": (
        "The paper's mechanism is there, at 0 ms: packets of the window that come by the new base station are "
        "acknowledged, which restarts the timer, and the timeout comes that much later after the handover (traced "
        "below). At -100 ms nothing is acknowledged before the timeout, so it comes as with -200 ms. Reno is "
        "lowest at 0 ms therefore; the others repair that loss without a timer. The traced runs are those of "
        "repetition 0; `careof run` of the scenario in `docs/studies/micromobility.md` makes the trace."
    ),
    "M5": (
        "With one channel the rise and fall is there for noBuffer: an overlap saves the old queue, and while both "
        "base stations send, each packet is on the air twice. Buffer and biCast wait for layer 3, which takes up "
        "to 1 s: each further 100 ms of overlap lets more handovers finish in it, so that they still rise at +500 "
        "ms. If moves are known at once all three fall beyond +100 or +200 ms (the table of other assumptions: 6 "
        "of 8 hold). The flush of a buffer repeats what the old base station has delivered, which keeps its peak "
        "below that of noBuffer."
    ),
    "M6": (
        "Reno is below all others with noBuffer and biCast; with buffer nothing is lost, what comes twice begins "
        "recoveries, and Tahoe and NewReno pay more for these. Tahoe has no more timeouts than Reno here: it "
        "repairs by going back where Reno waits for its timer."
    ),
}

M7 = (
    "Flows over QUIC, with and without migration, are compared in `docs/quic.md`, not here; there is no Multipath TCP. "
    "What there is here beyond the paper: today's senders, the named protocols side by side and in other trees, and a "
    "model of the interaction, which `careof advise` asks."
)

MODEL = (
    "A sum of spans that follow from rate, round trip, gap and overlap, with coefficients fitted on 40 draws; these "
    "are 20 others: 1 to 10 Mbit/s, round trips of 20 to 200 ms, gaps and overlaps up to 500 ms. Lost is the time at "
    "full rate that a handover costs. `careof advise --gap 200ms --rate 10Mbit/s --rtt 60ms --sender cubic` answers "
    "without simulating; `python -m careof.advice.fit` fits again."
)

ASSUMPTIONS = (
    "How many of a row's comparisons hold (rows without the traced ones), and below that the throughput at gaps of "
    "300 to 500 ms. A radio of full rate takes 55 ms for what waits of a window, one of 802.11 some 150 ms: there the "
    "trigger comes after the beginning of the window has entered the old radio's queue, which is lost, and the "
    "candidate keeps the rest."
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

TRACED = (
    "Means over the twenty handovers of repetition 0: instants in seconds behind the handover, numbers of a handover. "
    "`careof run {scenario} --out RUN --plots` with what is in the last column makes the run with its trace: "
    "`RUN/events.parquet`, the graphs beside it, and `careof explain RUN`. *Slow starts* are all returns to a window "
    "of one segment: by a timeout, or, with Tahoe, by three duplicate ACKs. *Needless* repetitions are of segments "
    "that had arrived or still did. Without a handover two windows take 0.34 s."
)
