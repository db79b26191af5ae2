//! `[assist]` as scenarios and the daemon's configurations have it: the names of the assists, the parameters of those that
//! both kinds of file know, and the exceptions.
//!
//! A kind of file says as an [`AssistFile`] which assists it knows; [`AssistFile::read`] reads its table.

pub mod parameters;
pub mod sections;
mod table;

pub use parameters::Parameters;
pub use table::{AssistFile, Except, NAMES, Refusal, Table, Use};
