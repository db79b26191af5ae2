//! Where BBR began its cycle of pacing gains: the kernel leaves it to chance, and the gains in the trace tell it.
//!
//! The steady state (`PROBE_BW`) is the one mode with a window gain of 2. Its cycle probes, drains and cruises six times, and may
//! begin with any phase but the draining one: so the cruising phases between its beginning and the first probe
//! say which it was. A cruising phase ends with the first delivery more than the least round trip after its own beginning.

use serde_json::{Value, json};

use super::comparison::Share;
use super::trace::{BbrState, Event, Trace};

/// BBR's gains, in 1/256 (Linux `net/ipv4/tcp_bbr.c`): of the window in the steady state, and of the pacing rate there.
const STEADY: u32 = 512;
const PROBE: u32 = 320;
const CRUISE: u32 = 256;
/// Phases of a cycle, and those among them that cruise.
const PHASES: u8 = 8;
const CRUISES: u8 = 6;

/// What is known of BBR's draws.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draws {
    /// The phases in which the kernel's cycles began, in order, as the trace tells them (0 probes, 2 to 7 cruise); none where it never drew.
    Read(Vec<u8>),
    /// The trace does not tell.
    Unknown {
        /// What is missing.
        why: &'static str,
        /// How many of how many draws of the model agree.
        share: Share,
    },
}

impl Draws {
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Read(phases) => json!({ "phases": phases, "why": null, "agree": null, "of": null }),
            Self::Unknown { why, share } => {
                json!({ "phases": null, "why": why, "agree": share.agree, "of": share.of })
            }
        }
    }
}

/// The phases in which the cycles of a trace begin, or why it does not tell them.
pub(super) fn read(trace: &Trace) -> Result<Vec<u8>, &'static str> {
    if trace.is_thinned() {
        return Err("rows are left out");
    }
    let mut starts = Vec::new();
    let mut cycle: Option<Cycle> = None;
    let (mut told, mut acknowledged) = (false, 0);
    for row in trace.rows.iter().filter(|row| row.event == Event::Received) {
        let Some(state) = row.state.as_ref().and_then(|state| state.bbr) else { continue };
        told = true;
        let delivers = row.ack > acknowledged || !row.sack.as_slice().is_empty();
        acknowledged = acknowledged.max(row.ack);
        if state.cwnd_gain != STEADY {
            starts.extend(cycle.take().map(Cycle::start));
            continue;
        }
        match &mut cycle {
            Some(cycle) if delivers => cycle.follow(row.at_us, state)?,
            Some(_) => {}
            None => cycle = Some(Cycle::begin(row.at_us, state)?),
        }
    }
    starts.extend(cycle.map(Cycle::start));
    if told { Ok(starts) } else { Err("it has no gains (cc)") }
}

/// A stay in the steady state.
struct Cycle {
    /// When the phase began.
    since_us: u64,
    /// Of the phase that ends with the next delivery a round trip later.
    min_rtt_us: u64,
    /// Cruising phases in a row.
    cruises: u8,
    gain: u32,
    /// Phases that cruised before the first probe; `None` until there was one.
    first: Option<u8>,
}

impl Cycle {
    fn begin(at_us: u64, state: BbrState) -> Result<Self, &'static str> {
        let (cruises, first) = match state.pacing_gain {
            PROBE => (0, Some(0)),
            CRUISE => (1, None),
            _ => return Err("a cycle begins with a gain that is none of its own"),
        };
        let (min_rtt_us, gain) = (state.min_rtt_us, state.pacing_gain);
        Ok(Self { since_us: at_us, min_rtt_us, cruises, gain, first })
    }

    fn follow(&mut self, at_us: u64, state: BbrState) -> Result<(), &'static str> {
        // The model of the path takes the round trip of this delivery in after it has judged the phase.
        let full_length = at_us.saturating_sub(self.since_us) > self.min_rtt_us;
        if state.pacing_gain != self.gain {
            if state.pacing_gain == PROBE {
                self.first.get_or_insert(self.cruises);
            }
            self.gain = state.pacing_gain;
            self.cruises = u8::from(self.gain == CRUISE);
            self.since_us = at_us;
        } else if self.gain == CRUISE && full_length {
            self.cruises += 1;
            self.since_us = at_us;
        }
        self.min_rtt_us = state.min_rtt_us;
        // Where a policer is taken to be at work all phases have a gain of 1, and the cycle may begin anew unseen.
        if self.cruises > CRUISES {
            return Err("more phases cruise than a cycle has");
        }
        Ok(())
    }

    /// The phase in which it began. One that did not come to probe is like the longest.
    fn start(self) -> u8 {
        self.first.map_or(PHASES - CRUISES, |cruises| (PHASES - cruises) % PHASES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::tests::HEADER;
    use crate::kernel::{Comparison, compare};

    const COLUMNS: &str = "t_us,ev,flags,seq,len,ack,wnd,sack,tsval,tsecr,k,tx,cwnd,ssthresh,srtt_us,rto_us,ca,unacked,sacked,lost,retrans";

    /// A trace with an acknowledgement every 1.2 ms: so many with each pair of gains, of the pacing rate and of the window.
    fn with_gains(gains: &[(u32, u32, u32)]) -> Trace {
        let mut text = format!("{HEADER}{COLUMNS},cc\n");
        let all = gains.iter().flat_map(|&(pace, window, count)| (0..count).map(move |_| (pace, window)));
        for (k, (pace, window)) in (1..).zip(all) {
            let (at, ack) = (k * 1_200, k * 1_448 + 1);
            text += &format!(
                "{at},R,.,1,0,{ack},65535,,0,0,{k},,10,-1,50000,250000,0,0,0,0,0,bw=7;minrtt=50150;pg={pace};cg={window}\n"
            );
        }
        Trace::parse("gains.csv", &text).unwrap()
    }

    /// Acknowledgements in a phase that lasts until the first one more than the least round trip later.
    const TRIP: u32 = 42;

    #[test]
    fn the_cruising_phases_before_the_first_probe_tell_where_a_cycle_began() {
        let start_up = [(739, 739, 90), (88, 739, 30)];
        for (cruises, start) in [(0, 0), (1, 7), (2, 6), (3, 5), (4, 4), (5, 3), (6, 2)] {
            let mut gains = start_up.to_vec();
            gains.push((256, 512, TRIP * cruises));
            // A probe lasts until its queue is there, which may take longer than a round trip.
            gains.extend([(320, 512, TRIP + 9), (192, 512, 20), (256, 512, TRIP * 6), (320, 512, 5)]);
            assert_eq!(read(&with_gains(&gains)), Ok(vec![start]), "{cruises} cruising phases");
        }
    }

    #[test]
    fn each_stay_in_the_steady_state_has_its_own_draw() {
        let gains = [
            (739, 739, 90),
            (320, 512, 60),
            (192, 512, 20),
            (256, 512, 60),
            (256, 256, 40),
            (256, 512, 3 * TRIP),
            (320, 512, 50),
            (256, 256, 40),
            // The trace ends before a probe.
            (256, 512, TRIP),
        ];
        assert_eq!(read(&with_gains(&gains)), Ok(vec![0, 5, 2]));
        assert_eq!(read(&with_gains(&[(739, 739, 90)])), Ok(vec![]), "nothing was drawn");
    }

    #[test]
    fn what_a_trace_does_not_tell_is_said() {
        let policed = with_gains(&[(739, 739, 90), (320, 512, 50), (256, 512, 7 * TRIP)]);
        assert_eq!(read(&policed), Err("more phases cruise than a cycle has"));
        let thinned = Trace { rows: policed.rows[7..].to_vec(), ..policed };
        assert_eq!(read(&thinned), Err("rows are left out"));
        let silent = Trace::parse("x", &crate::kernel::tests::small()).unwrap();
        assert_eq!(read(&silent), Err("it has no gains (cc)"));
    }

    /// The small trace, its sender being BBR: the window grows by each segment that is acknowledged.
    fn of_bbr(last_cwnd: u32) -> Comparison {
        let mut text = crate::kernel::tests::small().replace("--cc reno", "--cc bbr");
        for (at, cwnd) in [(50_293, 11), (50_567, 12), (50_957, 13), (51_449, last_cwnd)] {
            text = text.replace(&format!(",10,-1,{at},"), &format!(",{cwnd},-1,{at},"));
        }
        // The handshake had the window of the beginning.
        compare(&Trace::parse("small.csv", &text).unwrap()).unwrap()
    }

    #[test]
    fn without_the_phases_every_draw_counts() {
        let found = of_bbr(14);
        let share = Share { agree: 24, of: 24 };
        assert_eq!(found.draws, Some(Draws::Unknown { why: "it has no gains (cc)", share }), "{found:?}");
        assert!(found.agrees());
        let found = of_bbr(15);
        let row = found.json("f");
        assert_eq!((&row["draws"]["agree"], &row["draws"]["of"]), (&json!(0), &json!(24)), "{row}");
        assert!(!found.agrees());
    }
}
