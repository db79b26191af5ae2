//! Security associations, and the keys they are made of.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use careof_document::decode::{Field, Reader};
use careof_document::error::Problems;
use careof_document::tree::quote;
use careof_mobility::multipath::alliance::ClusterKey;
use careof_mobility::v4::{ReplayProtection, SecurityAssociation};
use careof_mobility::v6;
use careof_wire::mip4::{Algorithm, Spi};
use careof_wire::mip6;

use super::Source;
use super::fields::{at_least, given, path, required};

/// The bytes of the key that every implementation has (RFC 5944 section 3.5.1); shorter ones can be guessed.
const LEAST: usize = 16;
/// Longer ones add nothing.
const MOST: usize = 128;
/// A key file holds a key.
const LARGEST_FILE: u64 = 4096;
/// What is missing where there is no Security Parameter Index.
const NO_SPI: &str = "a security association needs its number: spi = 256";
/// How a key is made.
const MAKE: &str = "openssl rand -hex 16";

/// The security association in a table that has the keys of one.
pub(super) fn security_association(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<SecurityAssociation> {
    let before = problems.count();
    let spi = required(reader, "spi", NO_SPI, problems, |field, p| spi(field, "RFC 5944 section 1.6", p));
    let key = key(reader, source, problems);
    let algorithms = [("hmac-md5", Algorithm::HmacMd5), ("hmac-sha-256", Algorithm::HmacSha256)];
    let algorithm = given(reader, "algorithm", problems, |field, p| field.choice(&algorithms, &[], p));
    let replay = if reader.knows("replay") { replay(reader, problems) } else { ReplayProtection::default() };
    if problems.count() > before {
        return None;
    }
    // Its errors are an SPI that is reserved and a key that is empty, which were refused above.
    SecurityAssociation::new(spi?, algorithm.unwrap_or(Algorithm::HmacMd5), key?, replay).ok()
}

/// The same of Mobile IPv6 (RFC 4285 section 5.1).
pub(super) fn ipv6_security_association(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<v6::SecurityAssociation> {
    let before = problems.count();
    let spi = required(reader, "spi", NO_SPI, problems, |field, p| spi(field, "RFC 4285 section 5.1", p));
    let key = key(reader, source, problems);
    let algorithms =
        [("hmac-sha-1", mip6::Algorithm::HmacSha1), ("hmac-sha-256", mip6::Algorithm::HmacSha256)];
    let algorithm = given(reader, "algorithm", problems, |field, p| field.choice(&algorithms, &[], p));
    let modes = [
        ("timestamps", v6::ReplayProtection::TIMESTAMPS),
        ("sequence-numbers", v6::ReplayProtection::SequenceNumbers),
    ];
    let mode = given(reader, "replay", problems, |field, p| field.choice(&modes, &[], p)).unwrap_or_default();
    let replay = match mode {
        v6::ReplayProtection::Timestamps { window } => {
            v6::ReplayProtection::Timestamps { window: replay_window(reader, window, problems) }
        }
        v6::ReplayProtection::SequenceNumbers => {
            if reader.knows("replay_window") {
                reader.refuse(&["replay_window"], "sequence numbers have no window of time", problems);
            }
            mode
        }
    };
    if problems.count() > before {
        return None;
    }
    // Its errors are an SPI that is reserved and a key that is empty, which were refused above.
    v6::SecurityAssociation::new(spi?, algorithm.unwrap_or_default(), key?, replay).ok()
}

/// The key that nodes of a cluster have agreed on, in a table that has the keys of one.
pub(super) fn cluster_key(
    reader: &Reader<'_>,
    source: Source<'_>,
    problems: &mut Problems,
) -> Option<ClusterKey> {
    let spi = required(reader, "spi", NO_SPI, problems, |field, p| spi(field, "RFC 5944 section 1.6", p));
    let key = key(reader, source, problems);
    Some(ClusterKey { spi: spi?, key: key? })
}

/// `source` is where the numbers that are not for everybody are reserved.
fn spi(field: &Field<'_>, source: &str, problems: &mut Problems) -> Option<Spi> {
    let number = field.integer(0, u64::from(u32::MAX), problems)?;
    let spi = Spi(u32::try_from(number).unwrap_or(u32::MAX));
    if spi.is_reserved() {
        let expected = format!("0 to 255 are reserved ({source})");
        field.wrong(expected, Some("write 256 or more".into()), problems);
        return None;
    }
    Some(spi)
}

fn replay(reader: &Reader<'_>, problems: &mut Problems) -> ReplayProtection {
    let modes = [("timestamps", ReplayProtection::TIMESTAMPS), ("nonces", ReplayProtection::Nonces)];
    let mode = given(reader, "replay", problems, |field, p| field.choice(&modes, &[], p)).unwrap_or_default();
    if !reader.knows("replay_window") {
        return mode;
    }
    match mode {
        ReplayProtection::Nonces => {
            reader.refuse(&["replay_window"], "nonces have no window", problems);
            mode
        }
        ReplayProtection::Timestamps { window } => {
            ReplayProtection::Timestamps { window: replay_window(reader, window, problems) }
        }
    }
}

/// By how much clocks may differ: `usual` where nothing is said.
fn replay_window(reader: &Reader<'_>, usual: Duration, problems: &mut Problems) -> Duration {
    let least = Duration::from_secs(1);
    if !reader.knows("replay_window") {
        return usual;
    }
    given(reader, "replay_window", problems, |field, p| at_least(field, least, p)).unwrap_or(usual)
}

/// The bytes of `key` or of `key_file`.
fn key(reader: &Reader<'_>, source: Source<'_>, problems: &mut Problems) -> Option<Vec<u8>> {
    match (reader.get("key"), reader.get("key_file")) {
        (Some(field), None) => {
            let text = field.text(problems)?;
            if let Some(mode) = source.readable_by_everybody {
                let hint =
                    format!("chmod 640 {}, or write the key to a file of its own: key_file", source.file);
                let expected = format!("everybody can read it: the mode of {} is {mode:04o}", source.file);
                problems.add(field.place(), "a key", expected, Some(hint));
            }
            decode(text)
                .map_err(|expected| {
                    // What looks like a key is not printed.
                    let found = if is_hex(text) { "a key".to_owned() } else { quote(text) };
                    problems.add(field.place(), found, expected, Some(format!("{MAKE} makes one")));
                })
                .ok()
        }
        (None, Some(field)) => {
            let path = path(&field, source.directory, problems)?;
            from_file(&path).map_err(|(expected, hint)| field.wrong(expected, Some(hint), problems)).ok()
        }
        (Some(_), Some(field)) => {
            field.wrong("the key is given twice, by `key` and by `key_file`", None, problems);
            None
        }
        (None, None) => {
            let expected = "a security association needs its key: key_file = \"FILE\"";
            reader.require("key_file", expected, problems);
            None
        }
    }
}

/// The key in the file at `path`, or why there is none and what to do about it.
fn from_file(path: &Path) -> Result<Vec<u8>, (String, String)> {
    let shown = path.display();
    let directory =
        path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.exists());
    let first = directory.map(|directory| format!("mkdir -p {}; ", directory.display())).unwrap_or_default();
    let make = format!("(umask 077; {first}{MAKE} > {shown}) makes one");
    let about = fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ("there is no such file".to_owned(), make.clone()),
        _ => (format!("the file cannot be read: {error}"), format!("ls -l {shown} shows whose it is")),
    })?;
    if !about.is_file() {
        return Err(("it is no file".to_owned(), make));
    }
    if about.len() > LARGEST_FILE {
        return Err((format!("a key file does not have {} bytes", about.len()), make));
    }
    // The group may read it: an agent that is not root needs that.
    if about.mode() & 0o027 != 0 {
        let mode = about.mode() & 0o7777;
        let expected =
            format!("others than owner and group can read it, or the group write: its mode is {mode:04o}");
        return Err((expected, format!("chmod 640 {shown}")));
    }
    let bytes = fs::read(path).map_err(|error| {
        (format!("the file cannot be read: {error}"), format!("ls -l {shown} shows whose it is"))
    })?;
    let text = String::from_utf8(bytes).map_err(|_| ("the file holds no text".to_owned(), make.clone()))?;
    decode(text.trim()).map_err(|expected| (format!("in the file: {expected}"), make))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The bytes that `text` says in hexadecimal, or what would be right.
fn decode(text: &str) -> Result<Vec<u8>, String> {
    if !is_hex(text) || !text.len().is_multiple_of(2) {
        return Err(format!("a key is an even number of hexadecimal digits, at least {}", 2 * LEAST));
    }
    let digit =
        |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or(0);
    let bytes: Vec<u8> = text
        .as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |sum, &byte| sum << 4 | digit(byte)))
        .collect();
    if !(LEAST..=MOST).contains(&bytes.len()) {
        return Err(format!("a key has {LEAST} to {MOST} bytes; this one has {}", bytes.len()));
    }
    let step = |pair: &[u8]| pair[1].wrapping_sub(pair[0]);
    let distinct = bytes.iter().collect::<std::collections::BTreeSet<_>>().len();
    let counts = bytes.windows(2).all(|pair| step(pair) == step(&bytes[..2]));
    if distinct <= LEAST / 2 || counts {
        return Err("this key is no secret: it is too regular to come from chance".to_owned());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_hexadecimal_and_long_enough() {
        let key = decode("8f1c2a77d09be43516a0c7f92e5d3b48").unwrap();
        assert_eq!((key.len(), key[0], key[15]), (16, 0x8f, 0x48));
        for (text, complaint) in [
            ("", "even number"),
            ("8f1c2a77d09be43516a0c7f92e5d3b4", "even number"),
            ("REPLACE-ME", "even number"),
            ("0x8f1c2a77d09be43516a0c7f92e5d3b48", "even number"),
            ("8f1c2a77d09be435", "this one has 8"),
        ] {
            assert!(decode(text).unwrap_err().contains(complaint), "{text}");
        }
        assert!(decode(&"8f1c2a77d09be435".repeat(17)).unwrap_err().contains("16 to 128 bytes"));
    }

    #[test]
    fn keys_out_of_manuals_are_no_secret() {
        for text in [
            "00000000000000000000000000000000",
            "000102030405060708090a0b0c0d0e0f",
            "0123456789abcdef0123456789abcdef",
            "deadbeefdeadbeefdeadbeefdeadbeef",
            "00112233445566778899aabbccddeeff",
        ] {
            assert!(decode(text).unwrap_err().contains("no secret"), "{text}");
        }
    }
}
