//! Scripts of what an assistant sees and does, and what holds for all assists.

mod ack_hold;
mod acknowledgement;
mod attacks;
mod bicast;
mod black_hole;
mod buffer_forward;
mod common;
mod fast_retransmit;
mod freeze;
mod lcd_kick;
mod m_tcp;
mod mss_clamp;
mod packet;
mod path_queue;
mod received_data;
mod replay;
mod replay_losses;
mod replay_properties;
mod script;
mod snoop;
mod window_clamp;
