//! What the agent tells, as lines of the log in the RFC's words.

use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};

use careof_base::Instant;
use careof_mobility::multipath::alliance::{ClientEvent, RelayEvent};
use careof_mobility::multipath::{BondEvent, PathChange};
use careof_mobility::v4::{
    AgentEvent, AgentLoss, ArpEvent, Change, DropReason, Event, RegistrationEvent, RegistrationStep,
    VisitorChanged,
};
use careof_mobility::{HandoverEvent, HandoverFailure, HandoverStyle, InterfaceId};
use careof_wire::mip4::ReplyCode;

use super::throttle::Throttle;
use crate::{Carrier, ClusterEvent, MultipathEvent};

/// Writes the log of one agent.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    throttle: Throttle,
}

/// A line of the log, unless there were too many of its kind.
macro_rules! line {
    ($reporter:expr, $now:expr, $level:ident, $kind:literal, $($rest:tt)+) => {
        if tracing::enabled!(tracing::Level::$level)
            && let Some(suppressed) = $reporter.throttle.admit($now, $kind)
        {
            let suppressed = (suppressed > 0).then_some(suppressed);
            tracing::event!(tracing::Level::$level, suppressed, $($rest)+);
        }
    };
}

mod ipv6;

impl Reporter {
    /// How many lines were left out so far.
    pub(super) const fn suppressed(&self) -> u64 {
        self.throttle.total()
    }

    /// When [`Reporter::settle`] wants to be called.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.throttle.next_timeout()
    }

    /// Tells what was left out when nothing followed it.
    pub(super) fn settle(&mut self, now: Instant) {
        for (kind, suppressed) in self.throttle.settle(now) {
            tracing::warn!(kind, suppressed, "Lines suppressed");
        }
    }

    /// Writes that bindings cannot be written down, or that they can again.
    pub(super) fn store(&mut self, now: Instant, problem: Option<&str>) {
        match problem {
            Some(problem) => line!(
                self,
                now,
                ERROR,
                "store",
                problem,
                "Bindings cannot be written down; a crash now would lose what changed"
            ),
            None => line!(self, now, INFO, "store", "All bindings are written down again"),
        }
    }

    /// Writes which addresses of the agent its host does not have, or that it has them all.
    pub(super) fn missing(&mut self, now: Instant, addresses: &[IpAddr]) {
        if addresses.is_empty() {
            return line!(self, now, INFO, "address", "This host has all addresses of the agent again");
        }
        let addresses = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let hint = "`ip address add ADDRESS dev INTERFACE` gives it back; the agent goes on by itself then";
        line!(
            self,
            now,
            ERROR,
            "address",
            addresses,
            hint,
            "This host does not have an address of the agent: nobody reaches it there"
        );
    }

    /// Writes what the host refused.
    pub(super) fn problem(&mut self, now: Instant, problem: &str) {
        line!(self, now, ERROR, "problem", problem, "Refused");
    }

    /// Writes what `event` of the agent that `carrier` carries says.
    pub(super) fn event(&mut self, now: Instant, carrier: &Carrier, event: &Event) {
        let name = |id: InterfaceId| carrier.interface_name(id).unwrap_or("?");
        match event {
            Event::Handover(event) => self.handover(now, &name, event, ReplyCode::number),
            Event::Binding(event) => {
                let addresses = (event.home_address.into(), event.care_of.into());
                self.binding(now, addresses, None, &event.lifetime, event.change);
            }
            Event::ReverseTunnelEnded { .. } => {}
            Event::Visitor(event) => self.visitor(now, name(event.interface), event),
            Event::Arp(event) => self.arp(now, event),
            Event::Registration(event) => self.registration(now, &name, event),
            Event::Agent(event) => self.agent(now, &name, event),
            Event::Dropped { reason, source } => {
                let hint = match reason {
                    DropReason::BadAuthenticator => {
                        Some("the key or algorithm of the other end is another one")
                    }
                    DropReason::UnknownSpi => Some("the other end uses an SPI that is not configured here"),
                    _ => None,
                };
                line!(self, now, WARN, "dropped", cause = reason.name(), %source, hint, "Message dropped");
            }
        }
    }

    /// Writes what happened to a tunnel over several paths.
    pub(super) fn multipath(&mut self, now: Instant, event: &MultipathEvent) {
        let home_address = event.home_address;
        match event.event {
            BondEvent::Path { path, change: PathChange::Out } => {
                let path = path.number();
                line!(self, now, WARN, "path", %home_address, path, "Path out");
            }
            BondEvent::Path { path, change: PathChange::Back } => {
                let path = path.number();
                line!(self, now, INFO, "path", %home_address, path, "Path back");
            }
            BondEvent::Proven { path } => {
                let path = path.number();
                line!(self, now, INFO, "path", %home_address, path, "Path through a relay works");
            }
            BondEvent::PeerRestarted => {
                line!(self, now, INFO, "path", %home_address, "The other end has begun anew");
            }
        }
    }

    /// Writes what happened in a cluster.
    pub(super) fn cluster(&mut self, now: Instant, event: &ClusterEvent) {
        match *event {
            ClusterEvent::Client(ClientEvent::RelayGained { relay, outside, cost, .. }) => {
                line!(self, now, INFO, "relay", %relay, care_of = %outside, cost, "Relay gained");
            }
            ClusterEvent::Client(ClientEvent::RelayLost { relay, outside, why }) => {
                let why = why.name();
                line!(self, now, INFO, "relay", %relay, care_of = %outside, why, "Relay lost");
            }
            ClusterEvent::Relay(RelayEvent::Allied { home_address, client }) => {
                line!(self, now, INFO, "alliance", %home_address, %client, "Alliance begun");
            }
            ClusterEvent::Relay(RelayEvent::Ended { home_address, why }) => {
                let why = why.name();
                line!(self, now, INFO, "alliance", %home_address, why, "Alliance ended");
            }
        }
    }

    /// `number` is that of a denial's code.
    fn handover<'n, A: Copy + Display, C: Copy>(
        &mut self,
        now: Instant,
        name: &dyn Fn(InterfaceId) -> &'n str,
        event: &HandoverEvent<A, C>,
        number: fn(C) -> u8,
    ) {
        match *event {
            HandoverEvent::Initiated { from, to, style, reason, .. } => {
                let reason = reason.to_string();
                let style = match style {
                    HandoverStyle::MakeBeforeBreak => "make-before-break",
                    HandoverStyle::BreakBeforeMake => "break-before-make",
                };
                line!(
                    self,
                    now,
                    INFO,
                    "handover",
                    from = from.map(name),
                    to = name(to),
                    style,
                    reason,
                    "Handover initiated"
                );
            }
            HandoverEvent::LinkDown { interface } => {
                line!(self, now, INFO, "link", interface = name(interface), "Link down");
            }
            HandoverEvent::LinkUp { interface } => {
                line!(self, now, INFO, "link", interface = name(interface), "Link up");
            }
            HandoverEvent::PathSilent { interface, silence } => {
                let silence_ms = millis(silence);
                line!(self, now, WARN, "path", interface = name(interface), silence_ms, "Path silent");
            }
            HandoverEvent::PathAnswers { interface } => {
                line!(self, now, INFO, "path", interface = name(interface), "Path answers again");
            }
            HandoverEvent::Registered { from, to, care_of, attempts, latency, round_trip, .. } => {
                let care_of = care_of.map(tracing::field::display);
                let (latency_ms, round_trip_ms) = (millis(latency), millis(round_trip));
                line!(
                    self,
                    now,
                    INFO,
                    "handover",
                    from = from.map(name),
                    to = name(to),
                    care_of,
                    attempts,
                    latency_ms,
                    round_trip_ms,
                    "Handover registered"
                );
            }
            HandoverEvent::Terminated { from, to, duration } => {
                let duration_ms = millis(duration);
                line!(
                    self,
                    now,
                    DEBUG,
                    "handover",
                    from = from.map(name),
                    to = name(to),
                    duration_ms,
                    "Handover terminated"
                );
            }
            HandoverEvent::Failed { from, to, reason } => {
                let (reason, code) = match reason {
                    HandoverFailure::Denied(code) => ("denied", Some(code)),
                    HandoverFailure::NoReply => ("no reply", None),
                    HandoverFailure::Superseded => ("superseded", None),
                    HandoverFailure::LinkLost => ("link lost", None),
                };
                let code = code.map(number);
                line!(
                    self,
                    now,
                    WARN,
                    "handover-failed",
                    from = from.map(name),
                    to = name(to),
                    reason,
                    code,
                    "Handover failed"
                );
            }
        }
    }

    /// `id` is the Binding Identifier, where there are several (RFC 5648).
    fn binding(
        &mut self,
        now: Instant,
        (home_address, care_of): (IpAddr, IpAddr),
        id: Option<u16>,
        lifetime: &dyn Display,
        change: Change,
    ) {
        match change {
            Change::Created => {
                line!(self, now, INFO, "binding", %home_address, %care_of, id, %lifetime, "Mobility binding created");
            }
            Change::Updated => {
                line!(self, now, DEBUG, "binding-updated", %home_address, %care_of, id, %lifetime, "Mobility binding updated");
            }
            Change::Removed => {
                line!(self, now, INFO, "binding", %home_address, %care_of, id, "Mobility binding removed");
            }
            Change::Expired => {
                line!(self, now, WARN, "binding-expired", %home_address, %care_of, id, "Mobility binding expired");
            }
        }
    }

    fn visitor(&mut self, now: Instant, interface: &str, event: &VisitorChanged) {
        let VisitorChanged { home_address, care_of, lifetime, change, .. } = event;
        match change {
            Change::Created => {
                line!(self, now, INFO, "visitor", %home_address, interface, %care_of, %lifetime, "Visitor entry created");
            }
            Change::Updated => {
                line!(self, now, DEBUG, "visitor-updated", %home_address, interface, %lifetime, "Visitor entry updated");
            }
            Change::Removed => {
                line!(self, now, INFO, "visitor", %home_address, interface, "Visitor entry removed");
            }
            Change::Expired => {
                line!(self, now, INFO, "visitor", %home_address, interface, "Visitor entry expired");
            }
        }
    }

    fn arp(&mut self, now: Instant, event: &ArpEvent) {
        match event {
            ArpEvent::Proxy { home_address, on, .. } => {
                line!(self, now, DEBUG, "arp", %home_address, on, "Proxy ARP");
            }
            ArpEvent::Answer { home_address, on } => {
                line!(self, now, DEBUG, "arp", %home_address, on, "ARP for the home address");
            }
            ArpEvent::Gratuitous { home_address, .. } => {
                line!(self, now, DEBUG, "arp", %home_address, "Gratuitous ARP");
            }
        }
    }

    fn registration<'n>(
        &mut self,
        now: Instant,
        name: &dyn Fn(InterfaceId) -> &'n str,
        event: &RegistrationEvent,
    ) {
        let RegistrationEvent { step, home_address, care_of, lifetime, identification, interface } = event;
        let interface = interface.map(name);
        let care_of = (*care_of != Ipv4Addr::UNSPECIFIED).then(|| tracing::field::display(care_of));
        let identification = format_args!("{:016x}", identification.0);
        match *step {
            RegistrationStep::RequestSent { attempt } => line!(
                self, now, DEBUG, "request", %home_address, care_of, %lifetime, %identification, interface, attempt,
                "Registration Request sent"
            ),
            RegistrationStep::RequestReceived => line!(
                self, now, DEBUG, "request", %home_address, care_of, %lifetime, %identification,
                "Registration Request received"
            ),
            RegistrationStep::RequestRelayed => line!(
                self, now, DEBUG, "request", %home_address, care_of, %lifetime, %identification,
                "Registration Request relayed"
            ),
            RegistrationStep::ReplySent { code } => {
                if is_denial(code) {
                    line!(
                        self, now, WARN, "denied", %home_address, care_of, code = code.number(), reason = %code,
                        "Registration denied"
                    );
                } else {
                    line!(
                        self, now, DEBUG, "reply", %home_address, care_of, %lifetime, code = code.number(),
                        "Registration Reply sent"
                    );
                }
            }
            RegistrationStep::ReplyRelayed { code } => line!(
                self, now, DEBUG, "reply", %home_address, %lifetime, code = code.number(), "Registration Reply relayed"
            ),
            RegistrationStep::Accepted { code, round_trip } => line!(
                self, now, DEBUG, "accepted", %home_address, care_of, %lifetime, interface, code = code.number(),
                round_trip_ms = millis(round_trip), "Registration accepted"
            ),
            RegistrationStep::Denied { code, round_trip } => line!(
                self, now, WARN, "denied", %home_address, care_of, interface, code = code.number(), reason = %code,
                round_trip_ms = millis(round_trip), "Registration denied"
            ),
            RegistrationStep::TimedOut { attempt } => line!(
                self, now, WARN, "timed-out", %home_address, care_of, interface, attempt,
                "Registration Request unanswered"
            ),
        }
    }

    fn agent<'n>(&mut self, now: Instant, name: &dyn Fn(InterfaceId) -> &'n str, event: &AgentEvent) {
        match event {
            AgentEvent::Found { interface, agent } => {
                line!(self, now, INFO, "agent", interface = name(*interface), %agent, "Mobility agent found");
            }
            AgentEvent::Lost { interface, agent, cause } => {
                let cause = match cause {
                    AgentLoss::LifetimeExpired => "lifetime expired",
                    AgentLoss::MissedAdvertisements => "missed advertisements",
                    AgentLoss::LinkDown => "link down",
                    AgentLoss::Forgotten => "forgotten",
                };
                line!(self, now, INFO, "agent", interface = name(*interface), %agent, cause, "Mobility agent lost");
            }
            AgentEvent::Rebooted { interface, agent } => {
                line!(self, now, WARN, "agent", interface = name(*interface), %agent, "Foreign agent rebooted");
            }
            AgentEvent::PrefixChanged { interface, agent } => {
                line!(self, now, INFO, "agent", interface = name(*interface), %agent, "Network prefix changed");
            }
        }
    }
}

const fn is_denial(code: ReplyCode) -> bool {
    code.number() > 8
}

fn millis(span: careof_base::Duration) -> f64 {
    // Microseconds are enough for people.
    (span.as_secs_f64() * 1e6).round() / 1e3
}
