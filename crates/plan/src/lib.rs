//! What both worlds build alike from a scenario.

mod observation;

pub use observation::Observation;
