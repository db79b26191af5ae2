//! How much of a table one may take whom nobody can hold to account.

use crate::{InterfaceId, LinkAddress};

/// Who sends on a link.
pub(crate) type Station = (InterfaceId, LinkAddress);

/// The least share: so many come through one station, or from one home agent, in the smallest of networks.
const LEAST: usize = 16;

/// The share of `of` that a station may take where the operator says nothing: a quarter. A host that passes others' frames on as
/// its own - a wireless bridge, say - has many mobile nodes behind it, but hardly hundreds.
pub(crate) fn of_station(configured: Option<usize>, of: usize) -> usize {
    configured.unwrap_or((of / 4).max(LEAST))
}

/// The share of `of` that the mobile nodes of a home agent keep when others come, where the operator says nothing: a half.
pub(crate) fn of_home_agent(configured: Option<usize>, of: usize) -> usize {
    configured.unwrap_or((of / 2).max(LEAST))
}

/// The share of `of` that the mobile nodes of one site may have, where the operator says nothing: a quarter. Whoever has a site's
/// addresses has more of them than any table has room.
pub(crate) fn of_site(configured: Option<usize>, of: usize) -> usize {
    configured.unwrap_or((of / 4).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_a_part_and_never_less_than_a_few() {
        assert_eq!([of_station(None, 1_000), of_station(None, 20), of_station(Some(3), 20)], [250, 16, 3]);
        assert_eq!(
            [of_home_agent(None, 1_000), of_home_agent(None, 20), of_home_agent(Some(3), 20)],
            [500, 16, 3]
        );
        assert_eq!([of_site(None, 1_000), of_site(None, 20), of_site(Some(3), 20)], [250, 16, 3]);
    }
}
