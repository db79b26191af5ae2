//! `[assist]`: which assists, their parameters, and what they need of the rest of the scenario.

use careof_base::Duration;

use crate::decode::Field;
use crate::error::{Origin, Problems};
use crate::mobility::{To, destination};
use crate::model::{Assist, AssistPlace, QueueAtHandover, QueuedFate};
use crate::reference::assist::{ASSIST, EXCEPT};
use crate::tcp::TcpDraft;
use crate::tree::{Value, quote};
use crate::words::nearest;

mod parameters;

use parameters::{Read, with_parameters};

/// The assists by their names, in the order of [`Assist`].
pub(crate) const NAMES: [&str; 20] = [
    "replay",
    "hold-last",
    "lcd-kick",
    "freeze",
    "fast-retransmit",
    "ack-hold",
    "window-clamp",
    "path-queue",
    "buffer-forward",
    "bicast",
    "snoop",
    "ebsn",
    "split",
    "m-tcp",
    "rto-reset",
    "tcp-cm",
    "mobile-tcp",
    "rto-fast-decrease",
    "mss-clamp",
    "black-hole",
];

/// What `"default"` stands for: what is safe with unmodified ends that know nothing of it.
pub(crate) const DEFAULT: [&str; 3] = ["replay", "lcd-kick", "window-clamp"];

/// Names that people bring from papers and other programs, and what to write instead.
const ALIASES: [(&str, &str); 15] = [
    ("tcp-lcd", "write \"lcd-kick\""),
    ("freeze-tcp", "write \"freeze\""),
    ("re-route", "write \"path-queue\", which moves its queue: path-queue = { at_handover = \"re-route\" }"),
    ("rto-option", "write \"rto-reset\" with rto-reset = { by = \"option\" }"),
    ("buffer", "write \"buffer-forward\""),
    ("buffer-and-forward", "write \"buffer-forward\""),
    ("duplicate", "write \"bicast\""),
    ("simultaneous-bindings", "write \"bicast\", and simultaneous_bindings = true in [mobility]"),
    ("i-tcp", "write \"split\""),
    ("codel", "write \"path-queue\", whose discipline is \"codel\""),
    ("adjust-mss", "write \"mss-clamp\""),
    ("tcpmss", "write \"mss-clamp\""),
    ("pmtu", "write \"black-hole\", or \"mss-clamp\""),
    ("off", "write \"none\""),
    ("all", "write \"default\", or name those to use"),
];

/// Why nobody advises a sender whose connection ends at a relay.
const BEHIND_THE_RELAY: &str = "one of them advises the sender, whose connection the other ends at a relay";

/// Assists of which at most one can be used, and why.
const CONTRADICTIONS: [(&[&str], &str); 8] = [
    (
        &["replay", "hold-last", "path-queue", "buffer-forward", "bicast", "snoop"],
        "both keep or copy the packets for the mobile node",
    ),
    (&["freeze", "ack-hold", "m-tcp"], "both rewrite the acknowledgements before a handover"),
    (&["snoop", "split", "m-tcp"], "both stand between the ends"),
    (&["rto-reset", "tcp-cm", "mobile-tcp"], "both say what the sender's timer is after a handover"),
    (&["split", "ebsn"], BEHIND_THE_RELAY),
    (&["split", "rto-reset"], BEHIND_THE_RELAY),
    (&["split", "tcp-cm"], BEHIND_THE_RELAY),
    (&["split", "mobile-tcp"], BEHIND_THE_RELAY),
];

/// The `[assist]` table, before it is known whether the rest of the scenario suits it.
#[derive(Debug, Default)]
pub(crate) struct AssistDraft<'a> {
    pub(crate) uses: Vec<Use>,
    pub(crate) except: Vec<ExceptDraft<'a>>,
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

/// Flows that are left alone, a node not yet looked up.
#[derive(Debug)]
pub(crate) struct ExceptDraft<'a> {
    pub(crate) peer: To<'a>,
    pub(crate) port: Option<u16>,
}

/// What assists need to know of the rest of the scenario.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) foreign_agents: bool,
    /// Whether what mobile nodes send passes the home agent.
    pub(crate) reverse_tunnels: bool,
    /// The first rule of the policy table by which packets of a flow may pass it in one direction alone.
    pub(crate) one_way: Option<usize>,
    pub(crate) simultaneous_bindings: bool,
    /// Of the handovers in their order: how long before they are announced, and what becomes of queues. `None` if one
    /// of them could not be read.
    pub(crate) handovers: Option<Vec<(Duration, QueuedFate)>>,
}

/// A name in `use` and where it stands.
struct Named<'a> {
    text: &'a str,
    origin: Origin,
    path: String,
}

impl Named<'_> {
    fn wrong(&self, expected: impl Into<String>, hint: Option<String>, problems: &mut Problems) {
        problems.add((self.origin, &self.path), quote(self.text), expected, hint);
    }
}

/// Reads the value of `assist`, also in its short forms `assist = "replay+freeze"` and `assist = ["replay"]`.
pub(crate) fn assist<'a>(field: &Field<'a>, problems: &mut Problems) -> AssistDraft<'a> {
    let before = problems.count();
    let reader = match &field.node.value {
        Value::Table(_) => match field.reader(&ASSIST, problems) {
            Some(reader) => Some(reader),
            None => return AssistDraft::default(),
        },
        _ => None,
    };
    let used = match &reader {
        Some(reader) => reader.get("use"),
        None => Some(field.clone()),
    };
    let named = used.map(|used| names(&used, problems)).unwrap_or_default();
    let chosen = chosen(&named, problems);
    let are_named = problems.count() == before;
    let mut draft = AssistDraft::default();
    for name in NAMES {
        let table = reader.as_ref().filter(|reader| reader.knows(name)).and_then(|reader| reader.get(name));
        let place = chosen.iter().find(|(chosen, _)| *chosen == name).map(|(_, place)| place);
        if let (Some(table), None, true) = (&table, place, are_named) {
            let hint = format!("add \"{name}\" to `use`, or leave its parameters out");
            table.wrong(format!("\"{name}\" is not in use"), Some(hint), problems);
        }
        let Some(read) = with_parameters(name, table.as_ref(), problems) else { continue };
        let Read { assist, at, tcp } = read;
        draft.uses.extend(place.map(|place| Use {
            assist,
            origin: place.origin,
            path: place.path.clone(),
            at,
            tcp,
        }));
    }
    contradictions(&draft.uses, problems);
    if let Some(except) = reader.and_then(|reader| reader.get("except")) {
        const EXPECTED: &str = "it is an array of tables, such as [{ prefix = \"10.0.0.0/8\", port = 22 }]";
        draft.except = except
            .list(EXPECTED, problems)
            .iter()
            .filter_map(|exception| self::exception(exception, problems))
            .collect();
    }
    draft
}

/// The names in `used`: an array, or text in which `+` stands between them.
fn names<'a>(used: &Field<'a>, problems: &mut Problems) -> Vec<Named<'a>> {
    const EXPECTED: &str = "it is an array of names, such as [\"replay\", \"freeze\"], or one of them";
    let fields = match &used.node.value {
        Value::Text(_) => vec![used.clone()],
        _ => used.list(EXPECTED, problems),
    };
    let mut named = Vec::new();
    for field in fields {
        let Some(text) = field.text(problems) else { continue };
        named.extend(text.split('+').map(|text| Named {
            text: text.trim(),
            origin: field.node.origin,
            path: field.path.clone(),
        }));
    }
    named
}

/// The assists that `named` asks for, each with the name that does; what is wrong with the names is reported.
fn chosen<'n, 'a>(named: &'n [Named<'a>], problems: &mut Problems) -> Vec<(&'static str, &'n Named<'a>)> {
    let mut chosen: Vec<(&'static str, &Named<'_>)> = Vec::new();
    for name in named {
        let is_alone = named.len() == 1;
        if name.text == "none" {
            if !is_alone {
                name.wrong("\"none\" stands alone", None, problems);
            }
        } else if name.text == "default" {
            if is_alone {
                chosen.extend(DEFAULT.map(|assist| (assist, name)));
            } else {
                let hint = format!("it stands for \"{}\": write them instead", DEFAULT.join("\", \""));
                name.wrong("\"default\" stands alone", Some(hint), problems);
            }
        } else if let Some(known) = NAMES.into_iter().find(|known| *known == name.text) {
            if chosen.iter().any(|(other, _)| *other == known) {
                name.wrong("an assist is named once", None, problems);
            } else {
                chosen.push((known, name));
            }
        } else {
            let plain = name.text.to_lowercase().replace(['_', ' '], "-");
            let alias = ALIASES.iter().find(|(alias, _)| *alias == plain).map(|(_, hint)| (*hint).to_owned());
            let near = || nearest(name.text, NAMES.into_iter().chain(["none", "default"]));
            let hint = alias.or_else(|| near().map(|near| format!("did you mean \"{near}\"?")));
            let expected = format!(
                "there is no such assist; known are \"none\", \"default\", \"{}\"",
                NAMES.join("\", \"")
            );
            name.wrong(expected, hint, problems);
        }
    }
    chosen
}

fn contradictions(uses: &[Use], problems: &mut Problems) {
    for (names, reason) in CONTRADICTIONS {
        let mut used = uses.iter().filter(|one| names.contains(&one.assist.name()));
        let Some(first) = used.next() else { continue };
        for other in used {
            let (first, name) = (first.assist.name(), other.assist.name());
            let expected = format!("it cannot be used with \"{first}\": {reason}");
            problems.add((other.origin, &other.path), quote(name), expected, Some("use one of them".into()));
        }
    }
}

fn exception<'a>(field: &Field<'a>, problems: &mut Problems) -> Option<ExceptDraft<'a>> {
    let before = problems.count();
    let reader = field.reader(&EXCEPT, problems)?;
    let peer = reader.get("prefix").map(|field| destination(&field, problems));
    let port = reader.get("port").map(|field| field.integer(1, 65_535, problems));
    if peer.is_none() && port.is_none() {
        let hint = "write use = \"none\" to leave all flows alone".to_owned();
        field.wrong("an exception has a `prefix`, a `port` or both", Some(hint), problems);
    }
    if problems.count() > before {
        return None;
    }
    Some(ExceptDraft {
        peer: peer.flatten().unwrap_or(To::Any),
        port: port.flatten().map(|port| u16::try_from(port).unwrap_or(u16::MAX)),
    })
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
            && around.handovers.as_ref().is_some_and(|all| all.iter().all(|(notice, _)| notice.is_zero()))
        {
            let expected = "it acts when a handover is announced, and none is";
            self.wrong(expected, "write notice = \"500 ms\" in a [[handover]]", problems);
        }
        if self.assist == Assist::Bicast && !around.simultaneous_bindings {
            let expected = "it needs bindings by the old path and the new one at a time";
            self.wrong(expected, "write simultaneous_bindings = true in [mobility]", problems);
        }
        if self.assist.places().contains(&AssistPlace::ForeignAgent) && !around.foreign_agents {
            self.check_agents(problems);
        }
        if let Assist::Split(split) = &self.assist
            && split.at == AssistPlace::HomeAgent
        {
            self.check_both_ways(around, problems);
        }
        for (index, (_, queued)) in around.handovers.iter().flatten().enumerate() {
            self.check_queued(index, *queued, problems);
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
