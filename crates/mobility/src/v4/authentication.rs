//! Finding and checking the authentication extensions of a registration message.

use alloc::vec::Vec;

use careof_wire::mip4::{
    AuthenticationKind, Extension, Message, append_authentication, verify_authentication,
};

use super::{DropReason, SecurityAssociation};

/// Where the one extension of a kind stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Bytes from the start of the message to the extension's Type.
    pub(crate) offset: usize,
    /// Bytes from the start of the message to the extension's end.
    pub(crate) end: usize,
}

/// How many authentication extensions of a kind a message has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    None,
    One(Place),
    Several,
}

pub(crate) fn find(message: &Message, kind: AuthenticationKind) -> Found {
    let mut found = Found::None;
    for placed in message.placed_extensions() {
        if let Extension::Authentication(extension) = placed.extension
            && extension.kind() == kind
        {
            match found {
                Found::None => found = Found::One(Place { offset: placed.offset, end: placed.end() }),
                _ => return Found::Several,
            }
        }
    }
    found
}

/// Checks the one extension of `kind` against those `associations` its SPI may name; returns the
/// association and the extension's place.
pub(crate) fn check<'a>(
    bytes: &[u8],
    message: &Message,
    kind: AuthenticationKind,
    mut associations: impl Iterator<Item = &'a SecurityAssociation>,
) -> Result<(&'a SecurityAssociation, Place), DropReason> {
    let Found::One(place) = find(message, kind) else { return Err(DropReason::MissingAuthenticator) };
    let spi = match message.authentication(kind) {
        Some((_, extension)) => extension.spi(),
        None => return Err(DropReason::MissingAuthenticator),
    };
    let association =
        associations.find(|association| association.spi() == spi).ok_or(DropReason::UnknownSpi)?;
    if verify_authentication(bytes, place.offset, association.algorithm(), association.key()) {
        Ok((association, place))
    } else {
        Err(DropReason::BadAuthenticator)
    }
}

/// Appends the extension of `kind` over all of `bytes`.
pub(crate) fn append(bytes: &mut Vec<u8>, kind: AuthenticationKind, association: &SecurityAssociation) {
    append_authentication(bytes, kind, association.spi(), association.algorithm(), association.key());
}

#[cfg(test)]
mod tests {
    use super::*;
    use careof_wire::mip4::{Algorithm, RegistrationRequest, RequestFlags, Spi};
    use careof_wire::mip4::{Identification, Lifetime};
    use core::net::Ipv4Addr;

    use crate::v4::ReplayProtection;

    const KIND: AuthenticationKind = AuthenticationKind::MobileHome;

    fn association(spi: u32, algorithm: Algorithm) -> SecurityAssociation {
        SecurityAssociation::new(Spi(spi), algorithm, *b"0123456789abcdef", ReplayProtection::TIMESTAMPS)
            .unwrap()
    }

    fn request() -> Vec<u8> {
        Message::Request(RegistrationRequest {
            flags: RequestFlags::default(),
            lifetime: Lifetime::from_secs(300),
            home_address: Ipv4Addr::new(10, 0, 0, 7),
            home_agent: Ipv4Addr::new(10, 0, 0, 1),
            care_of_address: Ipv4Addr::new(192, 0, 2, 1),
            identification: Identification(7),
            extensions: Vec::new(),
        })
        .emit()
    }

    fn checked(bytes: &[u8], associations: &[SecurityAssociation]) -> Result<u32, DropReason> {
        let message = Message::parse(bytes).unwrap();
        check(bytes, &message, KIND, associations.iter()).map(|(association, _)| association.spi().0)
    }

    #[test]
    fn the_spi_chooses_algorithm_and_key() {
        let md5 = association(256, Algorithm::HmacMd5);
        let sha = association(300, Algorithm::HmacSha256);
        for wanted in [&md5, &sha] {
            let mut bytes = request();
            append(&mut bytes, KIND, wanted);
            assert_eq!(checked(&bytes, &[md5.clone(), sha.clone()]), Ok(wanted.spi().0));
            *bytes.last_mut().unwrap() ^= 1;
            assert_eq!(checked(&bytes, &[md5.clone(), sha.clone()]), Err(DropReason::BadAuthenticator));
        }
        let mut bytes = request();
        append(&mut bytes, KIND, &sha);
        assert_eq!(checked(&bytes, &[md5]), Err(DropReason::UnknownSpi));
    }

    #[test]
    fn exactly_one_extension_is_wanted() {
        let md5 = association(256, Algorithm::HmacMd5);
        let mut bytes = request();
        assert_eq!(checked(&bytes, core::slice::from_ref(&md5)), Err(DropReason::MissingAuthenticator));
        append(&mut bytes, KIND, &md5);
        append(&mut bytes, KIND, &md5);
        assert_eq!(checked(&bytes, &[md5]), Err(DropReason::MissingAuthenticator));
    }
}
