"""tools/counts.py: what it reads from callgrind's output, and when it says that a figure has become worse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import counts
import pytest
from counts import Figure

ROOT = Path(__file__).resolve().parents[2]

OUTPUT = """\
# callgrind format
part: 1

desc: Timerange: Basic block 0 - 9
desc: Trigger: Client Request: tree/10/still run 100

positions: line
events: Ir
summary: 5300

fn=(1) main
0 5300
totals: 5300

part: 2
desc: Trigger: Client Request: tree/10/still loads 100

positions: line
events: Ir
summary: 2300
totals: 2300

part: 3
desc: Trigger: Client Request: tree/10/still idle 100
events: Ir
summary: 300

part: 4
desc: Trigger: Program termination
events: Ir
summary: 77
"""


def test_parts_are_read_by_name_and_nothing_else_is():
    assert counts.parse_parts(OUTPUT) == {
        ("tree/10/still", "run", 100): 5300,
        ("tree/10/still", "loads", 100): 2300,
        ("tree/10/still", "idle", 100): 300,
    }


def test_figures_are_per_evaluation_and_without_what_the_loop_does_beside_it():
    assert counts.figures(counts.parse_parts(OUTPUT)) == {"tree/10/still": Figure(50.0, 20.0)}


def test_iterations_come_from_the_difference_of_two_lengths():
    parts = {("calls", "run", 200): 1_000_400, ("calls", "run", 1200): 1_002_400}
    assert counts.iterations(parts) == {"calls": 2.0}


@pytest.mark.parametrize(("now", "fails"), [(100.0, False), (102.9, False), (103.2, True), (50.0, False)])
def test_a_rise_over_three_percent_fails(now, fails):
    failures, remarks = counts.compare({"a": Figure(now, 9)}, {"a": Figure(100.0, 9)})
    assert bool(failures) is fails
    assert bool(remarks) is (now == 50.0)


def test_a_row_on_one_side_only_fails():
    assert len(counts.compare({"a": Figure(1, 1)}, {})[0]) == 1
    assert len(counts.compare({}, {"a": Figure(1, 1)})[0]) == 1


def test_a_change_of_the_bound_alone_is_no_failure():
    assert counts.compare({"a": Figure(100, 20)}, {"a": Figure(100, 10)}) == ([], [])


def test_plain_code_that_executes_more_or_less_fails():
    plain = {"calls": 1000.0, "objects": 5000.0}
    same = {"calls": 1004.9, "objects": 4980.0}
    assert counts.tax_failures({"without": plain, "imported": plain, "in_use": same}) == []
    assert len(counts.tax_failures({"without": plain, "in_use": {"calls": 1005.1, "objects": 4970.0}})) == 2
    assert counts.tax_failures({"without": plain, "in_use": {"calls": 1000.0}}) == ["in_use: other workloads than without"]
    assert counts.tax_failures({"without": {}, "in_use": {}}) == ["no workload was counted"]


def test_a_baseline_reads_back_and_keeps_its_reasons(tmp_path):
    path = tmp_path / "counts" / "b.txt"
    about = ["compiler GNU Release 12.2.0", "python 3.11.7 GCC 12.2.0"]
    counts.write_baseline(path, about, {"a/hit": Figure(10.0, 2.5)}, "first figures")
    counts.write_baseline(path, about, {"a/hit": Figure(12.0, 2.5)}, "a check that a fault needs")
    assert counts.read_baseline(path) == {"a/hit": Figure(12.0, 2.5)}
    text = path.read_text(encoding="utf-8")
    assert "# because first figures\n# because a check that a fault needs\n" in text
    assert all(f"# {fact}\n" in text for fact in about)


def test_a_baseline_is_of_one_compiler_and_one_interpreter():
    about = ["compiler GNU Release 12.2.0", "python 3.11.7 GCC 12.2.0"]
    names = {
        counts.baseline_path([a, b]).name for a in (about[0], about[0] + " LTO") for b in (about[1], "python 3.11.2 GCC 12.2.0")
    }
    assert len(names) == 4 and all(name.startswith("gnu-12.2.0_cpython-3.11.") for name in names)


def test_committed_baselines_are_named_by_what_they_say():
    files = sorted((ROOT / "bench/counts").glob("*.txt"))
    assert files
    for path in files:
        lines = path.read_text(encoding="utf-8").splitlines()
        about = [line[2:] for line in lines if line.startswith(("# compiler ", "# python ", "# libraries ", "# machine "))]
        assert counts.baseline_path(about).name == path.name
        assert any(line.startswith("# because ") for line in lines)
        assert all(figure.run > 0 and figure.loads > 0 for figure in counts.read_baseline(path).values())


def test_an_update_needs_a_reason():
    command = [sys.executable, ROOT / "tools/counts.py", "--build", "nowhere", "--update", " "]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "reason" in done.stderr


def test_the_workloads_run_in_each_mode():
    code = "import sys, tax_code; around = tax_code.prepare(sys.argv[1]); [around(w, 3) for w in tax_code.WORKLOADS.values()]"
    for mode in counts.MODES:
        subprocess.run([sys.executable, "-c", code, mode], check=True, env={**_environment(), "PYTHONHASHSEED": "0"})


def _environment():
    import os

    path = os.pathsep.join([str(ROOT / "bench"), *[p for p in sys.path if p]])
    return {**os.environ, "PYTHONPATH": path}
