"""The examples: run to their end, say the results are equal, and show what they promise."""

import os
import runpy
import subprocess
import sys
import time

import pytest
from support_engine import needs_engine

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")


def test_importing_an_example_module_compiles_nothing_and_prints_nothing(capsys):
    runpy.run_path(os.path.join(EXAMPLES, "numpy_models.py"))
    assert capsys.readouterr().out == ""


@needs_engine
def test_demo_without_torch_shows_each_part_in_under_a_minute():
    import framegate
    start = time.monotonic()
    where = os.path.dirname(os.path.dirname(framegate.__file__))
    done = subprocess.run([sys.executable, os.path.join(EXAMPLES, "demo.py"), "--no-torch"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "PYTHONPATH": where + os.pathsep + os.environ.get("PYTHONPATH", "")})
    assert done.returncode == 0, done.stderr[-3000:]
    assert time.monotonic() - start < 60
    out = done.stdout
    assert "DIFFERS" not in out
    assert out.count("equals plain Python's") == 8
    for part in ("graph of entry", "guards:", "Why it compiles again", "What a hit costs", "framegate, hit", "steps=100", "A graph break", "Counters"):
        assert part in out, part
    assert "torch" not in done.stderr
    assert max(len(line) for line in out.splitlines()) <= 160


@needs_engine
@pytest.mark.torch
def test_demo_with_torch():
    pytest.importorskip("torch")
    import framegate
    where = os.path.dirname(os.path.dirname(framegate.__file__))
    done = subprocess.run([sys.executable, os.path.join(EXAMPLES, "demo.py")], capture_output=True, text=True, timeout=240,
                          env={**os.environ, "PYTHONPATH": where + os.pathsep + os.environ.get("PYTHONPATH", "")})
    assert done.returncode == 0, done.stderr[-3000:]
    assert "equals eager's" in done.stdout and "DIFFERS" not in done.stdout
