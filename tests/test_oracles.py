"""`careof oracle`: a model beside traces and predictions; small ones made here, reference data where they are."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, NoReturn

import pytest

from careof.errors import InputError
from careof.oracles import analytic, averages, families, kernel, ns2
from careof.oracles.analytic import Evaluation
from careof.oracles.known import Known
from careof.text import Style
from conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Command

SHARED = ROOT.parent / "shared" / "oracles"

# Four segments that fit into the first window, from no kernel: cwnd does not grow where it is not used.
TRACE = """\
# name=small.reno.default.sack1.ts1
# cmd=--name x --cc reno --sack 1 --ts 1 --spin 0 --segs 4 --rate 10000000 --owd 25000 --queue 1000 --maxtime 60000000
# sysctl tcp_sack=1 tcp_dsack=1 tcp_timestamps=1 tcp_recovery=1 tcp_early_retrans=3 tcp_frto=2 tcp_reordering=3
# link rate=10000000 bit/s owd=25000 us queue=1000 pkts fifo=1 both directions alike; mss=1448 mtu=1500
t_us,ev,flags,seq,len,ack,wnd,sack,tsval,tsecr,k,tx,fate,t_arr_us,cwnd,ssthresh,srtt_us,rttvar_us,rto_us,ca,backoff,\
unacked,sacked,lost,retrans
1,S,S,0,0,0,64240,,0,0,,,ok,25049,10,-1,0,250000,1000000,0,0,1,0,0,0
50150,R,S.,0,0,1,65535,,0,0,,,,,10,-1,50149,25074,251000,0,0,0,0,0,0
50151,S,.,1,0,1,65536,,50,0,,,ok,75193,10,-1,50149,25074,251000,0,0,0,0,0,0
50154,S,.,1,1448,1,65536,,50,0,1,1,ok,76393,10,-1,50149,25074,251000,0,0,4,0,0,0
50154,S,P.,1449,1448,1,65536,,50,0,2,1,ok,77593,10,-1,50149,25074,251000,0,0,4,0,0,0
50154,S,.,2897,1448,1,65536,,50,0,3,1,ok,78793,10,-1,50149,25074,251000,0,0,4,0,0,0
50154,S,P.,4345,1448,1,65536,,50,0,4,1,ok,79993,10,-1,50149,25074,251000,0,0,4,0,0,0
101452,R,.,1,0,1449,8387328,,51,50,1,1,,,10,-1,50293,19094,251000,0,0,3,0,0,0
102639,R,.,1,0,2897,8387328,,52,50,2,1,,,10,-1,50567,14869,251000,0,0,2,0,0,0
103839,R,.,1,0,4345,8387328,,53,50,3,1,,,10,-1,50957,11932,251000,0,0,1,0,0,0
105041,R,.,1,0,5793,8387328,,55,50,4,1,,,10,-1,51449,9932,252000,0,0,0,0,0,0
"""

PREDICTIONS = """\
id\tsource\tinputs\texpected\ttolerance
iw10-536\tRFC 6928 2\tMSS=536\tIW=5360 bytes\texact
iw10-1460\tRFC 6928 2\tMSS=1460\tIW=14601 bytes\texact
no-such-row\tnowhere\tnothing\tnothing\texact
"""


def keep(directory: Path, name: str, text: str = TRACE) -> None:
    """Write a trace; packed where its name says so."""
    if name.endswith(".gz"):
        (directory / name).write_bytes(gzip.compress(text.encode()))
    else:
        (directory / name).write_text(text, encoding="utf-8")


def rows_of(careof: Command, directory: Path) -> tuple[int, list[dict[str, object]]]:
    """Exit status, and a row a trace."""
    done = careof("oracle", "kernel", directory, "--json")
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def test_a_model_that_does_the_same_agrees(careof: Command, tmp_path: Path) -> None:
    keep(tmp_path, "b.csv.gz")
    keep(tmp_path, "a.csv")
    status, rows = rows_of(careof, tmp_path)
    assert status == 0
    assert [row["file"] for row in rows] == ["a.csv", "b.csv.gz"]
    for row in rows:
        assert (row["same_segments"], row["same_order"]) == (True, True)
        assert (row["cwnd_agreement"], row["first_difference"], row["error"]) == (1.0, None, None)
    done = careof("oracle", "kernel", tmp_path)
    assert "2 traces: 2 agree in segments, order, windows and times, 0 differ, 0 not run" in done.stdout


def test_a_difference_is_named_with_its_row_and_ends_in_status_1(careof: Command, tmp_path: Path) -> None:
    again = "102700,S,.,4345,1448,1,65536,,102,52,4,2,ok,130000,10,-1,50567,14869,251000,0,0,2,0,0,0\n103839,R"
    keep(tmp_path, "a.csv", TRACE.replace("103839,R", again))
    status, (row,) = rows_of(careof, tmp_path)
    assert status == 1
    assert (row["same_segments"], row["same_order"]) == (False, False)
    first = row["first_difference"]
    assert isinstance(first, dict)
    assert (first["row"], first["t_us"], first["kind"]) == (15, 102700, "segment")
    assert "segment 4 again" in first["kernel"]
    assert "nothing more" in first["model"]
    done = careof("oracle", "kernel", tmp_path)
    assert done.returncode == 1
    assert "First differences" in done.stdout
    assert "0.102700 s: the kernel sent segment 4 again" in done.stdout


def test_a_window_that_differs_too_often_is_a_difference(careof: Command, tmp_path: Path) -> None:
    keep(tmp_path, "a.csv", TRACE.replace(",10,-1,50567", ",11,7,50567"))
    status, (row,) = rows_of(careof, tmp_path)
    assert (status, row["cwnd_agreement"], row["same_order"]) == (1, 0.75, True)


def test_draws_of_bbr_that_agree_do_not_hide_those_that_differ() -> None:
    loop = {"failed": [], "same_order": True, "cwnd_agreement": 1.0, "same_time": 1.0}
    whole = {"same_segments": True, "same_order": True, "cwnd_agreement": 1.0, "first_difference": None, "error": None}
    unknown = {"phases": None, "why": "rows are left out", "of": 24}
    differs = {**whole, "agrees": False, "open": None, "closed": {**loop, "failed": ["windows"]}}
    rows: list[kernel.Json] = [
        {**whole, "file": "a.csv", "agrees": True, "open": loop, "closed": loop, "draws": None},
        {**differs, "file": "b.csv", "draws": {**unknown, "agree": 5}},
        {**differs, "file": "c.csv", "draws": {**unknown, "agree": 0}},
    ]
    found = kernel.KernelComparison(rows)
    assert found.exit_status == 1
    assert "3 traces: 1 agree" in found.summary()
    assert "2 differ (1 of them not in every draw of BBR's phases), 0 not run" in found.summary()
    assert kernel.failed(rows[1]) == [
        "closed: windows",
        "5 of 24 draws of BBR's phases agree (rows are left out)",
    ]


def test_where_a_trace_does_not_tell_the_phases_of_bbr_every_draw_counts(careof: Command, tmp_path: Path) -> None:
    text = TRACE.replace("--cc reno", "--cc bbr")
    for at, cwnd in (("50293", 11), ("50567", 12), ("50957", 13), ("51449", 14)):
        text = text.replace(f",10,-1,{at},", f",{cwnd},-1,{at},")
    keep(tmp_path, "a.csv", text)
    keep(tmp_path, "b.csv", text.replace(",14,-1,", ",15,-1,"))
    status, (same, differs) = rows_of(careof, tmp_path)
    assert status == 1
    why = "it has no gains (cc)"
    assert (same["agrees"], same["draws"]) == (True, {"phases": None, "why": why, "agree": 24, "of": 24})
    assert (differs["agrees"], differs["draws"]) == (False, {"phases": None, "why": why, "agree": 0, "of": 24})
    assert f"0 of 24 draws of BBR's phases agree ({why})" in careof("oracle", "kernel", tmp_path).stdout


def test_bad_files_are_rows_and_the_others_go_on(careof: Command, tmp_path: Path) -> None:
    keep(tmp_path, "a.csv")
    keep(tmp_path, "flag.csv", TRACE.replace("--segs 4", "--segs 4 --wobble 3"))
    keep(tmp_path, "field.csv", TRACE.replace("102639,R", "102639,Q"))
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(TRACE.encode())[:200])
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "noise.csv").write_bytes(bytes(range(256)))
    (tmp_path / "unreadable.csv").symlink_to(tmp_path / "nowhere")
    status, rows = rows_of(careof, tmp_path)
    assert status == 2
    by_name = {str(row["file"]): row for row in rows}
    assert by_name["a.csv"]["error"] is None
    for name, words in {
        "flag.csv": "--wobble",
        "field.csv": 'ev is "Q"',
        "cut.csv.gz": "gzip",
        "empty.csv": "no header row",
        "noise.csv": "UTF-8",
    }.items():
        error = by_name[name]["error"]
        assert isinstance(error, dict)
        assert words in error["message"]
    # The script of the link is not needed in open loop.
    assert by_name["flag.csv"]["open"] is not None
    assert by_name["flag.csv"]["closed"] is None
    assert "flag.csv:2" in str(by_name["flag.csv"]["error"])
    done = careof("oracle", "kernel", tmp_path)
    assert done.returncode == 2
    assert "Not compared, or not wholly" in done.stdout
    assert "7 traces: 1 agree in segments, order, windows and times, 0 differ, 6 not run or not wholly" in done.stdout


def test_a_directory_without_traces_is_refused_with_a_hint(careof: Command, tmp_path: Path) -> None:
    for directory, words in ((tmp_path / "no", "does not exist"), (tmp_path, "holds no traces")):
        done = careof("oracle", "kernel", directory)
        assert done.returncode == 2
        assert words in done.stderr
        assert "hint:" in done.stderr
    (tmp_path / "kernel").mkdir()
    assert f"is it {tmp_path / 'kernel'}?" in careof("oracle", "kernel", tmp_path).stderr
    file = tmp_path / "a.csv"
    file.write_text(TRACE)
    assert "is no directory" in careof("oracle", "kernel", file).stderr


def test_predictions_hold_or_say_what_the_model_does(careof: Command, tmp_path: Path) -> None:
    table = tmp_path / "analytic.tsv"
    table.write_text(PREDICTIONS, encoding="utf-8")
    done = careof("oracle", "analytic", table, "--json")
    assert done.returncode == 1
    rows = {row["id"]: row for row in json.loads(done.stdout)}
    assert rows["iw10-536"]["outcome"] == "holds"
    assert rows["iw10-1460"]["outcome"] == "differs"
    assert "14600" in rows["iw10-1460"]["why"]
    assert rows["no-such-row"]["outcome"] == "not run"
    table.write_text("id\tsource\na\tb\n", encoding="utf-8")
    done = careof("oracle", "analytic", table)
    assert done.returncode == 2
    assert "analytic.tsv:2" in done.stderr


def test_a_row_that_was_not_run_counts_unless_no_run_can_answer_it() -> None:
    held = {"id": "a", "outcome": "holds", "why": None}
    without = {"id": "b", "outcome": "unanswerable", "why": "no sender here is TFRC"}
    missing = {"id": "c", "outcome": "not run", "why": "it takes minutes"}
    assert Evaluation([held, without]).exit_status == 0
    evaluation = Evaluation([held, without, missing])
    assert evaluation.exit_status == 1
    assert "1 not run, 1 that no run can answer" in evaluation.summary()
    assert families.Report([families.of_predictions(Evaluation([held, without]))], []).exit_status == 0
    assert families.Report([families.of_predictions(evaluation)], []).exit_status == 1


def test_rows_that_take_minutes_are_left_out_only_where_it_is_asked_for(tmp_path: Path) -> None:
    table = tmp_path / "analytic.tsv"
    row = "cubic-avg-x\tRFC\tRTT=0.1 p=1e-08\tReno W=12000, CUBIC C=0.4 W=187400 segments\t5%\n"
    table.write_text("id\tsource\tinputs\texpected\ttolerance\n" + row, encoding="utf-8")
    (found,) = analytic.evaluate(table, silent, quick=True).rows
    assert (found["outcome"], found["why"]) == ("not run", "it takes minutes")


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No family but those of files: the others have their own tests."""

    def no_ns2(*_: object) -> NoReturn:
        raise InputError("there is no ns", hint="install it")

    monkeypatch.setattr(averages, "cases", list)
    monkeypatch.setattr(ns2, "compare_all", no_ns2)


def silent(_done: float, _whole: float) -> None:
    """Show no progress."""


@pytest.mark.usefixtures("alone")
def test_all_has_a_line_a_family_and_says_what_is_absent(tmp_path: Path) -> None:
    report = families.run(tmp_path, silent)
    words = report.for_people(Style(None))
    assert report.exit_status == 0
    assert "kernel: not run; it needs traces" in words
    assert "analytic: not run; it needs the table" in words
    assert "there is no ns" in words
    for name in ("kernel", "kernel-more"):
        (tmp_path / name).mkdir()
        keep(tmp_path / name, "a.csv")
    report = families.run(tmp_path, silent)
    assert report.exit_status == 0
    lines = [line.split() for line in report.for_people(Style(None)).splitlines()]
    assert ["kernel", "1", "1", "0", "0", "0"] in lines
    assert ["kernel-more", "1", "1", "0", "0", "0"] in lines
    keep(tmp_path / "kernel", "b.csv", TRACE.replace(",10,-1,", ",11,-1,"))
    report = families.run(tmp_path, silent)
    assert report.exit_status == 1
    assert "unexplained: b" in report.for_people(Style(None))
    assert [family["passed"] for family in report.as_json()["families"]][:2] == [1, 1]
    (tmp_path / "kernel" / "b.csv").unlink()
    assert families.run(tmp_path, silent).exit_status == 0
    # A trace that is not run whole is no agreement.
    keep(tmp_path / "kernel-more", "b.csv", TRACE.replace("--segs 4", "--segs 4 --wobble 3"))
    report = families.run(tmp_path, silent)
    assert report.exit_status == 1
    assert "not run: b" in report.for_people(Style(None))


def test_all_says_before_anything_else_that_there_is_no_such_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for name, problem in (("nowhere", "does not exist"), ("file", "is no directory")):
        with pytest.raises(InputError, match=problem):
            families.run(tmp_path / name, lambda *_: pytest.fail("something is being run"))


def test_a_reason_explains_its_cases_and_goes_stale_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known("analytic", ("x-*",), "because")
    monkeypatch.setattr(families, "KNOWN", (known,))
    row = {"id": "x-1", "outcome": "differs", "why": "2, not 1"}
    family = families.of_predictions(Evaluation([row, {"id": "y", "outcome": "holds", "why": None}]))
    assert (family.cases, family.passed, family.unexplained, family.stale) == (2, 1, [], [])
    assert family.differing[0].reason == "because"
    family = families.of_predictions(Evaluation([{**row, "outcome": "holds"}]))
    assert family.stale == [known]
    assert families.Report([family], []).exit_status == 1
    # A reason whose cases were not looked at says nothing.
    assert families.of_predictions(Evaluation([{**row, "id": "z"}])).stale == []


def test_a_reason_does_not_explain_another_difference_of_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Known("analytic", ("x",), "because", r"reno is 11[^;]*")
    monkeypatch.setattr(families, "KNOWN", (known,))

    def unexplained(why: str) -> int:
        return len(families.of_predictions(Evaluation([{"id": "x", "outcome": "differs", "why": why}])).unexplained)

    assert unexplained("reno is 11.2, not 12") == 0
    assert unexplained("reno is 11.2, not 12; cubic is 3, not 12") == 1
    assert unexplained("cubic is 3, not 12") == 1


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no reference data in {SHARED}")
def test_the_linux_model_does_what_linux_did() -> None:
    for directory in SHARED.glob("kernel*"):
        rows = kernel.compare(directory, silent).rows
        assert len(rows) >= 1
        for row in rows:
            assert row["error"] is None, row
            if directory.name == "kernel" and (".reno." in row["file"] or ".cubic." in row["file"]):
                assert row["agrees"], row


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"no reference data in {SHARED}")
def test_no_prediction_fails_without_a_reason() -> None:
    for family in [families.of_predictions(analytic.evaluate(SHARED / "analytic.tsv", silent, quick=True))]:
        assert not family.unexplained, family.unexplained
        assert not family.stale, family.stale
