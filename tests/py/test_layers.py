"""The rules of the source tree that a compiler does not check: who may include whom, and what may stand where."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Lowest first: a file may include its own layer and those before it.
LAYERS = ["runtime/base", "cache", "runtime/cpython", "guards", "runtime/hook", "codegen", "tracer", "python_bindings/ext"]
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
MAX_LINES = 800


def layer_of(path: str) -> int | None:
    hits = [i for i, layer in enumerate(LAYERS) if path == layer or path.startswith(layer + "/")]
    return hits[0] if hits else None


def c_files(*suffixes: str) -> list[str]:
    found = []
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*"):
            if path.suffix in suffixes and path.is_file():
                found.append(path.relative_to(ROOT).as_posix())
    return sorted(found)


SOURCES = c_files(".c", ".h", ".def", ".inc")
# Bodies that are compiled more than once under other macros: they have no include guard and mean nothing alone.
FRAGMENTS = [p for p in SOURCES if p.endswith(("_body.h", "_bodies.h"))]
HEADERS = [p for p in c_files(".h") if p not in FRAGMENTS]


def code_of(path: str) -> str:
    """The text without comments: names may be mentioned in prose."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: "\n" * m.group().count("\n"), text, flags=re.S)


def includes_of(path: str) -> list[tuple[str, str]]:
    return INCLUDE.findall(code_of(path))


def bad_includes(path: str, includes: list[tuple[str, str]]) -> list[str]:
    """What is wrong with the includes of a file; empty if nothing is."""
    here = layer_of(path)
    wrong = []
    for quote, name in includes:
        if quote == "<":
            if (name in ("Python.h", "structmember.h", "frameobject.h") or name.startswith("numpy/")) and here <= LAYERS.index("cache"):
                wrong.append(f"{name} below runtime/cpython")
            continue
        if name.startswith("internal/pycore_"):
            continue  # the interpreter's own; who may use them is a test of its own
        there = layer_of(name)
        if there is None:
            wrong.append(f"{name} is no path from the repository root into a layer")
        elif there > here:
            wrong.append(f"{name} points up from {LAYERS[here]} to {LAYERS[there]}")
    return wrong


def test_there_are_sources():
    assert len(SOURCES) > 20 and "runtime/base/status.h" in HEADERS


def test_includes_point_down():
    assert [(p, w) for p in SOURCES for w in bad_includes(p, includes_of(p))] == []


def test_the_include_check_sees_faults():
    assert bad_includes("cache/cache.c", [("<", "Python.h")])
    assert bad_includes("runtime/cpython/frame.c", [('"', "guards/guard_desc.h")])
    assert bad_includes("guards/guard_eval.c", [('"', "runtime/hook/hook_entry.h")])
    assert bad_includes("guards/guard_eval.c", [('"', "guard_desc.h")])
    assert not bad_includes("runtime/hook/hook.c", [('"', "guards/guard_desc.h"), ("<", "Python.h")])


def test_included_files_exist():
    missing = [(p, n) for p in SOURCES for q, n in includes_of(p) if q == '"' and layer_of(n) is not None and not (ROOT / n).is_file()]
    assert missing == []


INTERNAL = re.compile(r"PY_VERSION_HEX|PY_MINOR_VERSION|Py_BUILD_CORE|internal/|pycore_")


def test_only_the_cpython_layer_knows_versions_and_internals():
    # The module's own check of the version it was built for is the one exception.
    allowed = {"python_bindings/ext/module.c": {"PY_MINOR_VERSION"}}
    found = [
        (p, name)
        for p in SOURCES
        if not p.startswith("runtime/cpython/")
        for name in set(INTERNAL.findall(code_of(p))) - allowed.get(p, set())
    ]
    assert found == []


def test_version_folders_do_not_include_each_other():
    wrong = []
    for path in SOURCES:
        mine = re.match(r"runtime/cpython/(v\d+)/", path)
        for _, name in includes_of(path):
            theirs = re.match(r"runtime/cpython/(v\d+)/", name)
            if theirs and (mine is None or mine.group(1) != theirs.group(1)):
                wrong.append((path, name))
    assert wrong == []


def is_generated(path: str) -> bool:
    return "enerated" in (ROOT / path).read_text(encoding="utf-8")[:300]


def test_files_are_short():
    long = {}
    for path in SOURCES:
        n = (ROOT / path).read_text(encoding="utf-8").count("\n")
        if n > MAX_LINES and not is_generated(path):
            long[path] = n
    assert long == {}


def test_file_names_are_unique():
    # A version folder has the names of its twins.
    names = Counter(Path(p).name for p in SOURCES if not re.match(r"runtime/cpython/v\d+/", p))
    assert [n for n, count in names.items() if count > 1] == []


@pytest.mark.parametrize("heading", ["Purpose:", "Threading:"])
def test_headers_start_with_their_contract(heading):
    def first_block(path: str) -> str:
        return (ROOT / path).read_text(encoding="utf-8").split("*/", 1)[0]

    assert [p for p in HEADERS if not is_generated(p) and heading not in first_block(p)] == []


def compiler() -> str:
    found = os.environ.get("CC") or shutil.which("gcc") or shutil.which("cc")
    if not found:
        pytest.skip("no C compiler on PATH")
    return found


def test_headers_compile_alone(tmp_path):
    import numpy

    cc = compiler()
    here = sys.version_info.minor

    def is_for_here(folder: str) -> bool:
        first = re.match(r"(?:since|from|v)3(\d+)", folder)
        last = re.search(r"(?:until|to|v)3(\d+)$", folder)
        return (first is None or int(first[1]) <= here) and (last is None or here <= int(last[1]))

    flags = ["-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c", f"-I{ROOT}"]
    python = [f"-isystem{sysconfig.get_paths()['include']}", f"-isystem{numpy.get_include()}"]

    def compile_alone(header: str) -> str:
        folder = re.match(r"runtime/cpython/(\w+)/", header)
        if folder and not is_for_here(folder.group(1)):
            return ""
        unit = tmp_path / (header.replace("/", "_") + ".c")
        # Twice, for the include guard; an unused static inline function is no fault of a header.
        unit.write_text(f'#include "{header}"\n#include "{header}"\nextern int fg_not_empty;\n')
        below_python = layer_of(header) <= LAYERS.index("cache")
        extra = [] if below_python else python
        done = subprocess.run([cc, *flags, *extra, str(unit)], capture_output=True, text=True)
        return "" if done.returncode == 0 else f"{header}: {done.stderr}"

    with ThreadPoolExecutor(max_workers=2) as pool:
        faults = [text for text in pool.map(compile_alone, HEADERS) if text]
    assert faults == []


def test_the_extension_exports_one_symbol_and_lacks_none():
    core = pytest.importorskip("framegate._core")
    nm = shutil.which("nm")
    if not nm:
        pytest.skip("no nm on PATH")

    def symbols(*options: str) -> list[str]:
        out = subprocess.run([nm, "-D", *options, core.__file__], capture_output=True, text=True, check=True).stdout
        return [line.split()[-1] for line in out.splitlines()]

    exported = [s for s in symbols("--defined-only") if not s.startswith("__")]
    assert exported == ["PyInit__core"]
    assert [s for s in symbols("--undefined-only") if s.startswith("fg_")] == []
    libraries = subprocess.run(["ldd", core.__file__], capture_output=True, text=True, check=True).stdout
    for never in ("mimalloc", "libpython", "libtorch", "cmocka"):
        assert never not in libraries


def test_importing_the_package_does_not_import_torch():
    code = "import sys, framegate; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "False"
