"""The `careof` command: data on stdout, talk on stderr; exit status 0 done, 1 failed, 2 asked for wrongly.

`careof shell` ends as the program does that it runs.

Nothing is imported that the command at hand does not need: a run without a trace starts in a few
milliseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

from careof import cli_arguments, native
from careof.errors import CareofError, InputError, WorldError, did_you_mean
from careof.progress import Progress
from careof.runs import MAX_CAPTURE, SIMULATED, plan
from careof.staging import SUMMARY, space_hint
from careof.text import Style, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType

    from careof.jobs import Remark
    from careof.runs import Job, Run, Watcher
    from careof.series_comparison import SeriesComparison
    from careof.studies import HandoverDraws, Study, StudyModule

    _Described = tuple[str, Callable[[argparse.Namespace], int], Callable[[argparse.ArgumentParser], None], str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one command; returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = _options(words)
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


def _options(words: list[str]) -> argparse.Namespace:
    """What was asked for. A command or an option that there is not is refused with the nearest one that there is."""
    names = [*(name for name, *_ in _commands()), "oracle"]
    if words and not words[0].startswith("-") and words[0] not in names:
        hint = did_you_mean(words[0], names, f"commands: {', '.join(names)}")
        _complain(f"there is no command {words[0]!r}", hint)
        sys.exit(InputError.exit_status)
    own: list[str] = []
    if words[:1] == ["shell"] and "--" in words:
        # What is behind it is the program's, whatever it looks like.
        words, own = words[: words.index("--")], words[words.index("--") + 1 :]
    options, unknown = _parser(words).parse_known_args(words)
    options.own = own
    if unknown:
        of: argparse.ArgumentParser = options.parser
        known = [name for action in of._actions for name in action.option_strings]  # noqa: SLF001 (there is no other way)
        first = next((word for word in unknown if word.startswith("-")), "")
        hint = did_you_mean(first.partition("=")[0], known, f"see `{of.prog} --help`")
        _complain(f"unrecognized arguments: {' '.join(unknown)}", hint)
        sys.exit(InputError.exit_status)
    return options


class _Unmeasured(argparse.HelpFormatter):
    """Does not look how wide the terminal is. With each argument that is added, argparse makes one that does."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=80)


class _Parser(argparse.ArgumentParser):
    """Errors of usage in the form of all other errors; the terminal is looked at only for help."""

    def __init__(self, **how: Any) -> None:
        super().__init__(**how, formatter_class=_Unmeasured)

    def format_help(self) -> str:
        self.formatter_class = argparse.HelpFormatter
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        _complain(message, f"see `{self.prog} --help`")
        sys.exit(InputError.exit_status)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The command's. Where the first word is a command, nothing else can be meant, and only that one is made."""
    parser = _Parser(prog="careof", description="What a handover does to TCP, and what helps.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"careof {native.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=_Parser)
    named = next((name for name, *_ in _commands() if words[:1] == [name]), None)
    for name, function, arguments, description in _commands():
        if named in (None, name):
            arguments(_command(commands, name, function, description))
    if named is None:
        _add_oracles(commands)
    return parser


def _commands() -> tuple[_Described, ...]:
    return (
        ("run", _run, cli_arguments.of_run, "run a scenario: print a summary, write trace, capture and report"),
        (
            "shell",
            _shell,
            cli_arguments.of_shell,
            "run a program of your own, or a shell, at the mobile node of a scenario on Linux hosts",
        ),
        ("sweep", _sweep, cli_arguments.of_sweep, "run a grid of values with repetitions: one table of all runs"),
        ("plot", _plot, cli_arguments.of_plot, "means of a sweep with confidence intervals, in numbers and as a graph"),
        ("compare", _compare, cli_arguments.of_compare, "two runs side by side"),
        (
            "explain",
            _explain,
            cli_arguments.of_explain,
            "where the time of a run's flows went, and what their bytes were",
        ),
        ("check", _check, cli_arguments.of_check, "read a scenario and say what it means, without running it"),
        ("presets", _presets, cli_arguments.of_presets, "list the link presets with their sources"),
        ("report", _report, cli_arguments.of_report, "make a run's report again"),
        (
            "advise",
            _advise,
            cli_arguments.of_advise,
            "which help a handover needs, from a model and without simulating",
        ),
        ("serve", _serve, cli_arguments.of_serve, "a page on this machine that simulates a handover as you change it"),
        ("study", _study, cli_arguments.of_study, "a paper's tables and figures beside ours"),
        (
            "completions",
            _completions,
            cli_arguments.of_completions,
            "write what lets a shell complete commands and options",
        ),
        ("man", _man, cli_arguments.of_man, "write the manual pages"),
    )


def _add_oracles(commands: Any) -> None:
    from careof.oracles import command, ns2_command

    oracle = commands.add_parser(
        "oracle",
        help="the models beside what did not come from here",
        description="The TCP models beside what did not come from here.",
        allow_abbrev=False,
    )
    oracles = oracle.add_subparsers(title="oracles", metavar="ORACLE", required=True, parser_class=_Parser)
    command.add(oracles, _command, _progress)
    ns2_command.add(oracles, _command, _progress)


def _command(
    commands: Any, name: str, function: Callable[[argparse.Namespace], int], description: str
) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name, help=description, description=description[0].upper() + description[1:] + ".", allow_abbrev=False
    )
    parser.set_defaults(command=function, parser=parser)
    return parser


def _progress(options: argparse.Namespace, unit: str, rate: str | None = None) -> Progress:
    quiet = sys.stderr is None or getattr(options, "quiet", False) or (options.json and not sys.stderr.isatty())
    return Progress(None if quiet else sys.stderr, unit, rate)


def _run(options: argparse.Namespace) -> int:
    if options.no_trace:
        for option, given in (
            ("--plot png", options.plot),
            ("--snaplen", options.snaplen),
            ("--capture", options.capture),
            ("--max-capture", options.max_capture),
        ):
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
        capture=options.capture,
        snap_length=options.snaplen,
        max_capture=MAX_CAPTURE if options.max_capture is None else options.max_capture,
        plots=options.plot is not None,
    )
    if options.repeat is not None:
        return _run_series(options, job)
    if options.live and options.world == SIMULATED:
        raise InputError("--live is about runs in real time", hint="add --world linux")
    if options.jobs is not None:
        raise InputError("--jobs has no meaning for a single run", hint="add --repeat N")
    carry_out = _how_to_carry_out(options.world)
    with _progress(options, _unit(options.world)) as progress:
        if options.live:
            from careof import jobs

            if carry_out is not jobs.carry_out:
                raise WorldError("--live needs a process of its own", hint="start `careof run` as a program")
            result = jobs.carry_out(job, progress, progress.remark, live=sys.stderr)
        else:
            result = carry_out(job, progress, progress.remark)
    if options.json:
        print((out / SUMMARY).read_text(encoding="utf-8"), end="")
    else:
        from careof import summary

        print(summary.for_people(result, Style(sys.stdout), out))
    return 0


def _shell(options: argparse.Namespace) -> int:
    from careof import apart, shell

    if not apart.is_alone():
        raise WorldError("real hosts need a process of their own", hint="start `careof shell` as a program")
    with Progress(sys.stderr, "") as progress:
        return shell.run(
            shell.Shell(
                scenario=options.scenario,
                words=options.own,
                overrides=options.overrides,
                seed=options.seed,
                repetition=options.repetition,
                node=options.at,
                peer=options.to,
                serve=options.serve,
                longest=options.longest,
                quiet=options.quiet,
            ),
            progress.remark,
        )


def _run_series(options: argparse.Namespace, job: Job) -> int:
    from careof import phases

    if options.plot is not None:
        raise InputError(
            "--plot png has no meaning for a series", hint="draw one of its runs: careof report DIR/00 --plot png"
        )
    with _progress(options, _unit(options.world)) as progress:
        series = phases.carry_out(job, options.repeat, jobs=options.jobs, progress=progress, remark=progress.remark)
    if options.json:
        _print_json(series.as_json())
    else:
        print(series.for_people(Style(sys.stdout)))
    return 0


def _unit(world: str) -> str:
    return "s simulated" if world == SIMULATED else "s of real time"


def _how_to_carry_out(world: str) -> Callable[[Job, Watcher, Remark], Run]:
    from careof import jobs

    if world != SIMULATED:
        from careof import apart

        # This process has nothing else to do and one thread, unless somebody uses this function in another program.
        if not apart.is_alone():
            return apart.carry_out
    return jobs.carry_out


def _sweep(options: argparse.Namespace) -> int:
    from careof.sweeps import sweep

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
            world=options.world,
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
    from careof import phases
    from careof.comparison import compare

    if options.worlds:
        return _compare_worlds(options)
    if options.b is None:
        raise InputError("compare needs two directories", hint="careof compare A B, or careof compare FILE --worlds")
    for option, given in (("--repeat", options.repeat), ("--jobs", options.jobs), ("--set", options.overrides)):
        if given:
            raise InputError(f"{option} has no meaning for runs that are made", hint="add --worlds and name a scenario")
    series = [phases.is_series(one) for one in (options.a, options.b)]
    if all(series):
        if options.out is not None:
            raise InputError("--out has no meaning for series", hint="compare two of their runs: A/00 and B/00")
        return _compare_series(options, options.a, options.b)
    if any(series):
        raise InputError(
            "a run cannot be compared with a series", hint="name a run of the series, such as its directory 00"
        )
    comparison = compare(options.a, options.b)
    if options.out is not None:
        comparison.write(options.out)
    if options.json:
        _print_json(comparison.as_json())
    else:
        print(comparison.for_people(Style(sys.stdout), everything=options.all))
        if options.out is not None:
            print(f"\n{options.out}")
    return 0


def _compare_worlds(options: argparse.Namespace) -> int:
    from careof.worlds import compare_worlds

    if options.b is not None:
        raise InputError("--worlds takes one scenario", hint="careof compare FILE --worlds --repeat N")
    name = Path(options.a).stem or "scenario"
    out = options.out if options.out is not None else Path("run") / f"{name}-worlds"
    comparison = compare_worlds(
        options.a,
        options.repeat or 1,
        out=out,
        overrides=options.overrides,
        jobs=options.jobs,
        watch=lambda world: _progress(options, _unit(world)),
    )
    return _print_comparison(options, comparison)


def _compare_series(options: argparse.Namespace, a: Path, b: Path) -> int:
    from careof.series_comparison import compare_series

    return _print_comparison(options, compare_series(a, b))


def _print_comparison(options: argparse.Namespace, comparison: SeriesComparison) -> int:
    if options.json:
        _print_json(comparison.as_json())
    else:
        print(comparison.for_people(Style(sys.stdout)))
    return 0


def _explain(options: argparse.Namespace) -> int:
    from careof.explanation import explain

    with _progress(options, "steps") as progress:
        explanation = explain(options.directory, flow=options.flow, progress=progress)
    if options.json:
        _print_json(explanation.as_json())
    else:
        print(explanation.for_people(Style(sys.stdout)))
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
    if options.json and options.out is None:
        _print_json(resolved)
        return 0
    from careof.network import Network

    network = Network(native.overview(name, text, overrides), resolved)
    picture = None if options.out is None else network.save(options.out, Path(options.scenario).stem or "scenario")
    if options.json:
        _print_json(resolved)
    else:
        from careof import summary

        print(f"{name}: {summary.scenario_in_words(resolved)}")
        for line in summary.programs_in_words(resolved):
            print(line)
        for world, refusal in refusals.items():
            print(f"  not for --world {world}: {printable(str(refusal))}")
        print(f"\n{network.for_people(Style(sys.stdout))}")
        if picture is not None:
            print(f"\n{printable(str(picture))}")
    return 0


def _presets(options: argparse.Namespace) -> int:
    from careof import summary

    presets = native.presets()
    if options.name is not None:
        names = [str(one["name"]) for one in presets]
        presets = [one for one in presets if one["name"] == options.name]
        if not presets:
            hint = did_you_mean(options.name, names, "`careof presets` lists them")
            raise InputError(f"there is no preset {options.name!r}", hint=hint)
    if options.json:
        _print_json(presets)
    elif options.name is not None:
        print(summary.preset_in_full(presets[0], Style(sys.stdout)))
    else:
        print(summary.preset_table(presets, Style(sys.stdout)))
    return 0


def _report(options: argparse.Namespace) -> int:
    from careof.runs import load, write_report_again

    print(printable(str(write_report_again(load(options.directory), plots=options.plot is not None))))
    return 0


def _advise(options: argparse.Namespace) -> int:
    from careof.advice import command

    try:
        found = command.answer(options)
    except ValueError as error:
        raise InputError(str(error), hint="see `careof advise --help`") from error
    if options.json:
        _print_json(found)
    else:
        print("\n".join(command.lines(found)))
    return 0


def _serve(options: argparse.Namespace) -> int:
    from careof.playground import server

    with server.Playground(server.PORT if options.port is None else options.port) as playground:
        print(f"{playground.url}  (Ctrl-C ends it)", flush=True)
        # The way to end it is no failure.
        with suppress(KeyboardInterrupt):
            playground.serve_forever()
    return 0


def _study(options: argparse.Namespace) -> int:
    from careof import studies

    names = studies.names()
    if options.name not in names:
        hint = did_you_mean(options.name, names, f"studies: {', '.join(names)}")
        raise InputError(f"there is no study {options.name!r}", hint=hint)
    module = studies.load(options.name)
    draws = _draws(options, module)
    carry_out = _with_runs(options, module)
    with _progress(options, "done") as progress:
        study = (
            carry_out(options.out, progress, quick=options.quick, world=options.world)
            if draws is None
            else draws(
                options.out, progress, count=options.handovers, first=1 if options.first is None else options.first
            )
        )
    if options.json:
        _print_json(study.rows_as_json())
    elif options.markdown:
        print(study.as_markdown(), end="")
    else:
        print(study.for_people(Style(sys.stdout)))
    return 0


def _completions(options: argparse.Namespace) -> int:
    from careof import completions

    print(completions.script(_parser([]), options.shell))
    return 0


def _man(options: argparse.Namespace) -> int:
    from careof import completions

    completions.write_pages(_parser([]), options.directory)
    return 0


def _with_runs(options: argparse.Namespace, module: StudyModule) -> Callable[..., Study]:
    """What carries the study out, with as many runs as `--runs` says."""
    if options.runs is None:
        return module.carry_out
    if not getattr(module, "HAS_RUNS", False):
        raise InputError(f"the study {options.name} has its own numbers of runs", hint="leave out --runs")
    if options.quick:
        raise InputError("--quick and --runs say how many runs there are", hint="leave one out")
    return partial(cast("Callable[..., Study]", module.carry_out), runs=options.runs)


def _draws(options: argparse.Namespace, module: StudyModule) -> HandoverDraws | None:
    """What carries out `--handovers`, if it is asked for."""
    if options.handovers is None:
        if options.first is not None:
            raise InputError("--first names the first of several handovers", hint="say how many: --handovers N")
        return None
    draws = getattr(module, "carry_out_handovers", None)
    if draws is None:
        raise InputError(f"the study {options.name} draws no handovers", hint="careof study recovery --handovers N")
    if options.quick or options.world != SIMULATED:
        raise InputError(
            "handovers drawn by chance are simulated, each of them",
            hint="leave out --quick and --world with --handovers",
        )
    return cast("HandoverDraws", draws)


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))
