//! `[assist]`: which assists, their parameters, and what they need of the rest of the scenario.

use careof_assist::QueueAtHandover;
use careof_assist_file::{AssistFile, Except, NAMES};
use careof_base::Duration;

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::mobility::{To, destination};
use crate::model::{Assist, AssistPlace, QueuedFate};
use crate::reference::assist::{ASSIST, EXCEPT};
use crate::tcp::TcpDraft;
use crate::tree::quote;

mod parameters;

use parameters::{Read, with_parameters};

/// A scenario can use every assist.
static FILE: AssistFile = AssistFile { section: &ASSIST, except: &EXCEPT, known: &NAMES, refusal: None };

/// The `[assist]` table, before it is known whether the rest of the scenario suits it.
#[derive(Debug, Default)]
pub(crate) struct AssistDraft<'a> {
    pub(crate) uses: Vec<Use>,
    /// A node not yet looked up.
    pub(crate) except: Vec<Except<To<'a>>>,
}

/// An assist and where it is named.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) assist: Assist,
    origin: Origin,
    path: String,
    /// Where its `at` is written, if it is.
    at: Option<(Origin, String)>,
    /// TCP of its own, whose segment size depends on the links.
    tcp: Option<TcpDraft>,
}

/// What assists need to know of the rest of the scenario.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) foreign_agents: bool,
    /// Over IPv6, which has no foreign agents: whether there is a router that mobile nodes come to beside their home agents.
    pub(crate) access_routers: Option<bool>,
    /// Whether what mobile nodes send passes the home agent.
    pub(crate) reverse_tunnels: bool,
    /// The first rule of the policy table by which packets of a flow may pass it in one direction alone.
    pub(crate) one_way: Option<usize>,
    pub(crate) simultaneous_bindings: bool,
    /// Of the handovers in their order: the index of their table, how long before they are announced, and what becomes of queues.
    /// `None` if one of them could not be read.
    pub(crate) handovers: Option<Vec<(usize, Duration, QueuedFate)>>,
}

/// Reads the value of `assist`.
pub(crate) fn assist<'a>(field: &Field<'a>, problems: &mut Problems) -> AssistDraft<'a> {
    let table = FILE.read(field, with_parameters, destination, problems);
    let uses = table.uses.into_iter().map(|one| {
        let Read { assist, at, tcp } = one.assist;
        Use { assist, origin: one.origin, path: one.path, at, tcp }
    });
    AssistDraft { uses: uses.collect(), except: table.except }
}

impl Use {
    fn wrong(&self, expected: impl Into<String>, hint: impl Into<String>, problems: &mut Problems) {
        let place = (self.origin, self.path.as_str());
        problems.add(place, quote(self.assist.name()), expected, Some(hint.into()));
    }

    /// Reports that nobody moves.
    pub(crate) fn refuse_fixed_network(&self, problems: &mut Problems) {
        let hint = "add [mobility] with protocol = \"mobile-ipv4\"";
        self.wrong("assists help across handovers, and nobody moves", hint, problems);
    }

    /// Reports what the rest of the scenario lacks, or has and should not.
    pub(crate) fn check(&self, around: &Surroundings, problems: &mut Problems) {
        if self.assist.needs_notice()
            && around.handovers.as_ref().is_some_and(|all| all.iter().all(|(_, notice, _)| notice.is_zero()))
        {
            let expected = "it acts when a handover is announced, and none is";
            self.wrong(expected, "write notice = \"500 ms\" in a [[handover]]", problems);
        }
        if self.assist == Assist::Bicast && !around.simultaneous_bindings {
            let expected = "it needs bindings by the old path and the new one at a time";
            self.wrong(expected, "write simultaneous_bindings = true in [mobility]", problems);
        }
        match (&self.assist, around.access_routers) {
            (Assist::Ebsn, Some(true)) => {}
            (Assist::Ebsn, Some(false)) => {
                let expected = "it runs at an access router, and every access link hangs on a home agent";
                let hint = "write between = [\"ROUTER\", \"mobile\"] in an access link";
                self.wrong(expected, hint, problems);
            }
            (Assist::Split(split), Some(_)) if split.at == AssistPlace::ForeignAgent => {
                let expected = "Mobile IPv6 has no foreign agents";
                self.wrong(expected, "write at = \"home-agent\"", problems);
            }
            (assist, Some(_)) if assist.places() == [AssistPlace::ForeignAgent] => {
                let expected = "it runs at a foreign agent, which Mobile IPv6 does not have";
                let hint =
                    "leave it out, or write protocol = \"mobile-ipv4\" and care_of = \"foreign-agent\"";
                self.wrong(expected, hint, problems);
            }
            (assist, Some(_))
                if assist.places().contains(&AssistPlace::ForeignAgent) && self.at.is_some() =>
            {
                let expected = "Mobile IPv6 has no foreign agents";
                self.wrong(expected, "leave \"foreign-agent\" out of `at`", problems);
            }
            (assist, _) if assist.places().contains(&AssistPlace::ForeignAgent) && !around.foreign_agents => {
                self.check_agents(problems);
            }
            _ => {}
        }
        if let Assist::Split(split) = &self.assist
            && split.at == AssistPlace::HomeAgent
        {
            self.check_both_ways(around, problems);
        }
        let mut checked = None;
        for (table, _, queued) in around.handovers.iter().flatten() {
            if checked.replace(*table) != Some(*table) {
                self.check_queued(*table, *queued, problems);
            }
        }
    }

    /// The assist with what depends on links of at least `mtu`.
    pub(crate) fn resolve(mut self, mtu: u16, problems: &mut Problems) -> Option<Assist> {
        if let (Assist::Split(split), Some(draft)) = (&mut self.assist, self.tcp) {
            split.tcp = Some(Box::new(draft.resolve(mtu, problems)?));
        }
        Some(self.assist)
    }

    /// A relay at the home agent needs both directions of every flow that it splits.
    fn check_both_ways(&self, around: &Surroundings, problems: &mut Problems) {
        if !around.reverse_tunnels {
            let expected = "its relay needs both directions of a flow, and only one passes the home agent";
            self.wrong(expected, "write routing = \"reverse-tunnel\" in [mobility]", problems);
        } else if let Some(rule) = around.one_way {
            let expected = format!(
                "its relay needs both directions of a flow, and by mobility.policy.{rule} only one may pass the home agent"
            );
            self.wrong(expected, "write method = \"reverse-tunnel\" in the rule", problems);
        }
    }

    /// There are no foreign agents.
    fn check_agents(&self, problems: &mut Problems) {
        const HINT: &str = "write care_of = \"foreign-agent\" in [mobility]";
        match (&self.at, self.assist.places()) {
            (Some((origin, path)), _) => {
                let expected = "the scenario has no foreign agent";
                problems.add((*origin, path), "\"foreign-agent\"", expected, Some(HINT.to_owned()));
            }
            (None, [AssistPlace::ForeignAgent]) => {
                self.wrong("it runs at a foreign agent, and the scenario has none", HINT, problems);
            }
            (None, _) => {}
        }
    }

    fn check_queued(&self, index: usize, queued: QueuedFate, problems: &mut Problems) {
        let name = self.assist.name();
        match &self.assist {
            Assist::Replay(_) | Assist::HoldLast(_) if queued == QueuedFate::ReRoute => {
                let expected = format!("it sends again what queued = \"{queued}\" of handover.{index} moves");
                let hint = format!("leave `queued` out of the handover, or \"{name}\" out of `use`");
                self.wrong(expected, hint, problems);
            }
            Assist::PathQueue(path)
                if path.at_handover == QueueAtHandover::ReRoute && queued != QueuedFate::DrainLate =>
            {
                let expected = format!(
                    "it takes the queue along, and handover.{index} has queued = \"{queued}\" for what is in it"
                );
                let hint =
                    "leave `queued` out of the handover, or write path-queue = { at_handover = \"drop\" }";
                self.wrong(expected, hint, problems);
            }
            _ => {}
        }
    }
}
