"""Fewer points, same picture: what sticks out stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def thin(x: NDArray[np.float64], y: NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Indices of at most `limit` points that draw like all of them.

    Time is cut into even stretches; of each the first, the last, the lowest and the highest point stay. `x`
    must not fall; `limit` is at least 4.
    """
    count = len(x)
    if count <= limit:
        return np.arange(count)
    stretches = limit // 4
    span = x[-1] - x[0]
    share = (x - x[0]) / span if span > 0 else np.linspace(0.0, 1.0, count)
    stretch = np.minimum((share * stretches).astype(np.int64), stretches - 1)
    starts = np.flatnonzero(np.diff(stretch, prepend=-1))
    ends = np.append(starts[1:], count) - 1
    by_height = np.lexsort((y, stretch))
    return np.unique(np.concatenate([starts, ends, by_height[starts], by_height[ends]]))
