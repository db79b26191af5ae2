//! A key and the values it takes in turn, written `key=a,b,c`.

use careof_document::error::Origin;
use careof_document::tree::{Value, value_of};

use crate::GridError;

/// What the values of a key are, for a column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers of 64 bits.
    Integer,
    /// Numbers.
    Float,
    /// `true` and `false`.
    Boolean,
    /// Anything else, in its own words.
    Text,
}

impl Kind {
    /// The name of the Arrow type.
    #[must_use]
    pub const fn arrow_name(self) -> &'static str {
        match self {
            Self::Integer => "int64",
            Self::Float => "float64",
            Self::Boolean => "bool",
            Self::Text => "string",
        }
    }
}

/// A key that varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The key as it was given, a dotted path.
    pub key: String,
    /// What all its values are.
    pub kind: Kind,
    /// As they were given, for overrides.
    values: Vec<String>,
    /// As they stand in a table: without the quotes of text.
    shown: Vec<String>,
}

const EXAMPLE: &str = "for example --vary flow.tcp.variant=newreno,sack";

impl Axis {
    /// Reads `key=a,b,c`. A comma within quotes or brackets divides nothing.
    ///
    /// # Errors
    /// There is no key or no value, a value is no TOML where it begins like some, or stands there twice.
    pub fn parse(text: &str) -> Result<Self, GridError> {
        let wrong = |what: &str, hint: &str| GridError::new(format!("--vary {text}: {what}"), hint);
        let Some((key, values)) = text.split_once('=') else {
            return Err(wrong("no equals sign; expected key=value,value", EXAMPLE));
        };
        let key = key.trim();
        if key.is_empty() {
            return Err(wrong("no key; expected key=value,value", EXAMPLE));
        }
        let values: Vec<String> = split(values).into_iter().map(|value| value.trim().to_owned()).collect();
        let mut shown = Vec::with_capacity(values.len());
        let mut kinds = Vec::with_capacity(values.len());
        for value in &values {
            if value.is_empty() {
                return Err(wrong("a value is empty", "write \"\" for an empty text"));
            }
            let node = value_of(value, Origin::Override(0))
                .map_err(|expected| wrong(&format!("found {value}; {expected}"), EXAMPLE))?;
            let (kind, words) = match node.value {
                Value::Integer(digits) if digits.replace('_', "").parse::<i64>().is_ok() => {
                    (Kind::Integer, digits.replace('_', ""))
                }
                Value::Float(digits) => (Kind::Float, digits.replace('_', "")),
                Value::Boolean(truth) => (Kind::Boolean, truth.to_string()),
                Value::Text(words) => (Kind::Text, words),
                Value::Integer(_) | Value::Time(_) | Value::List(_) | Value::Table(_) => {
                    (Kind::Text, value.clone())
                }
            };
            if shown.contains(&words) {
                return Err(wrong(&format!("{value} stands there twice"), "give each value once"));
            }
            shown.push(words);
            kinds.push(kind);
        }
        let all = |allowed: &[Kind]| kinds.iter().all(|kind| allowed.contains(kind));
        let kind = match kinds.first() {
            Some(Kind::Boolean) if all(&[Kind::Boolean]) => Kind::Boolean,
            _ if all(&[Kind::Integer]) => Kind::Integer,
            _ if all(&[Kind::Integer, Kind::Float]) => Kind::Float,
            _ => Kind::Text,
        };
        Ok(Self { key: key.to_owned(), kind, values, shown })
    }

    /// How many values there are; at least one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Never: an axis has a value.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The override for a value, `key=value`.
    pub(crate) fn setting(&self, position: usize) -> String {
        format!("{}={}", self.key, self.values.get(position).map_or("", String::as_str))
    }

    /// The overrides of all values, `key=value`.
    pub fn settings(&self) -> impl Iterator<Item = String> {
        (0..self.len()).map(|position| self.setting(position))
    }

    /// The values as they stand in a table: text without its quotes, everything else as it was given.
    #[must_use]
    pub fn shown(&self) -> &[String] {
        &self.shown
    }
}

/// The pieces between commas that are not within quotes or brackets. Quotes are such at the beginning of a value and
/// within brackets; elsewhere, as in `it's`, they are letters.
fn split(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut begin, mut depth, mut quote, mut fresh) = (0, 0_usize, None, true);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (letter, quote) {
            ('\\', Some('"')) => {
                letters.next();
            }
            (_, Some(open)) if letter == open => quote = None,
            (_, Some(_)) => {}
            (',', None) if depth == 0 => {
                pieces.push(&text[begin..at]);
                begin = at + 1;
                fresh = true;
                continue;
            }
            ('"' | '\'', None) if fresh || depth > 0 => quote = Some(letter),
            ('[' | '{', None) if fresh || depth > 0 => depth += 1,
            (']' | '}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        fresh = fresh && letter.is_whitespace();
    }
    pieces.push(&text[begin..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        Axis::parse(text).unwrap().shown().to_vec()
    }

    #[test]
    fn commas_divide_values_but_not_within_quotes_or_brackets() {
        assert_eq!(shown("k=a,b , c"), ["a", "b", "c"]);
        assert_eq!(shown("k=\"5 packets\",\"50 packets\""), ["5 packets", "50 packets"]);
        assert_eq!(shown("k=5 packets,50 packets"), ["5 packets", "50 packets"]);
        assert_eq!(shown("k=\"a,b\",'c,d'"), ["a,b", "c,d"]);
        assert_eq!(shown("k=\"a\\\",b\",c"), ["a\",b", "c"]);
        assert_eq!(shown("k=[1, 2],[3]"), ["[1, 2]", "[3]"]);
        assert_eq!(shown("k={ a = [1, 2], b = \"},\" },x"), ["{ a = [1, 2], b = \"},\" }", "x"]);
        assert_eq!(shown("k=it's,that's"), ["it's", "that's"]);
    }

    #[test]
    fn the_override_of_a_value_is_what_was_given() {
        let axis = Axis::parse(" links.gsm.queue = \"5 packets\", 1_000").unwrap();
        assert_eq!(axis.key, "links.gsm.queue");
        assert_eq!(axis.setting(0), "links.gsm.queue=\"5 packets\"");
        assert_eq!(axis.setting(1), "links.gsm.queue=1_000");
    }

    #[test]
    fn values_of_one_kind_make_a_column_of_that_kind() {
        let kind = |text: &str| Axis::parse(text).unwrap().kind;
        assert_eq!(kind("k=1,2_000,-3"), Kind::Integer);
        assert_eq!(kind("k=1,2.5"), Kind::Float);
        assert_eq!(kind("k=true,false"), Kind::Boolean);
        assert_eq!(kind("k=1,two"), Kind::Text);
        assert_eq!(kind("k=true,1"), Kind::Text);
        assert_eq!(kind("k=\"1\",\"2\""), Kind::Text);
        assert_eq!(kind("k=99999999999999999999,1"), Kind::Text);
    }

    #[test]
    fn what_is_no_axis_is_refused_with_the_way_out() {
        for (text, what) in [
            ("flow.tcp.variant", "no equals sign"),
            ("=1,2", "no key"),
            ("k=", "a value is empty"),
            ("k=a,,b", "a value is empty"),
            ("k=a,b,a", "a stands there twice"),
            ("k=\"5 packets\",5 packets", "5 packets stands there twice"),
            ("k=[1,2", "found [1,2; the value must be TOML"),
            ("k=\"a,b", "found \"a,b; the value must be TOML"),
        ] {
            let error = Axis::parse(text).unwrap_err();
            assert!(error.message.starts_with(&format!("--vary {text}: {what}")), "{error}");
            assert!(error.hint.is_some());
        }
    }
}
