//! The functions of a congestion control that can be told, as programs of the kernel's virtual machine.
//!
//! Each calls the function of the congestion control that it stands before, and adds to it:
//!
//! | function | what is added |
//! |---|---|
//! | `init` | a record of the connection |
//! | `in_ack_event` | news are looked for; the bandwidth is estimated |
//! | `pkts_acked` | news are looked for; the first round trip of a new path sets window and threshold, or what timeouts have taken is given back |
//! | `cong_avoid` | the window stands while a new path is not measured |
//! | `ssthresh` | news are looked for; a timeout while there is no path, and a loss of what went by a path that was replaced, leave the threshold as it is |
//! | `cwnd_event` | a timeout of the new path is one |
//! | `min_tso_segs` | called before segments leave: while what the old path has lost is sent again the window has room for it, and is as large as it was set |
//! | `set_state`, `undo_cwnd` | the end of a recovery takes nothing of that back |
//!
//! A program holds the socket in [`R6`], the connection's record in [`R7`] and its arguments in [`R9`]; [`R8`] is for what is at hand. The
//! connection's key is the last of its stack, and below that the deed that is told of it.

use super::layout::{deed, fault, key, news, phase, record};
use super::{Base, Estimator, News};
use crate::bpf::assembler::{
    Assembler, FRAME, Label, Operation, R0, R1, R2, R3, R4, R6, R7, R8, R9, Register, Size, When,
};
use crate::bpf::kernel_types::KernelTypes;

/// Helpers of the kernel, by their numbers in `linux/bpf.h`.
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_PUSH: i32 = 87;

/// Where on the stack the connection's key is, and the deed which ends with it; below that a number of 32 bits, and a new record.
const KEY: i16 = -(key::LEN as i16);
const DEED: i16 = -(deed::LEN as i16);
const NUMBER: i16 = DEED - 8;
const RECORD: i16 = NUMBER - record::LEN as i16;

/// `enum tcp_ca_ack_event_flags`: the acknowledgement did not pass the header prediction.
const ACK_SLOWPATH: i32 = 1;
/// `enum tcp_ca_state`: no recovery of any kind, and nothing that might begin or undo one.
const STATE_OPEN: i32 = 0;
/// `enum tcp_ca_event`: the retransmission timer has run out, and the threshold was asked for.
const EVENT_LOSS: i32 = 3;
/// The shortest time that Westwood+ measures over, ms.
const SHORTEST_MS: i32 = 50;
const US: i32 = 1_000_000;
const LEAST_WINDOW: i32 = 2;

/// What this kernel lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lacks(pub(super) &'static str);

/// Members of the kernel's structures, by offset.
struct Fields {
    local: i16,
    remote: i16,
    ports: i16,
    /// Of the byte in which the state of recovery begins, which is the lowest of its bits there.
    state: i16,
    state_mask: i32,
    window: i16,
    threshold: i16,
    counted: i16,
    una: i16,
    nxt: i16,
    outstanding: i16,
    mss: i16,
    stamp: i16,
    delivered: i16,
    interval: i16,
    app_limited: i16,
    app_limited_mask: i32,
    sample_acked: i16,
    sample_round_trip: i16,
    /// The network namespace of a socket, and the least that a segmentation offload is given there, segments.
    namespace: i16,
    least_segments: i16,
}

impl Fields {
    fn find(types: &KernelTypes) -> Result<Self, Lacks> {
        let structure = |name: &'static str| types.structure(name).ok_or(Lacks(name));
        let member = |structure: u32, name: &'static str| types.member(structure, name).ok_or(Lacks(name));
        let (sock, tcp) = (structure("sock_common")?, structure("tcp_sock")?);
        let (connection, sample) = (structure("inet_connection_sock")?, structure("ack_sample")?);
        let at = |structure: u32, name: &'static str| {
            i16::try_from(member(structure, name)?.offset()).map_err(|_| Lacks(name))
        };
        // A flag or a small number that is within one byte.
        let bits = |structure: u32, name: &'static str| {
            let found = member(structure, name)?;
            let (low, count) = (found.bit % 8, found.bits.unwrap_or(8));
            let mask = (1_i32 << count.min(8)) - 1;
            // Elsewhere bits are counted from the other end.
            if low + count > 8 || cfg!(target_endian = "big") {
                Err(Lacks(name))
            } else {
                Ok((at(structure, name)?, mask << low))
            }
        };
        let (namespace, of_ipv4) = (structure("net")?, structure("netns_ipv4")?);
        let least_segments = "sysctl_tcp_min_tso_segs";
        let least_segments = member(namespace, "ipv4")?
            .offset()
            .checked_add(member(of_ipv4, least_segments)?.offset())
            .and_then(|offset| i16::try_from(offset).ok())
            .ok_or(Lacks(least_segments))?;
        let (state, state_mask) = bits(connection, "icsk_ca_state")?;
        let (app_limited, app_limited_mask) = bits(tcp, "rate_app_limited")?;
        // Compared with states as it stands.
        if state_mask & 1 == 0 {
            return Err(Lacks("icsk_ca_state"));
        }
        Ok(Self {
            local: at(sock, "skc_v6_rcv_saddr")?,
            remote: at(sock, "skc_v6_daddr")?,
            ports: at(sock, "skc_portpair")?,
            state,
            state_mask,
            window: at(tcp, "snd_cwnd")?,
            threshold: at(tcp, "snd_ssthresh")?,
            counted: at(tcp, "snd_cwnd_cnt")?,
            una: at(tcp, "snd_una")?,
            nxt: at(tcp, "snd_nxt")?,
            outstanding: at(tcp, "packets_out")?,
            mss: at(tcp, "mss_cache")?,
            stamp: at(tcp, "tcp_mstamp")?,
            delivered: at(tcp, "rate_delivered")?,
            interval: at(tcp, "rate_interval_us")?,
            app_limited,
            app_limited_mask,
            sample_acked: at(sample, "pkts_acked")?,
            sample_round_trip: at(sample, "rtt_us")?,
            namespace: at(sock, "skc_net")?,
            least_segments,
        })
    }
}

/// Functions of the congestion control that is told, by the numbers of the kernel's types.
struct Functions {
    ssthresh: u32,
    cong_avoid: u32,
    undo_cwnd: u32,
    init: Option<u32>,
    set_state: Option<u32>,
    cwnd_event: Option<u32>,
    pkts_acked: Option<u32>,
}

impl Functions {
    fn find(types: &KernelTypes, base: Base) -> Result<Self, Lacks> {
        let find = |name: &'static str| types.function(name).ok_or(Lacks(name));
        let undo_cwnd = find("tcp_reno_undo_cwnd")?;
        Ok(match base {
            Base::Reno => Self {
                ssthresh: find("tcp_reno_ssthresh")?,
                cong_avoid: find("tcp_reno_cong_avoid")?,
                undo_cwnd,
                init: None,
                set_state: None,
                cwnd_event: None,
                pkts_acked: None,
            },
            Base::Cubic => Self {
                ssthresh: find("cubictcp_recalc_ssthresh")?,
                cong_avoid: find("cubictcp_cong_avoid")?,
                undo_cwnd,
                init: Some(find("cubictcp_init")?),
                set_state: Some(find("cubictcp_state")?),
                cwnd_event: Some(find("cubictcp_cwnd_event")?),
                pkts_acked: Some(find("cubictcp_acked")?),
            },
        })
    }
}

/// The maps that programs use, by their descriptors.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maps {
    pub(super) connections: i32,
    pub(super) news: i32,
    pub(super) deeds: i32,
    pub(super) faults: i32,
}

/// What programs are made of.
pub(super) struct Programs {
    fields: Fields,
    functions: Functions,
    maps: Maps,
    estimator: Estimator,
    /// What a path that was replaced has lost is sent again without congestion control.
    resend: bool,
}

/// A program, and which function of the congestion control it is.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) code: Assembler,
}

impl Programs {
    pub(super) fn new(
        types: &KernelTypes,
        base: Base,
        estimator: Estimator,
        resend: bool,
        maps: Maps,
    ) -> Result<Self, Lacks> {
        let (fields, functions) = (Fields::find(types)?, Functions::find(types, base)?);
        Ok(Self { fields, functions, maps, estimator, resend })
    }

    /// All of them.
    pub(super) fn all(&self) -> Vec<Function> {
        let mut all = vec![
            Function { name: "init", code: self.init() },
            Function { name: "in_ack_event", code: self.in_ack_event() },
            Function { name: "pkts_acked", code: self.pkts_acked() },
            Function { name: "cong_avoid", code: self.cong_avoid() },
            Function { name: "ssthresh", code: self.ssthresh() },
            Function { name: "set_state", code: self.set_state() },
            Function { name: "undo_cwnd", code: self.undo_cwnd() },
            Function { name: "cwnd_event", code: self.cwnd_event() },
        ];
        if self.resend {
            all.push(Function { name: "min_tso_segs", code: self.min_tso_segs() });
        }
        all
    }

    /// The socket and the connection's key.
    fn begin(&self, asm: &mut Assembler) {
        let Fields { local, remote, ports, .. } = self.fields;
        asm.copy(R9, R1).load(Size::Double, R6, R9, 0);
        for half in [0, 8] {
            asm.load(Size::Double, R1, R6, local + half).store(Size::Double, FRAME, KEY + half, R1);
            let to = KEY + key::REMOTE as i16 + half;
            asm.load(Size::Double, R1, R6, remote + half).store(Size::Double, FRAME, to, R1);
        }
        let to = KEY + key::PORTS as i16;
        asm.load(Size::Word, R1, R6, ports).store(Size::Word, FRAME, to, R1);
        asm.store_number(Size::Word, FRAME, to + 4, 0);
    }

    /// The connection's record as well; goes to `unknown` if there is none.
    fn find(&self, asm: &mut Assembler, unknown: Label) {
        self.begin(asm);
        look_up(asm, self.maps.connections, KEY);
        asm.copy(R7, R0).jump_when_number(R7, When::Equal, 0, unknown);
    }

    /// Acts on news that the connection has not heard of. [`R8`] is overwritten.
    fn hear(&self, asm: &mut Assembler) {
        let Fields { window, threshold, .. } = self.fields;
        let [moved, away, back, heard] = [asm.label(), asm.label(), asm.label(), asm.label()];
        look_up(asm, self.maps.news, KEY);
        asm.jump_when_number(R0, When::Equal, 0, heard);
        asm.load(Size::Double, R1, R0, news::GENERATION).load(Size::Double, R2, R7, record::SEEN);
        asm.jump_when(R1, When::Equal, R2, heard).store(Size::Double, R7, record::SEEN, R1);
        asm.load(Size::Double, R1, R0, news::SINCE).store(Size::Double, R7, record::SINCE, R1);
        asm.load(Size::Double, R8, R0, news::KIND);
        asm.jump_when_number(R8, When::Equal, News::PathReplaced.number(), moved);
        asm.jump_when_number(R8, When::Equal, News::PathLost.number(), away);
        asm.jump_when_number(R8, When::Equal, News::PathBack.number(), back);
        asm.jump(heard);

        asm.here(moved);
        asm.store_number(Size::Double, R7, record::PHASE, phase::UNMEASURED);
        self.estimate(asm, R1);
        asm.store(Size::Double, R7, record::BANDWIDTH, R1);
        asm.load(Size::Word, R1, R6, self.fields.nxt).store(Size::Double, R7, record::OLD_ENDS, R1);
        let tell = asm.label();
        if self.resend {
            // Whatever timeouts have left of it.
            asm.load(Size::Word, R1, R6, self.fields.outstanding).store(Size::Double, R7, record::HELD, R1);
            asm.load(Size::Word, R2, R6, window).jump_when(R2, When::AtLeast, R1, tell);
            asm.store(Size::Word, R6, window, R1);
        }
        asm.jump(tell);

        asm.here(away);
        asm.store_number(Size::Double, R7, record::PHASE, phase::AWAY);
        asm.load(Size::Word, R1, R6, window).store(Size::Double, R7, record::WINDOW, R1);
        asm.load(Size::Word, R1, R6, threshold).store(Size::Double, R7, record::THRESHOLD, R1);
        asm.jump(tell);

        asm.here(back);
        // Where nothing was called meanwhile, nothing was taken either.
        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::NotEqual, phase::AWAY, tell);
        asm.store_number(Size::Double, R7, record::PHASE, phase::BACK);

        asm.here(tell);
        self.begin_deed(asm);
        self.tell(asm, R8);
        asm.here(heard);
    }

    /// A deed without numbers.
    fn begin_deed(&self, asm: &mut Assembler) {
        for field in [deed::BANDWIDTH, deed::ROUND_TRIP] {
            asm.store_number(Size::Double, FRAME, DEED + field as i16, 0);
        }
    }

    /// Tells a deed of this kind, with the window and threshold that there are.
    fn tell(&self, asm: &mut Assembler, kind: Register) {
        let Fields { stamp, window, threshold, mss, .. } = self.fields;
        asm.store(Size::Double, FRAME, DEED + deed::KIND as i16, kind);
        asm.load(Size::Double, R1, R6, stamp).store(Size::Double, FRAME, DEED + deed::AT as i16, R1);
        for (field, to) in [(window, deed::WINDOW), (threshold, deed::THRESHOLD), (mss, deed::MSS)] {
            asm.load(Size::Word, R1, R6, field).store(Size::Double, FRAME, DEED + to as i16, R1);
        }
        let told = asm.label();
        asm.map(R1, self.maps.deeds).copy(R2, FRAME).compute_number(Operation::Add, R2, DEED.into());
        asm.set(R3, 0).call(MAP_PUSH).jump_when_number(R0, When::Equal, 0, told);
        self.count(asm, fault::UNTOLD, told);
        asm.here(told);
    }

    /// Counts something that went wrong, and goes on at `then` or behind.
    fn count(&self, asm: &mut Assembler, fault: i32, then: Label) {
        asm.store_number(Size::Word, FRAME, NUMBER, fault);
        look_up(asm, self.maps.faults, NUMBER);
        asm.jump_when_number(R0, When::Equal, 0, then).set(R1, 1).add_atomically(R0, R1);
    }

    /// `to` = what the path delivers, bytes a second; 0 before the first measurement.
    fn estimate(&self, asm: &mut Assembler, to: Register) {
        match self.estimator {
            Estimator::Westwood => {
                asm.load(Size::Double, to, R7, record::TWICE);
            }
            Estimator::DeliveryRate => {
                let (largest, _) = record::PEAKS[0];
                asm.load(Size::Double, to, R7, largest);
            }
        }
    }

    /// The estimate begins anew, in the record at `at` from `base`: nothing is known of the path.
    fn begin_estimate(&self, asm: &mut Assembler, base: Register, at: i16) {
        let Fields { stamp, una, nxt, delivered, interval, .. } = self.fields;
        for field in (record::ONCE..record::OLD_ENDS).step_by(8) {
            asm.store_number(Size::Double, base, at + field, 0);
        }
        asm.load(Size::Double, R1, R6, stamp).compute_number(Operation::Divide, R1, 1_000);
        asm.store(Size::Double, base, at + record::BEGUN_MS, R1);
        for (field, to) in [
            (una, record::UNA),
            (nxt, record::ROUND_ENDS),
            (delivered, record::DELIVERED),
            (interval, record::INTERVAL),
        ] {
            asm.load(Size::Word, R1, R6, field).store(Size::Double, base, at + to, R1);
        }
    }

    fn init(&self) -> Assembler {
        let mut asm = Assembler::new();
        self.begin(&mut asm);
        for field in (0..record::ONCE).step_by(8).chain([record::OLD_ENDS]) {
            asm.store_number(Size::Double, FRAME, RECORD + field, 0);
        }
        self.begin_estimate(&mut asm, FRAME, RECORD);
        // What was told before is not for this connection.
        let [nothing, known] = [asm.label(), asm.label()];
        look_up(&mut asm, self.maps.news, KEY);
        asm.jump_when_number(R0, When::Equal, 0, nothing);
        asm.load(Size::Double, R1, R0, news::GENERATION);
        asm.store(Size::Double, FRAME, RECORD + record::SEEN, R1);
        asm.here(nothing);
        asm.map(R1, self.maps.connections).copy(R2, FRAME).compute_number(Operation::Add, R2, KEY.into());
        asm.copy(R3, FRAME).compute_number(Operation::Add, R3, RECORD.into()).set(R4, 0).call(MAP_UPDATE);
        asm.jump_when_number(R0, When::Equal, 0, known);
        self.count(&mut asm, fault::UNKNOWN, known);
        asm.here(known);
        if let Some(function) = self.functions.init {
            call_base(&mut asm, function, 1);
        }
        asm.set(R0, 0).exit();
        asm
    }

    fn in_ack_event(&self) -> Assembler {
        let mut asm = Assembler::new();
        let end = asm.label();
        self.find(&mut asm, end);
        // Before the estimate: the first acknowledgement of a new path ends a silence, which says nothing of the old one.
        self.hear(&mut asm);
        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::Equal, phase::UNMEASURED, end);
        match self.estimator {
            Estimator::Westwood => self.westwood(&mut asm, end),
            Estimator::DeliveryRate => self.delivery_rate(&mut asm, end),
        }
        asm.here(end);
        asm.set(R0, 0).exit();
        asm
    }

    /// Westwood+ (`careof_tcp`, `congestion/westwood.rs`): what is acknowledged in a round trip, at least 50 ms, through two low-pass filters.
    fn westwood(&self, asm: &mut Assembler, end: Label) {
        let Fields { stamp, una, mss, .. } = self.fields;
        let [first, filtered, count, slow, duplicate, several, plain, add] =
            std::array::from_fn(|_| asm.label());
        asm.load(Size::Double, R8, R6, stamp).compute_number(Operation::Divide, R8, 1_000);
        asm.load(Size::Double, R1, R7, record::ROUND_TRIP_MS).jump_when_number(R1, When::Equal, 0, count);
        let long = asm.label();
        asm.jump_when_number(R1, When::AtLeast, SHORTEST_MS, long).set(R1, SHORTEST_MS);
        asm.here(long);
        asm.load(Size::Double, R2, R7, record::BEGUN_MS).copy(R3, R8).compute(Operation::Subtract, R3, R2);
        asm.jump_when(R3, When::AtMost, R1, count);
        // R2: what was measured, R3: over so many ms.
        asm.load(Size::Double, R2, R7, record::ACKED).compute_number(Operation::Multiply, R2, 1_000);
        asm.compute(Operation::Divide, R2, R3);
        asm.load(Size::Double, R1, R7, record::ONCE).load(Size::Double, R3, R7, record::TWICE);
        let known = asm.label();
        asm.jump_when_number(R1, When::NotEqual, 0, known);
        asm.jump_when_number(R3, When::Equal, 0, first);
        asm.here(known);
        asm.compute_number(Operation::Multiply, R1, 7).compute(Operation::Add, R1, R2);
        asm.compute_number(Operation::ShiftRight, R1, 3);
        asm.compute_number(Operation::Multiply, R3, 7).compute(Operation::Add, R3, R1);
        asm.compute_number(Operation::ShiftRight, R3, 3).jump(filtered);
        asm.here(first);
        asm.copy(R1, R2).copy(R3, R2);
        asm.here(filtered);
        asm.store(Size::Double, R7, record::ONCE, R1).store(Size::Double, R7, record::TWICE, R3);
        asm.store_number(Size::Double, R7, record::ACKED, 0).store(Size::Double, R7, record::BEGUN_MS, R8);

        asm.here(count);
        // R1: what the acknowledgement covers, R2: a segment.
        asm.load(Size::Word, R3, R6, una)
            .load(Size::Double, R2, R7, record::UNA)
            .copy(R1, R3)
            .subtract_32(R1, R2);
        asm.store(Size::Double, R7, record::UNA, R3).load(Size::Word, R2, R6, mss);
        asm.load(Size::Double, R3, R9, 8).compute_number(Operation::And, R3, ACK_SLOWPATH);
        asm.jump_when_number(R3, When::NotEqual, 0, slow).jump(plain);
        asm.here(slow);
        asm.load(Size::Double, R3, R7, record::ACCOUNTED);
        asm.jump_when_number(R1, When::Equal, 0, duplicate)
            .jump_when(R1, When::Above, R2, several)
            .jump(plain);
        asm.here(duplicate);
        asm.compute(Operation::Add, R3, R2)
            .store(Size::Double, R7, record::ACCOUNTED, R3)
            .copy(R1, R2)
            .jump(plain);
        asm.here(several);
        // Its segments were counted as their duplicates came.
        let fewer = asm.label();
        asm.jump_when(R3, When::Below, R1, fewer);
        asm.compute(Operation::Subtract, R3, R1).copy(R1, R2).jump(add);
        asm.here(fewer);
        asm.compute(Operation::Subtract, R1, R3).set(R3, 0);
        asm.here(add);
        asm.store(Size::Double, R7, record::ACCOUNTED, R3);
        asm.here(plain);
        asm.load(Size::Double, R3, R7, record::ACKED).compute(Operation::Add, R3, R1);
        asm.store(Size::Double, R7, record::ACKED, R3).jump(end);
    }

    /// The largest delivery rate of the last ten round trips, of those that the kernel samples. A round trip ends when something is
    /// acknowledged that was sent after it had begun.
    fn delivery_rate(&self, asm: &mut Assembler, end: Label) {
        let Fields { una, nxt, mss, delivered, interval, app_limited, app_limited_mask, .. } = self.fields;
        let [same, new, counts] = std::array::from_fn(|_| asm.label());
        asm.load(Size::Double, R8, R7, record::ROUND);
        asm.load(Size::Word, R1, R6, una).load(Size::Double, R2, R7, record::ROUND_ENDS).subtract_32(R1, R2);
        asm.jump_when_number(R1, When::SignedBelow32, 0, same);
        asm.load(Size::Word, R1, R6, nxt).store(Size::Double, R7, record::ROUND_ENDS, R1);
        asm.compute_number(Operation::Add, R8, 1).store(Size::Double, R7, record::ROUND, R8);
        asm.here(same);
        asm.load(Size::Word, R3, R6, delivered).load(Size::Word, R4, R6, interval);
        asm.jump_when_number(R4, When::Equal, 0, end);
        // The kernel keeps a sample until it has one that counts.
        asm.load(Size::Double, R1, R7, record::DELIVERED).jump_when(R1, When::NotEqual, R3, new);
        asm.load(Size::Double, R1, R7, record::INTERVAL).jump_when(R1, When::Equal, R4, end);
        asm.here(new);
        asm.store(Size::Double, R7, record::DELIVERED, R3).store(Size::Double, R7, record::INTERVAL, R4);
        asm.load(Size::Word, R1, R6, mss).compute(Operation::Multiply, R3, R1);
        asm.compute_number(Operation::Multiply, R3, US).compute(Operation::Divide, R3, R4);
        asm.load(Size::Byte, R1, R6, app_limited).compute_number(Operation::And, R1, app_limited_mask);
        asm.jump_when_number(R1, When::Equal, 0, counts);
        self.estimate(asm, R1);
        asm.jump_when(R3, When::Below, R1, end);
        asm.here(counts);
        keep_largest(asm, end);
    }

    fn pkts_acked(&self) -> Assembler {
        let Fields { stamp, window, threshold, mss, sample_acked, sample_round_trip, .. } = self.fields;
        let mut asm = Assembler::new();
        let [unknown, not_timed, restore, measured, done] = std::array::from_fn(|_| asm.label());
        self.find(&mut asm, unknown);
        self.hear(&mut asm);
        // R8: the sample's round trip, which is of something sent once, or told by the timestamp that is echoed; us.
        asm.load(Size::Double, R3, R9, 8).load(Size::Word, R8, R3, sample_round_trip);
        asm.jump_when_number(R8, When::SignedAtMost32, 0, not_timed);
        asm.copy(R1, R8).compute_number(Operation::Add, R1, 999).compute_number(Operation::Divide, R1, 1_000);
        asm.store(Size::Double, R7, record::ROUND_TRIP_MS, R1);

        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::NotEqual, phase::UNMEASURED, not_timed);
        // It left by the old path, unless it left since.
        asm.load(Size::Double, R1, R6, stamp).compute(Operation::Subtract, R1, R8);
        asm.load(Size::Double, R2, R7, record::SINCE).jump_when(R1, When::Below, R2, unknown);
        asm.store(Size::Double, FRAME, DEED + deed::ROUND_TRIP as i16, R8);
        asm.load(Size::Double, R1, R7, record::BANDWIDTH);
        asm.store(Size::Double, FRAME, DEED + deed::BANDWIDTH as i16, R1);
        asm.store_number(Size::Double, R7, record::PHASE, phase::ORDINARY);
        asm.jump_when_number(R1, When::Equal, 0, measured);
        let [enough, fits] = [asm.label(), asm.label()];
        asm.compute(Operation::Multiply, R1, R8).compute_number(Operation::Divide, R1, US);
        asm.load(Size::Word, R2, R6, mss).compute(Operation::Divide, R1, R2);
        asm.jump_when_number(R1, When::AtLeast, LEAST_WINDOW, enough).set(R1, LEAST_WINDOW);
        asm.here(enough);
        asm.jump_when_number(R1, When::AtMost, i32::MAX, fits).set(R1, i32::MAX);
        asm.here(fits);
        asm.copy(R8, R1);
        if let Some(function) = self.functions.init {
            // What it remembers is the old path's.
            call_base(&mut asm, function, 1);
        }
        self.set_window(&mut asm, R8, R8);
        if self.resend {
            self.jump_when_old_is_acknowledged(&mut asm, measured);
            asm.store(Size::Double, R7, record::HELD, R8);
            asm.store_number(Size::Double, R7, record::PHASE, phase::REPEATING);
        }
        asm.here(measured);
        self.begin_estimate(&mut asm, R7, 0);
        asm.set(R8, deed::MEASURED);
        self.tell(&mut asm, R8);
        asm.jump(unknown);

        asm.here(not_timed);
        asm.load(Size::Double, R1, R7, record::PHASE).jump_when_number(R1, When::Equal, phase::BACK, restore);
        if self.resend {
            let repeated = asm.label();
            asm.jump_when_number(R1, When::NotEqual, phase::REPEATING, unknown);
            self.jump_when_old_is_acknowledged(&mut asm, repeated);
            asm.jump(unknown);
            asm.here(repeated);
            asm.store_number(Size::Double, R7, record::PHASE, phase::ORDINARY);
            asm.load(Size::Double, R8, R7, record::HELD);
            self.set_window(&mut asm, R8, R8);
        }
        asm.jump(unknown);
        asm.here(restore);
        asm.load(Size::Double, R3, R9, 8).load(Size::Word, R1, R3, sample_acked);
        asm.jump_when_number(R1, When::Equal, 0, unknown);
        asm.store_number(Size::Double, R7, record::PHASE, phase::ORDINARY);
        // Nothing was taken.
        asm.load(Size::Double, R1, R7, record::WINDOW).load(Size::Double, R2, R7, record::THRESHOLD);
        asm.load(Size::Word, R3, R6, window).jump_when(R3, When::Below, R1, done);
        asm.load(Size::Word, R3, R6, threshold).jump_when(R3, When::AtLeast, R2, unknown);
        asm.here(done);
        self.set_window(&mut asm, R1, R2);
        self.begin_deed(&mut asm);
        asm.set(R8, deed::RESTORED);
        self.tell(&mut asm, R8);

        asm.here(unknown);
        if let Some(function) = self.functions.pkts_acked {
            call_base(&mut asm, function, 2);
        }
        asm.set(R0, 0).exit();
        asm
    }

    /// Goes on at `label` when nothing is outstanding any more that was when the path was replaced. [`R1`] and [`R2`] are overwritten.
    fn jump_when_old_is_acknowledged(&self, asm: &mut Assembler, label: Label) {
        let outstanding = asm.label();
        asm.load(Size::Word, R1, R6, self.fields.una).load(Size::Double, R2, R7, record::OLD_ENDS);
        asm.subtract_32(R1, R2).jump_when_number(R1, When::SignedBelow32, 0, outstanding).jump(label);
        asm.here(outstanding);
    }

    /// Sets window and threshold; in a recovery they are held until its end. [`R3`] is overwritten.
    fn set_window(&self, asm: &mut Assembler, window: Register, threshold: Register) {
        let Fields { state, state_mask, .. } = self.fields;
        let ordinary = asm.label();
        asm.store(Size::Word, R6, self.fields.window, window);
        asm.store(Size::Word, R6, self.fields.threshold, threshold);
        asm.set(R3, 0).store(Size::Word, R6, self.fields.counted, R3);
        asm.load(Size::Byte, R3, R6, state).compute_number(Operation::And, R3, state_mask);
        asm.jump_when_number(R3, When::Equal, STATE_OPEN, ordinary);
        asm.store(Size::Double, R7, record::HELD, threshold);
        asm.store_number(Size::Double, R7, record::PHASE, phase::HOLDING);
        asm.here(ordinary);
    }

    fn cong_avoid(&self) -> Assembler {
        let mut asm = Assembler::new();
        let [unknown, end] = [asm.label(), asm.label()];
        self.find(&mut asm, unknown);
        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::Equal, phase::UNMEASURED, end);
        asm.here(unknown);
        call_base(&mut asm, self.functions.cong_avoid, 3);
        asm.here(end);
        asm.set(R0, 0).exit();
        asm
    }

    fn ssthresh(&self) -> Assembler {
        let mut asm = Assembler::new();
        let [unknown, lost, stays] = std::array::from_fn(|_| asm.label());
        self.find(&mut asm, unknown);
        self.hear(&mut asm);
        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::Equal, phase::AWAY, stays);
        if self.resend {
            asm.jump_when_number(R1, When::Equal, phase::REPEATING, stays);
            asm.jump_when_number(R1, When::NotEqual, phase::UNMEASURED, lost);
            self.jump_when_old_is_acknowledged(&mut asm, unknown);
            asm.jump(stays);
        } else {
            asm.jump_when_number(R1, When::Equal, phase::UNMEASURED, unknown);
        }
        // A loss of the new path is its own.
        asm.here(lost);
        asm.store_number(Size::Double, R7, record::PHASE, phase::ORDINARY);
        asm.here(unknown);
        call_base(&mut asm, self.functions.ssthresh, 1);
        asm.exit();
        asm.here(stays);
        asm.load(Size::Word, R0, R6, self.fields.threshold).exit();
        asm
    }

    fn cwnd_event(&self) -> Assembler {
        let mut asm = Assembler::new();
        let end = asm.label();
        self.find(&mut asm, end);
        asm.load(Size::Double, R1, R9, 8).jump_when_number(R1, When::NotEqual, EVENT_LOSS, end);
        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::NotEqual, phase::REPEATING, end);
        asm.store_number(Size::Double, R7, record::PHASE, phase::ORDINARY);
        call_base(&mut asm, self.functions.ssthresh, 1);
        asm.store(Size::Word, R6, self.fields.threshold, R0);
        asm.here(end);
        if let Some(function) = self.functions.cwnd_event {
            call_base(&mut asm, function, 2);
        }
        asm.set(R0, 0).exit();
        asm
    }

    fn min_tso_segs(&self) -> Assembler {
        let mut asm = Assembler::new();
        let end = asm.label();
        self.find(&mut asm, end);
        let repeats = asm.label();
        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::Equal, phase::UNMEASURED, repeats);
        asm.jump_when_number(R1, When::NotEqual, phase::REPEATING, end);
        asm.here(repeats);
        asm.load(Size::Double, R1, R7, record::HELD).load(Size::Word, R2, R6, self.fields.window);
        asm.jump_when(R2, When::AtLeast, R1, end).store(Size::Word, R6, self.fields.window, R1);
        asm.here(end);
        // What the kernel takes where a congestion control has no such function.
        asm.load(Size::Double, R1, R6, self.fields.namespace);
        asm.load(Size::Byte, R0, R1, self.fields.least_segments).exit();
        asm
    }

    fn set_state(&self) -> Assembler {
        let mut asm = Assembler::new();
        let end = asm.label();
        self.find(&mut asm, end);
        let holds = asm.label();
        asm.load(Size::Double, R1, R9, 8).jump_when_number(R1, When::NotEqual, STATE_OPEN, end);
        asm.load(Size::Double, R2, R7, record::PHASE).jump_when_number(
            R2,
            When::Equal,
            phase::HOLDING,
            holds,
        );
        asm.jump_when_number(R2, When::NotEqual, phase::REPEATING, end);
        asm.here(holds);
        asm.load(Size::Double, R1, R7, record::HELD).store(Size::Word, R6, self.fields.threshold, R1);
        asm.jump_when_number(R2, When::Equal, phase::REPEATING, end);
        asm.store_number(Size::Double, R7, record::PHASE, phase::ORDINARY);
        asm.here(end);
        if let Some(function) = self.functions.set_state {
            call_base(&mut asm, function, 2);
        }
        asm.set(R0, 0).exit();
        asm
    }

    fn undo_cwnd(&self) -> Assembler {
        let mut asm = Assembler::new();
        let [unknown, holds] = [asm.label(), asm.label()];
        self.find(&mut asm, unknown);
        asm.load(Size::Double, R1, R7, record::PHASE);
        asm.jump_when_number(R1, When::Equal, phase::HOLDING, holds);
        asm.jump_when_number(R1, When::NotEqual, phase::REPEATING, unknown);
        asm.here(holds);
        asm.load(Size::Word, R0, R6, self.fields.window).exit();
        asm.here(unknown);
        call_base(&mut asm, self.functions.undo_cwnd, 1);
        asm.exit();
        asm
    }
}

/// [`R3`], measured in the round trip [`R8`], is put among the largest of the last ten, as the kernel's `lib/win_minmax.c` does it: three are
/// kept, each from a later part of the time than the one before. Goes to `end` or behind.
fn keep_largest(asm: &mut Assembler, end: Label) {
    const ALL: i32 = 10;
    const HALF: i32 = ALL / 2;
    const QUARTER: i32 = ALL / 4;
    let [first, second, third] = record::PEAKS;
    let value = |asm: &mut Assembler, (rate, round): (i16, i16)| {
        asm.store(Size::Double, R7, rate, R3).store(Size::Double, R7, round, R8);
    };
    let shift = |asm: &mut Assembler| {
        for (to, from) in [(first, second), (second, third)] {
            asm.load(Size::Double, R1, R7, from.0).store(Size::Double, R7, to.0, R1);
            asm.load(Size::Double, R1, R7, from.1).store(Size::Double, R7, to.1, R1);
        }
        value(asm, third);
    };
    let age = |asm: &mut Assembler, (_, round): (i16, i16)| {
        asm.load(Size::Double, R1, R7, round).copy(R4, R8).compute(Operation::Subtract, R4, R1);
    };
    let [anew, smaller, placed, young, apart] = std::array::from_fn(|_| asm.label());
    asm.load(Size::Double, R1, R7, first.0).jump_when(R3, When::AtLeast, R1, anew);
    age(asm, third);
    asm.jump_when_number(R4, When::Above, ALL, anew);
    asm.load(Size::Double, R1, R7, second.0).jump_when(R3, When::Below, R1, smaller);
    value(asm, second);
    value(asm, third);
    asm.jump(placed);
    asm.here(smaller);
    asm.load(Size::Double, R1, R7, third.0).jump_when(R3, When::Below, R1, placed);
    value(asm, third);
    asm.here(placed);
    age(asm, first);
    asm.jump_when_number(R4, When::AtMost, ALL, young);
    shift(asm);
    age(asm, first);
    asm.jump_when_number(R4, When::AtMost, ALL, end);
    shift(asm);
    asm.jump(end);

    asm.here(young);
    asm.load(Size::Double, R1, R7, first.1).load(Size::Double, R2, R7, second.1);
    asm.jump_when(R1, When::NotEqual, R2, apart);
    asm.jump_when_number(R4, When::AtMost, QUARTER, end);
    value(asm, second);
    value(asm, third);
    asm.jump(end);
    asm.here(apart);
    asm.load(Size::Double, R1, R7, third.1).jump_when(R1, When::NotEqual, R2, end);
    asm.jump_when_number(R4, When::AtMost, HALF, end);
    value(asm, third);
    asm.jump(end);

    asm.here(anew);
    for peak in record::PEAKS {
        value(asm, peak);
    }
}

/// [`R0`] = the place of the value in a map whose key is on the stack, or 0.
fn look_up(asm: &mut Assembler, map: i32, key: i16) {
    asm.map(R1, map).copy(R2, FRAME).compute_number(Operation::Add, R2, key.into()).call(MAP_LOOKUP);
}

/// Calls a function of the kernel with the first `arguments` that the program was given.
fn call_base(asm: &mut Assembler, function: u32, arguments: i16) {
    asm.copy(R1, R6);
    for (register, argument) in [R2, R3].into_iter().zip(1..arguments) {
        asm.load(Size::Double, register, R9, 8 * argument);
    }
    asm.call_kernel(function);
}

#[cfg(all(test, target_endian = "little"))]
mod tests;
