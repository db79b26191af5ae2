//! Packets between the tunnel device and tunnels over several paths.

use careof_base::Instant;
use careof_lab::Error;
use careof_wire::ipv4::{Ipv4Header, count_down};
use careof_wire::protocol;
use careof_wire::tunnel::{Encapsulation, Origin};

use super::data_plane::{DataPlane, LANES, Lane, lane_of};
use super::decisions::Decisions;
use super::error_reports::Problem;
use crate::Role;

impl DataPlane {
    /// Puts a datagram into a tunnel over several paths. Always a way for it, though it may have to be dropped.
    pub(super) fn put_in_bonded(
        &mut self,
        now: Instant,
        header: &Ipv4Header,
        datagram: &[u8],
        origin: Origin,
        decisions: &mut Decisions,
    ) -> Result<bool, Error> {
        let mut forwarded = Vec::new();
        let datagram = if origin == Origin::Forwarded {
            forwarded.extend_from_slice(datagram);
            if !count_down(&mut forwarded) {
                self.uncarried.looping += 1;
                self.report(now, Problem::Expired, decisions.own_end(header), datagram);
                return Ok(true);
            }
            &forwarded
        } else {
            datagram
        };
        let sent = self.bonds.as_mut().is_some_and(|bonds| bonds.send(now, header, datagram));
        if sent {
            self.put_in.note(1, datagram.len() as u64);
        } else {
            self.uncarried.no_way += 1;
        }
        self.put_on_paths(now, decisions)?;
        Ok(true)
    }

    /// Puts on their paths what tunnels over several have to send.
    fn put_on_paths(&mut self, now: Instant, decisions: &mut Decisions) -> Result<(), Error> {
        while let Some(sent) = self.bonds.as_mut().and_then(|bonds| bonds.poll_transmit()) {
            let lane = lane_of(match sent.outer.protocol {
                protocol::IP_IN_IP => Encapsulation::IpInIp,
                _ => Encapsulation::Gre { key: None, sequence: None },
            });
            if self.lanes.get(lane).is_some_and(|lane| lane.batch.is_full()) {
                self.flush(now, lane, decisions)?;
            }
            let Some(Lane { batch, .. }) = self.lanes.get_mut(lane) else { return Ok(()) };
            if !batch.push(&sent.outer, &sent.bytes) {
                // Blocked: as if the path's queue were full.
                self.uncarried.refused += 1;
            }
        }
        Ok(())
    }

    /// Passes on what tunnels over several paths have in order.
    pub(super) fn take_out_of_bonds(&mut self, now: Instant, decisions: &mut Decisions) -> Result<(), Error> {
        while let Some(came) = self.bonds.as_mut().and_then(|bonds| bonds.poll_delivery()) {
            let Ok((inner, _)) = Ipv4Header::parse(&came.datagram) else {
                self.uncarried.malformed += 1;
                continue;
            };
            // Only what is the mobile node's own comes out of its tunnel.
            let is_its = match self.role {
                Role::Mobile => inner.destination == came.home_address,
                _ => inner.source == came.home_address,
            };
            if !is_its {
                self.uncarried.not_ours += 1;
                continue;
            }
            if let Some(bonds) = &mut self.bonds {
                bonds.note_passed_on(now, &came.datagram);
            }
            self.taken_out.note(1, came.datagram.len() as u64);
            self.pass_on(now, &inner, &came.datagram, (self.role != Role::Mobile, came.path), decisions)?;
        }
        Ok(())
    }

    /// Does what time, and messages that were taken, want of tunnels over several paths.
    pub(super) fn drive_bonds(&mut self, now: Instant, decisions: &mut Decisions) -> Result<(), Error> {
        let Some(bonds) = &mut self.bonds else { return Ok(()) };
        bonds.wake(now);
        bonds.send_messages(now);
        self.put_on_paths(now, decisions)?;
        self.take_out_of_bonds(now, decisions)?;
        self.put_on_paths(now, decisions)?;
        self.tun.flush()?;
        (0..LANES.len()).try_for_each(|lane| self.flush(now, lane, decisions))
    }
}
