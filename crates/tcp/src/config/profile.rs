//! The ready configurations.

use super::{
    AckCounting, Config, CongestionControl, DelayedAck, HyStart, IdleRestart, InitialWindow, Profile,
    RtoEstimator, Variant,
};

/// The largest receive buffer a Linux host takes by itself (`tcp_rmem`), bytes.
const LINUX_RECEIVE_BUFFER: u32 = 6 << 20;

impl From<Profile> for Config {
    fn from(profile: Profile) -> Self {
        let classic =
            Self { initial_window: InitialWindow::Rfc5681, window_validation: false, ..Self::default() };
        match profile {
            Profile::Tahoe => Self { variant: Variant::Tahoe, ..classic },
            Profile::Reno => Self { variant: Variant::Reno, ..classic },
            Profile::NewReno => Self { variant: Variant::NewReno, ..classic },
            Profile::Sack => Self {
                variant: Variant::Sack,
                sack: true,
                limited_transmit: true,
                rescue_retransmission: false,
                ..classic
            },
            Profile::Vegas => {
                Self { variant: Variant::Vegas, congestion: CongestionControl::Vegas, ..classic }
            }
            Profile::Linux20 => Self {
                variant: Variant::Linux20,
                rto: RtoEstimator::Linux20,
                receive_window: 16_384,
                delayed_ack: DelayedAck::Linux20,
                initial_window: InitialWindow::Segments(1),
                ..classic
            },
            Profile::Linux => Self {
                variant: Variant::Linux,
                congestion: CongestionControl::Cubic,
                hystart: HyStart::Linux,
                rto: RtoEstimator::Linux,
                receive_window: LINUX_RECEIVE_BUFFER,
                window_scaling: true,
                timestamps: true,
                sack: true,
                dsack: true,
                prr: true,
                rack: true,
                tail_loss_probe: true,
                frto: true,
                eifel: true,
                icmp_unreachable: true,
                limited_transmit: true,
                initial_window: InitialWindow::Segments(10),
                delayed_ack: DelayedAck::Linux,
                sack_compression: true,
                ack_counting: AckCounting::Bytes { limit: u32::MAX },
                idle_restart: IdleRestart::Decay,
                ..Self::default()
            },
        }
    }
}
