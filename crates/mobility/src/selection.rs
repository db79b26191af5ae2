//! Which interface of a mobile node is used.

use core::time::Duration;

use crate::InterfaceId;

/// Who decides which interface is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// The owner, by `switch_to`. On the interface chosen the node follows its agents
    /// by itself.
    #[default]
    Manual,
    /// The node: at once to the best interface that works when the one in use does not, and back to a
    /// better one when that has worked for `hold` without a break. What the owner chose by `switch_to` is
    /// kept as long as it works.
    ///
    /// An interface works while its link is up and there is an agent or an address to register with - until
    /// several requests through it have had no reply (`attempts` in the configuration). Then another one is used if
    /// there is one, and this one is not tried again for a while, which doubles each time it fails.
    Preferred {
        /// How long a better interface must have worked.
        hold: Duration,
    },
}

/// The node has no interface with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no interface {}", .0.0)]
pub struct UnknownInterface(pub InterfaceId);
