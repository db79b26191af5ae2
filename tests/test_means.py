"""Means of sweeps: the intervals against known values, which rows count, and the graphs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import careof
from careof.sweeps.confidence import RESAMPLES, interval, student_probability, student_quantile
from careof.sweeps.means import means, positions_of

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

# Two-sided 95 % points of Student's t as printed in tables (Fisher and Yates, Statistical Tables, table III).
STUDENT_95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 10: 2.228, 20: 2.086, 29: 2.045, 60: 2.000}
STUDENT_99 = {1: 63.657, 2: 9.925, 5: 4.032, 10: 3.169, 30: 2.750, 120: 2.617}


@pytest.mark.parametrize(("degrees", "point"), STUDENT_95.items())
def test_students_t_is_that_of_the_tables(degrees: int, point: float) -> None:
    assert student_quantile(0.975, degrees) == pytest.approx(point, abs=5.1e-4)


@pytest.mark.parametrize(("degrees", "point"), STUDENT_99.items())
def test_students_t_is_that_of_the_tables_further_out(degrees: int, point: float) -> None:
    assert student_quantile(0.995, degrees) == pytest.approx(point, abs=5.1e-4)


def test_students_t_has_its_closed_forms() -> None:
    # With one degree of freedom it is Cauchy's distribution; with two it has a root; with many it is the normal one.
    for probability in (0.6, 0.9, 0.975, 0.999):
        assert student_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)), rel=1e-12)
        two = (2 * probability - 1) / math.sqrt(2 * probability * (1 - probability))
        assert student_quantile(probability, 2) == pytest.approx(two, rel=1e-12)
    # Abramowitz and Stegun 26.7.5.
    normal, many = 1.959963984540054, 10**5
    assert student_quantile(0.975, many) == pytest.approx(normal + (normal**3 + normal) / (4 * many), rel=1e-9)
    assert student_probability(0.0, 7) == 0.5


def test_an_interval_by_student_is_the_formula() -> None:
    # Mean 5, standard deviation 2.5819889, four samples: 5 -+ 3.182446 * 1.2909944.
    found = interval(np.array([2.0, 4.0, 6.0, 8.0]), "student", "x")
    assert found == pytest.approx((5.0, 0.8914797, 9.1085203), abs=1e-6)


def test_one_sample_says_nothing_of_its_spread_and_equal_ones_that_there_is_none() -> None:
    for method in ("student", "bootstrap"):
        assert interval(np.array([3.0]), method, "x") == (3.0, None, None)
        assert interval(np.array([0.1] * 30), method, "x") == (0.1, 0.1, 0.1)


def test_the_bootstrap_is_the_same_every_time_and_hangs_on_its_name() -> None:
    samples = np.random.default_rng(1).exponential(size=30)
    first = interval(samples, "bootstrap", "x")
    assert first == interval(samples, "bootstrap", "x")
    assert first != interval(samples, "bootstrap", "y")


def test_the_bootstrap_agrees_with_student_where_both_hold() -> None:
    # Many normal samples: the percentiles of resampled means are the mean -+ 1.96 standard errors, to the error of
    # a percentile from so many resamples (a few hundredths of a standard error).
    samples = np.random.default_rng(2).normal(10, 3, size=1000)
    error = samples.std() / math.sqrt(len(samples))
    bootstrap, student = interval(samples, "bootstrap", "x"), interval(samples, "student", "x")
    assert bootstrap.mean == student.mean
    assert bootstrap.low is not None and student.low is not None and bootstrap.high is not None  # noqa: PT018
    assert bootstrap.low == pytest.approx(student.low, abs=0.08 * error)
    assert bootstrap.high - bootstrap.low == pytest.approx(2 * 1.96 * error, rel=0.05)
    assert RESAMPLES >= 10_000


def test_the_bootstrap_follows_a_skewed_distribution() -> None:
    samples = np.array([1.0] * 18 + [50.0, 80.0])
    found = interval(samples, "bootstrap", "x")
    assert found.low is not None and found.high is not None  # noqa: PT018
    assert found.low >= 1.0
    assert found.high - found.mean > found.mean - found.low


@pytest.mark.parametrize("method", ["student", "bootstrap"])
def test_an_interval_holds_the_mean_about_as_often_as_it_says(method: str) -> None:
    random = np.random.default_rng(3)
    experiments = 400 if method == "student" else 100
    held = 0
    for experiment in range(experiments):
        _, low, high = interval(random.normal(0, 1, size=20), method, str(experiment))
        assert low is not None and high is not None  # noqa: PT018
        held += low <= 0 <= high
    # 95 %, less what the percentiles miss with twenty samples; four standard errors of a share.
    assert held / experiments > 0.93 - 4 * math.sqrt(0.07 * 0.93 / experiments)
    assert method == "bootstrap" or held / experiments < 0.95 + 4 * math.sqrt(0.0475 / experiments)


def test_values_with_units_are_numbers_and_words_are_not() -> None:
    assert positions_of(["5 packets", "50 packets"]) == ({"5 packets": 5.0, "50 packets": 50.0}, "packets")
    assert positions_of(["700 ms", "1.5 s", "50us"])[0] == pytest.approx({"700 ms": 0.7, "1.5 s": 1.5, "50us": 50e-6})
    assert positions_of(["9.6 kbit/s", "2 Mbit/s"]) == ({"9.6 kbit/s": 9600.0, "2 Mbit/s": 2e6}, "bit/s")
    assert positions_of([536, 1460]) == ({536: 536.0, 1460: 1460.0}, "")
    for words in (["reno", "sack"], ["5 packets", "16 KiB"], [536, "1 kB"], [True, False], ["5 parsecs"]):
        assert positions_of(words) == (None, "")


@pytest.fixture(scope="module")
def swept() -> careof.Sweep:
    from conftest import SMALL

    two = SMALL + '[[flow]]\nname = "upload"\nfrom = "mobile"\nto = "correspondent"\nkind = "bulk"\n'
    return careof.sweep(
        two, vary=["flow.tcp.variant=sack,nonsense,reno", "links.gsm.queue=50 packets,5 packets"], repeat=8
    )


def rows(swept: careof.Sweep, **where: Any) -> list[dict[str, Any]]:
    names = {"variant": "flow.tcp.variant", "queue": "links.gsm.queue", "flow": "flow"}
    wanted = {names[key]: value for key, value in where.items()}
    return [row for row in swept.table.to_pylist() if all(row[key] == value for key, value in wanted.items())]


def test_each_cell_has_its_mean(swept: careof.Sweep) -> None:
    found = swept.means("goodput_bps", "links.gsm.queue", "flow.tcp.variant", where={"flow": "download"})
    for point in found.points:
        mine = rows(swept, variant=point.by[0], queue=point.x, flow="download")
        if point.by[0] == "nonsense":
            assert (point.samples, point.failed, point.interval) == (0, 8, None)
            continue
        samples = [row["goodput_bps"] for row in mine]
        assert point.samples == len(samples) == 8
        assert point.interval is not None
        assert point.interval.mean == pytest.approx(np.mean(samples))
        half = student_quantile(0.975, 7) * np.std(samples, ddof=1) / math.sqrt(8)
        assert point.interval.high == pytest.approx(np.mean(samples) + half)


def test_points_stand_in_the_order_of_the_grid_and_numbers_in_their_own(swept: careof.Sweep) -> None:
    found = swept.means("goodput_bps", "links.gsm.queue", "flow.tcp.variant")
    assert [(*point.by, point.x) for point in found.points] == [
        (variant, queue) for variant in ("sack", "nonsense", "reno") for queue in ("5 packets", "50 packets")
    ]
    found = swept.means("goodput_bps", "flow.tcp.variant", "links.gsm.queue")
    assert [(*point.by, point.x) for point in found.points] == [
        (queue, variant) for queue in ("50 packets", "5 packets") for variant in ("sack", "nonsense", "reno")
    ]


def test_flows_that_are_not_told_apart_count_once_a_run(swept: careof.Sweep) -> None:
    found = swept.means("goodput_bps", "links.gsm.queue", where={"flow.tcp.variant": "sack"})
    assert found.flows == 2
    assert "mean of 2 flows of a run" in found.method
    assert [point.samples for point in found.points] == [8, 8]
    mine = [row["goodput_bps"] for row in rows(swept, variant="sack", queue="5 packets")]
    assert found.points[0].interval is not None
    assert found.points[0].interval.mean == pytest.approx(np.mean(mine))
    apart = swept.means("goodput_bps", "links.gsm.queue", "flow", where={"flow.tcp.variant": "nonsense"})
    assert all(point.failed == 8 and point.samples == 0 for point in apart.points)


def test_runs_without_a_value_are_counted(swept: careof.Sweep) -> None:
    position = swept.table.schema.get_field_index("stall_after_s")
    values = swept.table["stall_after_s"].to_pylist()
    first = next(row for row, value in enumerate(values) if value is not None)
    values[first] = None
    table = swept.table.set_column(position, swept.table.schema.field(position), pa.array(values, "float64"))
    found = means(table, "stall_after_s", "links.gsm.queue", ["flow.tcp.variant", "flow"])
    assert sum(point.missing for point in found.points) == values.count(None) - swept.failed


def test_cells_are_never_mixed(swept: careof.Sweep) -> None:
    with pytest.raises(careof.InputError, match=r"flow.tcp.variant varies too \(sack, nonsense, reno\)") as caught:
        swept.means("goodput_bps", "links.gsm.queue")
    assert "by" in str(caught.value.hint)
    assert "where" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"y": "goodput"}, "no column 'goodput'"),
        ({"y": "goodput_bps", "x": "queue"}, "no column 'queue'"),
        ({"y": "variant", "x": "links.gsm.queue"}, "holds no numbers"),
        ({"y": "goodput_bps"}, "x is not given"),
        ({"y": "goodput_bps", "x": "links.gsm.queue", "by": "links.gsm.queue"}, "stand there twice"),
        ({"y": "goodput_bps", "x": "links.gsm.queue", "where": ["flow=nosuch"]}, "no row has flow=nosuch"),
        ({"y": "goodput_bps", "x": "links.gsm.queue", "where": ["flow"]}, "expected column=value"),
        ({"y": "goodput_bps", "x": "links.gsm.queue", "ci": "guess"}, "no confidence interval 'guess'"),
    ],
)
def test_what_makes_no_mean_is_refused_with_what_there_is(
    asked: dict[str, Any], words: str, swept: careof.Sweep
) -> None:
    with pytest.raises(careof.InputError, match=words) as caught:
        swept.means(**asked)
    assert caught.value.hint


@pytest.fixture(scope="module")
def table(careof: Command, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from conftest import SMALL

    place = tmp_path_factory.mktemp("swept")
    (place / "small.toml").write_text(SMALL)
    vary = ["--vary", "flow.tcp.variant=reno,sack", "--vary", "links.gsm.queue=5 packets,50 packets"]
    done = careof("sweep", place / "small.toml", *vary, "--repeat", "6", "--out", place / "t.parquet")
    assert done.returncode == 0, done.stderr
    return place / "t.parquet"


ASKED = ["--x", "links.gsm.queue", "--y", "goodput_bps", "--by", "flow.tcp.variant"]


@pytest.mark.parametrize(("form", "begin"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_graph_is_the_same_file_every_time(
    form: str, begin: bytes, careof: Command, table: Path, tmp_path: Path
) -> None:
    files = [tmp_path / f"{name}.{form}" for name in "ab"]
    for file in files:
        assert careof("plot", table, *ASKED, "--out", file).returncode == 0
    assert files[0].read_bytes().startswith(begin)
    assert files[0].read_bytes() == files[1].read_bytes()


def test_the_graph_and_the_terminal_say_how_intervals_came_about(careof: Command, table: Path) -> None:
    for method, words in (("student", "by Student's t"), ("bootstrap", "by bootstrap")):
        done = careof("plot", table, *ASKED, "--ci", method)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
        graph = table.with_name("t-goodput_bps.svg")
        assert done.stdout.splitlines()[-1] == str(graph)
        drawn = graph.read_text()
        assert words.replace("'", "&#39;") in drawn or words in drawn
        for label in ("links.gsm.queue", "goodput_bps (bit/s)", "reno", "sack", "50 packets"):
            assert label in drawn


def test_the_numbers_come_as_json(careof: Command, table: Path) -> None:
    found = json.loads(careof("plot", table, *ASKED, "--json").stdout)
    assert "Student" in found["ci"]
    assert len(found["points"]) == 4
    assert set(found["points"][0]) == {
        "flow.tcp.variant", "links.gsm.queue", "n", "missing", "failed", "mean", "low", "high",
    }  # fmt: skip
    assert all(point["low"] <= point["mean"] <= point["high"] for point in found["points"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--y", "nosuch"], "no column 'nosuch'"),
        (["--y", "goodput_bps", "--x", "flow.tcp.variant"], "varies too"),
        ([*ASKED, "--out", "t.bmp"], ".svg, .png, .pdf"),
        ([*ASKED, "--out", "nowhere/t.svg"], "cannot write there"),
        ([], "--y"),
    ],
)
def test_plot_refuses_what_cannot_be_drawn(
    arguments: list[str], words: str, careof: Command, table: Path, tmp_path: Path
) -> None:
    arguments = [*arguments, *(["--x", "links.gsm.queue"] if "nosuch" in arguments else [])]
    done = careof("plot", table, *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_plot_refuses_what_is_no_table_of_a_sweep(careof: Command, finished: Path, tmp_path: Path) -> None:
    for path in (finished / "events.parquet", finished / "summary.json", finished / "nosuch", tmp_path):
        done = careof("plot", path, "--y", "goodput_bps")
        assert done.returncode == 2
        assert "careof sweep" in done.stderr


def test_the_figure_for_python_has_what_the_picture_has(swept: careof.Sweep) -> None:
    figure = careof.plot_table(swept, "goodput_bps", "links.gsm.queue", "flow.tcp.variant", ci="bootstrap")
    assert [trace.name for trace in figure.data] == ["sack", "reno"]
    assert list(figure.data[0].x) == [5.0, 50.0]
    assert "bootstrap" in figure.layout.title.text
    words = careof.plot_table(swept.table, "goodput_bps", "flow.tcp.variant", "links.gsm.queue")
    assert list(words.data[0].x) == ["sack", "reno"]
