//! TCP-CM on real hosts: who has a congestion control that can be told of handovers, and who is told when.
//!
//! The instants are those of the simulator, by the same events of the agents: a correspondent's TCP is told when its agent finds the ToH bit in a Binding
//! Update, the mobile node's own when its path is lost and when it is registered again. What a kernel's TCP makes of it is less than what the
//! model does; `careof_lab::ToldCongestion` says how much.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

use careof_base::Instant;
use careof_lab::told_congestion::{Base, Deed, Estimator, News};
use careof_lab::{Clock, ToldCongestion};
use careof_mobility::{HandoverEvent, HandoverStyle, InterfaceId, v6};
use careof_plan::{FlowId, NodeId, Side, Topology, exceptions, flow_key};
use careof_scenario::{Assist, BandwidthSource, Protocol, Scenario, TcpCm, Workload};

use crate::error::WorldError;
use crate::report::AgentEvent;
use crate::tcp::KernelChoice;

/// What is to be said of every run with it.
pub(crate) const REMARK: &str = "assist tcp-cm: of a kernel's TCP it sets congestion window and slow start threshold; what is outstanding is sent again when \
     the kernel's timer or acknowledgements say that it is lost, and SRTT, RTO and back-off are the kernel's (more is the simulator's)";

/// Who is to have such a congestion control, and what it is to be.
pub(crate) struct TcpCmPlan {
    estimator: Estimator,
    resend: bool,
    suspend: bool,
    /// What each flow's senders have; `None` for a flow without.
    bases: Vec<Option<Base>>,
    ends: BTreeSet<End>,
}

/// One end of connections: a host, and the address of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    base: Base,
    node: NodeId,
    local: Ipv6Addr,
    remote: Ipv6Addr,
}

impl TcpCmPlan {
    /// Without looking at the machine; `None` where the scenario does not ask for it.
    ///
    /// # Errors
    /// [`WorldError::Unsupported`] for what a correspondent or its kernel cannot be told.
    pub(crate) fn new(
        scenario: &Scenario,
        topology: &Topology,
        choices: &[KernelChoice],
    ) -> Result<Option<Self>, WorldError> {
        let manager = scenario.assists.iter().find_map(|assist| match assist {
            Assist::TcpCm(manager) => Some(*manager),
            _ => None,
        });
        let Some(TcpCm { resend, suspend, estimator }) = manager else { return Ok(None) };
        let unsupported = |key: String, found: String, remedy: &str| {
            Err(WorldError::Unsupported { key, found, remedy: remedy.to_owned() })
        };
        let is_told = scenario
            .mobility
            .as_ref()
            .is_some_and(|mobility| mobility.protocol == Protocol::MobileIpv6 && mobility.route_optimization);
        if !is_told {
            return unsupported(
                "assist.use".to_owned(),
                "\"tcp-cm\"".to_owned(),
                "here the Binding Update alone tells a correspondent: write protocol = \"mobile-ipv6\" and route_optimization = true in [mobility], \
                 or use the simulator",
            );
        }
        let estimator = match estimator {
            BandwidthSource::Westwood => Estimator::Westwood,
            BandwidthSource::DeliveryRate => Estimator::DeliveryRate,
            BandwidthSource::Link => {
                return unsupported(
                    "assist.tcp-cm.estimator".to_owned(),
                    "\"link\"".to_owned(),
                    "the hosts of this world do not tell each other the rates of their links: write \"westwood\" or \"delivery-rate\", or use the simulator",
                );
            }
        };
        let except = exceptions(scenario, topology);
        let (mut bases, mut ends) = (Vec::new(), BTreeSet::new());
        for (index, (flow, choice)) in scenario.flows.iter().zip(choices).enumerate() {
            bases.push(None);
            let find = |node| topology.find(&scenario.node(node).name).unwrap_or(NodeId(0));
            let nodes = [flow.from, flow.to].map(find);
            let addresses = nodes.map(|node| topology.address(topology.address_of(node)));
            let moves = |side: &Side| topology.homes.index(nodes[side.index()]).is_some();
            let Some(mobile) = Side::BOTH.into_iter().find(moves) else { continue };
            let key = flow_key(FlowId(index as u16), mobile, addresses);
            let has_no_tcp = matches!(flow.workload, Workload::Probe { .. } | Workload::Voice(_));
            if has_no_tcp || except.iter().any(|exception| exception.covers(&key)) {
                continue;
            }
            if flow.workload == Workload::Command {
                return unsupported(
                    format!("flow.{index}.command"),
                    "a program".to_owned(),
                    "what it sends by is its own choice, and tcp-cm does not know its sockets: except it in [assist], or use the simulator's kinds of flows",
                );
            }
            let Some(base) = Base::ALL.into_iter().find(|base| base.name() == choice.congestion) else {
                return unsupported(
                    format!("flow.{index}.tcp.congestion"),
                    format!("\"{}\"", choice.congestion),
                    "with tcp-cm a kernel sends by \"cubic\" or \"reno\"",
                );
            };
            let [IpAddr::V6(opener), IpAddr::V6(acceptor)] = addresses else { continue };
            bases[index] = Some(base);
            ends.insert(End { base, node: nodes[0], local: opener, remote: acceptor });
            ends.insert(End { base, node: nodes[1], local: acceptor, remote: opener });
        }
        Ok(Some(Self { estimator, resend, suspend, bases, ends }))
    }

    /// Registers what is needed with the kernel, and has the flows' sockets choose it.
    ///
    /// # Errors
    /// [`WorldError::Lab`] where this machine does not give it.
    pub(crate) fn register(self, choices: &mut [KernelChoice]) -> Result<SenderTeller, WorldError> {
        let mut controls = BTreeMap::new();
        for (base, choice) in self.bases.iter().zip(choices) {
            let Some(base) = *base else { continue };
            let control = match controls.remove(&base) {
                Some(control) => control,
                None => ToldCongestion::register(base, self.estimator, self.resend)?,
            };
            choice.registered = Some(control.name().to_owned());
            controls.insert(base, control);
        }
        Ok(SenderTeller { controls, suspend: self.suspend, ends: self.ends, mobiles: BTreeMap::new() })
    }
}

/// Tells senders of handovers, as agents tell of them.
pub(crate) struct SenderTeller {
    controls: BTreeMap<Base, ToldCongestion>,
    suspend: bool,
    ends: BTreeSet<End>,
    /// By mobile node.
    mobiles: BTreeMap<u16, Mobile>,
}

/// A mobile node, as its agent has told so far.
#[derive(Clone, Copy, Debug, Default)]
struct Mobile {
    /// The interface that is registered.
    active: Option<InterfaceId>,
    /// What that leads to is lost.
    is_lost: bool,
    /// Its senders were told that there is no path.
    is_away: bool,
}

impl Mobile {
    /// What its own senders are told at this event; `registered` is whether packets to it arrive.
    fn hear<A, C>(&mut self, event: &HandoverEvent<A, C>, registered: bool) -> Option<News> {
        let lost = match *event {
            HandoverEvent::LinkDown { interface } | HandoverEvent::PathSilent { interface, .. }
                if self.active == Some(interface) =>
            {
                self.is_lost = true;
                true
            }
            HandoverEvent::Initiated { style: HandoverStyle::BreakBeforeMake, .. } => self.active.is_some(),
            HandoverEvent::Registered { to, .. } => {
                let before =
                    std::mem::replace(self, Self { active: Some(to), is_lost: false, is_away: false });
                return before.active.map(|_| News::PathBack);
            }
            HandoverEvent::LinkUp { interface } | HandoverEvent::PathAnswers { interface }
                if self.active == Some(interface) =>
            {
                self.is_lost = false;
                false
            }
            // The way back: what it has left may be there still.
            HandoverEvent::Failed { .. } => false,
            _ => return None,
        };
        if lost && !self.is_away {
            self.is_away = true;
            return Some(News::PathLost);
        }
        if !lost && self.is_away && registered && !self.is_lost {
            self.is_away = false;
            return Some(News::PathBack);
        }
        None
    }
}

impl SenderTeller {
    /// An agent on `node` tells something: so are the senders that it concerns.
    ///
    /// # Errors
    /// What [`ToldCongestion::tell`] says.
    pub(crate) fn hear(
        &mut self,
        node: NodeId,
        (at, clock): (Instant, Clock),
        event: &AgentEvent,
        registered: bool,
    ) -> Result<(), WorldError> {
        match event {
            AgentEvent::V6(v6::Event::HandoverEnded { home_address, .. }) => {
                self.tell(News::PathReplaced, (at, clock), |end| {
                    end.node == node && end.remote == *home_address
                })
            }
            AgentEvent::V6(v6::Event::Handover(event)) if self.suspend => {
                match self.mobiles.entry(node.0).or_default().hear(event, registered) {
                    Some(news) => self.tell(news, (at, clock), |end| end.node == node),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn tell(
        &self,
        news: News,
        (at, clock): (Instant, Clock),
        is_meant: impl Fn(&End) -> bool,
    ) -> Result<(), WorldError> {
        for end in self.ends.iter().filter(|end| is_meant(end)) {
            if let Some(control) = self.controls.get(&end.base) {
                control.tell(end.local, end.remote, news, at, clock)?;
            }
        }
        Ok(())
    }

    /// What senders did since the last call.
    ///
    /// # Errors
    /// What [`ToldCongestion::take_deeds`] says.
    pub(crate) fn deeds(&self, clock: Clock) -> Result<Vec<Deed>, WorldError> {
        let mut deeds = Vec::new();
        for control in self.controls.values() {
            deeds.extend(control.take_deeds(clock)?);
        }
        Ok(deeds)
    }

    /// Sees that nothing of what senders did was lost.
    ///
    /// # Errors
    /// [`WorldError::Untold`], or what [`ToldCongestion::faults`] says.
    pub(crate) fn check(&self) -> Result<(), WorldError> {
        let mut lost = 0;
        for control in self.controls.values() {
            lost += control.faults()?;
        }
        if lost > 0 { Err(WorldError::Untold { lost }) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use careof_base::Duration;
    use careof_mobility::{HandoverReason, Notice, PathProperties};
    use careof_plan::lay_out;

    use super::*;
    use crate::tcp::choose;

    const STRAIGHT: &str = "duration = \"20 s\"\n[links]\na = \"lte\"\nb = \"lte\"\n[mobility]\nprotocol = \"mobile-ipv6\"\n\
        route_optimization = true\n[[handover]]\nat = \"5 s\"\nfrom = \"a\"\nto = \"b\"\n[[flow]]\nname = \"download\"\nfrom = \"correspondent\"\n\
        to = \"mobile\"\n[[flow]]\nname = \"upload\"\nfrom = \"mobile\"\nto = \"correspondent\"\n[assist]\nuse = \"tcp-cm\"\n";

    fn planned(overrides: &[&str]) -> Result<Option<TcpCmPlan>, String> {
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        let scenario =
            Scenario::parse("x.toml", STRAIGHT, &overrides).unwrap_or_else(|errors| panic!("{errors}"));
        let choices: Vec<_> =
            scenario.flows.iter().enumerate().map(|(n, flow)| choose(n, flow).unwrap()).collect();
        TcpCmPlan::new(&scenario, &lay_out(&scenario), &choices).map_err(|error| error.to_string())
    }

    #[test]
    fn every_sender_of_a_flow_with_a_mobile_node_is_told() {
        let plan = planned(&["flow.upload.tcp.congestion=reno"]).unwrap().unwrap();
        assert_eq!(plan.bases, [Some(Base::Cubic), Some(Base::Reno)]);
        // Both ends of both.
        assert_eq!(plan.ends.len(), 4);
        assert!(planned(&["assist=none"]).unwrap().is_none());
    }

    #[test]
    fn what_cannot_be_told_is_refused_by_its_key() {
        for (given, key, remedy) in [
            ("mobility.route_optimization=false", "assist.use: \"tcp-cm\"", "route_optimization = true"),
            ("assist.tcp-cm.estimator=link", "assist.tcp-cm.estimator: \"link\"", "\"westwood\""),
            (
                "flow.download.tcp={ variant = \"kernel\", congestion = \"bbr\" }",
                "flow.0.tcp.congestion: \"bbr\"",
                "\"cubic\"",
            ),
        ] {
            let said = planned(&[given]).err().unwrap();
            assert!(said.starts_with(key) && said.contains(remedy), "{said}");
        }
    }

    #[test]
    fn a_mobile_node_s_own_senders_hear_once_that_the_path_is_lost_and_once_that_it_is_back() {
        let (first, second) = (InterfaceId(0), InterfaceId(1));
        let registered = |to| HandoverEvent::<Ipv6Addr, u8>::Registered {
            from: None,
            to,
            care_of: None,
            attempts: 1,
            latency: Duration::ZERO,
            round_trip: Duration::ZERO,
            old: PathProperties::default(),
            new: PathProperties::default(),
            keeps_old: false,
        };
        let initiated = |style| HandoverEvent::<Ipv6Addr, u8>::Initiated {
            from: Some(first),
            to: second,
            notice: Notice::None,
            reason: HandoverReason::Chosen,
            style,
            old: PathProperties::default(),
            new: PathProperties::default(),
        };
        let mut mobile = Mobile::default();
        assert_eq!(
            mobile.hear(&initiated(HandoverStyle::BreakBeforeMake), false),
            None,
            "it had no path yet"
        );
        assert_eq!(mobile.hear(&registered(first), true), None, "now it has one");
        assert_eq!(mobile.hear(&HandoverEvent::<Ipv6Addr, u8>::LinkDown { interface: second }, true), None);
        let down = HandoverEvent::<Ipv6Addr, u8>::LinkDown { interface: first };
        assert_eq!(mobile.hear(&down, true), Some(News::PathLost));
        assert_eq!(mobile.hear(&initiated(HandoverStyle::BreakBeforeMake), true), None, "it is lost already");
        assert_eq!(mobile.hear(&registered(second), true), Some(News::PathBack));
        assert_eq!(mobile.hear(&initiated(HandoverStyle::MakeBeforeBreak), true), None, "there is a path");
        let down = HandoverEvent::<Ipv6Addr, u8>::LinkDown { interface: second };
        let up = HandoverEvent::<Ipv6Addr, u8>::LinkUp { interface: second };
        assert_eq!(mobile.hear(&down, true), Some(News::PathLost));
        assert_eq!(mobile.hear(&up, true), Some(News::PathBack), "the same path");
    }
}
