"""Numbers and tables for people."""

from __future__ import annotations

import io

import pytest

from careof import text


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (9600, "bit/s", "9.6 kbit/s"),
        (2e6, "bit/s", "2 Mbit/s"),
        (0, "bit/s", "0 bit/s"),
        (26.31, "s", "26.3 s"),
        (0.0035, "s", "3.5 ms"),
        (1.2e-5, "s", "12 µs"),
        (0.0, "s", "0 s"),
        (-0.25, "s", "-250 ms"),
        (1234.5, "s", "1,234 s"),
        (123_456, "byte", "123 kB"),
        (1_234_567, "", "1,234,567"),
        (0.12345, "", "0.123"),
        (None, "s", "-"),
        ("gsm", "", "gsm"),
        (True, "", "yes"),
    ],
)
def test_a_quantity_is_written_with_its_unit(value: object, unit: str, shown: str) -> None:
    assert text.quantity(value, unit) == shown


def test_a_table_lines_up() -> None:
    assert text.table(["flow", "bytes"], [["a", "1"], ["longer", "22,000"]]) == (
        "flow     bytes\na            1\nlonger  22,000"
    )


def test_colour_is_left_out_where_nobody_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert text.Style(Terminal()).bold("x") == "\x1b[1mx\x1b[0m"
    assert text.Style(io.StringIO()).bold("x") == "x"
    monkeypatch.setenv("NO_COLOR", "1")
    assert text.Style(Terminal()).bold("x") == "x"


def test_control_characters_do_nothing_to_a_terminal() -> None:
    assert text.printable("a\x1b[31m\nb\u202eµ 日") == "a\\x1b[31m\\nb\\u202eµ 日"
    assert text.printable("a\nb\r", lines=True) == "a\nb\\r"
    assert "\x1b" not in text.table(["flow"], [["\x1b[2J"]])
    assert text.Style(None).bold("x") == "x"
