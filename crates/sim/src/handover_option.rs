//! What a mobile node says of a handover in a TCP option.
//!
//! The option has an experimental kind (RFC 4727 section 7.2) with an identifier of two bytes (RFC 6994); the number of the
//! handover tells repetitions from news:
//!
//! ```text
//! kind 253 | length | 0x43 0x61 | handover, modulo 256 | 1: slow start | values of 4 bytes each | no-ops to 4 bytes
//! ```
//!
//! The values are none; or the timeout in microseconds; or the rate in units of 100 bit/s and the round trip in microseconds, 0 for what
//! is not known.

use core::num::NonZeroU32;
use core::time::Duration;

use careof_base::DataRate;
use careof_tcp::NewPath;

const KIND_EXPERIMENT: u8 = 253;
const IDENTIFIER: [u8; 2] = *b"Ca";
const NO_OPERATION: u8 = 1;
const SLOW_START: u8 = 1;
const BITS_PER_UNIT: u64 = 100;

/// Number of an option that was made in a run, of which segments carry copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OptionRef(NonZeroU32);

impl OptionRef {
    /// The option at `index` of all that were made; `None` for more than a run can count.
    pub(crate) fn at(index: usize) -> Option<Self> {
        u32::try_from(index + 1).ok().and_then(NonZeroU32::new).map(Self)
    }

    /// Where it stands among all that were made.
    pub(crate) const fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// The option, as whoever receives it reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandoverOption {
    /// Number of the handover, modulo 256.
    pub(crate) handover: u8,
    pub(crate) says: Says,
}

/// What it says, in units of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// A timeout for the new path.
    Rto { micros: u32, slow_start: bool },
    /// That the path is another.
    Moved,
    /// What is known of the new path.
    Path { rate: u32, micros: u32 },
}

impl Says {
    pub(crate) fn rto(rto: Duration, slow_start: bool) -> Self {
        Self::Rto { micros: micros(rto), slow_start }
    }

    pub(crate) fn path(path: &NewPath) -> Self {
        let rate = path.rate.map_or(0, |rate| rate.bits_per_second() / BITS_PER_UNIT);
        Self::Path {
            rate: u32::try_from(rate).unwrap_or(u32::MAX),
            micros: path.round_trip.map_or(0, micros),
        }
    }

    /// What it says of the path.
    pub(crate) fn new_path(self) -> NewPath {
        let Self::Path { rate, micros } = self else { return NewPath::default() };
        NewPath {
            rate: (rate > 0).then(|| DataRate::from_bits_per_second(u64::from(rate) * BITS_PER_UNIT)),
            round_trip: (micros > 0).then(|| Duration::from_micros(micros.into())),
        }
    }

    /// The values, one after the other.
    pub(crate) fn emit(self, bytes: &mut Vec<u8>) {
        match self {
            Self::Moved => {}
            Self::Rto { micros, .. } => bytes.extend(micros.to_be_bytes()),
            Self::Path { rate, micros } => {
                bytes.extend(rate.to_be_bytes());
                bytes.extend(micros.to_be_bytes());
            }
        }
    }

    /// Reads the values of a path.
    pub(crate) fn parse_path(bytes: &[u8]) -> Option<Self> {
        let (rate, bytes) = bytes.split_first_chunk()?;
        let micros = bytes.first_chunk()?;
        Some(Self::Path { rate: u32::from_be_bytes(*rate), micros: u32::from_be_bytes(*micros) })
    }
}

fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

impl HandoverOption {
    /// Its bytes, a multiple of four.
    pub(crate) fn bytes(self) -> Vec<u8> {
        let slow_start = matches!(self.says, Says::Rto { slow_start: true, .. });
        let mut bytes = vec![KIND_EXPERIMENT, 0];
        bytes.extend(IDENTIFIER);
        bytes.extend([self.handover, if slow_start { SLOW_START } else { 0 }]);
        self.says.emit(&mut bytes);
        bytes[1] = bytes.len() as u8;
        bytes.resize(bytes.len().next_multiple_of(4), NO_OPERATION);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_tells_its_own_length_and_fills_whole_words() {
        let rto = HandoverOption { handover: 3, says: Says::rto(Duration::from_millis(2_100), true) };
        assert_eq!(rto.bytes(), [253, 10, 0x43, 0x61, 3, 1, 0, 0x20, 0x0b, 0x20, 1, 1]);
        assert_eq!(
            HandoverOption { handover: 7, says: Says::Moved }.bytes(),
            [253, 6, 0x43, 0x61, 7, 0, 1, 1]
        );
        let path = NewPath {
            rate: Some(DataRate::from_bits_per_second(9_600)),
            round_trip: Some(Duration::from_millis(700)),
        };
        let says = Says::path(&path);
        let bytes = HandoverOption { handover: 4, says }.bytes();
        assert_eq!(bytes, [253, 14, 0x43, 0x61, 4, 0, 0, 0, 0, 96, 0, 10, 0xae, 0x60, 1, 1]);
        assert_eq!(Says::parse_path(&bytes[6..]), Some(says));
        assert_eq!(says.new_path(), path);
        assert_eq!(Says::path(&NewPath::default()).new_path(), NewPath::default());
        assert_eq!(Says::parse_path(&[0; 7]), None);
    }
}
