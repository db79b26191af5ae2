//! Neighbor unreachability detection: the states of a neighbor and what changes them (RFC 4861 sections 7.2 and 7.3).
//!
//! [`transition`] is the table of RFC 4861 appendix C. Where the appendix and section 7.2.5 differ - what a solicited advertisement
//! without a link-layer address confirms, and what one does in INCOMPLETE - the section counts.

use core::fmt;

/// What is known of the path to a neighbor (RFC 4861 section 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NeighborState {
    /// Its link-layer address is being asked for.
    Incomplete,
    /// It was reached a short time ago.
    Reachable,
    /// It may be reachable or not; nobody asks before a packet is sent to it.
    Stale,
    /// A packet was sent; there is a short time for upper layers to confirm that it arrives.
    Delay,
    /// It is asked by unicast whether it is there.
    Probe,
}

impl fmt::Display for NeighborState {
    /// As the RFC writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Incomplete => "INCOMPLETE",
            Self::Reachable => "REACHABLE",
            Self::Stale => "STALE",
            Self::Delay => "DELAY",
            Self::Probe => "PROBE",
        })
    }
}

/// A link-layer address in a message, beside the one that is cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkLayer {
    /// The message has none.
    Absent,
    /// It is the cached one.
    Same,
    /// It is another one, or none is cached.
    Different,
}

/// What happens to a neighbor's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReachabilityEvent {
    /// There is a packet for it.
    PacketToSend,
    /// A solicitation has had no answer for RetransTimer.
    RetransmitTimeout {
        /// Whether as many have been sent as may be.
        exhausted: bool,
    },
    /// DELAY_FIRST_PROBE_TIME has passed in DELAY.
    DelayTimeout,
    /// ReachableTime has passed since the last confirmation.
    ReachableTimeout,
    /// An upper layer tells that the neighbor receives what it is sent.
    UpperLayerConfirmation,
    /// A valid neighbor advertisement.
    NeighborAdvertisement {
        /// Its S flag.
        solicited: bool,
        /// Its O flag.
        overrides: bool,
        /// Its target link-layer address.
        link_layer: LinkLayer,
    },
    /// A valid neighbor solicitation, router solicitation or router advertisement of the neighbor.
    Unsolicited {
        /// Its source link-layer address.
        link_layer: LinkLayer,
    },
}

/// What is done at a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReachabilityAction {
    /// Nothing.
    None,
    /// The link-layer address is recorded.
    Record,
    /// It is recorded, and the packets that wait for it are sent.
    RecordAndSend,
    /// A solicitation is multicast.
    SolicitMulticast,
    /// A solicitation is sent to the cached link-layer address.
    SolicitUnicast,
    /// The entry is discarded: the neighbor is unreachable.
    Discard,
}

/// A line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Transition {
    /// What is done.
    pub action: ReachabilityAction,
    /// The state from now on; `None` where the entry is discarded.
    pub next: Option<NeighborState>,
    /// Whether the R flag of the advertisement is taken over (RFC 4861 section 7.2.5).
    pub takes_is_router: bool,
}

const fn to(action: ReachabilityAction, next: NeighborState) -> Option<Transition> {
    Some(Transition { action, next: Some(next), takes_is_router: false })
}

const fn advertised(action: ReachabilityAction, next: NeighborState) -> Option<Transition> {
    Some(Transition { action, next: Some(next), takes_is_router: true })
}

const DISCARD: Option<Transition> =
    Some(Transition { action: ReachabilityAction::Discard, next: None, takes_is_router: false });

/// What `event` does to an entry in `state`, which is `None` where there is no entry. `None`: nothing at all.
#[must_use]
pub const fn transition(state: Option<NeighborState>, event: ReachabilityEvent) -> Option<Transition> {
    use NeighborState::{Delay, Incomplete, Probe, Reachable, Stale};
    use ReachabilityAction as Do;
    use ReachabilityEvent as On;
    let Some(state) = state else {
        return match event {
            On::PacketToSend => to(Do::SolicitMulticast, Incomplete),
            On::Unsolicited { link_layer: LinkLayer::Same | LinkLayer::Different } => to(Do::Record, Stale),
            _ => None,
        };
    };
    match (state, event) {
        (Incomplete, On::RetransmitTimeout { exhausted: false }) => to(Do::SolicitMulticast, Incomplete),
        (Incomplete, On::RetransmitTimeout { exhausted: true }) => DISCARD,
        (
            Incomplete,
            On::NeighborAdvertisement { link_layer: LinkLayer::Absent, .. }
            | On::Unsolicited { link_layer: LinkLayer::Absent },
        ) => None,
        (Incomplete, On::NeighborAdvertisement { solicited: true, .. }) => {
            advertised(Do::RecordAndSend, Reachable)
        }
        (Incomplete, On::NeighborAdvertisement { solicited: false, .. }) => {
            advertised(Do::RecordAndSend, Stale)
        }
        (Incomplete, On::Unsolicited { .. }) => to(Do::RecordAndSend, Stale),
        (Incomplete, _) => None,

        // Section 7.2.5, I.
        (Reachable, On::NeighborAdvertisement { overrides: false, link_layer: LinkLayer::Different, .. }) => {
            to(Do::None, Stale)
        }
        (_, On::NeighborAdvertisement { overrides: false, link_layer: LinkLayer::Different, .. }) => None,
        // Section 7.2.5, II.
        (_, On::NeighborAdvertisement { solicited: true, link_layer: LinkLayer::Different, .. }) => {
            advertised(Do::Record, Reachable)
        }
        (_, On::NeighborAdvertisement { solicited: true, .. }) => advertised(Do::None, Reachable),
        (_, On::NeighborAdvertisement { solicited: false, link_layer: LinkLayer::Different, .. }) => {
            advertised(Do::Record, Stale)
        }
        (state, On::NeighborAdvertisement { solicited: false, .. }) => advertised(Do::None, state),

        (_, On::Unsolicited { link_layer: LinkLayer::Different }) => to(Do::Record, Stale),
        (_, On::UpperLayerConfirmation) => to(Do::None, Reachable),
        (Reachable, On::ReachableTimeout) => to(Do::None, Stale),
        (Stale, On::PacketToSend) => to(Do::None, Delay),
        (Delay, On::DelayTimeout) => to(Do::SolicitUnicast, Probe),
        (Probe, On::RetransmitTimeout { exhausted: false }) => to(Do::SolicitUnicast, Probe),
        (Probe, On::RetransmitTimeout { exhausted: true }) => DISCARD,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::NeighborState::{Delay, Incomplete, Probe, Reachable, Stale};
    use super::*;

    const KNOWN: [NeighborState; 4] = [Reachable, Stale, Delay, Probe];

    const fn advertisement(solicited: bool, overrides: bool, link_layer: LinkLayer) -> ReachabilityEvent {
        ReachabilityEvent::NeighborAdvertisement { solicited, overrides, link_layer }
    }

    /// Action and new state, `None` where nothing changes.
    fn outcome(
        state: Option<NeighborState>,
        event: ReachabilityEvent,
    ) -> Option<(ReachabilityAction, Option<NeighborState>)> {
        transition(state, event).map(|line| (line.action, line.next))
    }

    #[test]
    fn address_resolution_follows_appendix_c() {
        use ReachabilityAction::{Discard, RecordAndSend, SolicitMulticast};
        let timeout = |exhausted| ReachabilityEvent::RetransmitTimeout { exhausted };
        assert_eq!(
            outcome(None, ReachabilityEvent::PacketToSend),
            Some((SolicitMulticast, Some(Incomplete)))
        );
        let resolving = Some(Incomplete);
        assert_eq!(outcome(resolving, timeout(false)), Some((SolicitMulticast, resolving)));
        assert_eq!(outcome(resolving, timeout(true)), Some((Discard, None)));
        for overrides in [false, true] {
            let event = advertisement(false, overrides, LinkLayer::Different);
            assert_eq!(outcome(resolving, event), Some((RecordAndSend, Some(Stale))));
            let event = advertisement(true, overrides, LinkLayer::Different);
            assert_eq!(outcome(resolving, event), Some((RecordAndSend, Some(Reachable))));
            for solicited in [false, true] {
                assert_eq!(outcome(resolving, advertisement(solicited, overrides, LinkLayer::Absent)), None);
            }
        }
        assert_eq!(outcome(resolving, ReachabilityEvent::UpperLayerConfirmation), None);
    }

    #[test]
    fn an_advertisement_about_a_known_neighbor_follows_section_7_2_5() {
        use ReachabilityAction::{None as Nothing, Record};
        for state in KNOWN {
            let at = Some(state);
            let same = advertisement(true, false, LinkLayer::Same);
            assert_eq!(outcome(at, same), Some((Nothing, Some(Reachable))));
            let other = advertisement(true, false, LinkLayer::Different);
            let doubt = (state == Reachable).then_some((Nothing, Some(Stale)));
            assert_eq!(outcome(at, other), doubt, "{state}");
            assert_eq!(outcome(at, advertisement(false, false, LinkLayer::Different)), doubt, "{state}");
            let other = advertisement(true, true, LinkLayer::Different);
            assert_eq!(outcome(at, other), Some((Record, Some(Reachable))));
            let other = advertisement(false, true, LinkLayer::Different);
            assert_eq!(outcome(at, other), Some((Record, Some(Stale))));
            for overrides in [false, true] {
                for link_layer in [LinkLayer::Same, LinkLayer::Absent] {
                    let event = advertisement(false, overrides, link_layer);
                    assert_eq!(outcome(at, event), Some((Nothing, at)));
                    let event = advertisement(true, overrides, link_layer);
                    assert_eq!(outcome(at, event), Some((Nothing, Some(Reachable))));
                }
            }
        }
    }

    #[test]
    fn the_router_flag_is_taken_only_from_what_updates_the_entry() {
        for state in KNOWN {
            let line = transition(Some(state), advertisement(true, true, LinkLayer::Same)).unwrap();
            assert!(line.takes_is_router);
            let line = transition(Some(state), advertisement(true, false, LinkLayer::Different));
            assert!(line.is_none_or(|line| !line.takes_is_router));
        }
    }

    #[test]
    fn unreachability_detection_follows_appendix_c() {
        use ReachabilityAction::{Discard, None as Nothing, SolicitUnicast};
        use ReachabilityEvent::{DelayTimeout, PacketToSend, ReachableTimeout, UpperLayerConfirmation};
        let timeout = |exhausted| ReachabilityEvent::RetransmitTimeout { exhausted };
        assert_eq!(outcome(Some(Reachable), ReachableTimeout), Some((Nothing, Some(Stale))));
        assert_eq!(outcome(Some(Stale), PacketToSend), Some((Nothing, Some(Delay))));
        assert_eq!(outcome(Some(Delay), DelayTimeout), Some((SolicitUnicast, Some(Probe))));
        assert_eq!(outcome(Some(Probe), timeout(false)), Some((SolicitUnicast, Some(Probe))));
        assert_eq!(outcome(Some(Probe), timeout(true)), Some((Discard, None)));
        for state in KNOWN {
            assert_eq!(outcome(Some(state), UpperLayerConfirmation), Some((Nothing, Some(Reachable))));
            if state != Stale {
                assert_eq!(outcome(Some(state), PacketToSend), None);
            }
        }
    }

    #[test]
    fn unsolicited_information_follows_appendix_c() {
        use ReachabilityAction::{Record, RecordAndSend};
        let heard = |link_layer| ReachabilityEvent::Unsolicited { link_layer };
        assert_eq!(outcome(None, heard(LinkLayer::Different)), Some((Record, Some(Stale))));
        assert_eq!(outcome(None, heard(LinkLayer::Absent)), None);
        assert_eq!(
            outcome(Some(Incomplete), heard(LinkLayer::Different)),
            Some((RecordAndSend, Some(Stale)))
        );
        assert_eq!(outcome(Some(Incomplete), heard(LinkLayer::Absent)), None);
        for state in KNOWN {
            assert_eq!(outcome(Some(state), heard(LinkLayer::Different)), Some((Record, Some(Stale))));
            assert_eq!(outcome(Some(state), heard(LinkLayer::Same)), None);
            assert_eq!(outcome(Some(state), heard(LinkLayer::Absent)), None);
        }
    }

    #[test]
    fn advertisements_create_no_entry() {
        for link_layer in [LinkLayer::Absent, LinkLayer::Different] {
            assert_eq!(outcome(None, advertisement(true, true, link_layer)), None);
        }
    }
}
