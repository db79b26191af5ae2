//! Reading typed values out of the tree. Each reader knows its place, so that whatever is wrong is told with it.

use careof_base::{DataRate, Duration, Probability};

use crate::error::{Origin, Problems};
use crate::section::Section;
use crate::tree::{Entry, Node, Table, Value, join, quote};
use crate::units::{self, UnitError};
use crate::words::{by_nearness, nearest, one_of};

/// A value with its path.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    /// The value and where it is written.
    pub node: &'a Node,
    /// Its keys from the root of the document, as a message names them.
    pub path: String,
}

/// A table whose keys are those of a [`Section`].
#[derive(Debug)]
pub struct Reader<'a> {
    table: &'a Table,
    section: &'static Section,
    /// Where the table is written.
    pub origin: Origin,
    /// Its keys from the root of the document.
    pub path: String,
}

impl<'a> Reader<'a> {
    /// Reads `table` as a `section`, and reports every key that does not belong there.
    pub fn new(
        table: &'a Table,
        section: &'static Section,
        (origin, path): (Origin, &str),
        problems: &mut Problems,
    ) -> Self {
        for entry in &table.entries {
            if !section.keys.iter().any(|key| key.name == entry.key) {
                unknown_key(entry, section, path, problems);
            }
        }
        Self { table, section, origin, path: path.to_owned() }
    }

    /// Whether `key` is one of this kind of table.
    #[must_use]
    pub fn knows(&self, key: &str) -> bool {
        self.section.keys.iter().any(|known| known.name == key)
    }

    /// The value of `key`, if it is given.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Field<'a>> {
        debug_assert!(self.knows(key), "{key} is missing in the reference of {}", self.section.noun);
        self.table.get(key).map(|node| Field { node, path: join(&self.path, key) })
    }

    /// The value of `key`; `expected` says what is missing if it is not given.
    pub fn require(&self, key: &str, expected: &str, problems: &mut Problems) -> Option<Field<'a>> {
        let field = self.get(key);
        if field.is_none() {
            problems.add((self.origin, &join(&self.path, key)), "nothing", expected, None);
        }
        field
    }

    /// Reports each of `keys` that is given, because of `reason`.
    pub fn refuse(&self, keys: &[&str], reason: &str, problems: &mut Problems) {
        for key in keys {
            if let Some(field) = self.get(key) {
                problems.add(field.place(), field.node.value.describe(), reason, None);
            }
        }
    }

    /// Whether any of `keys` is given.
    #[must_use]
    pub fn has_any(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.get(key).is_some())
    }
}

/// Of more keys an error names as many, those that are nearest to what was written.
const MOST_NAMED: usize = 3;

fn unknown_key(entry: &Entry, section: &Section, path: &str, problems: &mut Problems) {
    let known: Vec<&str> = section.keys.iter().map(|key| key.name).collect();
    let listed = match known.len().saturating_sub(MOST_NAMED) {
        0 => known.join(", "),
        more => format!("{} and {more} more", by_nearness(&entry.key, &known)[..MOST_NAMED].join(", ")),
    };
    let expected = format!("{} has the keys {listed}", section.noun);
    let name = entry.key.replace('-', "_").to_lowercase();
    let elsewhere =
        section.elsewhere.iter().find(|(word, _)| *word == name).map(|(_, hint)| (*hint).to_owned());
    let hint = if known.contains(&name.as_str()) {
        Some(format!("write `{name}`"))
    } else if let Some(hint) = elsewhere {
        Some(hint)
    } else if let Some(near) = nearest(&entry.key, known.iter().copied()) {
        Some(format!("did you mean `{near}`?"))
    } else {
        problems
            .dialect()
            .sections
            .iter()
            .find(|other| other.keys.iter().any(|key| key.name == name))
            .map(|other| format!("`{name}` is a key of {}", in_a_sentence(other.heading)))
    };
    problems.add((entry.origin, &join(path, &entry.key)), "an unknown key", expected, hint);
}

/// A heading as it is written within a sentence.
fn in_a_sentence(heading: &str) -> String {
    let mut letters = heading.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

impl<'a> Field<'a> {
    /// Where the value is written and its path, as [`Problems::add`] takes them.
    #[must_use]
    pub fn place(&self) -> (Origin, &str) {
        (self.node.origin, &self.path)
    }

    /// Reports that the value is not what is `expected`.
    pub fn wrong(&self, expected: impl Into<String>, hint: Option<String>, problems: &mut Problems) {
        problems.add(self.place(), self.node.value.describe(), expected, hint);
    }

    /// A value that `parse` reads; `example` is one in quotes.
    pub fn quantity<T>(
        &self,
        parse: fn(&str) -> Result<T, UnitError>,
        example: &str,
        problems: &mut Problems,
    ) -> Option<T> {
        let parsed = match &self.node.value {
            // A number without a unit: the parser knows what to suggest.
            Value::Text(text) | Value::Integer(text) | Value::Float(text) => parse(text),
            _ => Err(UnitError {
                expected: format!("write text with a number and a unit, such as {example}"),
                hint: None,
            }),
        };
        parsed.map_err(|error| self.wrong(error.expected, error.hint, problems)).ok()
    }

    /// A rate; zero is one.
    pub fn rate(&self, problems: &mut Problems) -> Option<DataRate> {
        self.quantity(units::parse_rate, "\"9.6 kbit/s\"", problems)
    }

    /// A duration; zero is one.
    pub fn duration(&self, problems: &mut Problems) -> Option<Duration> {
        self.quantity(units::parse_duration, "\"700 ms\"", problems)
    }

    /// A duration above zero.
    pub fn positive_duration(&self, problems: &mut Problems) -> Option<Duration> {
        let span = self.duration(problems)?;
        if span.is_zero() {
            self.wrong("it must be above zero", None, problems);
            return None;
        }
        Some(span)
    }

    /// A number of bytes, at least 1.
    pub fn size(&self, problems: &mut Problems) -> Option<u64> {
        let plain_zero = matches!(&self.node.value, Value::Integer(text) if text == "0");
        let bytes = if plain_zero { 0 } else { self.quantity(units::parse_size, "\"16 KiB\"", problems)? };
        if bytes == 0 {
            self.wrong("it must be above zero", Some("write \"16 KiB\", for example".to_owned()), problems);
            return None;
        }
        Some(bytes)
    }

    /// A size of a packet, where a plain number counts bytes, within `least` and `most`.
    pub fn packet_size(&self, least: u16, most: u16, problems: &mut Problems) -> Option<u16> {
        self.packet_size_for(least, most, None, problems)
    }

    /// The same, with the reason for its bounds.
    pub fn packet_size_for(
        &self,
        least: u16,
        most: u16,
        reason: Option<&str>,
        problems: &mut Problems,
    ) -> Option<u16> {
        let bytes = match &self.node.value {
            Value::Integer(text) => text.parse().ok(),
            _ => Some(self.quantity(units::parse_size, "\"1500 B\"", problems)?),
        };
        match bytes.and_then(|bytes: u64| u16::try_from(bytes).ok()) {
            Some(bytes) if (least..=most).contains(&bytes) => Some(bytes),
            _ => {
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                self.wrong(format!("it must lie between {least} and {most} bytes{reason}"), None, problems);
                None
            }
        }
    }

    /// A number of packets.
    pub fn packets(&self, problems: &mut Problems) -> Option<u32> {
        self.quantity(units::parse_packets, "\"5 packets\"", problems)
    }

    /// A probability, as text or as a number.
    pub fn probability(&self, problems: &mut Problems) -> Option<Probability> {
        // TOML knows more ways to write a number than people do, such as 1e-3.
        if let Value::Float(text) = &self.node.value
            && let Ok(p) = Probability::new(text.parse().unwrap_or(f64::NAN))
        {
            return Some(p);
        }
        self.quantity(units::parse_probability, "\"1 %\"", problems)
    }

    /// A plain number for which `fits` holds; `expected` says which do.
    pub fn number(&self, fits: fn(f64) -> bool, expected: &str, problems: &mut Problems) -> Option<f64> {
        let number = match &self.node.value {
            Value::Integer(text) | Value::Float(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| fits(*number));
        if number.is_none() {
            self.wrong(expected, None, problems);
        }
        number
    }

    /// A whole number within `least` and `most`.
    pub fn integer(&self, least: u64, most: u64, problems: &mut Problems) -> Option<u64> {
        let number = match &self.node.value {
            Value::Integer(text) => text.trim_start_matches('+').parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let range = match (least, most) {
                (0, u64::MAX) => "not below 0".to_owned(),
                (_, u64::MAX) => format!("not below {least}"),
                _ => format!("between {least} and {most}"),
            };
            self.wrong(format!("it must be a whole number {range}"), None, problems);
        }
        number
    }

    /// `true` or `false`.
    pub fn boolean(&self, problems: &mut Problems) -> Option<bool> {
        if let Value::Boolean(value) = self.node.value {
            return Some(value);
        }
        self.wrong("it must be true or false, without quotes", None, problems);
        None
    }

    /// Text.
    pub fn text(&self, problems: &mut Problems) -> Option<&'a str> {
        if let Value::Text(text) = &self.node.value {
            return Some(text);
        }
        self.wrong("it must be text in quotes", None, problems);
        None
    }

    /// A name of something in the document.
    pub fn name(&self, problems: &mut Problems) -> Option<&'a str> {
        let name = self.text(problems)?;
        if let Err(expected) = check_name(name) {
            self.wrong(expected, None, problems);
            return None;
        }
        Some(name)
    }

    /// What one of the words in `choices` stands for; those of `later` are words whose time has not come.
    pub fn choice<T: Copy>(
        &self,
        choices: &[(&'static str, T)],
        later: &[&str],
        problems: &mut Problems,
    ) -> Option<T> {
        let known: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let Value::Text(text) = &self.node.value else {
            self.wrong(format!("it must be {}", one_of(&known)), None, problems);
            return None;
        };
        if let Some((_, meaning)) = choices.iter().find(|(word, _)| word == text) {
            return Some(*meaning);
        }
        let hint = if later.contains(&text.as_str()) {
            Some(format!("{} is not in this version yet", quote(text)))
        } else {
            nearest(text, known.iter().copied()).map(|near| format!("did you mean \"{near}\"?"))
        };
        self.wrong(format!("known are {}", one_of(&known).replace(" or ", " and ")), hint, problems);
        None
    }

    /// The value as a table of `section`.
    pub fn reader(&self, section: &'static Section, problems: &mut Problems) -> Option<Reader<'a>> {
        if let Value::Table(table) = &self.node.value {
            return Some(Reader::new(table, section, self.place(), problems));
        }
        self.wrong(
            format!("{} is a table, such as {} in the documentation", section.noun, section.heading),
            None,
            problems,
        );
        None
    }

    /// The elements of an array.
    pub fn list(&self, expected: &str, problems: &mut Problems) -> Vec<Field<'a>> {
        if let Value::List(items) = &self.node.value {
            let element = |(i, node)| Field { node, path: format!("{}.{i}", self.path) };
            return items.iter().enumerate().map(element).collect();
        }
        self.wrong(expected, None, problems);
        Vec::new()
    }
}

/// Whether `name` can name something in the document.
///
/// # Errors
/// What can.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
    if (1..=32).contains(&name.len()) && name.bytes().all(fits) {
        Ok(())
    } else {
        Err("a name is 1 to 32 letters, digits, `-` and `_`")
    }
}
