"""Values of Python as TOML on one line, as an override takes them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def inline(value: object) -> str:
    """A value as TOML: dictionaries become inline tables, lists and tuples arrays.

    Raises:
        TypeError: TOML has nothing for it.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case int() | float():
            return repr(value)
        case Mapping():
            inside = ", ".join(f"{_key(key)} = {inline(inner)}" for key, inner in value.items())
            return f"{{ {inside} }}" if inside else "{}"
        case list() | tuple():
            return f"[{', '.join(map(inline, value))}]"
        case _:
            raise TypeError(f"{value!r} cannot be written as TOML")


def _key(key: object) -> str:
    words = str(key)
    return words if _BARE.fullmatch(words) else _string(words)


def _string(words: str) -> str:
    # What JSON escapes TOML escapes alike, but for one character that it also wants escaped.
    known = words.encode("utf-8", "backslashreplace").decode("utf-8")
    return json.dumps(known, ensure_ascii=False).replace("\x7f", "\\u007f")
