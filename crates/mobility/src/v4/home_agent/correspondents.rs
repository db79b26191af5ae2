//! Route optimisation (draft-ietf-mobileip-optim): correspondents with which there is a security association are told
//! where a mobile node is, so that they tunnel to it themselves.
//!
//! Who has sent a packet that is tunnelled for it is told at once, and who was told is told again when that changes; each
//! update is sent again, at growing intervals, until it is acknowledged. A warning, by a foreign agent that the mobile
//! node has left, counts as such a packet: it has no authority of its own.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::Ipv4Addr;

use careof_base::Instant;
use careof_wire::mip4::{
    AuthenticationKind, BindingAcknowledge, BindingRequest, BindingUpdate, BindingWarning, Identification,
    Lifetime, Message,
};

use super::{HomeAgent, Origin};
use crate::back_off::BackOff;
use crate::replay::IdentificationSource;
use crate::v4::lifetime::end_of;
use crate::v4::{DropReason, EncapsulationChoice, ReplayProtection, SecurityAssociation, authentication};

/// Updates sent until one is acknowledged; later ones follow only what the correspondent sends.
const ATTEMPTS: u32 = 5;

/// Mobile node and correspondent.
type Key = (Ipv4Addr, Ipv4Addr);

/// What a correspondent was told of a mobile node.
#[derive(Clone, Copy, Debug)]
struct Told {
    /// Where it is; `None`: at home, or nowhere.
    care_of: Option<Ipv4Addr>,
    identification: Identification,
    /// Updates since the last acknowledgement or change.
    attempts: u32,
    acknowledged: bool,
    back_off: BackOff,
    /// When it has forgotten by itself.
    until: Instant,
}

impl Told {
    /// When an update is due, or this can be forgotten.
    fn deadline(&self) -> Instant {
        let waits = !self.acknowledged && self.attempts < ATTEMPTS;
        if waits { self.until.min(self.back_off.next()) } else { self.until }
    }
}

/// The correspondents of a home agent.
#[derive(Debug)]
pub(super) struct Correspondents {
    peers: BTreeMap<Ipv4Addr, SecurityAssociation>,
    told: BTreeMap<Key, Told>,
    deadlines: BTreeSet<(Instant, Key)>,
    identifications: IdentificationSource,
    max: usize,
}

impl Correspondents {
    pub(super) fn new(peers: BTreeMap<Ipv4Addr, SecurityAssociation>, max: usize) -> Self {
        Self {
            peers,
            told: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            identifications: IdentificationSource::new(ReplayProtection::TIMESTAMPS),
            max,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at).filter(|&at| at < Instant::MAX)
    }

    fn insert(&mut self, key: Key, told: Told) {
        self.remove(key);
        self.deadlines.insert((told.deadline(), key));
        self.told.insert(key, told);
    }

    fn remove(&mut self, key: Key) -> Option<Told> {
        let told = self.told.remove(&key)?;
        self.deadlines.remove(&(told.deadline(), key));
        Some(told)
    }

    /// Whom `home_address` was told to.
    fn of(&self, home_address: Ipv4Addr) -> Vec<Key> {
        let range = (home_address, Ipv4Addr::UNSPECIFIED)..=(home_address, Ipv4Addr::BROADCAST);
        self.told.range(range).map(|(&key, _)| key).collect()
    }
}

impl HomeAgent {
    /// Whether packets it tunnels are worth a call of [`HomeAgent::tunnelled`].
    #[must_use]
    pub fn has_correspondents(&self) -> bool {
        !self.correspondents.peers.is_empty()
    }

    /// A packet from `source` for `home_address` was tunnelled: its sender, if it is one that can use it, is told where the
    /// mobile node is. To be called for every such packet; how often it is told is seen to here.
    pub fn tunnelled(&mut self, now: Instant, home_address: Ipv4Addr, source: Ipv4Addr) {
        self.outbox.called_at(now);
        if !self.correspondents.peers.contains_key(&source) {
            return;
        }
        let key = (home_address, source);
        let Some(mut told) = self.correspondents.remove(key) else {
            return self.update(now, key, None, None);
        };
        let allowed = told.back_off.allows(now);
        self.correspondents.insert(key, told);
        if allowed {
            self.update(now, key, Some(told.back_off), None);
        }
    }

    /// The bindings of `home_address` have changed: those who were told of others hear of it.
    pub(super) fn tell_correspondents(&mut self, now: Instant, home_address: Ipv4Addr) {
        let care_of = self.bindings.of(home_address).last().map(|binding| binding.care_of);
        for key in self.correspondents.of(home_address) {
            match self.correspondents.told.get(&key) {
                Some(told) if told.care_of == care_of => {}
                // Who knows of none is no better off than who was never told.
                Some(told) if told.care_of.is_none() && told.acknowledged => {
                    self.correspondents.remove(key);
                }
                _ => self.update(now, key, None, None),
            }
        }
    }

    pub(super) fn handle_correspondents_timeout(&mut self, now: Instant) {
        while let Some(&(at, key)) = self.correspondents.deadlines.first() {
            if at > now || at == Instant::MAX {
                break;
            }
            let Some(mut told) = self.correspondents.remove(key) else { break };
            if told.until > now && told.back_off.allows(now) {
                self.correspondents.insert(key, told);
                self.update(now, key, Some(told.back_off), None);
            }
        }
    }

    pub(super) fn handle_warning(&mut self, now: Instant, origin: Origin, warning: &BindingWarning) {
        if !self.nodes.contains_key(&warning.home_address) {
            return self.outbox.drop(DropReason::UnknownHomeAddress, origin.source);
        }
        if !self.correspondents.peers.contains_key(&warning.target) {
            return self.outbox.drop(DropReason::NotOffered, origin.source);
        }
        self.tunnelled(now, warning.home_address, warning.target);
    }

    /// A correspondent asks where a mobile node is, for it is about to forget.
    pub(super) fn handle_binding_request(
        &mut self,
        now: Instant,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        request: &BindingRequest,
    ) {
        if let Err(reason) = self.check_correspondent(origin.source, bytes, message) {
            return self.outbox.drop(reason, origin.source);
        }
        if !self.nodes.contains_key(&request.home_address) {
            return self.outbox.drop(DropReason::UnknownHomeAddress, origin.source);
        }
        let key = (request.home_address, origin.source);
        self.update(now, key, None, Some(request.identification));
    }

    pub(super) fn handle_acknowledge(
        &mut self,
        origin: Origin,
        bytes: &[u8],
        message: &Message,
        acknowledge: &BindingAcknowledge,
    ) {
        if let Err(reason) = self.check_correspondent(origin.source, bytes, message) {
            return self.outbox.drop(reason, origin.source);
        }
        let key = (acknowledge.home_address, origin.source);
        let found = self.correspondents.told.get(&key);
        if found.is_none_or(|told| told.identification != acknowledge.identification) {
            return self.outbox.drop(DropReason::UnexpectedReply, origin.source);
        }
        if let Some(told) = self.correspondents.remove(key) {
            // Also that there is no binding: otherwise every warning would have it told again. One that was refused is told
            // again when its packets come this way, as anybody's.
            self.correspondents.insert(key, Told { acknowledged: true, ..told });
        }
    }

    fn check_correspondent(
        &self,
        source: Ipv4Addr,
        bytes: &[u8],
        message: &Message,
    ) -> Result<(), DropReason> {
        let association = self.correspondents.peers.get(&source);
        let kind = AuthenticationKind::RouteOptimization;
        authentication::check(bytes, message, kind, association.into_iter()).map(|_| ())
    }

    /// Sends an update: the first of its kind, one that follows others at `back_off`, or one that answers a request.
    fn update(&mut self, now: Instant, key: Key, back_off: Option<BackOff>, answers: Option<Identification>) {
        let (home_address, peer) = key;
        let old = self.correspondents.remove(key);
        if old.is_none() && self.correspondents.told.len() >= self.correspondents.max {
            return self.outbox.drop(DropReason::TableFull, peer);
        }
        let Some(association) = self.correspondents.peers.get(&peer) else { return };
        let clock = self.config.clock;
        let identification =
            answers.unwrap_or_else(|| self.correspondents.identifications.next(now, clock, &mut self.random));
        // What is left of it, so that nobody keeps it longer than we do.
        let left = |expires: Instant| match expires {
            Instant::MAX => Lifetime::INFINITE,
            _ => {
                let seconds = expires.saturating_duration_since(now).as_secs();
                Lifetime::from_secs(u16::try_from(seconds).unwrap_or(u16::MAX - 1))
            }
        };
        // In its last second a binding is as good as none: a lifetime of zero has it forgotten.
        let binding = self.bindings.of(home_address).last().copied();
        let binding = binding.filter(|binding| !left(binding.expires).is_zero());
        let lifetime = binding.map_or(Lifetime::ZERO, |binding| left(binding.expires));
        let choice = binding.map(|binding| EncapsulationChoice::of(binding.tunnel.encapsulation));
        let update = BindingUpdate {
            acknowledge: true,
            minimal_encapsulation: choice == Some(EncapsulationChoice::Minimal),
            gre: choice == Some(EncapsulationChoice::Gre),
            lifetime,
            home_address,
            care_of_address: binding.map_or(home_address, |binding| binding.care_of),
            identification: Some(identification),
            extensions: Vec::new(),
        };
        let mut bytes = Message::BindingUpdate(update).emit();
        authentication::append(&mut bytes, AuthenticationKind::RouteOptimization, association);
        let attempts = old.filter(|_| back_off.is_some()).map_or(0, |told| told.attempts);
        // What is to be forgotten is worth telling for as long as it would have been known.
        let until = match binding {
            Some(_) => end_of(lifetime, now),
            None => old.map_or(now + BackOff::LONGEST, |told| told.until.min(now + BackOff::LONGEST)),
        };
        self.correspondents.insert(
            key,
            Told {
                care_of: binding.map(|binding| binding.care_of),
                identification,
                attempts: attempts + 1,
                acknowledged: false,
                back_off: back_off.unwrap_or_else(|| BackOff::begin(now)),
                until,
            },
        );
        self.outbox.message(None, self.config.address, peer, bytes);
    }
}
