//! Headers of a fixed length.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::Error;

/// The `N` bytes of a header whose length has been checked, once.
///
/// Fields are named by constant offsets. Whether a field lies inside the header is decided when careof is
/// compiled, so reading one cannot fail and cannot panic.
#[derive(Clone, Copy)]
pub(crate) struct Fixed<const N: usize>([u8; N]);

impl<const N: usize> Fixed<N> {
    /// A header of zeros, to be filled in.
    pub(crate) const ZERO: Self = Self([0; N]);

    /// Splits the header off the front of `bytes`.
    pub(crate) fn split<'a>(bytes: &'a [u8], what: &'static str) -> Result<(Self, &'a [u8]), Error> {
        match bytes.split_first_chunk::<N>() {
            Some((header, rest)) => Ok((Self(*header), rest)),
            None => Err(Error::Truncated { what, offset: 0, needed: N, found: bytes.len() }),
        }
    }

    pub(crate) fn array<const AT: usize, const LEN: usize>(&self) -> [u8; LEN] {
        const { assert!(AT + LEN <= N) };
        core::array::from_fn(|i| self.0[AT + i])
    }

    pub(crate) fn u8<const AT: usize>(&self) -> u8 {
        const { assert!(AT < N) };
        self.0[AT]
    }

    pub(crate) fn u16<const AT: usize>(&self) -> u16 {
        u16::from_be_bytes(self.array::<AT, 2>())
    }

    pub(crate) fn u32<const AT: usize>(&self) -> u32 {
        u32::from_be_bytes(self.array::<AT, 4>())
    }

    pub(crate) fn u64<const AT: usize>(&self) -> u64 {
        u64::from_be_bytes(self.array::<AT, 8>())
    }

    pub(crate) fn address<const AT: usize>(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.array::<AT, 4>())
    }

    pub(crate) fn ipv6_address<const AT: usize>(&self) -> Ipv6Addr {
        Ipv6Addr::from(self.array::<AT, 16>())
    }

    /// Writes `value`, in network order, at `AT`.
    pub(crate) fn put<const AT: usize, const LEN: usize>(&mut self, value: [u8; LEN]) {
        const { assert!(AT + LEN <= N) };
        self.0[AT..AT + LEN].copy_from_slice(&value);
    }

    pub(crate) const fn bytes(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> From<[u8; N]> for Fixed<N> {
    fn from(bytes: [u8; N]) -> Self {
        Self(bytes)
    }
}
