//! The assists.

pub(crate) mod ack_hold;
pub(crate) mod bicast;
pub(crate) mod black_hole;
pub(crate) mod buffer_forward;
pub(crate) mod fast_retransmit;
pub(crate) mod freeze;
pub(crate) mod lcd_kick;
pub(crate) mod m_tcp;
pub(crate) mod mss_clamp;
pub(crate) mod path_queue;
pub(crate) mod replay;
pub(crate) mod snoop;
pub(crate) mod window_clamp;
