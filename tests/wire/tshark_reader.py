"""What tshark reads in the packets that an example of the wire crate prints."""

from __future__ import annotations

import functools
import struct
import subprocess
import tempfile
from pathlib import Path

from wire_vectors import vectors

LINKTYPE_RAW = 101


@functools.cache
def says(example: str, *arguments: str) -> str:
    """What tshark says of all packets, which are a second apart in a capture of the classic format."""
    parts = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, LINKTYPE_RAW)]
    for second, packet in enumerate(vectors(example).values()):
        parts += [struct.pack("<IIII", second, 0, len(packet), len(packet)), packet]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "vectors.pcap"
        path.write_bytes(b"".join(parts))
        command = ["tshark", "-n", "-r", str(path), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Reader:
    """Reads the packets of an example; `options` say how, as tshark's command line has them."""

    def __init__(self, example: str, *options: str) -> None:
        self._example = example
        self._options = options

    def packets(self) -> dict[str, bytes]:
        """The packets, by name."""
        return vectors(self._example)

    def says(self, *arguments: str) -> str:
        """What tshark prints."""
        return says(self._example, *self._options, *arguments)

    def rows(self, *wanted: str) -> dict[str, list[list[str]]]:
        """The values of fields in each packet: a list for each field, as many values as the field occurs."""
        selected = [word for field in wanted for word in ("-e", field)]
        lines = self.says("-T", "fields", "-E", "separator=/t", "-E", "aggregator=;", *selected).splitlines()
        cells = [[cell.split(";") if cell else [] for cell in line.split("\t")] for line in lines]
        return dict(zip(self.packets(), cells, strict=True))

    def fields(self, name: str, *wanted: str) -> list[list[str]]:
        """The values of fields in one packet."""
        return self.rows(*wanted)[name]

    def wrong(self) -> list[str]:
        """The names of packets that tshark finds malformed or erroneous."""
        wrong = "_ws.malformed || _ws.unreassembled || _ws.expert.severity == error"
        frames = self.says("-Y", wrong, "-T", "fields", "-e", "frame.number").split()
        return [list(self.packets())[int(frame) - 1] for frame in frames]
