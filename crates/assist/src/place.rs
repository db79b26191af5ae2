//! Where an assistant runs, and which way packets go there.

/// Where an assistant runs. It decides what an event means and which assists make sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// At the home agent: it tunnels what goes to the mobile node, and sees what comes back where routing leads it there.
    HomeAgent,
    /// At a foreign agent or base station: both directions pass over its own interface.
    ForeignAgent,
    /// On the mobile node, between its own TCP and its links.
    MobileNode,
}

impl Place {
    /// The direction in which what passes here has the wireless path still ahead: that of the packets worth keeping.
    #[must_use]
    pub const fn keeps(self) -> Towards {
        match self {
            Self::HomeAgent | Self::ForeignAgent => Towards::Mobile,
            Self::MobileNode => Towards::Peer,
        }
    }

    /// The direction of what is put into a tunnel here.
    #[must_use]
    pub const fn enters(self) -> Towards {
        match self {
            Self::HomeAgent => Towards::Mobile,
            Self::ForeignAgent | Self::MobileNode => Towards::Peer,
        }
    }
}

/// The end a packet goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Towards {
    /// To the mobile node: the data of a download, the acknowledgements of an upload.
    Mobile,
    /// To the correspondent.
    Peer,
}

impl Towards {
    /// The other direction, in which the acknowledgements of this one's data go.
    #[must_use]
    pub const fn back(self) -> Self {
        match self {
            Self::Mobile => Self::Peer,
            Self::Peer => Self::Mobile,
        }
    }
}
