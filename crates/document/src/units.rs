//! Quantities as people write them: a number, a space, a unit.
//!
//! Numbers are decimal and are kept exact: "9.6 kbit/s" is 9600 bit/s, not the nearest binary fraction. What is
//! finer than the base unit (1 bit/s, 1 ns, 1 byte) is refused rather than rounded. Each quantity is written back by
//! the function beside its parser, and reads the same again.

use careof_base::{DataRate, Duration, Probability};

/// Why a text is no such quantity, and what would be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError {
    /// What would be right, as a clause: `a rate is a number and a unit, such as "9.6 kbit/s"`.
    pub expected: String,
    /// A remedy for the text at hand.
    pub hint: Option<String>,
}

/// A kind of quantity: how it is called, written and counted.
struct Kind {
    /// With its article.
    noun: &'static str,
    example: &'static str,
    /// Name and how many base units it is. The first one or two serve as suggestions.
    units: &'static [(&'static str, u64)],
    /// What people write instead, and the unit they mean.
    aliases: &'static [(&'static str, &'static str)],
    /// The largest value, base units.
    most: u64,
    /// That value for people.
    most_text: &'static str,
    grain: &'static str,
}

const RATE: Kind = Kind {
    noun: "a rate",
    example: "9.6 kbit/s",
    units: &[("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("bit/s", 1), ("Gbit/s", 1_000_000_000)],
    aliases: &[
        ("bps", "bit/s"),
        ("b/s", "bit/s"),
        ("bit", "bit/s"),
        ("kbps", "kbit/s"),
        ("kb/s", "kbit/s"),
        ("kbit", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("mb/s", "Mbit/s"),
        ("mbit", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("gb/s", "Gbit/s"),
        ("gbit", "Gbit/s"),
    ],
    most: 1_000_000_000_000_000,
    most_text: "1000000 Gbit/s",
    grain: "1 bit/s",
};

const DURATION: Kind = Kind {
    noun: "a duration",
    example: "700 ms",
    units: &[
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("us", 1_000),
        ("µs", 1_000),
        ("ns", 1),
    ],
    aliases: &[
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("msec", "ms"),
        ("millis", "ms"),
        ("milliseconds", "ms"),
        ("usec", "us"),
        ("microseconds", "us"),
        ("m", "min"),
        ("mins", "min"),
        ("minute", "min"),
        ("minutes", "min"),
        ("hour", "h"),
        ("hours", "h"),
    ],
    most: 3_600_000_000_000 * 1_000_000,
    most_text: "1000000 h",
    grain: "1 ns",
};

const SIZE: Kind = Kind {
    noun: "a size",
    example: "16 KiB",
    units: &[
        ("B", 1),
        ("KiB", 1 << 10),
        ("kB", 1_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
    ],
    aliases: &[
        ("byte", "B"),
        ("bytes", "B"),
        ("k", "KiB"),
        ("kb", "kB"),
        ("m", "MiB"),
        ("mb", "MB"),
        ("g", "GiB"),
        ("gb", "GB"),
    ],
    most: 1_000_000_000_000_000,
    most_text: "1000000 GB",
    grain: "1 B",
};

const PACKETS: Kind = Kind {
    noun: "a number of packets",
    example: "50 packets",
    units: &[("packets", 1), ("packet", 1)],
    aliases: &[("pkts", "packets"), ("pkt", "packets"), ("p", "packets")],
    most: 1_000_000_000,
    most_text: "1000000000 packets",
    grain: "1 packet",
};

const SEGMENTS: Kind = Kind {
    noun: "a number of segments",
    example: "4 segments",
    units: &[("segments", 1), ("segment", 1)],
    aliases: &[("mss", "segments"), ("packets", "segments")],
    most: 1_000_000,
    most_text: "1000000 segments",
    grain: "1 segment",
};

/// A decimal number: `digits` / 10^`scale`.
struct Decimal {
    negative: bool,
    digits: u128,
    scale: u32,
}

/// The number at the beginning of `text` and what follows it.
fn split_number(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let (negative, rest) = match text.strip_prefix(['-', '−']) {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
    let (number, unit) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let mut digits: u128 = 0;
    for byte in whole.bytes().chain(fraction.bytes()) {
        digits = digits.saturating_mul(10).saturating_add(u128::from(byte - b'0'));
    }
    let scale = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    Some((Decimal { negative, digits, scale }, unit.trim()))
}

enum Misfit {
    TooLarge,
    TooFine,
}

impl Decimal {
    fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// `self * unit`, if that is a whole number of at most `most`.
    fn times(&self, unit: u64, most: u64) -> Result<u64, Misfit> {
        // 10^38 is the largest power of ten in 128 bits; a number with more decimals is finer than any unit.
        let Some(divisor) = 10_u128.checked_pow(self.scale) else { return Err(Misfit::TooFine) };
        let scaled = self.digits.checked_mul(u128::from(unit)).ok_or(Misfit::TooLarge)?;
        if scaled / divisor > u128::from(most)
            || (scaled / divisor == u128::from(most) && scaled % divisor != 0)
        {
            return Err(Misfit::TooLarge);
        }
        if scaled % divisor != 0 {
            return Err(Misfit::TooFine);
        }
        u64::try_from(scaled / divisor).map_err(|_| Misfit::TooLarge)
    }
}

impl Kind {
    fn shape(&self) -> String {
        format!("{} is a number and a unit, such as \"{}\"", self.noun, self.example)
    }

    fn unit_names(&self) -> String {
        let mut units: Vec<_> = self.units.iter().filter(|(name, _)| *name != "µs").collect();
        units.sort_by_key(|(_, size)| *size);
        units.dedup_by_key(|(_, size)| *size);
        let names: Vec<&str> = units.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    }

    /// The value of `text` in base units.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let Some((number, unit)) = split_number(text) else {
            return Err(UnitError { expected: self.shape(), hint: None });
        };
        let written = written_number(text, unit);
        if unit.is_empty() {
            return Err(self.unit_missing(&written));
        }
        let Some(&(name, size)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(UnitError {
                expected: format!("the units of {} are {}", self.noun, self.unit_names()),
                hint: self.meant(unit).map(|meant| format!("write \"{written} {meant}\"")),
            });
        };
        if number.negative && !number.is_zero() {
            return Err(UnitError {
                expected: format!("{} must not be negative", self.noun),
                hint: Some(format!("write \"{} {name}\"", written.trim_start_matches(['-', '−', ' ']))),
            });
        }
        number.times(size, self.most).map_err(|misfit| UnitError {
            expected: match misfit {
                Misfit::TooLarge => format!("{} is at most {}", self.noun, self.most_text),
                Misfit::TooFine => format!("{} is a multiple of {}", self.noun, self.grain),
            },
            hint: None,
        })
    }

    fn unit_missing(&self, number: &str) -> UnitError {
        let number = number.trim_start_matches(['-', '−', ' ']);
        let hint = match self.units {
            [(only, _)] | [(only, 1), (_, 1)] => format!("write \"{number} {only}\""),
            [(first, _), (second, _), ..] => format!("write \"{number} {first}\" or \"{number} {second}\""),
            [] => return UnitError { expected: self.shape(), hint: None },
        };
        UnitError { expected: self.shape(), hint: Some(hint) }
    }

    /// The unit that somebody who wrote `unit` has in mind.
    fn meant(&self, unit: &str) -> Option<&'static str> {
        let lower = unit.to_lowercase();
        if let Some((_, meant)) = self.aliases.iter().find(|(alias, _)| *alias == lower) {
            return Some(meant);
        }
        self.units.iter().map(|(name, _)| *name).find(|name| name.to_lowercase() == lower)
    }
}

/// The number at the beginning of `text` as written, and the unit that follows it.
#[must_use]
pub fn split(text: &str) -> Option<(String, &str)> {
    let (_, unit) = split_number(text)?;
    Some((written_number(text, unit), unit))
}

/// The number of `text` as written, without its unit.
fn written_number(text: &str, unit: &str) -> String {
    let text = text.trim();
    text.strip_suffix(unit).unwrap_or(text).trim().to_owned()
}

/// A rate: `"9.6 kbit/s"`. Zero is a rate.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_rate(text: &str) -> Result<DataRate, UnitError> {
    RATE.parse(text).map(DataRate::from_bits_per_second)
}

/// A duration: `"700 ms"`. Zero is a duration.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    DURATION.parse(text).map(Duration::from_nanos)
}

/// A number of bytes: `"16 KiB"`, `"1500 B"`, `"30.2 MB"`.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_size(text: &str) -> Result<u64, UnitError> {
    SIZE.parse(text)
}

/// A number of segments: `"4 segments"`.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_segments(text: &str) -> Result<u32, UnitError> {
    Ok(u32::try_from(SEGMENTS.parse(text)?).unwrap_or(u32::MAX))
}

/// A number of packets: `"5 packets"`.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_packets(text: &str) -> Result<u32, UnitError> {
    Ok(u32::try_from(PACKETS.parse(text)?).unwrap_or(u32::MAX))
}

/// A probability as text: `"1 %"`, or a plain number between 0 and 1.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_probability(text: &str) -> Result<Probability, UnitError> {
    let error = |hint| UnitError {
        expected: "a probability lies between 0 and 1, such as 0.01 or \"1 %\"".to_owned(),
        hint,
    };
    let Some((number, unit)) = split_number(text) else { return Err(error(None)) };
    let scale = match unit {
        "" => number.scale,
        "%" => number.scale.saturating_add(2),
        _ => return Err(error(None)),
    };
    if number.negative && !number.is_zero() {
        return Err(error(None));
    }
    // Through decimal text, so that "1 %" is the same number as 0.01.
    let value = format!("{}e-{scale}", number.digits).parse().unwrap_or(f64::NAN);
    let percent = (value > 1.0 && value <= 100.0 && unit.is_empty())
        .then(|| format!("write \"{} %\"", written_number(text, unit)));
    Probability::new(value).map_err(|_| error(percent))
}

/// Writes `value` in the largest of `units` (descending) in which it is at least 1 and has at most three decimals.
fn write_in(value: u64, units: &[(&str, u64)], smallest: &str) -> String {
    for &(name, unit) in units {
        if value < unit || unit < 1_000 || !value.is_multiple_of(unit / 1_000) {
            continue;
        }
        let (whole, thousandths) = (value / unit, value % unit / (unit / 1_000));
        if thousandths == 0 {
            return format!("{whole} {name}");
        }
        let decimals = format!("{thousandths:03}");
        return format!("{whole}.{} {name}", decimals.trim_end_matches('0'));
    }
    format!("{value} {smallest}")
}

/// A rate as [`parse_rate`] reads it.
#[must_use]
pub fn rate(rate: DataRate) -> String {
    rate.to_string()
}

/// A duration as [`parse_duration`] reads it.
#[must_use]
pub fn duration(span: Duration) -> String {
    if span.is_zero() {
        return "0 s".to_owned();
    }
    let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    write_in(nanos, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)], "ns")
}

/// A size as [`parse_size`] reads it: in bytes up to 10,000, else in the unit that needs no decimals.
#[must_use]
pub fn size(bytes: u64) -> String {
    const EXACT: [(&str, u64); 6] = [
        ("GiB", 1 << 30),
        ("GB", 1_000_000_000),
        ("MiB", 1 << 20),
        ("MB", 1_000_000),
        ("KiB", 1 << 10),
        ("kB", 1_000),
    ];
    for (name, unit) in EXACT {
        if bytes >= unit && bytes.is_multiple_of(unit) {
            return format!("{} {name}", bytes / unit);
        }
    }
    if bytes < 10_000 {
        return format!("{bytes} B");
    }
    write_in(bytes, &[("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)], "B")
}

/// A probability as [`parse_probability`] reads it.
#[must_use]
pub fn probability(p: Probability) -> String {
    p.get().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_are_exact() {
        assert_eq!(parse_rate("9.6 kbit/s"), Ok(DataRate::from_bits_per_second(9_600)));
        assert_eq!(parse_rate("0.0096 Mbit/s"), Ok(DataRate::from_bits_per_second(9_600)));
        assert_eq!(parse_rate("1.000000001 Gbit/s"), Ok(DataRate::from_bits_per_second(1_000_000_001)));
        assert_eq!(parse_duration("349.75 ms"), Ok(Duration::from_micros(349_750)));
        assert_eq!(parse_duration("2 min"), Ok(Duration::from_secs(120)));
        assert_eq!(parse_duration("1.5 h"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse_duration("100 us"), parse_duration("100 µs"));
        assert_eq!(parse_size("30.2 MB"), Ok(30_200_000));
        assert_eq!(parse_size("16 KiB"), Ok(16_384));
        assert_eq!(parse_size("0.5 KiB"), Ok(512));
        assert_eq!(parse_probability("1 %").unwrap().get(), 0.01);
        assert_eq!(parse_probability("0.7 %").unwrap().get(), 0.007);
        assert_eq!(parse_probability("0.01").unwrap().get(), 0.01);
    }

    #[test]
    fn the_space_before_the_unit_may_be_left_out() {
        assert_eq!(parse_duration("700ms"), Ok(Duration::from_millis(700)));
        assert_eq!(parse_duration("  700   ms "), Ok(Duration::from_millis(700)));
    }

    #[test]
    fn a_missing_unit_is_asked_for() {
        let error = parse_rate("9.6").unwrap_err();
        assert_eq!(error.expected, "a rate is a number and a unit, such as \"9.6 kbit/s\"");
        assert_eq!(error.hint.unwrap(), "write \"9.6 kbit/s\" or \"9.6 Mbit/s\"");
        assert_eq!(parse_size("1500").unwrap_err().hint.unwrap(), "write \"1500 B\" or \"1500 KiB\"");
    }

    #[test]
    fn a_foreign_unit_is_translated() {
        let error = parse_rate("2 Mbps").unwrap_err();
        assert_eq!(error.expected, "the units of a rate are bit/s, kbit/s, Mbit/s, Gbit/s");
        assert_eq!(error.hint.unwrap(), "write \"2 Mbit/s\"");
        assert_eq!(parse_rate("2 mbit/s").unwrap_err().hint.unwrap(), "write \"2 Mbit/s\"");
        assert_eq!(parse_size("16 KB").unwrap_err().hint.unwrap(), "write \"16 kB\"");
        assert_eq!(parse_duration("3 sec").unwrap_err().hint.unwrap(), "write \"3 s\"");
        assert_eq!(parse_duration("3 bit/s").unwrap_err().hint, None);
        assert_eq!(
            parse_duration("3 x").unwrap_err().expected,
            "the units of a duration are ns, us, ms, s, min, h"
        );
    }

    #[test]
    fn negative_oversized_and_too_fine_values_are_refused() {
        let error = parse_rate("-9.6 kbit/s").unwrap_err();
        assert_eq!(error.expected, "a rate must not be negative");
        assert_eq!(error.hint.unwrap(), "write \"9.6 kbit/s\"");
        assert_eq!(parse_rate("-0 bit/s"), Ok(DataRate::ZERO));
        assert_eq!(parse_duration("0.5 ns").unwrap_err().expected, "a duration is a multiple of 1 ns");
        assert_eq!(parse_duration("1000001 h").unwrap_err().expected, "a duration is at most 1000000 h");
        let long = format!("{} Gbit/s", "9".repeat(60));
        assert_eq!(parse_rate(&long).unwrap_err().expected, "a rate is at most 1000000 Gbit/s");
        let fine = format!("0.{}1 Gbit/s", "0".repeat(60));
        assert_eq!(parse_rate(&fine).unwrap_err().expected, "a rate is a multiple of 1 bit/s");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", "fast", "kbit/s", ".5 kbit/s", "5. kbit/s", "1.2.3 kbit/s", "1e3 bit/s", "nan bit/s", "∞"]
        {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_probability_lies_between_0_and_1() {
        for bad in ["-0.1", "101 %", "1 in 100", "", "nan"] {
            assert!(parse_probability(bad).is_err(), "{bad}");
        }
        assert_eq!(parse_probability("2").unwrap_err().hint.unwrap(), "write \"2 %\"");
    }

    #[test]
    fn values_are_written_as_people_do() {
        for (nanos, text) in [
            (700_000_000, "700 ms"),
            (12_000_000_000, "12 s"),
            (3_500_000, "3.5 ms"),
            (349_750_000, "349.75 ms"),
            (100_000, "100 us"),
            (1_500_000_000, "1.5 s"),
            (1, "1 ns"),
            (1_000_000_001, "1000000.001 us"),
            (0, "0 s"),
        ] {
            assert_eq!(duration(Duration::from_nanos(nanos)), text);
        }
        for (bytes, text) in [
            (16_384, "16 KiB"),
            (1_500, "1500 B"),
            (30_000, "30 kB"),
            (30_200_000, "30200 kB"),
            (30_200_001, "30200.001 kB"),
            (1_000_000, "1 MB"),
            (1 << 20, "1 MiB"),
            (0, "0 B"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn what_is_written_reads_the_same(value in 0_u64..1_000_000_000_000_000, count: u32) {
            let span = Duration::from_nanos(value);
            prop_assert_eq!(parse_duration(&duration(span)), Ok(span));
            prop_assert_eq!(parse_size(&size(value)), Ok(value));
            let bits = DataRate::from_bits_per_second(value);
            prop_assert_eq!(parse_rate(&rate(bits)), Ok(bits));
            let packets = count % 1_000_000_000;
            prop_assert_eq!(parse_packets(&format!("{packets} packets")), Ok(packets));
        }

        #[test]
        fn a_written_probability_reads_the_same(value in 0.0_f64..=1.0) {
            let p = Probability::new(value).unwrap();
            // Rust writes the shortest text that reads back, never with an exponent.
            prop_assert_eq!(parse_probability(&probability(p)), Ok(p));
        }

        #[test]
        fn no_text_makes_the_parsers_panic(text in ".{0,40}") {
            let _ = (parse_rate(&text), parse_duration(&text), parse_size(&text), parse_packets(&text));
            let _ = (parse_probability(&text), parse_segments(&text), split(&text));
        }
    }
}
