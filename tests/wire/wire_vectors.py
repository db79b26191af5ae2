"""Datagrams made by the wire crate, and what the tests know of them by themselves."""

from __future__ import annotations

import functools
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

MOBILE_NODE = "10.0.0.5"
HOME_AGENT = "10.0.0.1"
FOREIGN_AGENT = "192.0.2.9"
PREVIOUS_AGENT = "203.0.113.9"
CO_LOCATED = "192.0.2.77"
CORRESPONDENT = "198.51.100.7"
# The source of a host that has no address yet; nothing is bound to it.
NO_ADDRESS = "0.0.0.0"  # noqa: S104

IDENTIFICATION = 0xE5A1B2C3_80000001

# The digest, the key and the SPI of each kind of authentication extension in the samples.
MOBILE_HOME, MOBILE_FOREIGN, FOREIGN_HOME, ROUTE_OPTIMIZATION = 32, 33, 34, 35
KEYS = {
    MOBILE_HOME: b"mobile-home key!",
    MOBILE_FOREIGN: b"mobile-foreign k",
    FOREIGN_HOME: b"\xa5" * 80,
    ROUTE_OPTIMIZATION: b"route-optimizing",
}
SPIS = {MOBILE_HOME: 256, MOBILE_FOREIGN: 300, FOREIGN_HOME: 0x10000, ROUTE_OPTIMIZATION: 258}
# The draft's notification of the foreign agent that was left.
PREVIOUS_FOREIGN_AGENT = 96
# A vendor's extension (RFC 3115).
VENDOR = 134
DIGESTS = {16: "md5", 32: "sha256"}

REPLY_CODES = [0, 1, *range(64, 83), 88, 194, *range(128, 140)]


@functools.cache
def vectors(example: str = "emit_vectors") -> dict[str, bytes]:
    """Every datagram the example prints, by name."""
    if shutil.which("cargo") is None:
        pytest.skip("no cargo: it builds the example that prints the datagrams")
    # The profile of the Rust tests, which has built the example already.
    command = ["cargo", "run", "--quiet", "--locked", "--profile", os.environ.get("TEST_PROFILE", "test")]
    command += ["--package", "careof-wire", "--example", example]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return {name: bytes.fromhex(data) for name, data in map(str.split, done.stdout.splitlines())}


def with_prefix(prefix: str) -> dict[str, bytes]:
    """The datagrams whose names begin so."""
    found = {name: data for name, data in vectors().items() if name.startswith(prefix)}
    assert found, f"no datagram is called {prefix}..."
    return found


def checksum(data: bytes | bytearray) -> int:
    """The Internet checksum of `data`: 0 when it includes a right one."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def payload_of(datagram: bytes) -> bytes:
    """What follows the IPv4 header."""
    return datagram[(datagram[0] & 15) * 4 :]
