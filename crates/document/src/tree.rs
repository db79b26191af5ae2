//! The file as a tree of values that know where they were written, with the overrides laid over it.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Origin, Problems};
use crate::section::Dialect;

/// A value and where it begins.
#[derive(Clone, Debug)]
pub struct Node {
    /// Where the value begins.
    pub origin: Origin,
    /// The value.
    pub value: Value,
}

/// A value as written; numbers stay text so that nothing is rounded.
#[derive(Clone, Debug)]
pub enum Value {
    /// Text in quotes.
    Text(String),
    /// A whole number, in decimal.
    Integer(String),
    /// Another number.
    Float(String),
    /// `true` or `false`.
    Boolean(bool),
    /// A date, a time or both.
    Time(String),
    /// An array.
    List(Vec<Node>),
    /// A table, inline or not.
    Table(Table),
}

/// Keys with their values, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// In the order of the file, then of the overrides.
    pub entries: Vec<Entry>,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key is written.
    pub origin: Origin,
    /// The value.
    pub node: Node,
}

impl Table {
    /// The value of `key`.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }
}

impl Value {
    /// How an error message names the value.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Text(text) => quote(text),
            Self::Integer(text) | Self::Float(text) | Self::Time(text) => text.clone(),
            Self::Boolean(value) => value.to_string(),
            Self::List(items) => match items.len() {
                0 => "an empty array".to_owned(),
                1 => "an array of one value".to_owned(),
                count => format!("an array of {count} values"),
            },
            Self::Table(_) => "a table".to_owned(),
        }
    }
}

/// `text` in quotes, without control characters and not endless.
#[must_use]
pub fn quote(text: &str) -> String {
    const MOST: usize = 80;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// A path of keys as it is written in a file.
#[must_use]
pub fn join(path: &str, key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    let key = if bare { key.to_owned() } else { quote(key) };
    if path.is_empty() { key } else { format!("{path}.{key}") }
}

/// Reads the file. What is no TOML is a problem at its place, and nothing else is read then.
pub fn parse(text: &str, problems: &mut Problems) -> Option<Table> {
    match DeTable::parse(text) {
        Ok(table) => Some(convert_table(table.get_ref(), &Origin::File)),
        Err(error) => {
            let offset = error.span().map_or(text.len(), |span| span.start);
            let place = (Origin::File(offset), "");
            if text.get(offset..).is_none_or(|rest| rest.trim().is_empty()) {
                let hint = "the file may have been cut off; compare it with its original";
                problems.add(place, "the end of the file", error.message(), Some(hint.to_owned()));
            } else if error.message().contains("duplicate key") {
                let hint = problems.dialect().given_twice.to_owned();
                problems.add(place, "a key that is there already", error.message(), Some(hint));
            } else {
                let hint = unquoted(text, offset)
                    .unwrap_or_else(|| "https://toml.io explains the format".to_owned());
                problems.add(place, "text that is not TOML", error.message(), Some(hint));
            }
            None
        }
    }
}

/// The remedy for a value that lacks its quotes, if the line at `offset` looks like one: `delay = 700 ms`.
fn unquoted(text: &str, offset: usize) -> Option<String> {
    let start = text.get(..offset)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..)?.lines().next()?;
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next()?.trim();
    let plain = value.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')
        && !value.contains(['"', '\'', '{', '[']);
    plain
        .then(|| format!("text, and every value with a unit, stands in quotes: {} = \"{value}\"", key.trim()))
}

fn convert_table(table: &DeTable<'_>, origin: &dyn Fn(usize) -> Origin) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().clone().into_owned(),
            origin: origin(key.span().start),
            node: convert(value, origin),
        })
        .collect();
    entries.sort_by_key(|entry| entry.origin);
    Table { entries }
}

fn convert(value: &Spanned<DeValue<'_>>, origin: &dyn Fn(usize) -> Origin) -> Node {
    let converted = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.clone().into_owned()),
        DeValue::Integer(number) => match number.radix() {
            10 => Value::Integer(number.as_str().to_owned()),
            radix => match i64::from_str_radix(number.as_str(), radix) {
                Ok(number) => Value::Integer(number.to_string()),
                Err(_) => Value::Integer(number.to_string()),
            },
        },
        DeValue::Float(number) => Value::Float(number.as_str().to_owned()),
        DeValue::Boolean(value) => Value::Boolean(*value),
        DeValue::Datetime(time) => Value::Time(time.to_string()),
        DeValue::Array(items) => Value::List(items.iter().map(|item| convert(item, origin)).collect()),
        DeValue::Table(table) => Value::Table(convert_table(table, origin)),
    };
    Node { origin: origin(value.span().start), value: converted }
}

/// Lays the override `text`, `key=value`, over the tree.
///
/// The key is a dotted path. An element of an array is named by its index or, where its elements have one, by its
/// `name`; a path that names none means every element. A value that is not TOML is taken as a string.
pub fn lay_over(root: &mut Table, index: usize, text: &str, problems: &mut Problems) {
    let origin = Origin::Override(index);
    let shape = format!("an override is written key=value, such as {}", problems.dialect().override_example);
    let Some((path, value)) = text.split_once('=') else {
        return problems.add((origin, ""), "no equals sign", shape, None);
    };
    let Some(path) = parse_path(path) else {
        return problems.add((origin, ""), quote(path.trim()), shape, None);
    };
    match value_of(value, origin) {
        Ok(value) => put_in_table(root, "", &path, &value, origin, problems),
        Err(expected) => problems.add((origin, &path.join(".")), value.trim(), expected, None),
    }
}

/// The value that an override gives: TOML, or else bare words.
///
/// # Errors
/// What would be right, where the text begins as TOML does and is none.
pub fn value_of(text: &str, origin: Origin) -> Result<Node, String> {
    let text = text.trim();
    match DeValue::parse(text) {
        Ok(parsed) => Ok(convert(&parsed, &|_| origin)),
        Err(error) if text.starts_with(['[', '{', '"', '\'']) => {
            Err(format!("the value must be TOML or a bare word: {}", error.message()))
        }
        Err(_) => Ok(Node { origin, value: Value::Text(text.to_owned()) }),
    }
}

/// The keys of a dotted path, by TOML's own rules.
fn parse_path(path: &str) -> Option<Vec<String>> {
    let line = format!("{} = 0", path.trim());
    let table = DeTable::parse(&line).ok()?;
    let mut keys = Vec::new();
    let mut table = table.get_ref();
    loop {
        let (key, value) = table.iter().next()?;
        keys.push(key.get_ref().clone().into_owned());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return Some(keys),
        }
    }
}

fn put_in_table(
    table: &mut Table,
    place: &str,
    path: &[String],
    value: &Node,
    origin: Origin,
    problems: &mut Problems,
) {
    let Some((key, rest)) = path.split_first() else { return };
    let place = join(place, key);
    let position = table.entries.iter().position(|entry| entry.key == *key).unwrap_or_else(|| {
        let node = Node { origin, value: Value::Table(Table::default()) };
        table.entries.push(Entry { key: key.clone(), origin, node });
        table.entries.len() - 1
    });
    let Some(entry) = table.entries.get_mut(position) else { return };
    put_in_node(&mut entry.node, &place, rest, value, origin, problems);
}

fn put_in_node(
    node: &mut Node,
    place: &str,
    path: &[String],
    value: &Node,
    origin: Origin,
    problems: &mut Problems,
) {
    let Some((key, rest)) = path.split_first() else {
        *node = value.clone();
        return;
    };
    if !matches!(node.value, Value::Table(_) | Value::List(_)) {
        let Some(long) = long_form(problems.dialect(), place) else {
            let expected = format!("it has no part called {}", quote(key));
            return problems.add((origin, place), node.value.describe(), expected, None);
        };
        let short = node.clone();
        let entry = Entry { key: long.to_owned(), origin: short.origin, node: short };
        node.value = Value::Table(Table { entries: vec![entry] });
    }
    match &mut node.value {
        Value::Table(table) => put_in_table(table, place, path, value, origin, problems),
        Value::List(items) => match element(items, key) {
            Some(chosen) => put_in_element(items, chosen, place, rest, value, origin, problems),
            None if may_be_in_every_element(problems.dialect(), items, place, key) => {
                for each in 0..items.len() {
                    put_in_element(items, each, place, path, value, origin, problems);
                }
            }
            None => {
                let (expected, hint) = elements_in_words(place, items);
                problems.add((origin, &join(place, key)), quote(key), expected, hint);
            }
        },
        _ => {}
    }
}

fn put_in_element(
    items: &mut [Node],
    chosen: usize,
    place: &str,
    path: &[String],
    value: &Node,
    origin: Origin,
    problems: &mut Problems,
) {
    if let Some(item) = items.get_mut(chosen) {
        put_in_node(item, &format!("{place}.{chosen}"), path, value, origin, problems);
    }
}

/// Whether `key`, which names no element of the array at `place`, can be meant as a key of all of them.
///
/// With one element what is wrong with the key is said where the element is read; with several it would be said of
/// each.
fn may_be_in_every_element(dialect: &Dialect, items: &[Node], place: &str, key: &str) -> bool {
    if items.is_empty() || key.parse::<usize>().is_ok() {
        return false;
    }
    let heading = format!("[[{place}]]");
    let section = dialect.sections.iter().find(|section| section.heading.trim_matches('`') == heading);
    items.len() == 1 || section.is_none_or(|section| section.keys.iter().any(|known| known.name == key))
}

/// What an array has, and how one of it is chosen.
fn elements_in_words(place: &str, items: &[Node]) -> (String, Option<String>) {
    const MOST: usize = 12;
    let expected = match items.len() {
        0 => return (format!("{place} is empty"), None),
        1 => format!("{place} has one element, of index 0"),
        count => format!("{place} has {count} elements, of indices 0 to {}", count - 1),
    };
    let names: Vec<&str> = items.iter().filter_map(name).collect();
    let named = match names.get(..MOST) {
        Some(first) if names.len() > MOST => format!(" or named {}, …", first.join(", ")),
        _ if names.is_empty() => String::new(),
        _ => format!(" or named {}", names.join(", ")),
    };
    let hint = (items.len() > 1).then(|| format!("a key without index or name is set in every {place}"));
    (expected + &named, hint)
}

/// The element of `items` with index or `name` `key`.
fn element(items: &[Node], key: &str) -> Option<usize> {
    if let Ok(index) = key.parse::<usize>() {
        return (index < items.len()).then_some(index);
    }
    items.iter().position(|item| name(item) == Some(key))
}

/// The name of an element that has one.
fn name(item: &Node) -> Option<&str> {
    match &item.value {
        Value::Table(table) => match table.get("name") {
            Some(Node { value: Value::Text(name), .. }) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// Where a value may be written short, the key that the short form stands for.
fn long_form(dialect: &Dialect, place: &str) -> Option<&'static str> {
    let keys: Vec<&str> = place.split('.').collect();
    (dialect.long_form)(&keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::{Section, key};

    static FLOW: Section = Section {
        heading: "`[[flow]]`",
        noun: "a flow",
        intro: "",
        keys: &[key("name", "", "", ""), key("size", "", "", ""), key("tcp", "", "", "")],
        elsewhere: &[],
    };

    static DIALECT: Dialect = Dialect {
        noun: "a scenario",
        sections: &[&FLOW],
        examples: "",
        given_twice: "",
        override_example: "seed=7",
        largest_mib: 4,
        long_form: |keys| match keys {
            ["links", _] => Some("preset"),
            ["links", _, "queue"] => Some("limit"),
            ["flow", _, "tcp"] => Some("profile"),
            _ => None,
        },
    };

    fn show(node: &Value) -> String {
        match node {
            Value::Table(table) => {
                let inner: Vec<_> =
                    table.entries.iter().map(|e| format!("{} = {}", e.key, show(&e.node.value))).collect();
                format!("{{{}}}", inner.join(", "))
            }
            Value::List(items) => {
                format!("[{}]", items.iter().map(|item| show(&item.value)).collect::<Vec<_>>().join(", "))
            }
            other => other.describe(),
        }
    }

    fn overlaid(text: &str, overrides: &[&str]) -> Result<String, String> {
        let mut problems = Problems::new(&DIALECT);
        let mut tree = parse(text, &mut problems).unwrap();
        for (index, text) in overrides.iter().enumerate() {
            lay_over(&mut tree, index, text, &mut problems);
        }
        let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
        problems.finish("x.toml", text, &overrides).map_err(|errors| errors.to_string())?;
        Ok(show(&Value::Table(tree)))
    }

    #[test]
    fn tables_keep_the_order_of_the_file() {
        assert_eq!(
            overlaid("z = 1\na = 2.50\n[m]\nx = 0x10", &[]).unwrap(),
            "{z = 1, a = 2.50, m = {x = 16}}"
        );
    }

    #[test]
    fn an_override_replaces_a_value_or_adds_one() {
        assert_eq!(overlaid("a = 1", &["a=2", "b.c=true"]).unwrap(), "{a = 2, b = {c = true}}");
        assert_eq!(overlaid("a = 1", &["a = 4 KiB"]).unwrap(), "{a = \"4 KiB\"}");
        assert_eq!(overlaid("a = 1", &["a=\"4 KiB\""]).unwrap(), "{a = \"4 KiB\"}");
        assert_eq!(overlaid("a = 1", &["a=[1, 2]"]).unwrap(), "{a = [1, 2]}");
    }

    #[test]
    fn an_array_element_is_named_by_index_or_by_name_and_without_either_all_are_meant() {
        let one = "[[flow]]\nname = \"x\"\nsize = 1";
        assert_eq!(overlaid(one, &["flow.size=2"]).unwrap(), "{flow = [{name = \"x\", size = 2}]}");
        assert_eq!(overlaid(one, &["flow.0.size=2"]).unwrap(), "{flow = [{name = \"x\", size = 2}]}");
        assert_eq!(overlaid(one, &["flow.x.size=2"]).unwrap(), "{flow = [{name = \"x\", size = 2}]}");
        let two = "[[flow]]\nname = \"x\"\n[[flow]]\nname = \"y\"";
        assert_eq!(
            overlaid(two, &["flow.y.a=1"]).unwrap(),
            "{flow = [{name = \"x\"}, {name = \"y\", a = 1}]}"
        );
        assert_eq!(
            overlaid(two, &["flow.size=1"]).unwrap(),
            "{flow = [{name = \"x\", size = 1}, {name = \"y\", size = 1}]}"
        );
        assert_eq!(
            overlaid(two, &["flow.z.size=1"]).unwrap_err(),
            "error: --set flow.z.size=1: flow.z: found \"z\"; flow has 2 elements, of indices 0 to 1 or named x, y\n  \
             hint: a key without index or name is set in every flow"
        );
        assert_eq!(
            overlaid(one, &["flow.1.a=1"]).unwrap_err(),
            "error: --set flow.1.a=1: flow.1: found \"1\"; flow has one element, of index 0 or named x"
        );
        assert_eq!(
            overlaid("flow = []", &["flow.size=1"]).unwrap_err(),
            "error: --set flow.size=1: flow.size: found \"size\"; flow is empty"
        );
    }

    #[test]
    fn a_short_form_grows_into_a_table_under_an_override() {
        assert_eq!(
            overlaid(
                "[links]\ngsm = \"gsm-csd\"",
                &["links.gsm.queue=\"5 packets\"", "links.gsm.queue.discipline=red"]
            )
            .unwrap(),
            "{links = {gsm = {preset = \"gsm-csd\", queue = {limit = \"5 packets\", discipline = \"red\"}}}}"
        );
        assert_eq!(
            overlaid("[[flow]]\ntcp = \"reno\"", &["flow.tcp.mss=536"]).unwrap(),
            "{flow = [{tcp = {profile = \"reno\", mss = 536}}]}"
        );
    }

    #[test]
    fn a_malformed_override_says_how_one_is_written() {
        for bad in ["seed", "=7", "a..b=1", "a b=1"] {
            assert!(overlaid("a = 1", &[bad]).unwrap_err().contains("key=value"), "{bad}");
        }
        assert_eq!(
            overlaid("seed = 1", &["seed.x=1"]).unwrap_err(),
            "error: --set seed.x=1: seed: found 1; it has no part called \"x\""
        );
        assert!(overlaid("a = 1", &["a=[1"]).unwrap_err().contains("found [1; the value must be TOML"));
    }

    #[test]
    fn a_cut_file_is_recognised() {
        let mut problems = Problems::new(&DIALECT);
        let text = "title = \"x\"\nduration = ";
        assert!(parse(text, &mut problems).is_none());
        let message = problems.finish("x.toml", text, &[]).unwrap_err().to_string();
        assert!(message.starts_with("error: x.toml:2:"), "{message}");
    }
}
