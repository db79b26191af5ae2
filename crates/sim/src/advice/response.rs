//! What senders do that are told of a handover, by assist.

use careof_scenario::AdvisedBy;
use careof_tcp::{Advice, BandwidthEstimator, NewPath};

/// What senders do about a handover.
#[derive(Clone, Copy)]
pub(super) enum Response {
    RtoReset {
        slow_start: bool,
        by: AdvisedBy,
    },
    /// Without an estimator the path is told.
    TcpCm {
        resend: bool,
        suspend: bool,
        estimator: Option<BandwidthEstimator>,
    },
    MobileTcp,
    TcpHo,
    DemoVegas,
}

impl Response {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::RtoReset { .. } => "rto-reset",
            Self::TcpCm { .. } => "tcp-cm",
            Self::MobileTcp => "mobile-tcp",
            Self::TcpHo => "tcp-ho",
            Self::DemoVegas => "demo-vegas",
        }
    }

    /// Whether senders on the mobile node stop while there is no path.
    pub(super) const fn suspends(self) -> bool {
        matches!(self, Self::TcpCm { suspend: true, .. } | Self::MobileTcp)
    }

    /// What a sender does that has moved to a new path.
    pub(super) const fn own_arrival(self, path: NewPath) -> Option<Advice> {
        match self {
            Self::TcpCm { estimator: Some(_), .. } => Some(Advice::Resume),
            // The source has senders that do not move.
            Self::TcpHo => None,
            _ => self.peers_arrival(path),
        }
    }

    /// What a sender does whose peer has moved to a new path.
    pub(super) const fn peers_arrival(self, path: NewPath) -> Option<Advice> {
        match (self, path.rate) {
            (Self::RtoReset { slow_start, .. }, _) => Some(Advice::ResetRto { slow_start }),
            (Self::TcpCm { resend, estimator: Some(_), .. }, _) => Some(Advice::Replaced { repeat: resend }),
            (Self::TcpCm { resend: false, .. }, _) => Some(Advice::Moved(path)),
            (Self::TcpCm { .. } | Self::MobileTcp, _) => Some(Advice::Back(path)),
            (Self::TcpHo, Some(rate)) => Some(Advice::HandedOff(rate)),
            (Self::TcpHo, None) => None,
            (Self::DemoVegas, _) => Some(Advice::MeasureBaseRtt),
        }
    }
}
