//! What a sender is told by whoever knows of a handover: its own host's mobility protocol, an option of the peer, a base
//! station. Without advice a sender learns of another path by what that does to its segments; these are the
//! responses from the literature to knowing it.
//!
//! | name | advice | source |
//! |---|---|---|
//! | rto-reset | [`Advice::ResetRto`] | paper 000 (targets V15), sections 7.1.5 and 8.1: the RTO to its initial value, with or without slow start |
//! | RTO in an option | [`Advice::SetRto`] | the same, section 8.1: the receiver tells a more appropriate RTO |
//! | TCP-CM | on the mobile node [`Advice::Away`] and [`Advice::Resume`], at its peer [`Advice::Replaced`] | paper 002 (Le, Fu, Hogrefe), sections 3.2, 3.2.1 and 3.2.2; what those leave open is in `sender/replaced.rs` |
//! | TCP-CM that is told the path | [`Advice::Away`], [`Advice::Back`] or [`Advice::Moved`] | the same where the mobile node knows rate and round trip of its new path, so that no estimate is needed |
//! | Mobile TCP | [`Advice::Back`] | Stangel and Bharghavan 1998 as paper 002 describes it (4.3.4): the change is told in an option of the next segment; the paper does not say what the sender does about it: as above |
//! | TCP-HO | [`Advice::HandedOff`] | Wu, Chan and Ananda 2007, by its abstract; what that leaves open is in `sender/handed_off.rs` |
//! | Demo-Vegas | [`Advice::MeasureBaseRtt`] | Ho, Chan and Chen, "An Efficient Mechanism of TCP-Vegas on Mobile IP Networks", 2005, by its abstract: BaseRTT is measured again |
//! | EBSN | [`Advice::Rearm`] | Bakshi, Krishna, Vaidya and Pradhan, as RFC 2757 names it and paper 000 describes it (section 4): the timer begins anew, nothing else changes |
//!
//! Common to all that replace the estimate: what left before the advice gives no round-trip sample to the timer any more
//! (`rto/advised.rs`), and the timer that runs begins anew. Where the window is replaced, congestion control begins anew
//! with it, since what it remembers - CUBIC's last maximum, Vegas' shortest round trip, Westwood's and
//! BBR's bandwidth - is the old path's; and nothing of an earlier reduction is taken back later.
//!
//! How advice gets here is for the caller: an option has to arrive, and may be late, lost or wrong. Wrong advice costs a
//! window or a timeout that the next round trips correct; it cannot make the sender send beyond the peer's window or
//! fall silent for ever.
//!
//! Left out: LMDR (draft-swami-tcp-lmdr-07) and the explicit handover notification of Izumikawa, Yamaguchi and Katto 2004, of which no more than the
//! abstract or the title could be read: neither says what the sender sets.
//!
//! Also left out: what congestion control measures of segments that left before, where they are not sent again
//! ([`Advice::ResetRto`] with slow start): Vegas and BBR may take a round trip of the old path for one of the new.

use core::time::Duration;

use careof_base::{DataRate, Instant};

use crate::bandwidth::BandwidthEstimator;
use crate::connection::Connection;
use crate::delayed_ack::Due;
use crate::rto::Told;
use crate::state::State;

/// What is known of a path, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewPath {
    /// Rate of its bottleneck, of whole datagrams.
    pub rate: Option<DataRate>,
    /// Round-trip time without queues.
    pub round_trip: Option<Duration>,
}

/// What a sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The path is another, and nothing is known of it. The timeout goes back to its initial value, the estimator begins
    /// anew and no back-off is left.
    ResetRto {
        /// The window goes back to one segment, and the threshold to what it is in a new connection. A loss recovery under way
        /// begins anew, as after a timeout.
        slow_start: bool,
    },
    /// The timeout until there is a measurement of something sent from now on; within the estimator's bounds. No
    /// back-off is left.
    SetRto(Duration),
    /// The delay is the link's: the retransmission timer, and what waits for a loss beside it, begins anew with the
    /// present timeout.
    Rearm,
    /// The path is gone (initiation of handover). Nothing leaves but acknowledgements without data and no timer of the sender
    /// runs, until [`Advice::Back`]; or, so that silence does not last for ever, until the greatest RTO has passed,
    /// after which what is outstanding has timed out.
    Away,
    /// There is a path again, or another (termination of handover); [`Advice::Away`] need not have come before. SRTT is the round trip,
    /// RTTVAR half of it, window and threshold rate times round trip, but at least two segments; what is outstanding is
    /// lost, which is no sign of congestion, and is sent again at once.
    ///
    /// Of what is not known: without a round trip the estimator begins anew; without either the window stays.
    Back(NewPath),
    /// The same, but what is outstanding may still arrive: it is not sent again, unless a recovery was under way, whose
    /// losses are the old path's.
    Moved(NewPath),
    /// There is a path again, and the sender itself has moved to it: the timer that [`Advice::Away`] has suspended goes on with what was
    /// left of it, and what it was about to send leaves. Where the usable window is zero, the congestion window grows by one
    /// segment; the peer's window holds.
    Resume,
    /// The peer has moved to a link of this rate, of whole datagrams. What is outstanding is lost and is sent again as the window
    /// allows; the next four RTT samples of what leaves from now on each set the threshold to rate times round trip, but none after a
    /// timeout or a fast retransmission.
    HandedOff(DataRate),
    /// The least round trip is another path's: it is measured anew from what leaves from now on. Of use to Vegas alone.
    MeasureBaseRtt,
    /// The peer has moved to another path, of which nothing is known. SRTT and RTTVAR are cleared, and RFC 6298's initial RTO holds
    /// until something has been measured by the new path; then window and threshold become what the path delivers
    /// ([`Connection::estimate_bandwidth`]) in that round trip, at least two segments. No acknowledgement of what left before moves the
    /// window. Without an estimate it stays.
    Replaced {
        /// What is outstanding is lost, which is no sign of congestion, and is sent again at once, whatever the window.
        repeat: bool,
    },
}

impl Connection {
    /// Somebody knows of a handover, and tells. Before the handshake is over, only the advice about the timer is taken; a
    /// connection that is closed, or only answers late segments, takes none.
    pub fn advise(&mut self, now: Instant, advice: &Advice) {
        self.ordinary = false;
        if matches!(self.state, State::Closed | State::Listen | State::TimeWait) {
            return;
        }
        let synchronized = self.state.is_synchronized();
        let config = &*self.config;
        match *advice {
            Advice::ResetRto { slow_start } => {
                self.sender.tell_estimator(now, Told::Nothing, config);
                if slow_start && synchronized {
                    self.sender.start_slowly(now, config);
                }
                self.sender.restart_timers(now);
            }
            Advice::SetRto(rto) => {
                self.sender.tell_estimator(now, Told::Rto(rto), config);
                self.sender.restart_timers(now);
            }
            Advice::Rearm => self.sender.restart_timers(now),
            Advice::Away if synchronized => self.sender.leave(now),
            Advice::Back(path) | Advice::Moved(path) if synchronized => {
                let repeat = matches!(advice, Advice::Back(_));
                let window = self.window_of(&path);
                let told = path.round_trip.map_or(Told::Nothing, Told::RoundTrip);
                self.sender.tell_estimator(now, told, config);
                self.sender.come_back(now, window, repeat, config);
                self.sender.restart_timers(now);
            }
            Advice::Resume if synchronized => self.sender.resume(now),
            Advice::HandedOff(rate) if synchronized => {
                self.sender.hand_off(now, rate, &self.journal.counters);
                self.sender.restart_timers(now);
            }
            Advice::MeasureBaseRtt if synchronized => self.sender.measure_base_rtt(now),
            Advice::Replaced { repeat } if synchronized => {
                self.sender.tell_estimator(now, Told::Nothing, config);
                self.sender.path_replaced(now, repeat);
                self.sender.restart_timers(now);
            }
            _ => {}
        }
        self.journal.revision += 1;
        self.after_input();
    }

    /// Estimates what the path delivers, for [`Advice::Replaced`]. To be called before the connection is opened.
    pub fn estimate_bandwidth(&mut self, estimator: BandwidthEstimator) {
        self.sender.estimate_bandwidth(estimator);
    }

    /// What the path delivers, of data, as estimated so far; `None` where nothing is estimated or has been measured.
    #[must_use]
    pub fn bandwidth_estimate(&self) -> Option<DataRate> {
        self.sender.bandwidth()
    }

    /// An acknowledgement without data leaves with the next [`poll_transmit`](Self::poll_transmit), whether or not one is
    /// owed: the owner has something to say that travels beside it. The peer may count it as a duplicate.
    pub fn acknowledge(&mut self) {
        if self.state.is_synchronized() && self.state != State::TimeWait {
            self.ordinary = false;
            self.receiver.acks.owe(Due::Alone);
            self.journal.revision += 1;
        }
    }

    /// An RTT sample was taken, and the peer has told the rate of its new link.
    pub(crate) fn follow_hand_off(&mut self, now: Instant) {
        let Some(sample) = self.journal.latest_rtt else { return };
        let Some(rate) = self.sender.rate_for_threshold(now, sample, &self.journal.counters) else { return };
        let path = NewPath { rate: Some(rate), round_trip: Some(sample) };
        if let Some(window) = self.window_of(&path) {
            self.sender.set_threshold(now, window);
        }
    }

    /// Bytes of data that fill a path.
    fn window_of(&self, path: &NewPath) -> Option<u32> {
        const HEADERS: u64 = 40;
        let bytes = path.rate?.bits_in(path.round_trip?) / 8;
        let datagram = u64::from(self.segment_limit) + HEADERS;
        let data = u128::from(bytes) * u128::from(self.effective_mss()) / u128::from(datagram);
        Some(u32::try_from(data).unwrap_or(u32::MAX))
    }
}
