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


@pytest.mark.parametrize(
    ("found", "unit", "shown"),
    [
        ((122_635.2, 122_470.1, 122_804.9), "bit/s", ("122.64 kbit/s", "122.47 kbit/s", "122.80 kbit/s")),
        ((5.0812, 1.57, 9.42), "s", ("5.1 s", "1.6 s", "9.4 s")),
        ((0.25, 0.2, 0.3), "s", ("250 ms", "200 ms", "300 ms")),
        ((6.47, 6.1, 6.8), "", ("6.47", "6.10", "6.80")),
        ((7.0, 7.0, 7.0), "s", ("7 s", "7 s", "7 s")),
        ((7.0, None, None), "s", ("7 s", "-", "-")),
    ],
)
def test_an_estimate_has_the_digits_that_show_how_good_it_is(
    found: tuple[float, float | None, float | None], unit: str, shown: tuple[str, str, str]
) -> None:
    assert text.estimate(*found, unit) == shown


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
