//! What every number of a summary means, in words.

use alloc::string::String;
use core::fmt::Write as _;

/// A part of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The run as a whole.
    Run,
    /// An entry of `flows`.
    Flow,
    /// An entry of `stalls`.
    Stall,
    /// An entry of `voice`.
    Voice,
    /// An entry of `handovers` of an entry of `voice`.
    VoiceInHandover,
    /// An entry of `video`.
    Video,
    /// An entry of `rebuffers` of an entry of `video`.
    Rebuffer,
    /// An entry of `histograms`.
    Histogram,
    /// An entry of `buckets` of an entry of `histograms`.
    Bucket,
    /// An entry of `handovers`.
    Handover,
    /// An entry of `flows` within a handover.
    FlowInHandover,
    /// `roaming`.
    Roaming,
    /// `micro_mobility`.
    MicroMobility,
    /// An entry of `multipath`.
    Multipath,
    /// An entry of `paths` of an entry of `multipath`.
    MultipathPath,
    /// An entry of `black_holes`.
    BlackHole,
    /// An entry of `icmp_filtered`.
    Filtered,
    /// An entry of `links`.
    Link,
    /// An entry of `probes`.
    Probe,
    /// `mobility`.
    Mobility,
    /// `packets`.
    Packets,
    /// An entry of `captures`.
    Capture,
}

impl Section {
    /// Every section in the order of the summary.
    pub const ALL: [Self; 22] = [
        Self::Run,
        Self::Flow,
        Self::Stall,
        Self::Voice,
        Self::VoiceInHandover,
        Self::Video,
        Self::Rebuffer,
        Self::Histogram,
        Self::Bucket,
        Self::Handover,
        Self::FlowInHandover,
        Self::Roaming,
        Self::MicroMobility,
        Self::Multipath,
        Self::MultipathPath,
        Self::BlackHole,
        Self::Filtered,
        Self::Link,
        Self::Probe,
        Self::Mobility,
        Self::Packets,
        Self::Capture,
    ];

    /// Where its keys stand in the summary.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::Run => "",
            Self::Flow => "flows[]",
            Self::Stall => "stalls[]",
            Self::Voice => "voice[]",
            Self::VoiceInHandover => "voice[].handovers[]",
            Self::Video => "video[]",
            Self::Rebuffer => "video[].rebuffers[]",
            Self::Histogram => "histograms[]",
            Self::Bucket => "histograms[].buckets[]",
            Self::Handover => "handovers[]",
            Self::FlowInHandover => "handovers[].flows[]",
            Self::Roaming => "roaming",
            Self::MicroMobility => "micro_mobility",
            Self::Multipath => "multipath[]",
            Self::MultipathPath => "multipath[].paths[]",
            Self::BlackHole => "black_holes[]",
            Self::Filtered => "icmp_filtered[]",
            Self::Link => "links[]",
            Self::Probe => "probes[]",
            Self::Mobility => "mobility",
            Self::Packets => "packets",
            Self::Capture => "captures[]",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Run => "The run",
            Self::Flow => "A flow (`flows[]`)",
            Self::Stall => "A stall (`stalls[]`)",
            Self::Voice => "What was heard of a voice flow (`voice[]`)",
            Self::VoiceInHandover => "A voice flow from a handover on (`voice[].handovers[]`)",
            Self::Video => "What was seen of a film (`video[]`)",
            Self::Rebuffer => "A time in which the picture stood still (`video[].rebuffers[]`)",
            Self::Histogram => "A histogram (`histograms[]`)",
            Self::Bucket => "A bucket of a histogram (`histograms[].buckets[]`)",
            Self::Handover => "A handover (`handovers[]`)",
            Self::FlowInHandover => "A flow in a handover (`handovers[].flows[]`)",
            Self::Roaming => "Many mobile nodes (`roaming`)",
            Self::MicroMobility => "A domain of micro-mobility (`micro_mobility`)",
            Self::Multipath => "An end of a tunnel over several paths (`multipath[]`)",
            Self::MultipathPath => "A path of such a tunnel (`multipath[].paths[]`)",
            Self::BlackHole => "A tunnel that swallowed large packets (`black_holes[]`)",
            Self::Filtered => "Messages that were filtered (`icmp_filtered[]`)",
            Self::Link => "A one-way link (`links[]`)",
            Self::Probe => "The measurement of a link (`probes[]`)",
            Self::Mobility => "The agents (`mobility`)",
            Self::Packets => "All packets (`packets`)",
            Self::Capture => "A packet capture (`captures[]`)",
        }
    }
}

/// The meaning of one key of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The part of the summary it stands in.
    pub section: Section,
    /// The key, with the unit in it.
    pub key: &'static str,
    /// The unit; empty for names and truth values.
    pub unit: &'static str,
    /// What it means, its edge cases included.
    pub definition: &'static str,
}

const fn define(
    section: Section,
    key: &'static str,
    unit: &'static str,
    definition: &'static str,
) -> Definition {
    Definition { section, key, unit, definition }
}

use Section::{
    BlackHole, Bucket, Capture, Filtered, Flow, FlowInHandover, Handover, Histogram, Link, MicroMobility,
    Mobility, Multipath, MultipathPath, Packets, Probe, Rebuffer, Roaming, Run, Stall, Video, Voice,
    VoiceInHandover,
};

/// Every key of the summary, in its order.
pub const DEFINITIONS: &[Definition] = &[
    define(Run, "careof", "", "Version of careof that made the run."),
    define(Run, "title", "", "Title of the scenario."),
    define(Run, "scenario", "", "Name of the scenario's file, without its directory."),
    define(Run, "world", "", "`sim` for the simulator, `linux` for real hosts."),
    define(Run, "kernel", "", "Release of the Linux kernel it ran on; null in the simulator."),
    define(
        Run,
        "late_s",
        "s",
        "By how much, at most, a link passed a packet on, or the thread that follows the scenario had its turn, after its time, \
         because the machine was busy; null in the simulator. Over 20 ms a remark says so: times of the run may be wrong by as much.",
    ),
    define(
        Run,
        "remarks",
        "",
        "What ran otherwise than the scenario's words say, a line each; empty in the simulator, which knows them all.",
    ),
    define(Run, "seed", "", "Seed of all random numbers. The same seed gives the same run."),
    define(Run, "run", "", "Number of the repetition; each has its own random numbers under the same seed."),
    define(
        Run,
        "overrides",
        "",
        "What was set for this run in place of the scenario's values, as `key=value`.",
    ),
    define(Run, "duration_s", "s", "How long the run lasted, in its own time."),
    define(
        Run,
        "digest",
        "",
        "Fingerprint of everything that happened: of every packet that crossed a link or was dropped, and when. Two runs \
         with the same digest were the same run. Real hosts never repeat themselves, so on Linux it names a run and \
         nothing else.",
    ),
    define(
        Run,
        "stall_threshold_s",
        "s",
        "The shortest silence that is a stall: `stall_threshold` of the scenario; without it 1 s, or twice the time that the scenario's slowest link takes for a packet of \
         its MTU, whichever is longer, so that a slow link does not stall between any two packets (3.1 s with `gsm-csd`). \
         1 s is about as long as a user's flow of thought stays uninterrupted (Nielsen 1993), and the least timeout of RFC 6298.",
    ),
    define(Run, "flows", "", "Each direction of each flow that carries data."),
    define(
        Run,
        "stalls",
        "",
        "Silences of at least `stall_threshold_s`, anywhere in the run and with or without a handover, in order: of each flow \
         the hundred longest.",
    ),
    define(Run, "voice", "", "What was heard of voice flows; there only with such."),
    define(Run, "video", "", "What was seen of films; there only with such."),
    define(
        Run,
        "histograms",
        "",
        "How one-way delays and jitter are spread: of voice flows, and of the first 32 other directions of data.",
    ),
    define(Run, "handovers", "", "The handovers in order; of many mobile nodes none is listed."),
    define(
        Run,
        "roaming",
        "",
        "The handovers of many mobile nodes (`nodes` in `[mobility]`), counted; there only with them. Each of them is in the \
         trace.",
    ),
    define(Run, "micro_mobility", "", "What a domain of micro-mobility did; there only with one."),
    define(
        Run,
        "multipath",
        "",
        "The two ends of the tunnel of a mobile node with several links at once; there only with one.",
    ),
    define(
        Run,
        "black_holes",
        "",
        "Tunnels that swallowed large packets without a word, as the assist `black-hole` met and worked around them, in order; there only if there were any.",
    ),
    define(
        Run,
        "icmp_filtered",
        "",
        "Messages that packets were too large for the next link, which a link with `icmp = \"filtered\"` dropped; there only if there were any.",
    ),
    define(Run, "links", "", "The one-way links: `.down` towards the mobile node, `.up` away from it."),
    define(
        Run,
        "probes",
        "",
        "Measurements of links, one for each flow of the kind probe, as far as it had come when the run ended; empty in the simulator, whose links keep to their laws.",
    ),
    define(Run, "mobility", "", "What the agents did; null in a scenario without mobility."),
    define(Run, "packets", "", "Where all packets of the run went."),
    define(
        Run,
        "conservation",
        "packets",
        "For each place that was checked, what came in minus what is accounted for: delivered, dropped, moved elsewhere, \
         queued, in flight. Every difference is zero; anything else is a mistake in careof.",
    ),
    define(
        Run,
        "captures",
        "",
        "The packet captures that the run wrote, one for each node; a run without captures has no such key.",
    ),
    define(Flow, "name", "", "Name of the flow in the scenario."),
    define(Flow, "from", "", "The node that sends the data."),
    define(Flow, "to", "", "The node that receives it."),
    define(
        Flow,
        "kind",
        "",
        "The workload: bulk, request-response, paced, on-off, voice, video; command for a connection that a program opened.",
    ),
    define(
        Flow,
        "profile",
        "",
        "The profile its TCP was taken from; null when there was none. On Linux what really ran: `modern`, the kernel's \
         TCP as it comes; `legacy`, without SACK, timestamps, F-RTO, RACK and tail loss probes; `legacy-sack`, the same \
         with SACK. `quic` for a flow over QUIC, `mptcp` for one over Multipath TCP.",
    ),
    define(
        Flow,
        "variant",
        "",
        "Congestion control and loss recovery of its TCP; `kernel-` with the kernel's congestion control on Linux. \
         With QUIC its congestion control alone.",
    ),
    define(Flow, "rto", "", "How its TCP estimates the retransmission timeout."),
    define(Flow, "start_s", "s", "When the application opened the flow; null if it never did."),
    define(
        Flow,
        "last_delivery_s",
        "s",
        "When the receiving application last got data; null if it never did.",
    ),
    define(
        Flow,
        "complete",
        "",
        "Whether everything the flow had to carry was delivered. An endless flow never is.",
    ),
    define(
        Flow,
        "longest_silence_s",
        "s",
        "The longest time in which the flow was waited for and its application got nothing new. A flow is waited for while an \
         application wants data of it: a bulk flow from its opening until everything is delivered; a request until it is \
         delivered, and the response from the request on; a paced message from when it is written until it is delivered. \
         Thinking between requests, and the time after a stop, is no silence. A silence begins with the last delivery, or when \
         the wait does; it ends with the next delivery, with the wait, or with the run. Of a program's connection it is not \
         known what it wants: it is waited for while something that it has sent is not acknowledged, so what it waits for \
         without sending, the answer to a request above all, is in the other direction, and only once that has begun to send. \
         Null if the flow was never waited for.",
    ),
    define(Flow, "longest_silence_at_s", "s", "When that silence began; of several the first."),
    define(
        Flow,
        "waiting_s",
        "s",
        "The time in which the flow was waited for, silent or not: all the time of a bulk flow, of requests and responses what \
         the user spent on waiting.",
    ),
    define(Flow, "stalls", "", "Silences of at least `stall_threshold_s`."),
    define(Flow, "stalled_s", "s", "Their sum."),
    define(
        Flow,
        "bytes_delivered",
        "byte",
        "Data the receiving application got, in order and each byte once. What waits in the receiver's buffer does not \
         count. Of a program's connection: what reached its host in order.",
    ),
    define(
        Flow,
        "active_s",
        "s",
        "The time goodput is averaged over. It begins when the application opens the flow. It ends with the last \
         delivery if the flow is complete, otherwise with its stop or the end of the run, whichever is first, but not \
         before the last delivery. So a flow that is stuck at the end of the run is charged for being stuck.",
    ),
    define(
        Flow,
        "goodput_bps",
        "bit/s",
        "`bytes_delivered` times 8 divided by `active_s`, rounded down to a thousandth; 0 when that time is 0. Headers \
         and repetitions do not count, the opening of the connection does.",
    ),
    define(
        Flow,
        "timeouts",
        "",
        "How often the sender's retransmission timer ran out. Each expiry counts, also repeated ones for the same \
         segment. Probes of a closed window are no timeouts. On Linux the kernel's own count. \
         With QUIC always 0: the library does not tell its probe timeouts. With Multipath TCP those of all subflows.",
    ),
    define(
        Flow,
        "spurious_timeouts",
        "",
        "Timeouts that were not needed: the first sequence number not acknowledged did reach the receiver's host by a \
         transmission from before the timeout, whether it arrived before the timer ran out (only the acknowledgement was \
         late or lost) or after. A timeout becomes spurious when the transmission arrives; one still on the way when the \
         run ends is not counted. Verdicts are kept open for the last 64 undecided timeouts.",
    ),
    define(
        Flow,
        "segments_sent",
        "",
        "Segments the data's sender sent that occupy sequence numbers: data, SYN, FIN. Repetitions count again, pure \
         acknowledgements do not count. With QUIC each stretch of stream bytes in a datagram counts as one. \
         With Multipath TCP: of all subflows, placed by where their data belongs in the connection's.",
    ),
    define(
        Flow,
        "segments_retransmitted",
        "",
        "Those of `segments_sent` that repeat something sent before. With Multipath TCP also by another subflow.",
    ),
    define(
        Flow,
        "unnecessary_retransmissions",
        "",
        "Segments that reached the receiver's host and brought nothing new, because every byte had arrived before: the \
         repetition of something that was not lost, or an original that its repetition overtook. A repetition that is \
         lost or still on the way is not counted, nor is a copy that the network made.",
    ),
    define(
        Flow,
        "duplicate_acks",
        "",
        "Acknowledgements at the data's sender that are duplicates by RFC 5681, section 2: something is outstanding, no \
         data, no SYN or FIN, the same acknowledgement number and the same window as before.",
    ),
    define(
        Flow,
        "segments_arrived",
        "",
        "Those of `segments_sent` that reached the receiver's host, whatever its TCP made of them; once each, however \
         often the network copied them.",
    ),
    define(
        Flow,
        "out_of_order_arrivals",
        "",
        "Segments that arrived after a segment of the same flow that was sent later (RFC 4737, by order of \
         transmission). They were overtaken; a hole that a loss leaves and a retransmission fills is no reordering, and \
         of a segment that the network copied the first arrival counts.",
    ),
    define(
        Flow,
        "network_duplicates",
        "",
        "Arrivals at the receiver's host of a transmission that had arrived there before: the network copied it, as a home \
         agent does with simultaneous bindings. They count neither as arrived, nor as unnecessary, nor as out of order. \
         The last 16,384 transmissions are remembered; an older one counts as if it had not arrived.",
    ),
    define(
        Flow,
        "packets_replayed",
        "",
        "Packets with the flow's data that an assist sent again from its store after a handover. One that the lost path did \
         deliver is among `network_duplicates`, too.",
    ),
    define(
        Flow,
        "packets_held",
        "",
        "Packets with the flow's data that an assist held back, to send them on behind what it replays or when there is a path.",
    ),
    define(
        Flow,
        "retransmissions_swallowed",
        "",
        "Repetitions of the flow's data that an assist did not let through, because the same bytes wait there or were sent on \
         too short a time ago to be acknowledged. The sender made them all the same: they are among \
         `segments_retransmitted`.",
    ),
    define(
        Flow,
        "acks_injected",
        "",
        "Acknowledgements of the flow's data that an assist made. None acknowledges more than the receiver did.",
    ),
    define(
        Flow,
        "unreachables_injected",
        "",
        "ICMP host unreachable messages about the flow's data that an assist sent to its sender.",
    ),
    define(
        Flow,
        "advice_taken",
        "",
        "How often the flow's sender was told something of a handover or a link, by an assist that needs such a sender, and acted on it.",
    ),
    define(
        Flow,
        "assist_stall_s",
        "s",
        "The longest stall after a handover as an assist on the path saw it: from the new path's being known there to the \
         first acknowledgement of new data that passed. Null if it saw none.",
    ),
    define(
        Flow,
        "rtt_samples",
        "",
        "Round-trip times the sender measured, as its estimator takes them (not of retransmitted segments, unless by \
         timestamps). On Linux one for each acknowledgement of something new: from the last segment it covers that was \
         sent once entering the sender's link to the acknowledgement leaving it.",
    ),
    define(Flow, "rtt_min_s", "s", "The smallest sample; null without one."),
    define(Flow, "rtt_mean_s", "s", "Arithmetic mean of the samples; null without one."),
    define(Flow, "rtt_max_s", "s", "The largest sample; null without one."),
    define(Stall, "flow", "", "Name of the flow."),
    define(Stall, "begin_s", "s", "The last delivery before it, or when the application began to want data."),
    define(Stall, "length_s", "s", "How long it lasted."),
    define(
        Stall,
        "ended_by",
        "",
        "`data`: new data came; `not-wanted`: the flow was stopped, or all that a program had sent was acknowledged; \
         `end-of-run`.",
    ),
    define(Voice, "flow", "", "Name of the flow."),
    define(Voice, "codec", "", "The codec; null for packets of the scenario's own."),
    define(Voice, "packets_sent", "", "Packets sent."),
    define(Voice, "packets_received", "", "Packets that arrived, each counted once."),
    define(
        Voice,
        "duplicates",
        "",
        "Further arrivals of packets: copies that the network made. Of the last 16,384 packets it is known whether they had arrived.",
    ),
    define(
        Voice,
        "packets_due",
        "",
        "Packets whose time to be played came within the run. The first that arrives is played when the depth of the jitter buffer has \
         passed, and each other one at its distance from it in the talk. A buffer that has played nothing for 1 s, though packets came, \
         starts over: those that came by the shortest way meanwhile would have waited for its depth. Without any arrival it is \
         as if the first had taken no time.",
    ),
    define(Voice, "packets_lost", "", "Packets due that have not arrived by the end of the run."),
    define(Voice, "packets_late", "", "Packets that arrived after their time, and were not played."),
    define(Voice, "missing_part", "", "(`packets_lost` + `packets_late`) / `packets_due`."),
    define(Voice, "restarts", "", "How often the jitter buffer started over."),
    define(
        Voice,
        "delay_min_s",
        "s",
        "The least one-way delay of a packet, from its sending to its arrival at the receiver's host.",
    ),
    define(Voice, "delay_mean_s", "s", "Their mean."),
    define(Voice, "delay_max_s", "s", "The largest."),
    define(
        Voice,
        "jitter_s",
        "s",
        "Interarrival jitter when the last packet had come, after RFC 3550 (section 6.4.1, appendix A.8): the differences of successive \
         packets' transits, smoothed by 1/16.",
    ),
    define(Voice, "jitter_max_s", "s", "The most that it was."),
    define(
        Voice,
        "mouth_to_ear_s",
        "s",
        "From when the speech of a packet begins until it is played, mean of those played: the interval of a packet and what the codec looks \
         ahead, the way through the network, and the wait in the jitter buffer.",
    ),
    define(
        Voice,
        "longest_gap_s",
        "s",
        "The longest time in which the listener heard nothing of what was due: from the end of a packet that was played, or when the first \
         was due, to the next one that was played, or the end of the last that was due. Null if there was none.",
    ),
    define(Voice, "longest_gap_at_s", "s", "When that began."),
    define(
        Voice,
        "bursts",
        "",
        "Bursts of missing packets after RFC 3611 (section 4.7.2, Gmin = 16): from one missing packet to another, with fewer than 16 others in \
         a row between them. What is missing alone belongs to a gap, as everything between bursts.",
    ),
    define(Voice, "burst_density", "", "The part of the packets in bursts that was missing."),
    define(Voice, "burst_duration_s", "s", "How long bursts lasted, mean."),
    define(Voice, "gap_density", "", "The part of the packets in gaps that was missing."),
    define(
        Voice,
        "gap_duration_s",
        "s",
        "How long gaps lasted, mean: there is one before each burst, and one behind the last.",
    ),
    define(
        Voice,
        "burst_ratio",
        "",
        "How long runs of missing packets were, by how long they would have been by chance (BurstR of ITU-T G.107): mean length times \
         (1 - `missing_part`), at least 1. Null if nothing was missing.",
    ),
    define(
        Voice,
        "rating",
        "",
        "R of the E-model (ITU-T G.107) with the defaults of all it knows but delay and codec: 93.2 - Id - Ie,eff, not below 0. \
         Id = 0.024 d + 0.11 max(d - 177.3, 0) with d = `mouth_to_ear_s` in ms (Cole and Rosenbluth 2001); \
         Ie,eff = Ie + (95 - Ie) Ppl / (Ppl / BurstR + Bpl) with Ppl = `missing_part` in per cent and the codec's Ie and Bpl. 0 if nothing was played. \
         Null where Ie and Bpl are not known.",
    ),
    define(
        Voice,
        "mos",
        "",
        "Mean opinion score of `rating` (ITU-T G.107, Annex B), 1 (bad, up to R = 6.5, below which its formula gives less) to 4.5: 4.34 at R = 90, from where on users are very satisfied, 4.02 at 80, 3.6 at 70, \
         3.1 at 60, where many are dissatisfied.",
    ),
    define(
        Voice,
        "handovers",
        "",
        "The same from each handover on that the flow crosses and that begins behind its first packet.",
    ),
    define(VoiceInHandover, "at_s", "s", "When the handover began."),
    define(
        VoiceInHandover,
        "packets_missing",
        "",
        "Packets that should have been played from then on to the next handover, and were not: lost or late.",
    ),
    define(VoiceInHandover, "longest_gap_s", "s", "The longest gap that ended in that time."),
    define(Video, "flow", "", "Name of the flow."),
    define(
        Video,
        "startup_delay_s",
        "s",
        "From when the connection was established until the film began: `startup` of it was there. Null if it never was.",
    ),
    define(Video, "played_s", "s", "How much of the film was played."),
    define(
        Video,
        "rebufferings",
        "",
        "How often the buffer ran empty before the end of the film. The film went on when `startup` of it, or its rest, was there again.",
    ),
    define(
        Video,
        "rebuffering_s",
        "s",
        "How long the picture stood still for that, all in all; what the end of the run ends counts.",
    ),
    define(
        Video,
        "rebuffering_part",
        "",
        "`rebuffering_s` / (`rebuffering_s` + `played_s`). Null if nothing was played.",
    ),
    define(Video, "longest_rebuffering_s", "s", "The longest of them; null without any."),
    define(Video, "segments", "", "Segments that arrived whole."),
    define(Video, "mean_rate_bps", "bit/s", "The mean of their rates. Null without any."),
    define(Video, "lowest_rate_bps", "bit/s", "The lowest of them."),
    define(Video, "highest_rate_bps", "bit/s", "The highest of them."),
    define(Video, "switches", "", "How often a segment had another rate than the one before it."),
    define(
        Video,
        "buffered_s",
        "s",
        "How much of the film lay ready at the end of the run, or when the flow stopped.",
    ),
    define(Video, "rebuffers", "", "Each rebuffering, in order; of many the hundred longest."),
    define(Rebuffer, "begin_s", "s", "When the buffer was empty."),
    define(Rebuffer, "length_s", "s", "How long the picture stood still."),
    define(Histogram, "flow", "", "Name of the flow."),
    define(
        Histogram,
        "quantity",
        "",
        "`delay` of a voice flow: from the sending of a packet to its arrival at the receiver's host. Of another flow, for each segment: from \
         its first transmission until the receiving application could read its first byte. So the time is in it that the data waited for \
         retransmissions, also of earlier segments, but not the time before the sender's TCP sent them. Of a program's connection it ends \
         when the receiver's host has all data so far. `jitter`: by how much the delay of a packet or a segment differs from that of the \
         one before it.",
    ),
    define(
        Histogram,
        "samples",
        "",
        "How many values. While 16,384 segments of a direction are under way, no further one is measured.",
    ),
    define(Histogram, "min_s", "s", "The smallest."),
    define(Histogram, "mean_s", "s", "Their mean."),
    define(
        Histogram,
        "p50_s",
        "s",
        "The least value that half of them do not exceed. As all quantiles it is the middle of its bucket, which is right to 1/64.",
    ),
    define(Histogram, "p90_s", "s", "The same of 90 in 100."),
    define(Histogram, "p99_s", "s", "The same of 99 in 100."),
    define(Histogram, "p999_s", "s", "The same of 999 in 1000."),
    define(Histogram, "max_s", "s", "The largest."),
    define(Histogram, "buckets", "", "The buckets that are not empty, 32 to a doubling."),
    define(Bucket, "from_s", "s", "The smallest value that belongs to it."),
    define(Bucket, "to_s", "s", "The smallest above it."),
    define(Bucket, "samples", "", "How many values belong to it."),
    define(
        Handover,
        "at_s",
        "s",
        "When the handover began, as the scenario has it. Its period lasts from here to `until_s`.",
    ),
    define(
        Handover,
        "until_s",
        "s",
        "When its period ended: the beginning of the next handover, or the end of the run.",
    ),
    define(Handover, "from", "", "The link it leaves."),
    define(Handover, "to", "", "The link it goes to."),
    define(Handover, "style", "", "`make-before-break` or `break-before-make`."),
    define(Handover, "node", "", "The mobile node; there only where several move."),
    define(
        Handover,
        "address_at_s",
        "s",
        "When the mobile node could use its address on the new link, where it has to ask for one (`care_of = \"dhcp\"`): from \
         `at_s` to here is the acquisition of the address with whatever interruption came before it, from here to `ready_at_s` the \
         registration. Absent where the address is there with the link, or was not obtained in the period.",
    ),
    define(
        Handover,
        "ready_at_s",
        "s",
        "When the new path first carried packets both ways: the link is up and the registration by it was accepted. Null \
         if that did not happen in the period.",
    ),
    define(
        Handover,
        "longest_silence_s",
        "s",
        "The longest silence of a flow to or from the mobile node, from the handover on: see the flow's. Null if none was \
         waited for.",
    ),
    define(Handover, "longest_silence_flow", "", "The flow that was silent so long; of several the first."),
    define(
        Handover,
        "interruption_s",
        "s",
        "Total time in the period in which no path could carry packets between the mobile node and its correspondents. An \
         outage that was under way when the handover began is its reason and counts whole, unless the handover before had \
         not become ready: then each counts its part. An outage that lasts to the end of the run counts to the end. \
         0 when the old path works until the new one does, whatever TCP makes of it.",
    ),
    define(
        Handover,
        "stall_after_s",
        "s",
        "The longest `stall_after_s` of the flows below. Null unless `stall` is `resumed`.",
    ),
    define(
        Handover,
        "stall",
        "",
        "`resumed`: all flows with something to carry resumed. `never`: one did not before the run ended. `not-ready`: the \
         new path was not ready in the period. `idle`: no flow had anything to carry.",
    ),
    define(
        Handover,
        "recovery_90_s",
        "s",
        "From `ready_at_s` to the first delivery that is followed by a window in which 90 % of what the new path can \
         carry was delivered, summed over the flows in that direction. What the path can carry is the data of full-sized \
         segments: the rate of its narrowest link less framing, tunnel and headers. The bytes of the delivery that opens \
         the window do not count, since they were carried before it; so a burst released by a filled hole is no recovery. \
         With flows in both directions the later of the two. Null unless `recovery` is `reached`. Meaningful for flows \
         that always have data to send.",
    ),
    define(
        Handover,
        "recovery",
        "",
        "`reached`: see `recovery_90_s`. `never`: not in the period. `not-ready`: the new path was not ready in the period. \
         `not-measured`: what the flows of either direction wanted when it became ready would not have filled a window, or \
         the path has no rate.",
    ),
    define(
        Handover,
        "recovery_window_s",
        "s",
        "Length of the window for `recovery_90_s`: the longer of 10 full-sized packets at the new path's rate (15.6 s on \
         9.6 kbit/s of asynchronous PPP) and 4 round trips without queueing (40 ms on a path of 10 ms). Deliveries less than a \
         1024th of it apart count as one. Null when nothing was measured.",
    ),
    define(
        Handover,
        "goodput_after_bps",
        "bit/s",
        "What was delivered from `ready_at_s` on, for 60 s or to `until_s`, whichever is first, as bits per second of that \
         time: the sum over the flows in one direction, rounded down to a thousandth. With flows in both directions that of \
         the one with the smaller share. Null when no flow had anything to carry at `ready_at_s`, or no time followed it. \
         Meaningful for flows that always have data to send.",
    ),
    define(
        Handover,
        "goodput_after_share",
        "",
        "`goodput_after_bps` as a part of what the new path can carry in that direction (see `recovery_90_s`), rounded down \
         to a millionth. More than 1 is possible by as much as had crossed before and was delivered only then. Null as \
         `goodput_after_bps`, and on a path without a rate.",
    ),
    define(Handover, "flows", "", "The flows to and from the mobile node. Counts are those of the period."),
    define(FlowInHandover, "name", "", "Name of the flow."),
    define(
        FlowInHandover,
        "longest_silence_s",
        "s",
        "The longest silence of the flow (as in `flows[]`) from the handover on: of one that had begun before, the part from \
         `at_s` on. A silence that begins in the period counts to its end, even where the next handover comes first. Null \
         if the flow was not waited for.",
    ),
    define(FlowInHandover, "longest_silence_at_s", "s", "When that silence began, not before `at_s`."),
    define(FlowInHandover, "waiting_s", "s", "As for the flow, within the period."),
    define(
        FlowInHandover,
        "stalls",
        "",
        "Silences from the handover on, counted as for `longest_silence_s`, of at least `stall_threshold_s`.",
    ),
    define(FlowInHandover, "stalled_s", "s", "Their sum."),
    define(
        FlowInHandover,
        "stall_after_s",
        "s",
        "From `ready_at_s` until the first new in-order byte reaches the receiving application, by whatever path. It is \
         measured on through later handovers to the end of the run. Null unless `stall` is `resumed`.",
    ),
    define(
        FlowInHandover,
        "stall",
        "",
        "`resumed`; `never`: no new byte before the run ended; `not-ready`: the new path was not ready in the period; \
         `idle`: the flow was not waited for when the new path became ready: not begun, thinking, complete or stopped.",
    ),
    define(FlowInHandover, "bytes_delivered", "byte", "As for the flow, within the period."),
    define(FlowInHandover, "timeouts", "", "As for the flow, within the period."),
    define(
        FlowInHandover,
        "spurious_timeouts",
        "",
        "As for the flow; counted in the period in which they turn out to be spurious.",
    ),
    define(FlowInHandover, "segments_retransmitted", "", "As for the flow, within the period."),
    define(
        FlowInHandover,
        "unnecessary_retransmissions",
        "",
        "As for the flow; counted in the period in which the superfluous copy arrives.",
    ),
    define(FlowInHandover, "duplicate_acks", "", "As for the flow, within the period."),
    define(FlowInHandover, "out_of_order_arrivals", "", "As for the flow, within the period."),
    define(FlowInHandover, "packets_replayed", "", "As for the flow, within the period."),
    define(FlowInHandover, "retransmissions_swallowed", "", "As for the flow, within the period."),
    define(
        FlowInHandover,
        "goodput_after_bps",
        "bit/s",
        "The flow's part of what was delivered in the 60 s from `ready_at_s` on, or up to `until_s`, rounded down to a \
         thousandth. Null if the new path was not ready in the period.",
    ),
    define(
        FlowInHandover,
        "bandwidth_estimate_bps",
        "bit/s",
        "What the flow's sender took the new path to deliver, without headers, when it set its window by that and the new \
         round trip: the assist `tcp-cm` with an `estimator`. There only where it did.",
    ),
    define(
        FlowInHandover,
        "bandwidth_error",
        "",
        "How far `bandwidth_estimate_bps` is off what the new path can carry of the flow's data (see `recovery_90_s`), as a part of \
         that, rounded towards zero to a millionth: 0 is exact, -0.5 half of it, 1 twice as much. Missing where there is no \
         estimate, and on a path without a rate.",
    ),
    define(Roaming, "nodes", "", "Mobile nodes."),
    define(Roaming, "stations", "", "Stations they go round."),
    define(Roaming, "handovers", "", "Handovers of all of them: departures from a station."),
    define(
        Roaming,
        "not_ready",
        "",
        "Handovers whose registration was not accepted before the node's next handover or the end of the run.",
    ),
    define(
        Roaming,
        "not_resumed",
        "",
        "Handovers whose registration was accepted while a flow had something to carry, and after which no flow of the node \
         delivered anything new before the node's next handover or the end of the run.",
    ),
    define(
        Roaming,
        "interruption_min_s",
        "s",
        "The shortest time from leaving a station to the accepted registration through the next one.",
    ),
    define(Roaming, "interruption_median_s", "s", "Its median over all handovers that got so far, to 2 %."),
    define(Roaming, "interruption_max_s", "s", "The longest such time."),
    define(
        Roaming,
        "stall_after_min_s",
        "s",
        "The shortest time from the accepted registration to the first new byte that a flow of the node delivered.",
    ),
    define(Roaming, "stall_after_median_s", "s", "Its median over all handovers that got so far, to 2 %."),
    define(Roaming, "stall_after_max_s", "s", "The longest such time."),
    define(
        MicroMobility,
        "messages_sent",
        "",
        "Messages of the protocol that mobile nodes and routers of the domain sent, each router that passed one on counted: one a link.",
    ),
    define(
        MicroMobility,
        "messages_discarded",
        "",
        "Messages of the protocol that had no effect, by reason; empty if there were none.",
    ),
    define(
        MicroMobility,
        "copies",
        "",
        "Copies of packets that routers made to send them to several neighbors. Each is a packet of its own in `packets`.",
    ),
    define(
        MicroMobility,
        "packets_kept",
        "",
        "Packets that base stations kept for mobile nodes that were not there, copies among them.",
    ),
    define(
        MicroMobility,
        "packets_released",
        "",
        "Of those, packets that went on to the mobile node or to another base station.",
    ),
    define(
        Multipath,
        "node",
        "",
        "The node at this end of the tunnel over several paths: the home agent or the mobile node.",
    ),
    define(
        Multipath,
        "mode",
        "",
        "With `dispersion = \"auto\"`, how flows that find their path full went at the end: `pinned`, `tried` or `split`; otherwise null.",
    ),
    define(Multipath, "offered", "", "Packets that were to be sent through the tunnel from here."),
    define(
        Multipath,
        "no_path",
        "",
        "Of these, packets that were dropped as no path that they could take worked.",
    ),
    define(
        Multipath,
        "copies",
        "",
        "Further transmissions of packets at the same time, by other paths. Each is a packet of its own in `packets`.",
    ),
    define(
        Multipath,
        "replayed",
        "",
        "Packets that were sent again by another path as theirs went out. Each is a packet of its own in `packets`.",
    ),
    define(Multipath, "moves", "", "Times that a flow changed its path."),
    define(Multipath, "messages", "", "Messages about paths that this end sent, probes and answers."),
    define(Multipath, "arrived", "", "Packets that came out of the tunnel here."),
    define(Multipath, "duplicates", "", "Of these, packets that had come already and were dropped."),
    define(Multipath, "waited", "", "Of these, packets that waited for earlier ones of their flow."),
    define(
        Multipath,
        "late",
        "",
        "Of these, packets that were passed on after later ones of their flow: out of order.",
    ),
    define(
        Multipath,
        "given_up",
        "",
        "Packets that were missing and no longer waited for: every path had passed them, their time was over, or there was no room.",
    ),
    define(Multipath, "longest_wait_s", "s", "The longest that a packet waited for earlier ones."),
    define(Multipath, "paths", "", "The paths, by their numbers."),
    define(MultipathPath, "link", "", "The access link of the path."),
    define(MultipathPath, "packets", "", "Packets that this end sent by it, copies included."),
    define(MultipathPath, "bytes", "", "Their bytes, without the headers of the tunnel."),
    define(
        MultipathPath,
        "share",
        "",
        "Part of the bytes that this end sent by all paths; null if it sent none.",
    ),
    define(
        MultipathPath,
        "rate_bps",
        "bit/s",
        "What the path is expected to carry away from this end, as it was measured or told; null if neither.",
    ),
    define(
        MultipathPath,
        "round_trip_s",
        "s",
        "The smoothed round trip at the end of the run, queues included; null if nothing was answered.",
    ),
    define(
        MultipathPath,
        "variation_s",
        "s",
        "How far the one-way transits of successive packets are apart in the mean.",
    ),
    define(
        MultipathPath,
        "loss",
        "",
        "Part of the packets that got lost away from this end, of late; null if that is not known.",
    ),
    define(MultipathPath, "outages", "", "Times that this end took the path for out."),
    define(MultipathPath, "out_for_s", "s", "For how long it did, all in all."),
    define(BlackHole, "node", "", "Node at which the tunnel begins."),
    define(
        BlackHole,
        "towards",
        "",
        "Where its path leads: the care-of address, or the link that the mobile node sends by.",
    ),
    define(BlackHole, "flow", "", "The flow by which it showed."),
    define(BlackHole, "at_s", "s", "When the smaller MTU was assumed."),
    define(
        BlackHole,
        "failed_bytes",
        "byte",
        "Size of the tunnelled datagrams that got through in fragments only.",
    ),
    define(BlackHole, "assumed_mtu_bytes", "byte", "MTU that the path was taken to have from then on."),
    define(BlackHole, "senders_told", "", "ICMP messages that told senders what fits."),
    define(
        BlackHole,
        "packets_in_fragments",
        "",
        "Packets that were too large still and went on in fragments.",
    ),
    define(Filtered, "link", "", "The one-way link that filtered them."),
    define(
        Filtered,
        "towards",
        "",
        "Whom the packets that were too large were for: of tunnelled ones the tunnel's end.",
    ),
    define(Filtered, "mtu_bytes", "byte", "What would have fitted, as they said."),
    define(Filtered, "messages", "", "How many."),
    define(Filtered, "first_at_s", "s", "When the first was filtered."),
    define(Link, "name", "", "The link with its direction: `gsm.down`."),
    define(Link, "offered_packets", "", "Packets handed to the link, refused ones included."),
    define(Link, "offered_bytes", "byte", "Bytes of IP of those packets, without framing."),
    define(Link, "delivered_packets", "", "Packets that came out at the far end."),
    define(Link, "delivered_bytes", "byte", "Bytes of IP of those packets."),
    define(Link, "dropped_packets", "", "Packets the link dropped, by cause."),
    define(
        Link,
        "marked_packets",
        "",
        "Packets that the queue marked instead of dropping them (ECN, RFC 3168); what became of them is counted elsewhere.",
    ),
    define(
        Link,
        "drained_packets",
        "",
        "Packets a handover took back out of the queue, to send them elsewhere.",
    ),
    define(Link, "queued_packets", "", "Packets in the queue when the run ended."),
    define(Link, "in_flight_packets", "", "Packets being serialised or propagating when the run ended."),
    define(
        Link,
        "utilisation",
        "",
        "Bits delivered, framing included, divided by the bits the link's rate would have carried during the whole run, up \
         or down; rounded down to a millionth. Null for a link without a limit.",
    ),
    define(
        Link,
        "max_queue_packets",
        "",
        "Most packets that were in the queue at once, without the one being serialised.",
    ),
    define(
        Link,
        "max_queue_bytes",
        "byte",
        "Most bytes of IP that were in the queue at once, without the packet being serialised.",
    ),
    define(Probe, "name", "", "Name of the flow."),
    define(Probe, "link", "", "The link that was measured."),
    define(Probe, "from", "", "The node that sent the echoes and the train."),
    define(Probe, "to", "", "The node that answered the echoes and received the train."),
    define(Probe, "echoes_sent", "", "ICMP echo requests sent over the idle link."),
    define(Probe, "echoes_answered", "", "Those whose reply came."),
    define(
        Probe,
        "configured_round_trip_s",
        "s",
        "The round trip of an echo by the link's delays and rates. Jitter is not in it.",
    ),
    define(
        Probe,
        "round_trip_median_s",
        "s",
        "Median of the round trips, from before an echo is handed to the kernel to the kernel's time stamp of the reply's \
         arrival; null without a reply.",
    ),
    define(
        Probe,
        "round_trip_error_median_s",
        "s",
        "`round_trip_median_s` minus `configured_round_trip_s`: what the emulator and two hosts' kernels added.",
    ),
    define(Probe, "round_trip_error_p99_s", "s", "The same of the 99th percentile of the round trips."),
    define(Probe, "configured_rate_bps", "bit/s", "Rate of the link from `from` to `to`."),
    define(Probe, "packets_received", "", "Packets of the train that arrived at `to`."),
    define(
        Probe,
        "rate_bps",
        "bit/s",
        "Bits of the packets of a train that kept the link busy, framing included and without the first packet, divided by \
         the time between the kernel's time stamps of the first and the last arrival; null with fewer than two.",
    ),
    define(Probe, "rate_error", "", "(`rate_bps` - `configured_rate_bps`) / `configured_rate_bps`."),
    define(
        Mobility,
        "registrations_sent",
        "",
        "Registration requests mobile nodes sent: first ones, repetitions, renewals, deregistrations.",
    ),
    define(
        Mobility,
        "registrations_accepted",
        "",
        "Replies that accept, as mobile nodes received and verified them.",
    ),
    define(
        Mobility,
        "registrations_denied",
        "",
        "Replies that deny, as mobile nodes received and verified them.",
    ),
    define(
        Mobility,
        "discarded",
        "",
        "Messages and packets that mobile nodes and agents discarded, by reason.",
    ),
    define(
        Packets,
        "created",
        "",
        "Datagrams made: by hosts and agents, and by fragmentation. A tunnelled datagram stays the same one. On Linux, \
         where kernels tell nobody what they make and drop, every crossing of a link is a packet of its own, made when a \
         host sends it and delivered when the next host has it.",
    ),
    define(Packets, "delivered", "", "Datagrams that reached whom they were for."),
    define(Packets, "dropped", "", "Datagrams dropped by links and nodes, by cause."),
    define(Packets, "fragmented", "", "Datagrams that ended by being cut into fragments."),
    define(Packets, "reassembled", "", "Fragments that ended by becoming part of a whole."),
    define(Packets, "queued", "", "Datagrams in queues and held by nodes when the run ended."),
    define(Packets, "in_flight", "", "Datagrams being serialised or propagating when the run ended."),
    define(Capture, "node", "", "The node that sees the packets. The file is `packets/NODE.pcapng`."),
    define(Capture, "packets", "packets", "Packets in the file."),
    define(Capture, "bytes", "byte", "Size of the file."),
    define(
        Capture,
        "headers_only",
        "packets",
        "Those of `packets` that are in the file without their payload, because the captures of the run had reached half \
         of what `--max-capture` allows.",
    ),
    define(
        Capture,
        "left_out",
        "packets",
        "Packets that the node saw and that are not in the file, because the captures of the run had reached \
         `--max-capture`. All of them are later than the last one in the file.",
    ),
];

/// The tables of `docs/metrics.md`, one for each section.
#[must_use]
pub fn definitions_markdown() -> String {
    let mut text = String::new();
    for section in Section::ALL {
        if !text.is_empty() {
            text.push('\n');
        }
        let _ = writeln!(text, "## {}\n\n| key | unit | meaning |\n|---|---|---|", section.title());
        for entry in DEFINITIONS.iter().filter(|entry| entry.section == section) {
            let unit = if entry.unit.is_empty() { "-" } else { entry.unit };
            let _ = writeln!(text, "| `{}` | {unit} | {} |", entry.key, entry.definition);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::summary_json;
    use crate::summary::tests::example;
    use alloc::collections::BTreeSet;
    use alloc::format;
    use alloc::vec::Vec;
    use serde_json::Value;

    fn keys(object: &Value) -> BTreeSet<&str> {
        object.as_object().unwrap().keys().map(alloc::string::String::as_str).collect()
    }

    #[test]
    fn every_key_of_a_summary_is_defined_and_every_definition_has_its_key() {
        let summary: Value = serde_json::from_str(&summary_json(&example())).unwrap();
        for section in Section::ALL {
            let object = match section {
                Run => &summary,
                Flow => &summary["flows"][0],
                Stall => &summary["stalls"][0],
                Voice => &summary["voice"][0],
                VoiceInHandover => &summary["voice"][0]["handovers"][0],
                Video => &summary["video"][0],
                Rebuffer => &summary["video"][0]["rebuffers"][0],
                Histogram => &summary["histograms"][0],
                Bucket => &summary["histograms"][0]["buckets"][0],
                Handover => &summary["handovers"][0],
                FlowInHandover => &summary["handovers"][0]["flows"][0],
                Roaming => &summary["roaming"],
                MicroMobility => &summary["micro_mobility"],
                Multipath => &summary["multipath"][0],
                MultipathPath => &summary["multipath"][0]["paths"][0],
                BlackHole => &summary["black_holes"][0],
                Filtered => &summary["icmp_filtered"][0],
                Link => &summary["links"][0],
                Probe => &summary["probes"][0],
                Mobility => &summary["mobility"],
                Packets => &summary["packets"],
                Capture => &summary["captures"][0],
            };
            let defined = DEFINITIONS.iter().filter(|entry| entry.section == section);
            let defined: Vec<&str> = defined.map(|entry| entry.key).collect();
            assert_eq!(keys(object), defined.iter().copied().collect(), "{section:?}");
            assert_eq!(keys(object).len(), defined.len(), "{section:?} defines a key twice");
        }
    }

    #[test]
    fn definitions_stand_in_the_order_of_the_summary() {
        let json = summary_json(&example());
        // The indentation tells the sections apart; within one, keys follow each other.
        for (section, indent) in [(Run, 2), (Flow, 6), (FlowInHandover, 10), (Mobility, 4)] {
            let anchor = match section {
                Run => 0,
                FlowInHandover => json.find("\"recovery_window_s\"").unwrap(),
                _ => json.find(&format!("\"{}\"", section.path().trim_end_matches("[]"))).unwrap(),
            };
            let mut position = anchor;
            for entry in DEFINITIONS.iter().filter(|entry| entry.section == section) {
                let line = format!("\n{}\"{}\":", " ".repeat(indent), entry.key);
                position +=
                    json[position..].find(&line).unwrap_or_else(|| panic!("{} out of order", entry.key));
            }
        }
    }

    #[test]
    fn keys_carry_their_unit() {
        for entry in DEFINITIONS {
            let suffix = match entry.unit {
                "s" => "_s",
                "byte" => "bytes",
                "bit/s" => "_bps",
                _ => continue,
            };
            assert!(entry.key.ends_with(suffix) || entry.key == "bytes_delivered", "{}", entry.key);
        }
    }
}
