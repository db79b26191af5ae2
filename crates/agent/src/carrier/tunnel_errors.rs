//! What the network says about packets that were sent into tunnels (RFC 2003 sections 4 and 5).

use careof_assist::Input;
use careof_base::Instant;
use careof_lab::{Error, Proof, TunnelError};
use careof_wire::icmp::{IcmpMessage, QuotedDatagram, UnreachableCode};
use careof_wire::tunnel::{RelayedError, relay_error};

use super::data_plane::DataPlane;
use super::decisions::{Decisions, path_to};
use super::error_reports::{ErrorReport, tellable};
use super::tunnel_entry::way_for;
use crate::Role;

/// Errors read in one turn.
const ERRORS_A_TURN: usize = 64;

impl DataPlane {
    /// What the network says about packets that were sent through a lane's tunnels.
    pub(super) fn take_errors(
        &mut self,
        now: Instant,
        lane: usize,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        for _ in 0..ERRORS_A_TURN {
            let Some(lane) = self.lanes.get(lane) else { break };
            let Some(error) = lane.socket.next_error()? else { break };
            self.take_error(now, &error, decisions);
        }
        Ok(())
    }

    /// Anybody can write an error about a datagram that was never sent. So it is asked first whether there is such a tunnel, then
    /// whether the datagram can have been in it, and whether it was.
    fn take_error(&mut self, now: Instant, error: &TunnelError, decisions: &mut Decisions) {
        let quoted = match &error.message {
            IcmpMessage::DestinationUnreachable(message) => &message.quoted,
            IcmpMessage::TimeExceeded(message) => &message.quoted,
            // Nobody is told of others, and they say nothing of the path.
            _ => return,
        };
        let outer = QuotedDatagram::parse(quoted);
        let path = decisions.paths.between(error.entry, error.exit);
        let (Some(path), Ok(outer)) = (path, outer) else {
            self.uncarried.not_ours += 1;
            return;
        };
        if outer.header.source != error.entry || !path.can_have_sent(&outer) {
            self.uncarried.not_ours += 1;
            return;
        }
        let relayed = relay_error(&error.message, error.entry, self.is_home());
        // What is quoted of the datagram inside must be one that goes into this tunnel in this way; the path is still to be judged by
        // an error that quotes too little.
        if let Ok(relayed) = &relayed
            && !belongs(&outer, relayed, error, decisions)
        {
            self.uncarried.not_ours += 1;
            return;
        }
        let proof = self.identifier.proof(&outer);
        if proof == Proof::Wrong {
            self.uncarried.unproven += 1;
        }
        let Some(path) = decisions.paths.between(error.entry, error.exit) else { return };
        let proof = path.judge(now, proof);
        if let IcmpMessage::DestinationUnreachable(message) = &error.message
            && message.code == UnreachableCode::FragmentationNeeded
        {
            if !path.take_mtu(now, &outer, message.next_hop_mtu, proof) {
                self.uncarried.not_ours += 1;
                return;
            }
        } else if proof == Proof::Wrong {
            // Nothing breaks without it.
            return;
        }
        let room = path.room(now, self.path_mtu_floor);
        // What cannot be relayed says nothing else that anybody could use.
        let Ok(mut relayed) = relayed else { return };
        let Ok(inner) = QuotedDatagram::parse(&relayed.message.quoted) else { return };
        if relayed.message.code == UnreachableCode::FragmentationNeeded {
            let tunnel = decisions.entrance(&inner.header, error.exit).map(|entrance| entrance.tunnel);
            let mtu = tunnel.map_or(0, |tunnel| tunnel.mtu(room.mtu));
            if inner.header.total_len() <= mtu {
                // Its sender need not change anything: the next one goes in fragments.
                return;
            }
            relayed.message.next_hop_mtu = tellable(mtu);
        }
        let may_pass_on =
            decisions.paths.between(error.entry, error.exit).is_some_and(|path| path.may_pass_on(now, proof));
        if !may_pass_on {
            self.limit.suppressed += 1;
            return;
        }
        if let Some(assists) = &mut self.assists
            && matches!(relayed.message.code, UnreachableCode::Net | UnreachableCode::Host)
            && self.role == Role::Home
        {
            assists.handle_event(now, &Input::Unreachable { path: path_to(error.exit) });
        }
        if self.limit.allows(now) {
            self.reports.push(ErrorReport {
                source: error.entry,
                destination: relayed.to,
                message: IcmpMessage::DestinationUnreachable(relayed.message),
            });
        }
    }
}

/// Whether the datagram that is quoted inside goes into this tunnel, and is wrapped like this there.
fn belongs(
    outer: &QuotedDatagram<'_>,
    relayed: &RelayedError,
    error: &TunnelError,
    decisions: &mut Decisions,
) -> bool {
    let Ok(inner) = QuotedDatagram::parse(&relayed.message.quoted) else { return false };
    decisions.entrance(&inner.header, error.exit).is_some_and(|entrance| {
        let tunnel = way_for(entrance.tunnel, &inner.header);
        tunnel.encapsulation.protocol() == outer.header.protocol
    })
}
