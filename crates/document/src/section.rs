//! What a kind of document has: the tables with their keys, which are its reference as well as what its parser
//! accepts, and the words of its own in messages.

use std::fmt::Write as _;

/// A kind of document.
#[derive(Debug)]
pub struct Dialect {
    /// What such a document is, with its article: `a scenario`.
    pub noun: &'static str,
    /// All its tables, in the order of their documentation.
    pub sections: &'static [&'static Section],
    /// Where ready ones are, as a sentence without its full stop.
    pub examples: &'static str,
    /// The remedy for a key or table that is given twice.
    pub given_twice: &'static str,
    /// An override, for messages about malformed ones.
    pub override_example: &'static str,
    /// The largest file that is one, MiB: reading something else by mistake should not fill the memory.
    pub largest_mib: u64,
    /// Where a value may be written short, the key that the short form stands for.
    pub long_form: fn(&[&str]) -> Option<&'static str>,
}

/// A table of the file.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// How the table is written, such as `[links]`.
    pub heading: &'static str,
    /// What such a table is, with its article: `a link`.
    pub noun: &'static str,
    /// What to know before the keys.
    pub intro: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
    /// Keys that people bring from elsewhere, and what to write instead.
    pub elsewhere: &'static [(&'static str, &'static str)],
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: &'static str,
    /// What holds where the key is left out; `required` where it cannot be.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A key, for tables of them.
#[must_use]
pub const fn key(
    name: &'static str,
    kind: &'static str,
    default: &'static str,
    meaning: &'static str,
) -> Key {
    Key { name, kind, default, meaning }
}

/// `first` before `rest`, for tables that have more than others; `N` is the length of both.
#[must_use]
pub const fn joined<T: Copy, const N: usize>(first: T, rest: &[T]) -> [T; N] {
    assert!(N == rest.len() + 1, "the length of both");
    let mut all = [first; N];
    let mut index = 1;
    while index < N {
        all[index] = rest[index - 1];
        index += 1;
    }
    all
}

/// The keys of `sections` as Markdown: a heading, an introduction and a table for each.
#[must_use]
pub fn reference_markdown(sections: &[&Section]) -> String {
    let mut out = String::new();
    for section in sections {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n## {}\n\n{}\n\n", section.heading, section.intro);
        let _ = writeln!(out, "| key | value | default | meaning |\n|---|---|---|---|");
        for key in section.keys {
            let _ = writeln!(out, "| `{}` | {} | {} | {} |", key.name, key.kind, key.default, key.meaning);
        }
    }
    out
}
