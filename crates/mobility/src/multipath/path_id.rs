//! Which paths.

/// Paths that one tunnel has at most.
pub const MAX_PATHS: usize = 8;

/// A path between a home agent and a mobile node, as both ends call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(u8);

impl PathId {
    /// The path with this number, below [`MAX_PATHS`].
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if (number as usize) < MAX_PATHS { Some(Self(number)) } else { None }
    }

    /// Its number, as on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Every path that there can be.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..MAX_PATHS as u8).map(Self)
    }
}

/// A set of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PathSet(u8);

impl PathSet {
    /// No path.
    pub const NONE: Self = Self(0);
    /// Every path that there is.
    pub const ALL: Self = Self(u8::MAX);

    /// This path alone.
    #[must_use]
    pub const fn of(path: PathId) -> Self {
        Self(1 << path.0)
    }

    /// These paths and `path`.
    #[must_use]
    pub const fn with(self, path: PathId) -> Self {
        Self(self.0 | 1 << path.0)
    }

    /// These paths without `path`.
    #[must_use]
    pub const fn without(self, path: PathId) -> Self {
        Self(self.0 & !(1 << path.0))
    }

    /// The paths that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `path` is one of them.
    #[must_use]
    pub const fn contains(self, path: PathId) -> bool {
        self.0 & 1 << path.0 != 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many there are.
    #[must_use]
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// They, by their numbers.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = PathId> {
        PathId::all().filter(move |&path| self.contains(path))
    }
}

impl FromIterator<PathId> for PathSet {
    fn from_iter<I: IntoIterator<Item = PathId>>(paths: I) -> Self {
        paths.into_iter().fold(Self::NONE, Self::with)
    }
}
