"""The formulas and measures of `careof.oracles.averages`."""

from __future__ import annotations

import pytest

from careof.oracles import averages


def test_the_formula_of_pftk_gives_its_printed_values() -> None:
    for loss, alone, together in (
        (0.001, 383.8436, 271.4184),
        (0.01, 112.3322, 79.4309),
        (0.05, 36.8589, 26.0631),
    ):
        assert averages.pftk(loss, 0.1, 0.4, 1) == pytest.approx(alone, abs=1e-4)
        assert averages.pftk(loss, 0.1, 0.4, 2) == pytest.approx(together, abs=1e-4)


def test_rare_losses_leave_pftk_the_square_root_of_mathis() -> None:
    assert averages.pftk(1e-8, 0.1, 0.4, 1) == pytest.approx(1.2247 / (0.1 * 1e-4), rel=1e-3)


def test_jains_index_is_one_for_equals_and_one_in_n_for_one_alone() -> None:
    assert averages.jain([3.0, 3.0, 3.0]) == 1.0
    assert averages.jain([5.0, 0.0, 0.0, 0.0]) == 0.25


def test_an_average_is_measured_with_its_interval() -> None:
    shown: list[tuple[float, float]] = []
    cases = [case for case in averages.cases() if case.name == "pftk p=0.03 b=1"]
    (found,) = averages.measure(cases, lambda done, of: shown.append((done, of)), repetitions=3)
    assert found.holds
    assert shown == [(1, 3), (2, 3), (3, 3)]
    assert found.found.low is not None
    assert found.found.high is not None
    assert found.found.low < found.found.mean < found.found.high
    assert "wanted 55.34 segments/s within 25%" in found.in_words()
