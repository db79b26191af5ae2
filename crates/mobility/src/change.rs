//! What becomes of what is kept for a while.

/// What became of a binding or a visitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// It is new.
    Created,
    /// It was renewed.
    Updated,
    /// It was taken away, by deregistration or by another registration.
    Removed,
    /// Its lifetime ran out.
    Expired,
}

impl Change {
    /// The name in traces.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Removed => "removed",
            Self::Expired => "expired",
        }
    }
}
