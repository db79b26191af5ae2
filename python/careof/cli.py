"""The `careof` command: data on stdout, talk on stderr; exit status 0 done, 1 failed, 2 asked for wrongly.

Nothing is imported that the command at hand does not need: a run without a trace starts in a few
milliseconds.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from careof import native, summary
from careof.errors import CareofError, InputError, WorldError
from careof.oracles import command as oracle_command
from careof.oracles import ns2_command
from careof.progress import Progress
from careof.runs import LARGEST_PACKET, LARGEST_SEED, SIMULATED
from careof.staging import space_hint
from careof.text import Style, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; returns the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except CareofError as error:
        _complain(str(error), error.hint)
        return error.exit_status


def entry() -> NoReturn:
    """What the installed command calls."""
    signal.signal(signal.SIGTERM, _terminated)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as it is under nohup
        signal.signal(signal.SIGHUP, _terminated)
    if sys.stdout is None:
        _complain("there is no standard output to write to", "leave it open, for example > /dev/null")
        sys.exit(CareofError.exit_status)
    try:
        try:
            status = main()
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        _complain(str(interrupt) or "interrupted; nothing was left behind", None)
        status = 128 + signal.SIGINT
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _forget_stdout()
        status = 128 + signal.SIGPIPE
    except OSError as error:
        what = "the output could not be written" if error.filename is None else error.filename
        _complain(f"{what}: {error.strerror or error}", space_hint(error))
        _forget_stdout()
        status = CareofError.exit_status
    sys.exit(status)


def _forget_stdout() -> None:
    # Python would complain when it flushes at exit what could not be written.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminated(number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that what is half done is taken back.
    sys.exit(128 + number)


def _complain(message: str, hint: str | None) -> None:
    if sys.stderr is None:
        return
    style = Style(sys.stderr)
    prefix = "" if message.startswith("error:") else f"{style.red('error:')} "
    with suppress(OSError):
        print(f"{prefix}{printable(message, lines=True)}", file=sys.stderr)
        if hint:
            print(f"  {style.bold('hint:')} {printable(hint)}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Errors of usage in the form of all other errors."""

    def error(self, message: str) -> NoReturn:
        _complain(message, f"see `{self.prog} --help`")
        sys.exit(InputError.exit_status)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="careof", description="What a handover does to TCP, and what helps.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"careof {native.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)

    run = _command(commands, "run", _run, "run a scenario: print a summary, write trace, capture and report")
    run.add_argument("scenario", metavar="FILE", help="the scenario, a TOML file")
    run.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help="directory for the run (default: run/NAME, NAME from the file's)",
    )
    run.add_argument("--seed", metavar="N", type=_whole_number, help="replace the scenario's seed")
    run.add_argument(
        "--repetition",
        metavar="N",
        type=_whole_number,
        default=0,
        help="same seed, other random numbers: 0, 1, 2, ...",
    )
    _add_set(run)
    run.add_argument("--no-trace", action="store_true", help="summary only: no events, capture or report; faster")
    run.add_argument(
        "--snaplen",
        metavar="BYTES",
        type=_snap_length,
        help="keep this much of each packet in the capture (default: all of it)",
    )
    run.add_argument("--plot", choices=["png"], help="also draw the graphs of each flow as plot-FLOW.png")
    run.add_argument(
        "--world",
        choices=native.WORLDS,
        default=SIMULATED,
        help="where to run it: simulated (sim, the default), or in real time on Linux hosts inside this machine",
    )
    _add_json(run, "the content of summary.json")

    sweep = _command(commands, "sweep", _sweep, "run a grid of values with repetitions: one table of all runs")
    sweep.add_argument("scenario", metavar="FILE", help="the scenario, a TOML file")
    sweep.add_argument(
        "--vary",
        metavar="KEY=A,B,...",
        action="append",
        default=[],
        help="run with each of these values, for example --vary flow.tcp.variant=reno,sack; may be repeated",
    )
    sweep.add_argument(
        "--repeat", metavar="N", type=_positive, default=1, help="runs of each combination, under one seed (default: 1)"
    )
    sweep.add_argument(
        "--out", metavar="FILE", type=Path, help="the table (default: NAME.parquet, NAME from the file's)"
    )
    sweep.add_argument("--resume", action="store_true", help="go on with a sweep that was interrupted")
    sweep.add_argument("--seed", metavar="N", type=_whole_number, help="replace the scenario's seed")
    _add_set(sweep)
    sweep.add_argument("--jobs", metavar="N", type=_positive, help="threads (default: as many as there are cores)")
    sweep.add_argument("--scheduler", metavar="ADDRESS", help="run on a Dask cluster, for example tcp://host:8786")
    sweep.add_argument(
        "--world",
        choices=native.WORLDS,
        default=SIMULATED,
        help="only sim: runs on Linux hosts would disturb each other",
    )
    sweep.add_argument("--quiet", action="store_true", help="no progress")
    _add_json(sweep, "what was done")

    plot = _command(commands, "plot", _plot, "means of a sweep with confidence intervals, in numbers and as a graph")
    plot.add_argument("table", metavar="TABLE", type=Path, help="table of a sweep, a Parquet file")
    plot.add_argument("--x", metavar="KEY", help="draw it over this column (default: the key that varies)")
    plot.add_argument("--y", metavar="METRIC", required=True, help="the column to draw")
    plot.add_argument(
        "--by", metavar="KEY", action="append", default=[], help="a curve for each value; may be repeated"
    )
    plot.add_argument(
        "--where", metavar="KEY=VALUE", action="append", default=[], help="keep these rows only; may be repeated"
    )
    plot.add_argument(
        "--ci",
        choices=["student", "bootstrap"],
        default="student",
        help="confidence intervals by Student's t (the default) or by resampling",
    )
    plot.add_argument(
        "--out", metavar="FILE", type=Path, help="the graph: .svg, .png or .pdf (default: TABLE-METRIC.svg)"
    )
    _add_json(plot, "the means")

    compare = _command(commands, "compare", _compare, "two runs side by side")
    compare.add_argument("a", metavar="A", type=Path, help="directory of a run")
    compare.add_argument("b", metavar="B", type=Path, help="directory of another run")
    compare.add_argument(
        "--out", metavar="FILE", type=Path, help="also write a page that lays their graphs over each other"
    )
    _add_json(compare, "the comparison")

    check = _command(commands, "check", _check, "read a scenario and say what it means, without running it")
    check.add_argument("scenario", metavar="FILE", help="the scenario, a TOML file")
    _add_set(check)
    check.add_argument("--world", choices=native.WORLDS, help="it must be one for this world (default: for any)")
    _add_json(check, "the scenario with every default filled in")

    presets = _command(commands, "presets", _presets, "list the link presets with their sources")
    _add_json(presets, "the presets")

    report = _command(commands, "report", _report, "make a run's report again")
    report.add_argument("directory", metavar="DIR", type=Path, help="directory of a run")
    report.add_argument("--plot", choices=["png"], help="also draw the graphs of each flow as plot-FLOW.png")

    study = _command(commands, "study", _study, "a paper's tables and figures beside ours")
    study.add_argument("name", metavar="NAME", help="which study")
    study.add_argument("--out", metavar="DIR", type=Path, help="directory for its runs and figures")
    study.add_argument("--quick", action="store_true", help="fewer repetitions")
    study.add_argument(
        "--world", choices=native.WORLDS, default=SIMULATED, help="where to run it (default: sim); linux takes minutes"
    )
    study.add_argument("--markdown", action="store_true", help="print a page of Markdown")
    _add_json(study, "the rows of its table")

    oracle = commands.add_parser(
        "oracle",
        help="the models beside what did not come from here",
        description="The TCP models beside what did not come from here.",
        allow_abbrev=False,
    )
    oracles = oracle.add_subparsers(title="oracles", metavar="ORACLE", required=True, parser_class=_Parser)
    oracle_command.add(oracles, _command, _progress)
    ns2_command.add(oracles, _command, _progress)
    return parser


def _command(
    commands: Any, name: str, function: Callable[[argparse.Namespace], int], description: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=description, description=description[0].upper() + description[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(command=function)
    return parser


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        dest="overrides",
        help="replace a value of the scenario, for example --set duration='30 s'; may be repeated",
    )


def _add_json(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def _whole_number(text: str) -> int:
    return _number(text, 0, LARGEST_SEED)


def _positive(text: str) -> int:
    return _number(text, 1, LARGEST_SEED)


def _snap_length(text: str) -> int:
    return _number(text, 1, LARGEST_PACKET)


def _number(text: str, low: int, high: int) -> int:
    try:
        value = int(text, 10)
    except ValueError:
        value = low - 1
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a whole number from {low} to {high}")
    return value


def _progress(options: argparse.Namespace, unit: str, rate: str | None = None) -> Progress:
    quiet = sys.stderr is None or getattr(options, "quiet", False) or (options.json and not sys.stderr.isatty())
    return Progress(None if quiet else sys.stderr, unit, rate)


def _run(options: argparse.Namespace) -> int:
    from careof import apart, jobs
    from careof.runs import plan

    if options.no_trace:
        for option, given in (("--plot png", options.plot), ("--snaplen", options.snaplen)):
            if given is not None:
                raise InputError(f"{option} has no meaning without a trace", hint="leave out --no-trace")
    out = options.out if options.out is not None else Path("run") / (Path(options.scenario).stem or "scenario")
    job = plan(
        Path(options.scenario),
        world=options.world,
        seed=options.seed,
        set=options.overrides,
        out=out,
        trace=not options.no_trace,
        repetition=options.repetition,
        snap_length=options.snaplen,
        plots=options.plot is not None,
    )
    # This process has nothing else to do and one thread, unless somebody uses this function in another program.
    carry_out = jobs.carry_out if options.world == SIMULATED or apart.is_alone() else apart.carry_out
    with _progress(options, "s simulated" if options.world == SIMULATED else "s of real time") as progress:
        result = carry_out(job, progress, progress.remark)
    if options.json:
        _print_json(result.summary)
    else:
        print(summary.for_people(result, Style(sys.stdout), out))
    return 0


def _sweep(options: argparse.Namespace) -> int:
    from careof.sweeps import sweep

    if options.world != SIMULATED:
        raise WorldError(
            "a sweep is simulated: on Linux hosts runs take their time in earnest, and beside each other they would "
            "compete for this machine's processors",
            hint="make the runs one after another: careof run FILE --world linux --repetition N --set KEY=VALUE",
        )
    out = options.out if options.out is not None else Path(f"{Path(options.scenario).stem or 'scenario'}.parquet")
    with _progress(options, "runs", "runs/s") as progress:
        done = sweep(
            Path(options.scenario),
            vary=options.vary,
            repeat=options.repeat,
            out=out,
            seed=options.seed,
            set=options.overrides,
            jobs=options.jobs,
            scheduler=options.scheduler,
            resume=options.resume,
            progress=progress,
            remark=progress.remark,
        )
    if options.json:
        _print_json(done.as_json())
    else:
        print(done.for_people(Style(sys.stdout)))
    return 0


def _plot(options: argparse.Namespace) -> int:
    from careof.sweeps import load_sweep

    means = load_sweep(options.table).means(options.y, options.x, options.by, ci=options.ci, where=options.where)
    name = f"{options.table.stem}-{options.y}.svg"
    out = means.save(options.out if options.out is not None else options.table.with_name(name))
    if options.json:
        _print_json(means.as_json() | {"graph": str(out)})
    else:
        print(f"{means.for_people(Style(sys.stdout))}\n\n{printable(str(out))}")
    return 0


def _compare(options: argparse.Namespace) -> int:
    from careof.comparison import compare

    comparison = compare(options.a, options.b)
    if options.out is not None:
        comparison.write(options.out)
    if options.json:
        _print_json(comparison.as_json())
    else:
        print(comparison.for_people(Style(sys.stdout)))
        if options.out is not None:
            print(f"\n{options.out}")
    return 0


def _check(options: argparse.Namespace) -> int:
    from careof.runs import override_list, read_scenario

    name, text = read_scenario(Path(options.scenario))
    overrides = override_list(options.overrides)
    resolved = native.check(name, text, overrides)
    # A good scenario may still ask for what a world cannot do. One that can is enough, unless it is asked for by name.
    refusals = {}
    for world in native.WORLDS if options.world is None else [options.world]:
        try:
            native.check_world(world, name, text, overrides)
        except WorldError as error:
            refusals[world] = error
    if options.world in refusals or len(refusals) == len(native.WORLDS):
        raise next(iter(refusals.values()))
    if options.json:
        _print_json(resolved)
    else:
        print(f"{name}: {summary.scenario_in_words(resolved)}")
        for world, refusal in refusals.items():
            print(f"  not for --world {world}: {printable(str(refusal))}")
    return 0


def _presets(options: argparse.Namespace) -> int:
    presets = native.presets()
    if options.json:
        _print_json(presets)
    else:
        print(summary.preset_table(presets, Style(sys.stdout)))
    return 0


def _report(options: argparse.Namespace) -> int:
    from careof.runs import load, write_report_again

    print(printable(str(write_report_again(load(options.directory), plots=options.plot is not None))))
    return 0


def _study(options: argparse.Namespace) -> int:
    from careof import studies

    names = studies.names()
    if options.name not in names:
        near = difflib.get_close_matches(options.name, names, n=1)
        hint = f"did you mean {near[0]}?" if near else f"studies: {', '.join(names) or 'none in this version'}"
        raise InputError(f"there is no study {options.name!r}", hint=hint)
    with _progress(options, "done") as progress:
        module = studies.load(options.name)
        study = module.carry_out(options.out, progress, quick=options.quick, world=options.world)
    if options.json:
        _print_json(study.rows_as_json())
    elif options.markdown:
        print(study.as_markdown(), end="")
    else:
        print(study.for_people(Style(sys.stdout)))
    return 0


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))
