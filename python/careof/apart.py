"""A run, carried out in a process of its own.

Real hosts ask things of the process that makes them: for an ordinary user it may have one thread only, and it enters a
user namespace for good. No program that merely wants a run should have to bear that, so it is done by another process:
this module started as a program. It takes the job, or the world that it is to get ready for, on its standard input and
answers with a JSON object a line: ``progress``, ``remark``, and at last ``path`` or ``error``. When the program that
wants the run is gone, it cannot answer any more and ends too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from careof import errors
from careof.errors import CareofError, RunError, WorldError
from careof.runs import Job, Run, load

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

    from careof.jobs import Remark
    from careof.runs import Watcher

_PREPARE = "prepare"
"""The key of a world in the place of a job."""

_PATIENCE_S = 20.0
"""How long a process may take to end when it is told to: it may have a file to finish."""


def is_alone() -> bool:
    """Whether this process has one thread."""
    return len(list(Path("/proc/self/task").iterdir())) == 1


def carry_out(job: Job, progress: Watcher | None, remark: Remark | None) -> Run:
    """Carry out a run in a process of its own; see :func:`careof.run`."""
    with ExitStack() as stack:
        if job.out is None:
            kept = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="careof-"))) / "run"
            _ask(job._replace(out=str(kept), report=False)._asdict(), progress, remark)
            run = load(kept)
            events = run.events if job.trace else None
            return Run(
                summary=run.summary, scenario=run.scenario, scenario_text=job.text, events=events, programs=run.programs
            )
        return load(_ask(job._asdict(), progress, remark))


def prepare(world: str) -> None:
    """Make sure that this machine has what a world needs; see :func:`careof.native.prepare`.

    Raises:
        WorldError: it has not.
    """
    _ask({_PREPARE: world}, None, None)


def _ask(words: Mapping[str, object], progress: Watcher | None, remark: Remark | None) -> Path:
    if not sys.executable:
        raise WorldError(
            "real hosts need a process of their own, and this program does not know its Python interpreter",
            hint="make the run with `careof run FILE --world linux --out DIR` and use careof.load(DIR)",
        )
    process = subprocess.Popen(  # noqa: S603 - this interpreter, this module
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=_environment(),
        text=True,
        encoding="utf-8",
        # Ctrl-C is for the program that wants the run; that tells this one.
        process_group=0,
    )
    try:
        return _listen(process, words, progress, remark)
    except BaseException:
        process.terminate()
        raise
    finally:
        _end(process)


def _listen(
    process: subprocess.Popen[str], words: Mapping[str, object], progress: Watcher | None, remark: Remark | None
) -> Path:
    assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 - asked for above
    try:
        with process.stdin as place:
            json.dump(words, place)
    except BrokenPipeError:
        pass  # What it has to say follows.
    for line in process.stdout:
        answer: dict[str, Any] = json.loads(line)
        match answer:
            case {"progress": [now, whole]} if progress is not None:
                progress(now, whole)
            case {"remark": said} if remark is not None:
                remark(said)
            case {"path": path}:
                return Path(path)
            case {"error": [kind, message, hint]}:
                raise getattr(errors, kind)(message, hint=hint)
    status = process.wait()
    how = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
    raise RunError(f"the process that made the run {how}", hint="see what it wrote to the standard error")


def _environment() -> dict[str, str]:
    """So that the process finds this very careof."""
    here = str(Path(__file__).resolve().parent.parent)
    paths = [here, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def _end(process: subprocess.Popen[str]) -> None:
    """See to it that it is gone, and with it everything it made."""
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        if process.stdout is not None:
            process.stdout.close()


def _main() -> int:
    signal.signal(signal.SIGTERM, _terminated)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever else writes to the standard output, libraries or a scenario's programs, does not speak this language.
    os.dup2(2, 1)

    def answer(**words: object) -> None:
        try:
            print(json.dumps(words), file=answers, flush=True)
        except BrokenPipeError:
            # Whoever wanted the run is gone. It is no fault of a file that is being written.
            os.dup2(os.open(os.devnull, os.O_WRONLY), answers.fileno())
            sys.exit(1)

    try:
        from careof import jobs, native

        asked = json.load(sys.stdin)
        if _PREPARE in asked:
            native.prepare(asked[_PREPARE])
            answer(path="")
            return 0
        run = jobs.carry_out(
            Job(**asked),
            progress=lambda now, whole: answer(progress=[now, whole]),
            remark=lambda words: answer(remark=words),
        )
        answer(path=str(run.path))
    except CareofError as error:
        answer(error=[type(error).__name__, str(error), error.hint])
    return 0


def _terminated(number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that what is half done is taken back.
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(_main())
