//! Datagrams that go into tunnels one by one: a copy into each tunnel of a mobile node, or one into that of a path.

use std::net::IpAddr;

use careof_assist::PathId;
use careof_base::Instant;
use careof_lab::{Departure, Error};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::{EncapsulationError, Origin, Tunnel};

use super::data_plane::{DataPlane, Lane, lane_of};
use super::decisions::Decisions;
use super::error_reports::Problem;
use super::tunnel_entry::{Capacity, Fits, Way, counted, way_for};
use crate::Role;

impl DataPlane {
    /// Several bindings: a copy of each datagram into each tunnel.
    pub(super) fn put_in_several(
        &mut self,
        now: Instant,
        header: &Ipv4Header,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let mut scratch = std::mem::take(&mut self.scratch);
        while let Some(len) = self.frame.next_len() {
            scratch.resize(len, 0);
            self.frame.take(&mut scratch);
            self.put_copies(now, header, &scratch, Origin::Local, Way::PRESENT, decisions)?;
        }
        self.scratch = scratch;
        Ok(())
    }

    /// Puts one datagram into each of its tunnels, or into that of one path. Whether there was one.
    pub(super) fn put_copies(
        &mut self,
        now: Instant,
        header: &Ipv4Header,
        datagram: &[u8],
        origin: Origin,
        Way { via, fragments }: Way,
        decisions: &mut Decisions,
    ) -> Result<bool, Error> {
        let mut has_way = false;
        // What comes out of the device was looked at there.
        if origin == Origin::Forwarded && decisions.is_circling(datagram) {
            self.uncarried.looping += 1;
            return Ok(true);
        }
        if self.bonds.as_ref().is_some_and(|bonds| bonds.takes(header)) {
            return self.put_in_bonded(now, header, datagram, origin, decisions);
        }
        for n in 0.. {
            let Some(entrance) = decisions.entrances_for(header).get_mut(n) else { break };
            if via.is_some_and(|via| via != entrance.path) {
                continue;
            }
            has_way = true;
            let way = (way_for(entrance.tunnel, header), entrance.interface);
            let fits = match fragments {
                Some(longest) => Fits::Fragments(longest),
                None if header.dont_fragment => {
                    Fits::Whole(self.capacity(now, way.0, way.1, &mut decisions.paths))
                }
                None => Fits::Any,
            };
            if let Some(used) = self.put_copy(now, way, fits, datagram, origin, decisions)?
                && let Some(entrance) = decisions.entrances_for(header).get_mut(n)
            {
                entrance.traffic.note(1, datagram.len() as u64);
                self.put_in.note(1, datagram.len() as u64);
                if self.role == Role::Mobile {
                    self.passed.note(entrance.path, true, 1, datagram.len() as u64);
                }
                entrance.tunnel.encapsulation = counted(entrance.tunnel, used);
            }
        }
        if let (false, true, Some(PathId::CareOf(IpAddr::V4(exit)))) = (has_way, self.is_home(), via)
            && let Some(last) = decisions.entrances_for(header).last()
        {
            // What drains late goes where the mobile node was, as far as anything is known of it still.
            let tunnel = Tunnel { exit, ..way_for(last.tunnel, header) };
            has_way = true;
            self.put_copy(now, (tunnel, None), Fits::Any, datagram, origin, decisions)?;
        }
        Ok(has_way)
    }

    /// Puts a datagram into a tunnel, if it fits: the tunnel as it is then, if there was room.
    fn put_copy(
        &mut self,
        now: Instant,
        (mut tunnel, interface): (Tunnel, Option<u32>),
        fits: Fits,
        datagram: &[u8],
        origin: Origin,
        decisions: &mut Decisions,
    ) -> Result<Option<Tunnel>, Error> {
        if let Fits::Whole(Capacity { mtu, .. }) = fits
            && datagram.len() > usize::from(mtu)
        {
            self.uncarried.too_long += 1;
            self.report(now, Problem::TooLong { mtu }, tunnel.entry, datagram);
            return Ok(None);
        }
        let lane = lane_of(tunnel.encapsulation);
        if self.lanes.get(lane).is_some_and(|lane| lane.batch.is_full()) {
            self.flush(now, lane, decisions)?;
        }
        let Some(Lane { batch, .. }) = self.lanes.get_mut(lane) else { return Ok(None) };
        let pushed = match fits {
            Fits::Fragments(longest) => {
                batch.push_in_fragments(&mut tunnel, interface, datagram, origin, longest)
            }
            Fits::Whole(Capacity { departure, .. }) => {
                batch.push_one(&mut tunnel, departure, datagram, origin)
            }
            Fits::Any => {
                let departure = Departure { interface, ..Departure::default() };
                batch.push_one(&mut tunnel, departure, datagram, origin)
            }
        };
        match pushed {
            Ok(true) => return Ok(Some(tunnel)),
            // Blocked: a copy less.
            Ok(false) => self.uncarried.refused += 1,
            Err(error) => {
                self.refuse(error);
                if error == EncapsulationError::TtlExpired {
                    // Expired only where it was forwarded; RFC 2003 section 3.1.
                    self.report(now, Problem::Expired, tunnel.entry, datagram);
                }
            }
        }
        Ok(None)
    }

    /// A datagram must not enter a tunnel.
    pub(super) const fn refuse(&mut self, error: EncapsulationError) {
        match error {
            EncapsulationError::Malformed(_) => self.uncarried.malformed += 1,
            EncapsulationError::TooLong { .. } => self.uncarried.too_long += 1,
            EncapsulationError::TtlExpired
            | EncapsulationError::SourceIsEntry
            | EncapsulationError::SourceIsExit
            | EncapsulationError::Fragment => self.uncarried.looping += 1,
        }
    }
}
