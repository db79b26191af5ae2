//! The table as a whole: which assists are used, and which flows they leave alone.

use careof_document::decode::{Field, Reader};
use careof_document::error::{Origin, Problems};
use careof_document::section::Section;
use careof_document::tree::{Value, quote};
use careof_document::words::nearest;

/// All assists by their names, in the order in which they are listed and reported.
pub const NAMES: [&str; 22] = [
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
    "tcp-ho",
    "demo-vegas",
    "rto-fast-decrease",
    "mss-clamp",
    "black-hole",
];

/// What `"default"` stands for where all of it is known: what is safe with unmodified ends that know nothing of it.
const DEFAULT: [&str; 3] = ["replay", "lcd-kick", "window-clamp"];

/// Names that people bring from papers and other programs, the name here, and what to write if it is not that alone.
const ALIASES: [(&str, &str, Option<&str>); 15] = [
    ("tcp-lcd", "lcd-kick", None),
    ("freeze-tcp", "freeze", None),
    (
        "re-route",
        "path-queue",
        Some("write \"path-queue\", which moves its queue: path-queue = { at_handover = \"re-route\" }"),
    ),
    ("rto-option", "rto-reset", Some("write \"rto-reset\" with rto-reset = { by = \"option\" }")),
    ("buffer", "buffer-forward", None),
    ("buffer-and-forward", "buffer-forward", None),
    ("duplicate", "bicast", None),
    (
        "simultaneous-bindings",
        "bicast",
        Some("write \"bicast\", and simultaneous_bindings = true in [mobility]"),
    ),
    ("i-tcp", "split", None),
    ("codel", "path-queue", Some("write \"path-queue\", whose discipline is \"codel\"")),
    ("adjust-mss", "mss-clamp", None),
    ("tcpmss", "mss-clamp", None),
    ("pmtu", "black-hole", Some("write \"black-hole\", or \"mss-clamp\"")),
    ("off", "none", None),
    ("all", "default", Some("write \"default\", or name those to use")),
];

/// Why nobody advises a sender whose connection ends at a relay.
const BEHIND_THE_RELAY: &str = "one of them advises the sender, whose connection the other ends at a relay";

/// Assists of which at most one can be used, and why.
const CONTRADICTIONS: [(&[&str], &str); 10] = [
    (
        &["replay", "hold-last", "path-queue", "buffer-forward", "bicast", "snoop"],
        "both keep or copy the packets for the mobile node",
    ),
    (&["freeze", "ack-hold", "m-tcp"], "both rewrite the acknowledgements before a handover"),
    (&["snoop", "split", "m-tcp"], "both stand between the ends"),
    (
        &["rto-reset", "tcp-cm", "mobile-tcp", "tcp-ho", "demo-vegas"],
        "both say what a sender does after a handover",
    ),
    (&["split", "ebsn"], BEHIND_THE_RELAY),
    (&["split", "rto-reset"], BEHIND_THE_RELAY),
    (&["split", "tcp-cm"], BEHIND_THE_RELAY),
    (&["split", "mobile-tcp"], BEHIND_THE_RELAY),
    (&["split", "tcp-ho"], BEHIND_THE_RELAY),
    (&["split", "demo-vegas"], BEHIND_THE_RELAY),
];

/// Says of the name of an assist why it cannot be used, and what to do.
pub type Refusal = fn(&str) -> (String, &'static str);

/// What `[assist]` is in a kind of file.
#[derive(Clone, Copy, Debug)]
pub struct AssistFile {
    /// The table.
    pub section: &'static Section,
    /// An exception in it.
    pub except: &'static Section,
    /// The assists that can be used, in the order of [`NAMES`].
    pub known: &'static [&'static str],
    /// Why another one of [`NAMES`] cannot be used, and what to do; `None` where all can.
    pub refusal: Option<Refusal>,
}

/// What a table asks for: assists as a `T`, peers as a `P`.
#[derive(Debug)]
pub struct Table<T, P> {
    /// The assists in the order of [`NAMES`].
    pub uses: Vec<Use<T>>,
    /// The flows that they leave alone.
    pub except: Vec<Except<P>>,
}

/// An assist and where it is named.
#[derive(Debug)]
pub struct Use<T> {
    /// One of [`NAMES`].
    pub name: &'static str,
    /// Where `use` has it.
    pub origin: Origin,
    /// The keys to there from the root of the document.
    pub path: String,
    /// What its parameters make of it.
    pub assist: T,
}

/// Flows that are left alone: those that match both, where both are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Except<P> {
    /// The end that is not the mobile node.
    pub peer: Option<P>,
    /// A port of either end.
    pub port: Option<u16>,
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

impl AssistFile {
    /// Reads the value of `assist`, also in its short forms `assist = "replay+freeze"` and `assist = ["replay"]`.
    ///
    /// `parameters` makes an assist of its name and its table, if there is one, and `peer` reads the peer of an exception; both
    /// report what is wrong.
    pub fn read<'a, T, P>(
        &self,
        field: &Field<'a>,
        mut parameters: impl FnMut(&'static str, Option<&Field<'a>>, &mut Problems) -> Option<T>,
        peer: impl Fn(&Field<'a>, &mut Problems) -> Option<P>,
        problems: &mut Problems,
    ) -> Table<T, P> {
        let before = problems.count();
        let mut table = Table { uses: Vec::new(), except: Vec::new() };
        let reader = match &field.node.value {
            Value::Table(_) => match field.reader(self.section, problems) {
                Some(reader) => Some(reader),
                None => return table,
            },
            _ => None,
        };
        let used = match &reader {
            Some(reader) => reader.get("use"),
            None => Some(field.clone()),
        };
        let named = used.map(|used| names(&used, problems)).unwrap_or_default();
        let chosen = self.chosen(&named, problems);
        let are_named = problems.count() == before;
        for name in NAMES {
            let given =
                reader.as_ref().filter(|reader| reader.knows(name)).and_then(|reader| reader.get(name));
            let place = chosen.iter().find(|(chosen, _)| *chosen == name).map(|(_, place)| place);
            if let (Some(given), None, true) = (&given, place, are_named) {
                let hint = format!("add \"{name}\" to `use`, or leave its parameters out");
                given.wrong(format!("\"{name}\" is not in use"), Some(hint), problems);
            }
            if given.is_none() && place.is_none() {
                continue;
            }
            let assist = parameters(name, given.as_ref(), problems);
            table.uses.extend(assist.zip(place).map(|(assist, place)| Use {
                name,
                origin: place.origin,
                path: place.path.clone(),
                assist,
            }));
        }
        contradictions(&table.uses, problems);
        table.except = reader.map(|reader| self.exceptions(&reader, peer, problems)).unwrap_or_default();
        table
    }

    /// The assists that `named` asks for, each with the name that does; what is wrong with the names is reported.
    fn chosen<'n, 'a>(
        &self,
        named: &'n [Named<'a>],
        problems: &mut Problems,
    ) -> Vec<(&'static str, &'n Named<'a>)> {
        let mut chosen: Vec<(&'static str, &Named<'_>)> = Vec::new();
        for name in named {
            let is_alone = named.len() == 1;
            if name.text == "none" {
                if !is_alone {
                    name.wrong("\"none\" stands alone", None, problems);
                }
            } else if name.text == "default" {
                let default: Vec<_> = DEFAULT.into_iter().filter(|name| self.known.contains(name)).collect();
                if is_alone {
                    chosen.extend(default.into_iter().map(|assist| (assist, name)));
                } else {
                    let hint = format!("it stands for \"{}\": write them instead", default.join("\", \""));
                    name.wrong("\"default\" stands alone", Some(hint), problems);
                }
            } else if let Some(known) = self.known.iter().find(|known| **known == name.text) {
                if chosen.iter().any(|(other, _)| other == known) {
                    name.wrong("an assist is named once", None, problems);
                } else {
                    chosen.push((known, name));
                }
            } else {
                self.refuse(name, problems);
            }
        }
        chosen
    }

    /// Reports a name that is not known here.
    fn refuse(&self, name: &Named<'_>, problems: &mut Problems) {
        let plain = name.text.to_lowercase().replace(['_', ' '], "-");
        let alias = ALIASES.iter().find(|(alias, ..)| *alias == plain);
        let meant = alias.map_or(name.text, |(_, meant, _)| meant);
        if let Some(refusal) = self.refusal
            && NAMES.contains(&meant)
            && !self.known.contains(&meant)
        {
            let (expected, hint) = refusal(meant);
            return name.wrong(expected, Some(hint.to_owned()), problems);
        }
        let hint =
            alias.map(|(_, meant, hint)| hint.map_or_else(|| format!("write \"{meant}\""), str::to_owned));
        let near = || nearest(name.text, self.known.iter().copied().chain(["none", "default"]));
        let hint = hint.or_else(|| near().map(|near| format!("did you mean \"{near}\"?")));
        let expected = format!(
            "there is no such assist; known are \"none\", \"default\", \"{}\"",
            self.known.join("\", \"")
        );
        name.wrong(expected, hint, problems);
    }

    fn exceptions<'a, P>(
        &self,
        reader: &Reader<'a>,
        peer: impl Fn(&Field<'a>, &mut Problems) -> Option<P>,
        problems: &mut Problems,
    ) -> Vec<Except<P>> {
        const EXPECTED: &str = "it is an array of tables, such as [{ prefix = \"10.0.0.0/8\", port = 22 }]";
        let Some(except) = reader.get("except") else { return Vec::new() };
        let mut exceptions = Vec::new();
        for field in except.list(EXPECTED, problems) {
            let before = problems.count();
            let Some(reader) = field.reader(self.except, problems) else { continue };
            let [prefix, port] = ["prefix", "port"].map(|key| reader.get(key));
            if prefix.is_none() && port.is_none() {
                let hint = "write use = \"none\" to leave all flows alone".to_owned();
                field.wrong("an exception has a `prefix`, a `port` or both", Some(hint), problems);
            }
            let peer = prefix.and_then(|field| peer(&field, problems));
            let port = port.and_then(|field| field.integer(1, 65_535, problems));
            if problems.count() == before {
                exceptions.push(Except { peer, port: port.and_then(|port| u16::try_from(port).ok()) });
            }
        }
        exceptions
    }
}

/// The names in `used`: an array, or text in which `+` stands between them.
fn names<'a>(used: &Field<'a>, problems: &mut Problems) -> Vec<Named<'a>> {
    const EXPECTED: &str = "it is an array of names, such as [\"replay\", \"lcd-kick\"], or one of them";
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

fn contradictions<T>(uses: &[Use<T>], problems: &mut Problems) {
    for (names, reason) in CONTRADICTIONS {
        let mut used = uses.iter().filter(|one| names.contains(&one.name));
        let Some(first) = used.next() else { continue };
        for other in used {
            let expected = format!("it cannot be used with \"{}\": {reason}", first.name);
            let place = (other.origin, other.path.as_str());
            problems.add(place, quote(other.name), expected, Some("use one of them".into()));
        }
    }
}
