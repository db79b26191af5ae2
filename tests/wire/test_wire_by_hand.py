"""What no other decoder knows: decoded a second time, from the RFCs."""

from __future__ import annotations

import hashlib
import hmac
import socket
import struct

import pytest
from wire_vectors import (
    CORRESPONDENT,
    DIGESTS,
    FOREIGN_AGENT,
    FOREIGN_HOME,
    HOME_AGENT,
    IDENTIFICATION,
    KEYS,
    MOBILE_FOREIGN,
    MOBILE_HOME,
    MOBILE_NODE,
    PREVIOUS_AGENT,
    PREVIOUS_FOREIGN_AGENT,
    REPLY_CODES,
    ROUTE_OPTIMIZATION,
    SPIS,
    VENDOR,
    checksum,
    payload_of,
    vectors,
    with_prefix,
)

REQUEST_LEN, REPLY_LEN = 24, 20


def extensions(message: bytes) -> list[tuple[int, int, bytes]]:
    """Offset, type and data of every extension of a registration message (RFC 5944 section 1.9)."""
    found = []
    offset = {1: REQUEST_LEN, 3: REPLY_LEN}[message[0]]
    while offset < len(message):
        kind, length = message[offset], message[offset + 1]
        data = message[offset + 2 : offset + 2 + length]
        assert len(data) == length
        found.append((offset, kind, data))
        offset += 2 + length
    return found


EXTENSIONS = {
    "request_co_located": [MOBILE_HOME],
    "request_to_foreign_agent": [MOBILE_HOME, 130, MOBILE_FOREIGN],
    "request_relayed": [MOBILE_HOME, FOREIGN_HOME],
    "request_every_flag_and_nai": [131, MOBILE_HOME],
    "request_with_path": [VENDOR, VENDOR, MOBILE_HOME],
    "request_deregister": [MOBILE_HOME],
    "request_notifying": [MOBILE_HOME, PREVIOUS_FOREIGN_AGENT, MOBILE_FOREIGN],
    **{f"reply_{code}": [MOBILE_HOME, FOREIGN_HOME] for code in REPLY_CODES},
}


def test_every_registration_message_is_looked_at() -> None:
    assert EXTENSIONS.keys() == with_prefix("re").keys()


@pytest.mark.parametrize("name", EXTENSIONS)
def test_authenticators_are_those_of_rfc_5944(name: str) -> None:
    message = payload_of(vectors()[name])[8:]
    found = extensions(message)
    assert [kind for _, kind, _ in found] == EXTENSIONS[name]
    for offset, kind, data in found:
        if kind not in KEYS:
            continue
        spi, authenticator = struct.unpack("!I", data[:4])[0], data[4:]
        assert spi == SPIS[kind]
        # All that stands before the authenticator: section 3.5.1.
        covered = message[: offset + 6]
        digest = DIGESTS[len(authenticator)]
        assert hmac.new(KEYS[kind], covered, digest).digest() == authenticator


# Of draft-ietf-mobileip-optim: what stands before the authentication extension.
BINDING_MESSAGES = {
    "binding_update_notified": struct.pack(
        "!BBH4s4sQ", 18, 0xC0, 580, *map(socket.inet_aton, (MOBILE_NODE, FOREIGN_AGENT)), IDENTIFICATION
    ),
    "binding_warning": struct.pack("!B3x4s4s", 16, *map(socket.inet_aton, (MOBILE_NODE, CORRESPONDENT))),
    "binding_update": struct.pack(
        "!BBH4s4sQ", 18, 0xE0, 599, *map(socket.inet_aton, (MOBILE_NODE, FOREIGN_AGENT)), IDENTIFICATION
    ),
    "binding_update_bare": struct.pack("!BBH4s4s", 18, 0x20, 599, *map(socket.inet_aton, (MOBILE_NODE, FOREIGN_AGENT))),
    "binding_acknowledge": struct.pack("!BB2x4sQ", 19, 0x80, socket.inet_aton(MOBILE_NODE), IDENTIFICATION),
    "binding_request": struct.pack("!B3x4sQ", 17, socket.inet_aton(MOBILE_NODE), IDENTIFICATION),
}


def test_every_message_of_route_optimisation_is_looked_at() -> None:
    assert BINDING_MESSAGES.keys() == with_prefix("binding_").keys()


@pytest.mark.parametrize("name", BINDING_MESSAGES)
def test_messages_of_route_optimisation_have_the_layout_of_the_draft(name: str) -> None:
    message = payload_of(vectors()[name])[8:]
    plain = BINDING_MESSAGES[name]
    assert message[: len(plain)] == plain
    if name == "binding_warning":
        assert message == plain
        return
    covered = plain + struct.pack("!BBI", ROUTE_OPTIMIZATION, 20, SPIS[ROUTE_OPTIMIZATION])
    assert message == covered + hmac.new(KEYS[ROUTE_OPTIMIZATION], covered, "md5").digest()


def test_a_notification_holds_what_an_update_needs_beyond_its_request() -> None:
    message = payload_of(vectors()["request_notifying"])[8:]
    (data,) = (data for _, kind, data in extensions(message) if kind == PREVIOUS_FOREIGN_AGENT)
    lifetime, agent, care_of, spi = struct.unpack("!H4s4sI", data[:14])
    assert (lifetime, spi) == (580, SPIS[ROUTE_OPTIMIZATION])
    assert (agent, care_of) == (socket.inet_aton(PREVIOUS_AGENT), socket.inet_aton(FOREIGN_AGENT))
    # The authenticator is that of the update which the new foreign agent makes of it.
    assert payload_of(vectors()["binding_update_notified"])[8:].endswith(data[14:])


def test_the_path_report_is_a_vendor_extension_of_rfc_3115() -> None:
    message = payload_of(vectors()["request_with_path"])[8:]
    theirs, ours = (data for _, kind, data in extensions(message) if kind == VENDOR)
    assert struct.unpack("!HIH", theirs[:8]) == (0, 9, 0x0102)
    assert theirs[8:] == b"somebody else's"
    # Known: both rates (100 bit/s), the round trip (us), and that the old path is lost.
    assert struct.unpack("!HIHHIII", ours) == (0, 32473, 1, 0b11111 << 11, 96, 144, 700_000)


def test_hmac_md5_is_not_the_keyed_md5_of_old_peers() -> None:
    message = payload_of(vectors()["request_co_located"])[8:]
    key = KEYS[MOBILE_HOME]
    prefix_suffix = hashlib.md5(key + message[:30] + key, usedforsecurity=False).digest()
    assert message[30:] != prefix_suffix


def decode_minimal(datagram: bytes) -> bytes:
    """The datagram inside a minimal encapsulation (RFC 2004 section 3)."""
    header, rest = bytearray(datagram[:20]), payload_of(datagram)
    assert header[0] == 0x45
    assert header[9] == 55
    has_source = rest[1] & 0x80 != 0
    assert rest[1] & 0x7F == 0
    length = 12 if has_source else 8
    assert checksum(rest[:length]) == 0
    header[9] = rest[0]
    header[16:20] = rest[4:8]
    if has_source:
        header[12:16] = rest[8:12]
    header[2:4] = struct.pack("!H", len(datagram) - length)
    header[10:12] = bytes(2)
    header[10:12] = struct.pack("!H", checksum(header))
    return bytes(header) + rest[length:]


@pytest.mark.parametrize(("name", "source"), [("minimal", CORRESPONDENT), ("minimal_local", HOME_AGENT)])
def test_minimal_encapsulation_is_that_of_rfc_2004(name: str, source: str) -> None:
    datagram = vectors()[name]
    assert checksum(datagram[:20]) == 0
    assert datagram[12:20] == socket.inet_aton(HOME_AGENT) + socket.inet_aton(FOREIGN_AGENT)
    inside = decode_minimal(datagram)
    assert inside[12:20] == socket.inet_aton(source) + socket.inet_aton(MOBILE_NODE)
    # IP within IP of the same datagram carries the original as it is.
    suffix = name.removeprefix("minimal")
    assert inside == payload_of(vectors()[f"ip_in_ip{suffix}"])


def test_the_relayed_error_quotes_what_was_sent_into_the_tunnel() -> None:
    in_tunnel, relayed = (payload_of(vectors()[name]) for name in ("error_in_tunnel", "error_relayed"))
    assert relayed[8:] == in_tunnel[8 + 20 :]
    # Type, code and, 20 bytes of outer header less, the next-hop MTU.
    assert (relayed[:2], relayed[4:8]) == (b"\x03\x04", struct.pack("!HH", 0, 80))
    assert in_tunnel[4:8] == struct.pack("!HH", 0, 100)
    assert vectors()["error_relayed"][16:20] == socket.inet_aton(CORRESPONDENT)


def test_checksums_are_right_by_another_hand() -> None:
    for name, datagram in vectors().items():
        assert checksum(datagram[:20]) == 0, name
        payload = payload_of(datagram)
        match datagram[9]:
            case 1:
                assert checksum(payload) == 0, name
            case 6 | 17 if not name.startswith("fragment"):
                pseudo = datagram[12:20] + struct.pack("!HH", datagram[9], len(payload))
                assert checksum(pseudo + payload) == 0, name
            case _:
                pass
