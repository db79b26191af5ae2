"""``python -m careof``."""

from careof.cli import entry

entry()
