"""Work on all processors, in order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from careof.sweeps.traced import in_turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Item = TypeVar("Item")
Result = TypeVar("Result")


def in_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], progress: Callable[[float, float], None]
) -> list[Result]:
    """Results in the order of the items; for work that lets go of the interpreter, as the native module's does.

    `progress` is told how many are done and how many there are.
    """

    def carry_out(item: Item, _progress: Callable[[float, float], None]) -> Result:
        return work(item)

    results: list[Result] = []
    for result in in_turn([partial(carry_out, item) for item in items]):
        results.append(result)
        progress(len(results), len(items))
    return results
