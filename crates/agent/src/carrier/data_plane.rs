//! Packets between the tunnel device and the tunnels, as decided.

use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, BorrowedFd};

use careof_assist::PathId;
use careof_base::Instant;
use careof_lab::{
    Departure, Error, Flushed, Frame, Identifier, OffloadTun, ReceiveBatch, SendBatch, SendFailureReason,
    TunnelPacket, TunnelSocket,
};
use careof_wire::ipv4::Ipv4Header;
use careof_wire::tunnel::{Encapsulation, EncapsulationError, Origin, Tunnel};
use careof_wire::{IpHeader, protocol};

use super::assist_actions::{Ways, do_for_assist};
use super::assists::{Assists, Heading, Shown};
use super::decisions::{Decisions, NotTaken, Traffic};
use super::error_reports::{ErrorReport, Problem, RateLimit, SegmentReport, report};
use super::multipath::Bonds;
use super::passed::{Passed, datagrams_in};
use super::paths::PathKey;
use super::tunnel_entry::{Capacity, Fits, Way, counted, fragments, way_for};
use crate::Role;

/// Packets received, or sent, by one system call.
const BATCH: usize = 64;
/// Reads of the tunnel device in one turn; each is up to 64 KiB.
const FRAMES_A_TURN: usize = 64;
/// Batches received from one tunnel socket in one turn.
const BATCHES_A_TURN: usize = 8;

/// What became of packets that were not carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Uncarried {
    /// Not IPv4.
    pub(super) other_protocol: u64,
    /// No tunnel for them at present.
    pub(super) no_way: u64,
    /// Too long for the tunnel, and not to be fragmented: the sender was told.
    pub(super) too_long: u64,
    /// Their time to live was used up, or they had been in the tunnel already and would have gone round in circles.
    pub(super) looping: u64,
    /// From a tunnel, but nothing that can be read.
    pub(super) malformed: u64,
    /// Out of a tunnel that is none of ours, or not theirs; or an error about such a one, or about what cannot have been
    /// sent into one.
    pub(super) not_ours: u64,
    /// Out of a tunnel, but wrapped in another way than was agreed on for it.
    pub(super) other_encapsulation: u64,
    /// Errors about what may have been in a tunnel, with an Identification that nothing had there.
    pub(super) unproven: u64,
    /// The tunnel's other end cannot be reached at present.
    pub(super) unreachable: u64,
    /// The kernel refused to send them.
    pub(super) refused: u64,
}

/// The sockets of one way of wrapping.
#[derive(Debug)]
pub(super) struct Lane {
    pub(super) socket: TunnelSocket,
    pub(super) batch: SendBatch,
    /// The batch waits for room in the kernel.
    pub(super) is_blocked: bool,
}

/// Lanes, in the order of [`DataPlane::lanes`].
pub(super) const LANES: [u8; 3] = [protocol::IP_IN_IP, protocol::MINIMAL, protocol::GRE];

pub(super) const fn lane_of(encapsulation: Encapsulation) -> usize {
    match encapsulation {
        Encapsulation::IpInIp => 0,
        Encapsulation::Minimal => 1,
        Encapsulation::Gre { .. } => 2,
    }
}

/// The tunnel device and the tunnel sockets.
#[derive(Debug)]
pub(super) struct DataPlane {
    pub(super) tun: OffloadTun,
    frame: Frame,
    /// All are open, used or not: the kernel never says that one of these protocols is unknown here.
    pub(super) lanes: [Lane; 3],
    /// `None` only while it is being emptied.
    received: Option<ReceiveBatch>,
    /// A datagram on its way from one tunnel into the next.
    scratch: Vec<u8>,
    /// One that the kernel has put together from several, on the same way.
    unfinished: Frame,
    pub(super) uncarried: Uncarried,
    /// Put into tunnels, whichever, also those that are no more.
    pub(super) put_in: Traffic,
    /// Taken out of tunnels.
    pub(super) taken_out: Traffic,
    /// Mobile node: what has passed by which path since this was last taken.
    passed: Passed,
    /// Of the tunnel device, bytes: the kernel puts what comes out of tunnels together from datagrams as long as this.
    tunnel_mtu: u16,
    /// Errors that wait to be sent.
    pub(super) reports: Vec<ErrorReport>,
    pub(super) limit: RateLimit,
    /// Knows what was sent into tunnels.
    pub(super) identifier: Identifier,
    /// Below this, bytes, nobody brings a path's MTU who may not have seen what was sent.
    pub(super) path_mtu_floor: u16,
    pub(super) role: Role,
    /// Tunnels over several paths; `None`: there are none here.
    pub(super) bonds: Option<Box<Bonds>>,
    /// `None`: packets go their way.
    pub(super) assists: Option<Box<Assists>>,
}

impl DataPlane {
    /// Opens the sockets, with a tunnel device that is there already.
    pub(super) fn open(
        tun: OffloadTun,
        role: Role,
        path_mtu_floor: u16,
        tunnel_mtu: u16,
    ) -> Result<Self, Error> {
        let identifier = Identifier::new();
        let lane = |protocol| {
            Ok::<_, Error>(Lane {
                socket: TunnelSocket::open(protocol)?,
                batch: SendBatch::new(BATCH).identified_by(identifier.clone()),
                is_blocked: false,
            })
        };
        let [ip_in_ip, minimal, gre] = LANES;
        Ok(Self {
            tun,
            frame: Frame::new(),
            lanes: [lane(ip_in_ip)?, lane(minimal)?, lane(gre)?],
            received: Some(ReceiveBatch::new(BATCH)),
            scratch: Vec::new(),
            unfinished: Frame::new(),
            uncarried: Uncarried::default(),
            put_in: Traffic::default(),
            taken_out: Traffic::default(),
            passed: Passed::default(),
            tunnel_mtu,
            reports: Vec::new(),
            limit: RateLimit::new(),
            identifier,
            path_mtu_floor,
            role,
            bonds: None,
            assists: None,
        })
    }

    /// A home agent is on the network that its packets are for.
    pub(super) const fn is_home(&self) -> bool {
        matches!(self.role, Role::Home)
    }

    /// What to wait at for packets of this host.
    pub(super) fn device(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }

    /// Whether packets wait for room in the kernel: until there is some, the device is left alone.
    pub(super) fn is_blocked(&self) -> bool {
        self.lanes.iter().any(|lane| lane.is_blocked)
    }

    /// Packets that the host did not take from the tunnel device.
    pub(super) fn not_delivered(&self) -> u64 {
        self.tun.counters().refused
    }

    /// Reads of the tunnel device that failed.
    pub(super) fn not_read(&self) -> u64 {
        self.tun.counters().failed_reads
    }

    /// Mobile node: by which paths something has passed since this was last asked: so much out, so much in.
    pub(super) fn passed(&mut self) -> impl Iterator<Item = (PathId, Traffic, Traffic)> + '_ {
        self.passed.take()
    }

    /// The errors that are to be sent.
    pub(super) fn take_reports(&mut self) -> Vec<ErrorReport> {
        std::mem::take(&mut self.reports)
    }

    /// From the tunnel device into the tunnels.
    pub(super) fn carry_out(&mut self, now: Instant, decisions: &mut Decisions) -> Result<(), Error> {
        for _ in 0..FRAMES_A_TURN {
            if self.is_blocked() {
                return Ok(());
            }
            if self.frame.is_done() && !self.tun.receive(&mut self.frame)? {
                break;
            }
            self.put_in(now, decisions)?;
        }
        (0..LANES.len()).try_for_each(|lane| self.flush(now, lane, decisions))
    }

    /// There may be room in the kernel again.
    pub(super) fn resume(
        &mut self,
        now: Instant,
        lane: usize,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        self.flush(now, lane, decisions)?;
        // What was to go first.
        self.drive_assists(now, decisions)?;
        // The rest of a frame is not in the device any more, which may stay silent from now on.
        self.carry_out(now, decisions)
    }

    /// Puts the frame into its tunnels.
    fn put_in(&mut self, now: Instant, decisions: &mut Decisions) -> Result<(), Error> {
        let Some(header) = self.frame.header() else {
            self.uncarried.other_protocol += 1;
            self.frame.discard();
            return Ok(());
        };
        if LANES.contains(&header.protocol) && decisions.is_circling(self.frame.bytes()) {
            self.uncarried.looping += 1;
            self.frame.discard();
            return Ok(());
        }
        let is_assisted = self.assists.as_ref().is_some_and(|assists| assists.wants(&header));
        let is_bonded = self.bonds.as_ref().is_some_and(|bonds| bonds.takes(&header));
        match decisions.entrances_for(&header) {
            _ if is_bonded && !is_assisted => self.put_in_several(now, &header, decisions),
            [] if is_assisted => self.put_in_assisted(now, &header, decisions),
            [] => {
                self.uncarried.no_way += 1;
                self.frame.discard();
                Ok(())
            }
            [entrance] => {
                let (mut tunnel, interface) = (way_for(entrance.tunnel, &header), entrance.interface);
                let lane = lane_of(tunnel.encapsulation);
                let mut departure = Departure { interface, ..Departure::default() };
                if header.dont_fragment {
                    let capacity = self.capacity(now, tunnel, interface, &mut decisions.paths);
                    departure = capacity.departure;
                    if self.frame.longest() > usize::from(capacity.mtu) {
                        self.uncarried.too_long += 1;
                        let datagram = self.frame.first_datagram();
                        self.report(now, Problem::TooLong { mtu: capacity.mtu }, tunnel.entry, &datagram);
                        self.frame.discard();
                        return Ok(());
                    }
                }
                if is_assisted {
                    return self.put_in_assisted(now, &header, decisions);
                }
                loop {
                    let Some(Lane { batch, .. }) = self.lanes.get_mut(lane) else { return Ok(()) };
                    let before = (batch.len(), self.frame.bytes_left());
                    let outcome = batch.push_frame(&mut tunnel, departure, &mut self.frame);
                    if let Some(entrance) = decisions.entrance(&header, tunnel.exit) {
                        let bytes = before.1.saturating_sub(self.frame.bytes_left()) as u64;
                        let packets = (batch.len() - before.0) as u64;
                        entrance.traffic.note(packets, bytes);
                        self.put_in.note(packets, bytes);
                        if self.role == Role::Mobile {
                            self.passed.note(entrance.path, true, packets, bytes);
                        }
                        if outcome.is_ok() {
                            entrance.tunnel.encapsulation = counted(entrance.tunnel, tunnel);
                        }
                    }
                    if let Err(error) = outcome {
                        self.refuse(error);
                    }
                    if self.frame.is_done() {
                        return Ok(());
                    }
                    self.flush(now, lane, decisions)?;
                    if self.is_blocked() {
                        return Ok(());
                    }
                }
            }
            _ if is_assisted => self.put_in_assisted(now, &header, decisions),
            _ => self.put_in_several(now, &header, decisions),
        }
    }

    /// Puts in the frame's datagrams one by one, as far as the assists let them through. What is there no room for in the
    /// kernel stays in the frame.
    fn put_in_assisted(
        &mut self,
        now: Instant,
        header: &Ipv4Header,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let path = decisions.entrances_for(header).last().map(|entrance| entrance.path);
        let mut scratch = std::mem::take(&mut self.scratch);
        let outcome = loop {
            match self.make_room(now, decisions) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            let Some(len) = self.frame.next_len() else { break Ok(()) };
            scratch.resize(len, 0);
            self.frame.take(&mut scratch);
            let overhead = decisions.overhead(header);
            let shown = self.show(now, Heading::Out, path, overhead, &mut scratch);
            if shown != Shown::Stays {
                let way = Way { via: None, fragments: fragments(shown) };
                match self.put_copies(now, header, &scratch, Origin::Local, way, decisions) {
                    Ok(true) => {}
                    Ok(false) => self.uncarried.no_way += 1,
                    Err(error) => break Err(error),
                }
            }
            if let Err(error) = self.follow_assists(now, decisions) {
                break Err(error);
            }
        };
        self.scratch = scratch;
        outcome
    }

    /// What an assist, if there is one, wants to become of a datagram, which it may change.
    fn show(
        &mut self,
        now: Instant,
        heading: Heading,
        path: Option<PathId>,
        overhead: u16,
        datagram: &mut [u8],
    ) -> Shown {
        let assists = self.assists.as_mut();
        assists.map_or(Shown::Passes, |assists| assists.show(now, heading, path, overhead, datagram))
    }

    /// Whether there is room for a packet in every lane, if need be after sending what is there.
    fn make_room(&mut self, now: Instant, decisions: &mut Decisions) -> Result<bool, Error> {
        for lane in 0..LANES.len() {
            if self.lanes.get(lane).is_some_and(|lane| lane.batch.is_full()) {
                self.flush(now, lane, decisions)?;
            }
        }
        Ok(!self.is_blocked())
    }

    /// Does what the assists want done, and sends it.
    pub(super) fn drive_assists(&mut self, now: Instant, decisions: &mut Decisions) -> Result<(), Error> {
        if self.assists.is_none() {
            return Ok(());
        }
        self.follow_assists(now, decisions)?;
        self.tun.flush()?;
        (0..LANES.len()).try_for_each(|lane| self.flush(now, lane, decisions))
    }

    /// Does what the assists want done, as far as there is room in the kernel; the rest when there is.
    fn follow_assists(&mut self, now: Instant, decisions: &mut Decisions) -> Result<(), Error> {
        let Some(mut assists) = self.assists.take() else { return Ok(()) };
        let outcome = loop {
            match self.make_room(now, decisions) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
            let Some(action) = assists.poll_action() else { break Ok(()) };
            let ways = &mut TunnelWays { data: self, decisions };
            if let Err(error) = do_for_assist(now, &mut assists, action, ways) {
                break Err(error);
            }
        };
        assists.take_reports(now);
        self.assists = Some(assists);
        outcome
    }

    /// Sends a datagram as if it went on now. Whether there was a way for it.
    fn send_on(
        &mut self,
        now: Instant,
        heading: Heading,
        datagram: &[u8],
        way: Way,
        decisions: &mut Decisions,
    ) -> Result<bool, Error> {
        let Ok((header, _)) = Ipv4Header::parse(datagram) else { return Ok(false) };
        match heading {
            Heading::Out => self.put_copies(now, &header, datagram, Origin::Local, way, decisions),
            // A foreign agent has no other way to a mobile node than its own link.
            Heading::In if self.role == Role::Foreign && !decisions.delivers(header.destination, way.via) => {
                Ok(false)
            }
            Heading::In if decisions.entrances_for(&header).is_empty() => {
                self.tun.send(datagram).map(|()| true)
            }
            Heading::In => {
                self.put_copies(now, &header, datagram, Origin::Forwarded, Way::PRESENT, decisions)
            }
        }
    }

    /// Several bindings: a copy of each datagram into each tunnel.
    fn put_in_several(
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
    fn put_copies(
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
    const fn refuse(&mut self, error: EncapsulationError) {
        match error {
            EncapsulationError::Malformed(_) => self.uncarried.malformed += 1,
            EncapsulationError::TooLong { .. } => self.uncarried.too_long += 1,
            EncapsulationError::TtlExpired
            | EncapsulationError::SourceIsEntry
            | EncapsulationError::SourceIsExit
            | EncapsulationError::Fragment => self.uncarried.looping += 1,
        }
    }

    /// Sends what waits in a lane.
    pub(super) fn flush(
        &mut self,
        now: Instant,
        lane: usize,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let Some(Lane { socket, batch, is_blocked }) = self.lanes.get_mut(lane) else { return Ok(()) };
        if batch.is_empty() {
            *is_blocked = false;
            return Ok(());
        }
        let uncarried = &mut self.uncarried;
        let mut told = Vec::new();
        let flushed = socket.send_batch(batch, |failure| {
            let problem = match failure.reason {
                SendFailureReason::TooBig { path_mtu } => {
                    uncarried.too_long += 1;
                    Some(path_mtu)
                }
                SendFailureReason::Unreachable(_) => {
                    uncarried.unreachable += 1;
                    None
                }
                SendFailureReason::Refused(_) => {
                    uncarried.refused += 1;
                    return;
                }
            };
            if told.len() < BATCH
                && let Some(datagram) = failure.datagram()
            {
                told.push((problem, failure.outer, datagram.into_owned()));
            }
        })?;
        *is_blocked = flushed == Flushed::Blocked;
        for (first_hop, outer, datagram) in told {
            let problem = match first_hop {
                Some(first_hop) => {
                    let Ok((inner, _)) = Ipv4Header::parse(&datagram) else { continue };
                    let tunnel =
                        decisions.entrance(&inner, outer.destination).map(|entrance| entrance.tunnel);
                    if let (Some(tunnel), true) = (tunnel, first_hop > 0)
                        && let Some(path) = decisions.paths.get(PathKey::of(tunnel, outer.interface))
                    {
                        path.learn_first_hop(now, first_hop);
                    }
                    Problem::TooLong { mtu: tunnel.map_or(0, |tunnel| tunnel.mtu(first_hop)) }
                }
                None => Problem::Unreachable,
            };
            self.report(now, problem, outer.source, &datagram);
        }
        Ok(())
    }

    /// From the tunnels of one lane into the host, or into the next tunnel.
    pub(super) fn carry_in(
        &mut self,
        now: Instant,
        lane: usize,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let Some(mut received) = self.received.take() else { return Ok(()) };
        let outcome = self.take_batches(now, lane, &mut received, decisions);
        self.received = Some(received);
        outcome?;
        self.drive_assists(now, decisions)?;
        (0..LANES.len()).try_for_each(|lane| self.flush(now, lane, decisions))
    }

    fn take_batches(
        &mut self,
        now: Instant,
        lane: usize,
        received: &mut ReceiveBatch,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        for _ in 0..BATCHES_A_TURN {
            let Some(Lane { socket, .. }) = self.lanes.get(lane) else { break };
            if socket.receive_batch(received)? == 0 {
                break;
            }
            for packet in received.packets() {
                self.take_out(now, packet, decisions)?;
            }
            self.tun.flush()?;
        }
        Ok(())
    }

    fn take_out(
        &mut self,
        now: Instant,
        packet: TunnelPacket<'_>,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let interface = packet.interface;
        if let Some(bonds) = &mut self.bonds
            && bonds.receive(now, interface, packet.bytes)
        {
            return self.take_out_of_bonds(now, decisions);
        }
        let Ok(out) = packet.decapsulate() else {
            self.uncarried.malformed += 1;
            return Ok(());
        };
        let Ok((inner, _)) = Ipv4Header::parse(&out.datagram) else {
            self.uncarried.malformed += 1;
            return Ok(());
        };
        let exit = match decisions.exit_for(interface, (&out.outer, out.encapsulation), &inner) {
            Ok(exit) => exit,
            Err(NotTaken::NotOurs) => {
                self.uncarried.not_ours += 1;
                return Ok(());
            }
            Err(NotTaken::OtherEncapsulation) => {
                self.uncarried.other_encapsulation += 1;
                return Ok(());
            }
        };
        let (packets, bytes) = (datagrams_in(out.datagram.len(), self.tunnel_mtu), out.datagram.len() as u64);
        exit.traffic.note(packets, bytes);
        self.taken_out.note(packets, bytes);
        if let Some(path) = exit.path.filter(|_| self.role == Role::Mobile) {
            self.passed.note(path, false, packets, bytes);
        }
        let (onwards, path) = (exit.onwards, exit.path);
        self.pass_on(now, &inner, &out.datagram, (onwards, path), decisions)
    }

    /// Passes on what has come out of a tunnel.
    pub(super) fn pass_on(
        &mut self,
        now: Instant,
        inner: &Ipv4Header,
        datagram: &[u8],
        (onwards, path): (bool, Option<PathId>),
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let onwards = onwards && !decisions.entrances_for(inner).is_empty();
        if self.assists.as_ref().is_some_and(|assists| assists.wants(inner)) {
            return self.take_out_assisted(now, inner, datagram, path, onwards, decisions);
        }
        if onwards {
            // A hop of its way.
            return self.put_onwards(now, inner, datagram, decisions);
        }
        self.tun.send(datagram)
    }

    /// As [`Self::take_out`], as far as the assists let a datagram through. What the kernel has put together is taken apart,
    /// and what it has left of a checksum is done, so that a packet that is stored is one like any other.
    fn take_out_assisted(
        &mut self,
        now: Instant,
        header: &Ipv4Header,
        datagram: &[u8],
        path: Option<PathId>,
        onwards: bool,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let mtu = self.assists.as_ref().map_or(u16::MAX, |assists| assists.mtu);
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut outcome = Ok(());
        if self.unfinished.hold_unfinished(datagram, mtu) {
            while let Some(len) = self.unfinished.next_len()
                && outcome.is_ok()
            {
                scratch.resize(len, 0);
                self.unfinished.take(&mut scratch);
                outcome = self.take_one_out(now, header, &mut scratch, path, onwards, decisions);
            }
        } else {
            scratch.clear();
            scratch.extend_from_slice(datagram);
            outcome = self.take_one_out(now, header, &mut scratch, path, onwards, decisions);
        }
        self.scratch = scratch;
        outcome
    }

    fn take_one_out(
        &mut self,
        now: Instant,
        header: &Ipv4Header,
        datagram: &mut [u8],
        path: Option<PathId>,
        onwards: bool,
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let overhead = decisions.overhead(header);
        // From one mobile node to another it is shown as what comes from the first, then as what goes to the second; a
        // foreign agent only passes on what its visitor sends.
        let passes = (onwards && !self.is_home())
            || self.show(now, Heading::In, path, overhead, datagram) != Shown::Stays;
        if passes && onwards {
            let path = decisions.entrances_for(header).last().map(|entrance| entrance.path);
            let shown = self.show(now, Heading::Out, path, overhead, datagram);
            if shown != Shown::Stays {
                let way = Way { via: None, fragments: fragments(shown) };
                self.put_copies(now, header, datagram, Origin::Forwarded, way, decisions)?;
            }
        } else if passes {
            self.tun.send(datagram)?;
        }
        self.follow_assists(now, decisions)
    }

    /// From one tunnel into the next. What the kernel has put together on the way in is taken apart again.
    fn put_onwards(
        &mut self,
        now: Instant,
        header: &Ipv4Header,
        datagram: &[u8],
        decisions: &mut Decisions,
    ) -> Result<(), Error> {
        let mut mtu = u16::MAX;
        for n in 0.. {
            let Some(entrance) = decisions.entrances_for(header).get(n) else { break };
            let (tunnel, interface) = (entrance.tunnel, entrance.interface);
            mtu = mtu.min(self.capacity(now, tunnel, interface, &mut decisions.paths).mtu);
        }
        if !self.unfinished.hold_unfinished(datagram, mtu) {
            return self
                .put_copies(now, header, datagram, Origin::Forwarded, Way::PRESENT, decisions)
                .map(drop);
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut outcome = Ok(());
        while let Some(len) = self.unfinished.next_len()
            && outcome.is_ok()
        {
            scratch.resize(len, 0);
            self.unfinished.take(&mut scratch);
            outcome =
                self.put_copies(now, header, &scratch, Origin::Forwarded, Way::PRESENT, decisions).map(drop);
        }
        self.scratch = scratch;
        outcome
    }

    /// Tells the sender of `datagram`, if it may be told, with the address of the tunnel's entry.
    pub(super) fn report(&mut self, now: Instant, problem: Problem, entry: Ipv4Addr, datagram: &[u8]) {
        if let Some(report) = report(problem, entry, datagram)
            && self.limit.allows(now)
        {
            self.reports.push(report);
        }
    }
}

/// The tunnels of Mobile IPv4, for what assists want sent.
struct TunnelWays<'a> {
    data: &'a mut DataPlane,
    decisions: &'a mut Decisions,
}

impl Ways for TunnelWays<'_> {
    type Error = Error;

    fn send_on(
        &mut self,
        now: Instant,
        heading: Heading,
        datagram: &[u8],
        via: Option<PathId>,
        fragments: Option<u16>,
    ) -> Result<bool, Error> {
        self.data.send_on(now, heading, datagram, Way { via, fragments }, self.decisions)
    }

    fn present_path(&mut self, header: &IpHeader) -> Option<PathId> {
        let IpHeader::V4(header) = header else { return None };
        self.decisions.entrances_for(header).last().map(|entrance| entrance.path)
    }

    fn overhead(&self, header: &IpHeader) -> u16 {
        let IpHeader::V4(header) = header else { return 0 };
        self.decisions.overhead(header)
    }

    fn report(&mut self, now: Instant, report: SegmentReport) {
        if let SegmentReport::V4(report) = report
            && self.data.limit.allows(now)
        {
            self.data.reports.push(report);
        }
    }
}
