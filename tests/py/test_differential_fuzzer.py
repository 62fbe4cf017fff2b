"""The differential fuzzer: finds every kind of broken engine, is silent about plain Python, names a crash, repeats by seed, resumes."""

import json
import os
import subprocess
import sys

import pytest
from differential_engines import BROKEN
from differential_generate import generate
from differential_run import run_program

FUZZ = os.path.join(os.path.dirname(__file__), "..", "..", "fuzz")
SCRIPT = os.path.join(FUZZ, "differential.py")

IN_PROCESS = sorted(set(BROKEN) - {"crashes", "hangs"})
EXPECTED_KINDS = {
    "wrong_lines": {"traceback", "result", "error", "warning line"}, "silent_print": {"output"}, "wraps_error": {"error"},
    "copies_result": {"result"}, "wrong_dtype": {"result"},
}


def run(*args: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, SCRIPT, *args], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", IN_PROCESS)
def test_each_broken_engine_is_found(name):
    kinds = set()
    for seed in range(600):
        failure = run_program(*generate(seed), BROKEN[name])
        if failure:
            kinds.add(failure.kind)
            if kinds & EXPECTED_KINDS.get(name, kinds):
                return
    pytest.fail(f"{name} was not found in 600 programs; kinds seen: {kinds}")


def test_plain_python_never_differs_from_itself():
    for seed in range(1000, 1300):
        assert run_program(*generate(seed), lambda fn: fn) is None


def test_most_programs_get_past_their_first_calls_without_an_error():
    clean = 0
    for seed in range(200):
        program = generate(seed)
        space = {"__name__": "program"}
        exec(compile(program.text, "<program>", "exec"), space)
        args, kwargs = space["call0"]()
        import contextlib
        import io
        import warnings
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                space["target"](*args, **kwargs)
            clean += 1
        except Exception:
            pass
    assert clean >= 100, f"only {clean} of 200 programs run without an error"


def test_a_seed_is_one_program_in_every_process():
    script = f"import sys; sys.path.insert(0, {FUZZ!r}); from differential_generate import generate; print([hash(generate(s).text) for s in range(50)])"
    outputs = {subprocess.run([sys.executable, "-c", script.replace("hash(", "__import__('zlib').crc32(").replace(".text)", ".text.encode())")],
                              capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": h}).stdout for h in ("1", "2")}
    assert len(outputs) == 1


@pytest.mark.parametrize("name, kind", [("crashes", "crash"), ("hangs", "hang")])
def test_a_crash_or_hang_names_its_seed_and_the_run_goes_on(name, kind, tmp_path):
    progress = tmp_path / "p.json"
    done = run("--engine", "broken:" + name, "--seed-range", "0:120", "--timeout", "2", "--max-failures", "2", "--shrink", "0",
               "--progress", str(progress))
    assert done.returncode == 1
    failures = json.loads(progress.read_text())["failures"]
    assert len(failures) == 2 and {f["kind"] for f in failures} == {kind}
    needle = "set(" if name == "crashes" else "warnings.warn("
    for f in failures:
        assert needle in "".join(generate(f["seed"]).text.splitlines(True)[60:])
    assert f"seed {failures[0]['seed']}: {kind}" in done.stdout


def test_progress_is_resumed(tmp_path):
    progress = str(tmp_path / "p.json")
    first = run("--engine", "plain", "--seed-range", "0:60", "--batch", "20", "--progress", progress)
    again = run("--engine", "plain", "--seed-range", "0:60", "--batch", "20", "--progress", progress)
    assert first.returncode == again.returncode == 0
    assert first.stdout.startswith("60 programs") and again.stdout.startswith("0 programs")


def test_the_shrunk_repro_runs_alone_and_shows_the_difference(tmp_path):
    seed = next(s for s in range(600) if (f := run_program(*generate(s), BROKEN["swap_operands"])) and f.kind == "result")
    shown = run("--engine", "broken:swap_operands", "--one", str(seed), "--shrink", "6")
    assert shown.returncode == 1
    repro = tmp_path / "repro.py"
    repro.write_text(shown.stdout)
    done = subprocess.run([sys.executable, str(repro)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    plain = [line.split(" ", 2)[2] for line in done.stdout.splitlines() if line.startswith("plain") and "globals" not in line]
    other = [line.split(" ", 2)[2] for line in done.stdout.splitlines() if line.startswith("compiled") and "globals" not in line]
    assert plain and plain != other
    program = shown.stdout.split("PROGRAM = r'''")[1].split("'''")[0]
    written, shrunk = ([line for line in text.splitlines() if line.strip()] for text in (generate(seed).text, program))
    assert len(shrunk) < len(written)
