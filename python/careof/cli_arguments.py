"""The arguments of each command of `careof`, and how their words are read."""

from __future__ import annotations

import argparse
from pathlib import Path

from careof import native
from careof.runs import LARGEST_PACKET, LARGEST_SEED, SIMULATED

MOST_REPETITIONS = 1000
MOST_DRAWS = 1_000_000


def of_run(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof run`."""
    parser.add_argument("scenario", metavar="FILE", help="the scenario, a TOML file")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="directory for the run (default: run/NAME, NAME from the file's)",
    )
    parser.add_argument("--seed", metavar="N", type=_whole_number, help="replace the scenario's seed")
    parser.add_argument(
        "--repetition",
        metavar="N",
        type=_whole_number,
        default=0,
        help="same seed, other random numbers: 0, 1, 2, ...",
    )
    _add_set(parser)
    parser.add_argument("--no-trace", action="store_true", help="summary only: no events, capture or report; faster")
    parser.add_argument(
        "--snaplen",
        metavar="BYTES",
        type=_snap_length,
        help="keep this much of each packet in the captures (default: all of it)",
    )
    parser.add_argument(
        "--capture",
        metavar="NODE,...|all|none",
        help="whose packets to write, to packets/NODE.pcapng (default: the ends of flows)",
    )
    parser.add_argument(
        "--max-capture",
        metavar="SIZE",
        type=_size,
        default=None,
        help="what all captures hold together, for example 1GB: headers only from half of it on (default: 256MB)",
    )
    parser.add_argument("--plot", choices=["png"], help="also draw the graphs of each flow as plot-FLOW.png")
    parser.add_argument(
        "--world",
        choices=native.WORLDS,
        default=SIMULATED,
        help="where to run it: simulated (sim, the default), or in real time on Linux hosts inside this machine",
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="with --world linux: a line about rate, queue, round trip and handovers while it runs, on a terminal",
    )
    _add_repeat(parser, "run it N times, the handovers spread over a segment time or an RTO, and print medians")
    _add_json(parser, "the content of summary.json, with --repeat of repetitions.json")


def of_shell(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof shell`."""
    from careof.shell import LONGEST

    parser.usage = "%(prog)s [options] FILE [-- COMMAND ...]"
    parser.epilog = (
        "The program finds the far side in CAREOF_CORRESPONDENT, and a web server there at CAREOF_HTTP, which answers "
        "bytes/N with N bytes. The scenario's own flows are left out. The exit status is the program's."
    )
    parser.add_argument("scenario", metavar="FILE", help="the scenario, a TOML file")
    parser.add_argument("--seed", metavar="N", type=_whole_number, help="replace the scenario's seed")
    parser.add_argument(
        "--repetition", metavar="N", type=_whole_number, default=0, help="same seed, other random numbers: 0, 1, 2, ..."
    )
    _add_set(parser)
    parser.add_argument("--at", metavar="NODE", help="where the program runs (default: the first mobile node)")
    parser.add_argument("--to", metavar="NODE", help="the far side (default: the correspondent node)")
    parser.add_argument("--serve", metavar="DIR", type=Path, help="a directory that the web server there has, too")
    parser.add_argument(
        "--for",
        dest="longest",
        metavar="TIME",
        default=LONGEST,
        help="how long links and handovers go on; then the program is told to end (default: %(default)s)",
    )
    parser.add_argument("--quiet", action="store_true", help="no notes, and no line about rate, queue and handovers")


def of_sweep(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof sweep`."""
    parser.add_argument("scenario", metavar="FILE", help="the scenario, a TOML file")
    parser.add_argument(
        "--vary",
        metavar="KEY=A,B,...",
        action="append",
        default=[],
        help="run with each of these values, for example --vary flow.tcp.variant=reno,sack; may be repeated",
    )
    parser.add_argument(
        "--repeat", metavar="N", type=_positive, default=1, help="runs of each combination, under one seed (default: 1)"
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="the table (default: NAME.parquet, NAME from the file's)"
    )
    parser.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    parser.add_argument("--seed", metavar="N", type=_whole_number, help="replace the scenario's seed")
    _add_set(parser)
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_positive,
        help="runs at a time (default: as many as there are cores, half of them on Linux hosts)",
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on a Dask cluster, for example tcp://host:8786")
    parser.add_argument(
        "--world",
        choices=native.WORLDS,
        default=SIMULATED,
        help="where to run it (default: sim); on Linux hosts each run takes its time",
    )
    parser.add_argument("--quiet", action="store_true", help="no progress")
    _add_json(parser, "what was done")


def of_plot(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof plot`."""
    parser.add_argument("table", metavar="TABLE", type=Path, help="table of a sweep, a Parquet file")
    parser.add_argument("--x", metavar="KEY", help="draw it over this column (default: the key that varies)")
    parser.add_argument("--y", metavar="METRIC", required=True, help="the column to draw")
    parser.add_argument(
        "--by", metavar="KEY", action="append", default=[], help="a curve for each value; may be repeated"
    )
    parser.add_argument(
        "--where", metavar="KEY=VALUE", action="append", default=[], help="keep these rows only; may be repeated"
    )
    parser.add_argument(
        "--ci",
        choices=["student", "bootstrap"],
        default="student",
        help="confidence intervals by Student's t (the default) or by resampling",
    )
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help="the graph: .svg, .png or .pdf (default: TABLE-METRIC.svg)"
    )
    _add_json(parser, "the means")


def of_compare(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof compare`."""
    parser.add_argument(
        "a",
        metavar="A",
        type=Path,
        help="directory of a run, or of a series that `run --repeat` made; with --worlds a scenario",
    )
    parser.add_argument("b", metavar="B", type=Path, nargs="?", help="directory of another run or series")
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help="also write a page that lays their graphs over each other; with --worlds the directory for the series "
        "(default: run/NAME-worlds)",
    )
    parser.add_argument(
        "--worlds", action="store_true", help="run scenario A in both worlds, with --repeat, and compare the two series"
    )
    parser.add_argument(
        "--all", action="store_true", help="every figure and setting that differs (default: the first 20 of each)"
    )
    _add_repeat(parser, "with --worlds: so many runs in each world, the handovers spread over a segment time or an RTO")
    _add_set(parser)
    _add_json(parser, "the comparison")


def of_explain(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof explain`."""
    parser.add_argument("directory", metavar="RUN", type=Path, help="directory of a run, made with its trace")
    parser.add_argument("--flow", metavar="NAME", help="only this flow, by its name in the summary")
    _add_json(parser, "the parts of time and bytes")


def of_check(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof check`."""
    parser.add_argument("scenario", metavar="FILE", help="the scenario, a TOML file")
    _add_set(parser)
    parser.add_argument("--world", choices=native.WORLDS, help="it must be one for this world (default: for any)")
    parser.add_argument(
        "--out",
        metavar="FILE|DIR",
        type=Path,
        help="also draw the network: .svg, .png or .pdf, or NAME.svg in a directory, NAME from the scenario's",
    )
    _add_json(parser, "the scenario with every default filled in")


def of_presets(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof presets`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="only this one, each number as it is used")
    _add_json(parser, "the presets")


def of_report(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof report`."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="directory of a run")
    parser.add_argument("--plot", choices=["png"], help="also draw the graphs of each flow as plot-FLOW.png")


def of_advise(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof advise`."""
    from careof.advice import command

    command.add_arguments(parser)
    _add_json(parser, "the advice")


def of_serve(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof serve`."""
    parser.add_argument(
        "--port",
        metavar="N",
        type=_port,
        help="where on 127.0.0.1 the page is (default: 8734); 0 takes a free one",
    )


def of_study(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof study`."""
    from careof import studies

    parser.add_argument("name", metavar="NAME", help=f"which study: {', '.join(studies.names())}")
    parser.add_argument("--out", metavar="DIR", type=Path, help="directory for its runs and figures")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--runs", metavar="N", type=_repetitions, help="runs of each point (micromobility only)")
    parser.add_argument(
        "--world", choices=native.WORLDS, default=SIMULATED, help="where to run it (default: sim); linux takes minutes"
    )
    parser.add_argument(
        "--handovers",
        metavar="N",
        type=_draws_asked,
        help="instead of the study, simulate N handovers drawn by chance (recovery only)",
    )
    parser.add_argument(
        "--first",
        metavar="NUMBER",
        type=_whole_number,
        help="with --handovers: the number of the first handover; a number is always the same handover (default: 1)",
    )
    parser.add_argument("--markdown", action="store_true", help="print a page of Markdown")
    _add_json(parser, "the rows of its table")


def of_completions(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof completions`."""
    parser.add_argument("shell", choices=["bash", "zsh"], help="which shell")


def of_man(parser: argparse.ArgumentParser) -> None:
    """Add those of `careof man`."""
    parser.add_argument("directory", metavar="DIR", type=Path, help="where to; made if it is not there")


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="replace a value of the scenario, for example --set duration='30 s'; may be repeated",
    )


def _add_repeat(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--repeat", metavar="N", type=_repetitions, help=what)
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=_positive,
        help="with --repeat: runs at a time (default: simulated as many as there are cores, on Linux half of that)",
    )


def _add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def _whole_number(text: str) -> int:
    return _number(text, 0, LARGEST_SEED)


def _positive(text: str) -> int:
    return _number(text, 1, LARGEST_SEED)


def _draws_asked(text: str) -> int:
    return _number(text, 1, MOST_DRAWS)


def _port(text: str) -> int:
    return _number(text, 0, 65_535)


def _repetitions(text: str) -> int:
    return _number(text, 1, MOST_REPETITIONS)


def _snap_length(text: str) -> int:
    return _number(text, 1, LARGEST_PACKET)


def _size(text: str) -> int:
    number = text.strip()
    scale = 1
    for unit, factor in (("kB", 10**3), ("MB", 10**6), ("GB", 10**9), ("TB", 10**12), ("B", 1)):
        if number.lower().endswith(unit.lower()):
            number, scale = number[: -len(unit)].strip(), factor
            break
    if not (number.isascii() and number.isdigit() and len(number) < 13):
        raise argparse.ArgumentTypeError(f"{text!r}: expected a size, for example 256MB or 2 GB")
    return min(int(number) * scale, LARGEST_SEED)


def _number(text: str, low: int, high: int) -> int:
    try:
        value = int(text, 10)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from {low} to {high}")
    return value
