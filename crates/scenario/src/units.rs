//! Quantities as people write them: those of every document, and those of links.

use careof_base::DataRate;
use careof_document::decode::Field;
use careof_document::error::Problems;
pub use careof_document::units::{
    UnitError, duration, parse_duration, parse_packets, parse_probability, parse_rate, parse_segments,
    parse_size, probability, size,
};
use careof_link::{QueueLimit, UNLIMITED_RATE};

/// The room in a queue: `"50 packets"` or a size.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_queue_limit(text: &str) -> Result<QueueLimit, UnitError> {
    let wrong = |hint| UnitError {
        expected: "a queue limit counts packets or bytes, such as \"50 packets\" or \"30 kB\"".to_owned(),
        hint,
    };
    let Some((number, unit)) = careof_document::units::split(text) else { return Err(wrong(None)) };
    if unit.is_empty() {
        let number = number.trim_start_matches(['-', '−', ' ']);
        return Err(wrong(Some(format!("write \"{number} packets\" or \"{number} B\""))));
    }
    if matches!(unit, "packet" | "packets") {
        return parse_packets(text).map(QueueLimit::Packets);
    }
    parse_size(text).map(QueueLimit::Bytes).map_err(|error| match parse_packets(text) {
        // Another way to write packets.
        Err(UnitError { hint: Some(_), .. }) => wrong(Some(format!("write \"{number} packets\""))),
        _ => error,
    })
}

/// The room in a queue in a file.
pub(crate) fn read_queue_limit(field: &Field<'_>, problems: &mut Problems) -> Option<QueueLimit> {
    field.quantity(parse_queue_limit, "\"50 packets\" or \"30 kB\"", problems)
}

/// A rate as [`parse_rate`] reads it; `unlimited` for [`UNLIMITED_RATE`].
#[must_use]
pub fn rate(rate: DataRate) -> String {
    if rate == UNLIMITED_RATE { "unlimited".to_owned() } else { careof_document::units::rate(rate) }
}

/// A queue limit as [`parse_queue_limit`] reads it.
#[must_use]
pub fn queue_limit(limit: QueueLimit) -> String {
    match limit {
        QueueLimit::Packets(1) => "1 packet".to_owned(),
        QueueLimit::Packets(count) => format!("{count} packets"),
        QueueLimit::Bytes(bytes) => size(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_queue_counts_packets_or_bytes() {
        assert_eq!(parse_queue_limit("50 packets"), Ok(QueueLimit::Packets(50)));
        assert_eq!(parse_queue_limit("1 packet"), Ok(QueueLimit::Packets(1)));
        assert_eq!(parse_queue_limit("30 kB"), Ok(QueueLimit::Bytes(30_000)));
        let error = parse_queue_limit("50").unwrap_err();
        assert_eq!(error.hint.unwrap(), "write \"50 packets\" or \"50 B\"");
        assert_eq!(parse_queue_limit("50 pkts").unwrap_err().hint.unwrap(), "write \"50 packets\"");
        assert!(parse_queue_limit("2.5 packets").unwrap_err().expected.contains("multiple of 1 packet"));
    }

    #[test]
    fn a_rate_without_limit_is_a_word() {
        assert_eq!(rate(UNLIMITED_RATE), "unlimited");
        assert_eq!(rate(DataRate::from_bits_per_second(9_600)), "9.6 kbit/s");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_written_queue_limit_reads_the_same(count in 0_u32..1_000_000_000) {
            let limit = QueueLimit::Packets(count);
            prop_assert_eq!(parse_queue_limit(&queue_limit(limit)), Ok(limit));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = parse_queue_limit(&text);
        }
    }
}
