//! The TCP models of [`careof_tcp`] held against what others did and printed.
//!
//! [`kernel`] takes traces of real Linux senders over a scripted link and runs the model twice: once fed with the very
//! acknowledgements that the kernel saw (open loop), once with a model receiver over the same link (closed loop).
//! [`analytic`] evaluates predictions that were computed from RFCs and papers.
//! [`rtt`] runs the estimators of the retransmission timeout over series of round trips.
//! [`transfer`] carries a connection over a link that changes by the clock, for a comparison with other simulators.

pub mod analytic;
pub mod kernel;
pub mod rtt;
pub mod transfer;
