//! What a mobile node knows of its path, as it travels in a registration request or a Binding Update.
//!
//! The value of a vendor extension ([`crate::mip4::VendorExtension`]), or the data of a vendor's mobility option
//! ([`crate::mip6::VendorOption`]), of vendor [`crate::ENTERPRISE`] and type [`PathReport::KIND`]:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |D|U|R|K|L|zero |   repeated    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |               rate to the mobile node, 100 bit/s              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |              rate from the mobile node, 100 bit/s             |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            round-trip time to the home agent, us              |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! D, U and R say that the first, second and third field is known, K that it is known whether the old path is lost, and L
//! that it is. For how long the same has been asked for by requests before this one is told in units of 10 ms, rounded up, of which 255
//! are 2.55 s or more. A field that is not known is zero, and ignored when received. A later edition may use the bits left over
//! and append fields; what is known here keeps its place, so a longer value is read as far as it is known.

use core::time::Duration;

use careof_base::DataRate;

use crate::fixed::Fixed;

/// Offsets in the value.
mod value {
    pub(super) const FLAGS: usize = 0;
    pub(super) const DOWNLINK: usize = 2;
    pub(super) const UPLINK: usize = 6;
    pub(super) const ROUND_TRIP: usize = 10;
    pub(super) const LEN: usize = 14;
}

const HAS_DOWNLINK: u16 = 1 << 15;
const HAS_UPLINK: u16 = 1 << 14;
const HAS_ROUND_TRIP: u16 = 1 << 13;
const KNOWS_OLD_PATH: u16 = 1 << 12;
const OLD_PATH_LOST: u16 = 1 << 11;

/// What a mobile node knows of the path it registers: for whoever queues, paces or repeats its packets.
///
/// On the wire rates are multiples of 100 bit/s, up to 429 Gbit/s, and times of 1 us, up to 71 min: what is sent is
/// rounded to the nearest, and to the limit beyond it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathReport {
    /// Rate towards the mobile node.
    pub downlink: Option<DataRate>,
    /// Rate from the mobile node.
    pub uplink: Option<DataRate>,
    /// Round-trip time to the home agent.
    pub round_trip: Option<Duration>,
    /// Whether what was on its way by the path used before - or by this one, if it was interrupted - is lost; `None`
    /// when the mobile node cannot tell.
    pub old_path_lost: Option<bool>,
    /// For how long the same has been asked for by requests before this one, which have had no reply; zero in the first. Who has
    /// one of them has been told already what this one tells. On the wire in steps of 10 ms, rounded up, at most 2.55 s.
    pub repeated_for: Duration,
}

impl PathReport {
    /// The Vendor-NVSE-Type, or Sub-Type.
    pub const KIND: u8 = 1;

    /// The unit of rates, bit/s.
    const RATE_UNIT: u64 = 100;

    /// The unit of [`PathReport::repeated_for`].
    const REPEATED_UNIT: Duration = Duration::from_millis(10);

    /// Bytes of the value.
    pub(crate) const VALUE_LEN: usize = value::LEN;

    /// [`PathReport::repeated_for`] on the wire.
    fn repeated(&self) -> u8 {
        let units = self.repeated_for.as_micros().div_ceil(Self::REPEATED_UNIT.as_micros());
        u8::try_from(units).unwrap_or(u8::MAX)
    }

    /// The value.
    pub(crate) fn encode(&self) -> [u8; value::LEN] {
        let rate = |rate: DataRate| {
            let units = rate.bits_per_second().saturating_add(Self::RATE_UNIT / 2) / Self::RATE_UNIT;
            u32::try_from(units).unwrap_or(u32::MAX)
        };
        let micros = |time: Duration| {
            let rounded = time.saturating_add(Duration::from_nanos(500)).as_micros();
            u32::try_from(rounded).unwrap_or(u32::MAX)
        };
        let known = |is_known, flag| if is_known { flag } else { 0 };
        let flags = known(self.downlink.is_some(), HAS_DOWNLINK)
            | known(self.uplink.is_some(), HAS_UPLINK)
            | known(self.round_trip.is_some(), HAS_ROUND_TRIP)
            | known(self.old_path_lost.is_some(), KNOWS_OLD_PATH)
            | known(self.old_path_lost == Some(true), OLD_PATH_LOST)
            | u16::from(self.repeated());
        let mut fixed = Fixed::<{ value::LEN }>::ZERO;
        fixed.put::<{ value::FLAGS }, 2>(flags.to_be_bytes());
        fixed.put::<{ value::DOWNLINK }, 4>(self.downlink.map_or(0, rate).to_be_bytes());
        fixed.put::<{ value::UPLINK }, 4>(self.uplink.map_or(0, rate).to_be_bytes());
        fixed.put::<{ value::ROUND_TRIP }, 4>(self.round_trip.map_or(0, micros).to_be_bytes());
        *fixed.bytes()
    }

    /// Reads the value; `None` when it ends too soon: a report that cannot be read is none, and no
    /// reason to refuse the registration it came with.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (fixed, _) = Fixed::<{ value::LEN }>::split(bytes, "path report").ok()?;
        let flags = fixed.u16::<{ value::FLAGS }>();
        let has = |flag| flags & flag != 0;
        let rate = |units: u32| DataRate::from_bits_per_second(u64::from(units) * Self::RATE_UNIT);
        Some(Self {
            downlink: has(HAS_DOWNLINK).then(|| rate(fixed.u32::<{ value::DOWNLINK }>())),
            uplink: has(HAS_UPLINK).then(|| rate(fixed.u32::<{ value::UPLINK }>())),
            round_trip: has(HAS_ROUND_TRIP)
                .then(|| Duration::from_micros(u64::from(fixed.u32::<{ value::ROUND_TRIP }>()))),
            old_path_lost: has(KNOWS_OLD_PATH).then(|| has(OLD_PATH_LOST)),
            repeated_for: Self::REPEATED_UNIT * u32::from(flags.to_be_bytes()[1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GSM: PathReport = PathReport {
        downlink: Some(DataRate::from_bits_per_second(9_600)),
        uplink: Some(DataRate::from_bits_per_second(14_400)),
        round_trip: Some(Duration::from_millis(700)),
        old_path_lost: Some(true),
        repeated_for: Duration::ZERO,
    };

    #[test]
    fn rates_count_in_100_bits_and_times_in_microseconds() {
        assert_eq!(GSM.encode(), [0xf8, 0, 0, 0, 0, 96, 0, 0, 0, 144, 0, 0x0a, 0xae, 0x60]);
    }

    #[test]
    fn the_slowest_and_the_fastest_paths_are_told_exactly() {
        for bits in [0, 9_600, 14_400, 384_000, 11_000_000, 100_000_000_000] {
            let report = PathReport { downlink: Some(DataRate::from_bits_per_second(bits)), ..GSM };
            assert_eq!(PathReport::decode(&report.encode()), Some(report));
        }
    }

    #[test]
    fn what_the_fields_cannot_tell_is_rounded_and_what_they_cannot_hold_is_cut() {
        let told = |bits, nanos| {
            let report = PathReport {
                downlink: Some(DataRate::from_bits_per_second(bits)),
                round_trip: Some(Duration::from_nanos(nanos)),
                ..GSM
            };
            let told = PathReport::decode(&report.encode()).unwrap();
            (told.downlink.unwrap().bits_per_second(), told.round_trip.unwrap().as_nanos())
        };
        assert_eq!(told(28_849, 1_499), (28_800, 1_000));
        assert_eq!(told(28_850, 1_500), (28_900, 2_000));
        assert_eq!(told(u64::MAX, u64::MAX), (429_496_729_500, 4_294_967_295_000));
    }

    #[test]
    fn what_is_not_known_is_not_made_up() {
        let nothing = PathReport::default();
        assert_eq!(nothing.encode(), [0; 14]);
        assert_eq!(PathReport::decode(&[0; 14]), Some(nothing));
        // Fields whose bit is not set mean nothing, whatever they hold; nor does L without K.
        assert_eq!(PathReport::decode(&[0x0f, 0x00, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]), Some(nothing));
        let kept = PathReport { old_path_lost: Some(false), ..nothing };
        assert_eq!(PathReport::decode(&kept.encode()), Some(kept));
    }

    #[test]
    fn for_how_long_it_was_asked_is_told_as_no_less_than_it_is() {
        for (millis, told) in [(0, 0), (1, 10), (300, 300), (301, 310), (2_550, 2_550), (60_000, 2_550)] {
            let report = PathReport { repeated_for: Duration::from_millis(millis), ..GSM };
            let expected = PathReport { repeated_for: Duration::from_millis(told), ..GSM };
            assert_eq!(PathReport::decode(&report.encode()), Some(expected));
        }
    }

    #[test]
    fn a_longer_value_is_read_as_far_as_it_is_known_and_a_shorter_one_not_at_all() {
        let mut bytes = GSM.encode().to_vec();
        assert_eq!(PathReport::decode(&bytes[..13]), None);
        assert_eq!(PathReport::decode(&[]), None);
        bytes[0] |= 0x07;
        bytes.extend([1, 2, 3]);
        assert_eq!(PathReport::decode(&bytes), Some(GSM));
    }
}
