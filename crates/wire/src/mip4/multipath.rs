//! Which of its paths a mobile node registers: the Multipath extension of RFC 7629 section 4.1, and ours.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   Type 154    |   Length 6    |  Sub-Type 1   |    If-ATT     |
//! |   If-Label    |  Binding-Id   |B|O|        reserved           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The layout is that of the RFC's draft (draft-ietf-mip4-multiple-tunnel-support-07), the Type that of IANA's registry; neither has been held against the
//! RFC's own text yet.
//!
//! B asks for the renewal of all bindings, O to replace all others by this one.
//!
//! SHAKE's registrations have one bit and no number ([`super::RequestFlags::RELAYED`]). What a home agent and a mobile node need to agree
//! on for packets that go by several paths is a vendor extension there: the number of the path, one octet. A home agent that disperses
//! packets repeats that in its reply, whatever form the request had; RFC 7629 has nothing that would tell.

use super::Extension;
use super::vendor::VendorExtension;

/// Sub-Type: Multipath.
const SUB_TYPE: u8 = 1;
const BULK: u8 = 0x80;
const OVERWRITE: u8 = 0x40;

/// The Multipath extension, type 154 (RFC 7629 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultipathExtension {
    /// If-ATT: the Access Technology Type of the interface (RFC 5213 section 8.5).
    pub technology: u8,
    /// If-Label: what the interface is called in static policies; 1 to 255.
    pub label: u8,
    /// Binding-Id: names the binding among those of the mobile node; 1 to 254.
    pub binding_id: u8,
    /// B: all bindings of the mobile node are renewed with this one.
    pub bulk: bool,
    /// O: all others end.
    pub overwrite: bool,
    /// Zero when sent; kept as received, because authenticators cover it.
    reserved: u16,
}

impl MultipathExtension {
    /// The Type.
    pub const TYPE: u8 = 154;
    /// What the Length octet tells.
    pub(super) const DATA_LEN: usize = 6;
    /// "Virtual" of the registry of Access Technology Types: an interface of which nothing else is known.
    pub const VIRTUAL: u8 = 1;

    /// Of a binding with this identifier, which is the interface's label as well.
    #[must_use]
    pub const fn new(binding_id: u8) -> Self {
        Self {
            technology: Self::VIRTUAL,
            label: binding_id,
            binding_id,
            bulk: false,
            overwrite: false,
            reserved: 0,
        }
    }

    /// What follows Type and Length; `None` for another Sub-Type.
    pub(super) fn decode(data: &[u8]) -> Option<Self> {
        let &[SUB_TYPE, technology, label, binding_id, flags, low] = data else { return None };
        Some(Self {
            technology,
            label,
            binding_id,
            bulk: flags & BULK != 0,
            overwrite: flags & OVERWRITE != 0,
            reserved: u16::from_be_bytes([flags & !(BULK | OVERWRITE), low]),
        })
    }

    pub(super) fn data(&self) -> [u8; Self::DATA_LEN] {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let [high, low] = self.reserved.to_be_bytes();
        let flags = high | flag(self.bulk, BULK) | flag(self.overwrite, OVERWRITE);
        [SUB_TYPE, self.technology, self.label, self.binding_id, flags, low]
    }
}

/// The number of a path, as the vendor extension of ours tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PathNumber(pub u8);

impl PathNumber {
    /// The Vendor-NVSE-Type.
    pub(super) const KIND: u8 = 4;

    /// The extension that carries it.
    #[must_use]
    pub fn extension(self) -> Extension {
        Extension::Vendor(VendorExtension::ours(Self::KIND, alloc::vec![self.0]))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn parse(bytes: &[u8]) -> Vec<Extension> {
        Extension::parse_all(bytes, 24).unwrap()
    }

    #[test]
    fn the_multipath_extension_has_the_layout_of_rfc_7629() {
        let extension =
            MultipathExtension { technology: 4, label: 7, bulk: true, ..MultipathExtension::new(2) };
        let mut bytes = Vec::new();
        Extension::Multipath(extension).emit(&mut bytes);
        assert_eq!(bytes, [154, 6, 1, 4, 7, 2, 0x80, 0]);
        assert_eq!(parse(&bytes), [Extension::Multipath(extension)]);
        // Reserved bits stay, for authenticators cover them.
        let bytes = [154, 6, 1, 4, 7, 2, 0x7f, 0xff];
        let [Extension::Multipath(read)] = parse(&bytes)[..] else { panic!("no multipath extension") };
        assert!(read.overwrite && !read.bulk);
        let mut again = Vec::new();
        Extension::Multipath(read).emit(&mut again);
        assert_eq!(again, bytes);
    }

    #[test]
    fn another_sub_type_or_length_is_an_unknown_extension_that_is_skipped() {
        for bytes in
            [&[154, 6, 2, 4, 7, 2, 0, 0][..], &[154, 5, 1, 4, 7, 2, 0], &[154, 7, 1, 4, 7, 2, 0, 0, 0]]
        {
            let extensions = parse(bytes);
            assert!(matches!(extensions[..], [Extension::Unknown(_)]), "{extensions:?}");
            let mut again = Vec::new();
            extensions[0].emit(&mut again);
            assert_eq!(again, bytes);
        }
    }

    #[test]
    fn a_path_number_is_a_vendor_extension_of_one_octet() {
        let mut bytes = Vec::new();
        PathNumber(5).extension().emit(&mut bytes);
        assert_eq!(bytes, [134, 9, 0, 0, 0, 0, 0x7e, 0xd9, 0, 4, 5]);
        let [Extension::Vendor(vendor)] = &parse(&bytes)[..] else { panic!("no vendor extension") };
        assert_eq!(vendor.path_number(), Some(PathNumber(5)));
    }
}
