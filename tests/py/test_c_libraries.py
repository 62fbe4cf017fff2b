"""The C libraries as another project sees them: installed under a prefix, found by CMake and by pkg-config, and nothing of the host's replaced."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "c_dispatch.c"
CC = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
CXX = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
pytestmark = pytest.mark.skipif(CC is None, reason="no C compiler on PATH")

CACHE_OUTPUT, GUARDS_OUTPUT = re.findall(r"```text\n(.*?)```", (ROOT / "docs/howto/use-from-c.md").read_text(encoding="utf-8"), re.S)[:2]
EXPORTED = re.compile(r"fg_(cache|epoch|desc|program|eval|tensor|torch_state|alloc_table|status)_|fg_(malloc|calloc|realloc|free|usable_size)$")

PROJECT = """
cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C)
set(CMAKE_C_STANDARD 11)
find_package(framegate 0.1 REQUIRED COMPONENTS cache)
foreach(kind cache cache_static)
  add_executable(${kind} "@EXAMPLE@")
  target_link_libraries(${kind} PRIVATE framegate::${kind})
endforeach()
find_package(Python 3.11 REQUIRED COMPONENTS Interpreter Development.Embed)
find_package(framegate 0.1 REQUIRED COMPONENTS guards)
foreach(kind guards guards_static)
  add_executable(${kind} "@EXAMPLE@")
  target_compile_definitions(${kind} PRIVATE WITH_GUARDS)
  target_link_libraries(${kind} PRIVATE framegate::${kind} Python::Python)
endforeach()
"""


def run(*command: str | Path, **env: str) -> str:
    clean = {k: v for k, v in os.environ.items() if k not in ("LD_PRELOAD", "PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=500, env={**clean, **env})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def cmake_python() -> str:
    if shutil.which("cmake") is None:
        pytest.skip("no cmake on PATH")
    return f"-DPython_EXECUTABLE={sys.executable}"


@pytest.fixture(scope="module")
def prefix(tmp_path_factory, cmake_python) -> Path:
    folder = tmp_path_factory.mktemp("c_libraries")
    launcher = ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
    run("cmake", "-S", ROOT, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release", "-DFRAMEGATE_LIBRARIES=ON", "-DFRAMEGATE_EXTENSION=OFF",
        "-DCMAKE_INSTALL_LIBDIR=lib", f"-DCMAKE_C_COMPILER={CC}", cmake_python, *launcher)
    targets = [f"framegate_c_{what}_{kind}" for what in ("cache", "guards") for kind in ("static", "shared")]
    run("cmake", "--build", folder / "build", "-j2", "--target", *targets)
    run("cmake", "--install", folder / "build", "--prefix", folder / "prefix", "--component", "c")
    return folder / "prefix"


def runtime_environment(prefix: Path) -> dict[str, str]:
    libraries = [str(prefix / "lib"), sysconfig.get_config_var("LIBDIR") or ""]
    return {"LD_LIBRARY_PATH": os.pathsep.join(libraries), "PYTHONHOME": sys.base_prefix}


def test_a_cmake_project_finds_the_package(prefix, tmp_path, cmake_python):
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.replace("@EXAMPLE@", str(EXAMPLE)), encoding="utf-8")
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}", cmake_python)
    run("cmake", "--build", tmp_path / "build")
    for name, output in (("cache", CACHE_OUTPUT), ("guards", CACHE_OUTPUT + GUARDS_OUTPUT)):
        for program in (name, name + "_static"):
            assert run(tmp_path / "build" / program, **runtime_environment(prefix)) == output
    needed = run("ldd", tmp_path / "build" / "cache", **runtime_environment(prefix))
    assert "libframegate-cache.so.0" in needed and "python" not in needed


def test_pkg_config_names_the_flags(prefix, tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config on PATH")
    path = os.pathsep.join([str(prefix / "lib" / "pkgconfig"), sysconfig.get_config_var("LIBPC") or ""])
    version = "%d.%d" % sys.version_info[:2]
    assert run("pkg-config", "--modversion", "framegate-cache", PKG_CONFIG_PATH=path).strip() == "0.1.0"

    def build(name: str, modules: list[str], *options: str) -> str:
        flags = run("pkg-config", "--cflags", "--libs", *modules, PKG_CONFIG_PATH=path).split()
        run(CC, "-std=c11", "-Wall", "-Wextra", "-Werror", *options, EXAMPLE, "-o", tmp_path / name, *flags, "-pthread")
        return run(tmp_path / name, **runtime_environment(prefix))

    assert build("cache", ["framegate-cache"]) == CACHE_OUTPUT
    assert build("guards", ["framegate", f"python-{version}-embed"], "-DWITH_GUARDS") == CACHE_OUTPUT + GUARDS_OUTPUT


@pytest.mark.parametrize("name", ["libframegate-cache.so", "libframegate.so"])
def test_only_the_api_is_exported_and_the_allocator_of_the_host_stays(prefix, name):
    def symbols(option: str) -> list[str]:
        return [line.split()[-1].split("@")[0] for line in run("nm", "-D", option, prefix / "lib" / name).splitlines()]

    exported = symbols("--defined-only")
    assert "fg_cache_lookup" in exported and ("fg_program_eval" in exported) == (name == "libframegate.so")
    assert [s for s in exported if not EXPORTED.match(s)] == []
    missing = symbols("--undefined-only")
    assert [s for s in missing if s.startswith(("fg_", "mi_"))] == []
    assert name == "libframegate.so" or [s for s in missing if s.startswith(("Py", "_Py"))] == []
    libraries = run("ldd", prefix / "lib" / name)
    assert "mimalloc" not in libraries and "python" not in libraries


def test_the_static_libraries_define_no_allocator_either(prefix):
    for name in ("libframegate-cache.a", "libframegate.a"):
        defined = {line.split()[-1] for line in run("nm", "--defined-only", "-g", prefix / "lib" / name).splitlines() if " " in line}
        assert "fg_malloc" in defined
        assert not defined & {"malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign"}


def test_every_exported_function_is_declared_in_an_installed_header(prefix):
    text = "".join(p.read_text(encoding="utf-8") for p in sorted((prefix / "include").rglob("*.h")))
    exported = [line.split()[-1] for line in run("nm", "-D", "--defined-only", prefix / "lib" / "libframegate.so").splitlines()]
    assert [s for s in exported if not re.search(rf"\b{s}\(", text)] == []


CPLUSPLUS = """
#include <cache/cache.h>
#include <cstdio>
int main() { std::puts(fg_status_text(FG_OK)); }
"""


def languages() -> list:
    return [(CC, "c", "c11"), pytest.param((CXX, "c++", "c++17"), marks=pytest.mark.skipif(CXX is None, reason="no C++ compiler on PATH"))]


@pytest.mark.parametrize("language", languages(), ids=["C", "C++"])
def test_each_header_stands_alone(prefix, tmp_path, language):
    compiler, name, standard = language
    headers = sorted(p.relative_to(prefix / "include" / "framegate") for p in (prefix / "include").rglob("*.h"))
    assert Path("cache/cache.h") in headers and Path("guards/guard_program.h") in headers
    for header in headers:
        source = tmp_path / f"alone.{'c' if name == 'c' else 'cc'}"
        source.write_text(f"#include <{header}>\n#include <{header}>\n", encoding="utf-8")
        run(compiler, f"-std={standard}", "-x", name, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I", prefix / "include" / "framegate", "-isystem",
            sysconfig.get_path("include"), source)


@pytest.mark.skipif(CXX is None, reason="no C++ compiler on PATH")
def test_a_cplusplus_program_links(prefix, tmp_path):
    (tmp_path / "program.cc").write_text(CPLUSPLUS, encoding="utf-8")
    run(CXX, "-std=c++17", "-I", prefix / "include" / "framegate", tmp_path / "program.cc", "-L", prefix / "lib", "-lframegate-cache", "-pthread", "-o", tmp_path / "program")
    assert run(tmp_path / "program", **runtime_environment(prefix)).strip() == "no error"
