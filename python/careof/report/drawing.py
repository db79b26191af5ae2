"""The graphs of a page and what stretches of time its buttons show, as the data that its viewer draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from careof.plot.packed import Packed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from careof.native import Json
    from careof.plot.series import Panel

    Range = tuple[float, float] | None


class Drawing:
    """Panels in order, each with the id of the element that it is drawn in, and views."""

    def __init__(self) -> None:
        self._panels: list[Panel] = []
        self._views: list[Json] = []
        self._open = 0

    def add(self, panel: Panel) -> str:
        """Take a graph; returns the id of its place."""
        self._panels.append(panel)
        return _place(len(self._panels) - 1)

    def panels(self) -> Iterator[tuple[str, Panel]]:
        """Each graph with its place."""
        return ((_place(number), panel) for number, panel in enumerate(self._panels))

    def view(self, label: str, from_s: float, to_s: float, ranges: Mapping[str, Range] | None = None) -> None:
        """A stretch of time that one button shows in all graphs; `ranges` is what of the other axis a place shows."""
        self._views.append({"label": label, "from": from_s, "to": to_s, "ranges": dict(ranges or {})})

    def open_with(self, view: int) -> None:
        """The view that is shown first, counted from 0; without, the first."""
        self._open = view

    def packed(self, *, level: int = 9) -> tuple[Json, Packed]:
        """What is drawn, and its curves, compressed as hard as `level` says."""
        packed = Packed(self._panels, level=level)
        figures = [figure | {"place": _place(number)} for number, figure in enumerate(packed.figures)]
        return {"figures": figures, "views": self._views, "open": self._open}, packed


def _place(number: int) -> str:
    return f"figure-{number}"
