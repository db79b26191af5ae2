"""Many runs of a scenario: a grid of values with repetitions, in one table.

Nothing of the grid's order or of the runs is decided here: `crates/sweep` numbers the runs and carries them out, as far
as they are simulated. Here their records are kept until all are there, and made into a table.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from careof import native, toml
from careof.errors import InputError, ScenarioError
from careof.runs import (
    LARGEST_SEED,
    SIMULATED,
    override_list,
    read_scenario,
    refuse_unknown_world,
    unicode,
    whole_number,
)
from careof.sweeps.journal import Journal, beside, refuse_another
from careof.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from careof.native import Json
    from careof.runs import Overrides, Watcher
    from careof.sweeps.means import Means
    from careof.text import Style

    Varied = Mapping[str, Sequence[object]] | Sequence[str]
    Source = Iterator[list[str]]

_PATIENCE_S = 0.1
_CELLS_SHOWN = 40
_LARGEST_REPEAT = 100_000_000
_LARGEST_JOBS = 4096


@dataclass(frozen=True)
class Plan:
    """A sweep that is asked for, in words and numbers: all that another machine needs to carry it out."""

    name: str
    """Where the text is from."""
    text: str
    overrides: tuple[str, ...]
    seed: int | None
    varied: tuple[str, ...]
    repeat: int
    world: str = SIMULATED

    def grid(self) -> native.Grid:
        """Its runs.

        Raises:
            InputError: it is no grid.
        """
        return native.Grid(self.name, self.text, self.overrides, seed=self.seed, varied=self.varied, repeat=self.repeat)

    def identity(self, about: Json) -> Json:
        """What makes two sweeps the same."""
        identity = {
            "careof": native.__version__,
            "scenario": Path(self.name).name,
            "scenario_sha256": hashlib.sha256(self.text.encode()).hexdigest(),
            "set": list(self.overrides),
            "seed": about["seed"],
            "vary": list(self.varied),
            "repeat": self.repeat,
            "world": self.world,
        }
        # Files that the scenario names are as much a part of it as its text.
        return identity | {"traces_sha256": about["traces_sha256"]} if about["traces_sha256"] else identity


class Sweep:
    """The table of a sweep: a row for each flow of each run.

    Its columns are the keys that vary, ``run``, ``seed``, the metrics of a flow, and ``error``.
    """

    def __init__(self, table: pa.Table, path: Path | None = None) -> None:
        self.table = table
        """An Arrow table: ``polars.from_arrow(sweep.table)`` and ``sweep.table.to_pandas()`` take it as it is."""
        self.path = path
        """Its file, if it has one."""

    def __repr__(self) -> str:
        place = "in memory" if self.path is None else str(self.path)
        return f"<careof.Sweep over {', '.join(self.varied) or 'nothing'}: {self.table.num_rows} rows, {place}>"

    @cached_property
    def varied(self) -> list[str]:
        """The keys that vary."""
        from careof.sweeps import table as tables

        return tables.varied_in(self.table.schema)

    @cached_property
    def about(self) -> Json:
        """Which sweep it is: version, scenario, what was set and varied, seed, repetitions."""
        from careof.sweeps import table as tables

        return tables.identity_of(self.table.schema) or {}

    @property
    def runs(self) -> int:
        """How many runs it has."""
        return len(self.table.select([*self.varied, "run"]).group_by([*self.varied, "run"]).aggregate([]))

    @property
    def failed(self) -> int:
        """How many runs came to no end. Each has a row with its ``error``."""
        return int(self.table.num_rows - self.table["error"].null_count)

    @property
    def random(self) -> bool:
        """Whether repetitions differ in anything that is measured; true for a sweep without any."""
        if int(self.about["repeat"]) == 1:
            return True
        keys = [*self.varied, "flow"]
        measured = [name for name in self.table.column_names if name not in (*keys, "run", "digest", "error")]
        whole = self.table.filter(self.table["error"].is_null())
        counts = whole.group_by(keys).aggregate([(name, "count_distinct") for name in measured])
        return any(max(counts[f"{name}_count_distinct"].to_pylist(), default=1) > 1 for name in measured)

    def as_json(self) -> Json:
        """What was done, and each cell's mean goodput, ready for JSON."""
        return {
            "table": None if self.path is None else str(self.path),
            **{key: self.about[key] for key in ("scenario", "seed", "set", "vary", "repeat")},
            "world": self.about.get("world", SIMULATED),
            "runs": self.runs,
            "failed": self.failed,
            "random": self.random,
            "rows": self.table.num_rows,
            "means": self._overview().as_json(),
        }

    def for_people(self, style: Style) -> str:
        """The same in words, with the first error if there is one."""
        where = "" if self.about.get("world", SIMULATED) == SIMULATED else " on Linux hosts"
        made_with = style.dim(f"{self.runs} runs{where}, seed {self.about['seed']}")
        parts = [
            f"{style.bold(printable(self.about['title']))}  {made_with}",
            self._overview().for_people(style, most=_CELLS_SHOWN),
        ]
        if self.failed:
            errors = self.table["error"].drop_null()
            parts.append(
                f"{self.failed} of {self.runs} runs failed; the first: {printable(errors[0].as_py(), lines=True)}"
            )
        if not self.random:
            parts.append("repetitions do not differ: nothing that is measured is left to chance in this scenario")
        if self.path is not None:
            parts.append(printable(str(self.path)))
        return "\n\n".join(parts)

    def _overview(self) -> Means:
        last = self.varied[-1] if self.varied else "flow"
        return self.means("goodput_bps", last, [name for name in ("flow", *self.varied) if name != last])

    def means(
        self,
        y: str,
        x: str | None = None,
        by: str | Sequence[str] = (),
        *,
        ci: str = "student",
        where: Mapping[str, object] | Sequence[str] = (),
    ) -> Means:
        """Means of a metric over the runs of each cell, with 95 % confidence intervals; see :class:`Means`.

        Args:
            y: the metric, a column.
            x: what it is drawn over, a column; what varies if only one key does.
            by: columns that tell curves apart.
            ci: ``"student"`` for Student's t, ``"bootstrap"`` for the percentiles of resampled means.
            where: rows to keep, ``{"flow": "download"}`` or ``["flow=download"]``.

        Raises:
            InputError: there is no such column, or what was asked for would mix cells.
        """
        from careof.sweeps.means import means

        return means(self.table, y, x, by, ci=ci, where=where)


def sweep(
    scenario: str | Path,
    *,
    vary: Varied = (),
    repeat: int = 1,
    out: str | Path | None = None,
    seed: int | None = None,
    set: Overrides = (),
    jobs: int | None = None,
    scheduler: str | None = None,
    world: str = SIMULATED,
    resume: bool = False,
    progress: Watcher | None = None,
    remark: Callable[[str], None] | None = None,
) -> Sweep:
    """Run a scenario with every combination of values, each `repeat` times, and make one table of all.

    Simulated, the same arguments give the same table, byte for byte, however it came about. A run that fails is a row
    with its error.

    Args:
        scenario: a scenario file, or its text (anything with a line break in it).
        vary: keys with the values they take: ``{"flow.tcp.variant": ["reno", "sack"]}`` or
            ``["flow.tcp.variant=reno,sack"]``. A string in a mapping is one value, commas and all.
        repeat: runs of each combination, with the run numbers 0, 1, 2, ... under one seed.
        out: the Parquet file. While the sweep goes on, what is done is in ``OUT.partial``, and stays there when it is
            interrupted.
        seed: replaces the scenario's seed.
        set: replaces values of the scenario, see :func:`careof.run`.
        jobs: how many runs at a time; if not given as many as there are cores, and half of them on Linux hosts, where
            runs are timed.
        scheduler: address of a Dask scheduler (``tcp://host:8786``) whose workers are to carry the runs out.
        world: ``"sim"``, or ``"linux"`` for Linux hosts, on which each run takes its time.
        resume: go on with a sweep that was interrupted.
        progress: called now and then with how many runs are done and how many there are.
        remark: called with what is worth a remark, a line each.

    Raises:
        ScenarioError: the scenario is wrong, or a number out of its range.
        InputError: a key that varies exists nowhere, or what is to be resumed is another sweep.
        OutputError: `out` cannot be written.
        WorldError: this machine cannot have Linux hosts.
        ClusterError: the Dask cluster cannot be reached or has no fitting workers.
        RunError: the table could not be kept.
    """
    from careof.sweeps import table as tables

    plan = make_plan(scenario, vary=vary, repeat=repeat, seed=seed, set=set, world=world)
    if jobs is not None:
        jobs = whole_number("jobs", jobs, 1, _LARGEST_JOBS)
    if scheduler is not None and jobs is not None:
        raise InputError("jobs has no meaning with a scheduler", hint="give the workers of the cluster more threads")
    if scheduler is not None and world != SIMULATED:
        raise InputError("a cluster only simulates", hint="leave out the scheduler: Linux hosts are on this machine")
    if resume and out is None:
        raise InputError("there is nothing to go on with in memory", hint="name the table with out=")
    with ExitStack() as stack:
        if out is None:
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="careof-"))) / "sweep.parquet"
        else:
            path = Path(out)
        try:
            found = _carry_out(plan, path, jobs, scheduler, resume, progress or _silent, remark or _silent)
        except KeyboardInterrupt:
            if out is None:
                # What is kept goes with the temporary directory.
                raise KeyboardInterrupt from None
            raise
        return Sweep(tables.read(path) if found is None else found, None if out is None else path)


def load_sweep(path: str | Path) -> Sweep:
    """The table of a sweep from its file.

    Raises:
        NotATableError: there is none.
    """
    from careof.sweeps import table as tables

    return Sweep(tables.read(Path(path)), Path(path))


def plot_table(
    table: Sweep | pa.Table | str | Path,
    y: str,
    x: str | None = None,
    by: str | Sequence[str] = (),
    *,
    ci: str = "student",
    where: Mapping[str, object] | Sequence[str] = (),
) -> Any:
    """Means of a metric of a sweep's table as a plotly figure; see :meth:`Sweep.means`."""
    if isinstance(table, (str, Path)):
        table = load_sweep(table)
    whole = table if isinstance(table, Sweep) else Sweep(table)
    return whole.means(y, x, by, ci=ci, where=where).figure()


def make_plan(
    scenario: str | Path,
    *,
    vary: Varied = (),
    repeat: int = 1,
    seed: int | None = None,
    set: Overrides = (),
    world: str = SIMULATED,
) -> Plan:
    """A sweep to be carried out, see :func:`sweep`."""
    refuse_unknown_world(world)
    name, text = read_scenario(scenario)
    return Plan(
        name=name,
        text=text,
        overrides=tuple(override_list(set)),
        seed=None if seed is None else whole_number("seed", seed, 0, LARGEST_SEED),
        varied=tuple(_varied(vary)),
        repeat=whole_number("repeat", repeat, 1, _LARGEST_REPEAT),
        world=world,
    )


def _varied(vary: Varied) -> list[str]:
    if isinstance(vary, str):
        vary = [vary]
    if not isinstance(vary, Mapping):
        return [unicode(str(one)) for one in vary]
    axes = []
    for key, values in vary.items():
        if isinstance(values, str) or not hasattr(values, "__iter__"):
            raise ScenarioError(f"vary {key}: {values!r} is no list of values", hint=f"give [{values!r}]")
        try:
            axes.append(unicode(f"{key}={','.join(map(toml.inline, values))}"))
        except TypeError as error:
            raise ScenarioError(
                f"vary {key}: {error}", hint="give strings, numbers, truth values, lists or dicts"
            ) from None
    return axes


def _carry_out(
    plan: Plan,
    path: Path,
    jobs: int | None,
    scheduler: str | None,
    resume: bool,
    progress: Watcher,
    remark: Callable[[str], None],
) -> pa.Table | None:
    """Carry the sweep out; returns its table if it was there already."""
    from careof.sweeps import table as tables

    grid = plan.grid()
    about = grid.plan(plan.world)
    identity = plan.identity(about)
    columns = tables.schema(about, identity, plan.text)
    known = tables.refuse_what_must_stay(path)
    kept = beside(path)
    if resume and not kept.exists():
        if known is not None:
            refuse_another(path, {key: known.get(key) for key in identity}, identity)
            remark(f"{path} is complete; there is nothing to go on with")
            return tables.read(path)
        remark("there is nothing to go on with; the sweep begins")
    runs = about["runs"]
    with Journal(kept, identity, runs, resume=resume) as journal:
        progress(journal.done, runs)
        try:
            with ExitStack() as stack:
                done = journal.numbers()
                if plan.world != SIMULATED:
                    from careof.sweeps import hosts

                    source = hosts.records(stack, plan, about, done, jobs, progress, remark)
                elif scheduler is None:
                    source = _here(stack, grid, done, jobs, journal)
                else:
                    from careof.sweeps import cluster

                    source = cluster.records(stack, plan, scheduler, runs, done, remark)
                for records in source:
                    journal.add(records)
                    if plan.world == SIMULATED:
                        progress(journal.done, runs)
        except (KeyboardInterrupt, SystemExit) as end:
            if journal.done == 0:
                raise
            words = f"{journal.done} of {runs} runs are kept in {journal.path}: go on with --resume"
            if isinstance(end, KeyboardInterrupt):
                raise KeyboardInterrupt(f"interrupted; {words}") from None
            remark(words)
            raise
        tables.write(path, columns, tables.rows(about, journal.records(), plan.repeat))
        journal.remove()
    return None


def _here(stack: ExitStack, grid: native.Grid, done: Sequence[int], jobs: int | None, journal: Journal) -> Source:
    """The runs that are not done, on this machine."""
    crew = native.Crew(grid, jobs=jobs, done=done)

    def end() -> None:
        # However it ends: what is done is kept.
        crew.stop()
        journal.add(crew.take(0.0))

    stack.callback(end)
    while not crew.is_done:
        yield crew.take(_PATIENCE_S)


def _silent(*_: Any) -> None:
    pass
