"""An interpreter that the extension was not built for gets one clear line at the import, and no crash; and how ./dev matrix finds interpreters."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

core = pytest.importorskip("framegate._core")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import chroot  # noqa: E402
import matrix  # noqa: E402

VERSION = "%d.%d" % sys.version_info[:2]
IMPORT = "import framegate"


def package_with(tmp_path: Path, name: str) -> dict[str, str]:
    """The environment of a process that finds the package with its extension under another name."""
    theirs = Path(core.__file__).parent
    shutil.copytree(theirs, tmp_path / "framegate", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copyfile(core.__file__, tmp_path / "framegate" / name)
    return dict(os.environ, PYTHONPATH=os.pathsep.join([str(tmp_path), *[p for p in sys.path if p.endswith("site-packages")]]))


def imported(program: str, env: dict[str, str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, "-c", IMPORT], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)


def test_an_extension_for_another_version_is_named(tmp_path):
    done = imported(sys.executable, package_with(tmp_path, "_core.cpython-399-x86_64-linux-gnu.so"), tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: framegate has no extension module for this interpreter (CPython {VERSION}): it was built for CPython 3.99."), done.stderr


def test_the_extension_for_this_version_is_imported(tmp_path):
    done = imported(sys.executable, package_with(tmp_path, Path(core.__file__).name), tmp_path)
    assert done.returncode == 0, done.stderr


OTHERS = {v: p for v, p in matrix.interpreters([v for v in ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15") if v != VERSION]).items()}


@pytest.mark.skipif(not OTHERS, reason="no other version of CPython is there")
@pytest.mark.parametrize("version", OTHERS)
def test_another_interpreter_refuses_a_file_whose_name_hides_the_version(version, tmp_path):
    env = package_with(tmp_path, "_core.so")
    done = imported(OTHERS[version], dict(env, PYTHONPATH=str(tmp_path)), tmp_path)
    assert done.returncode == 1, (done.returncode, done.stderr)  # a crash has another code
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: framegate has no extension module for this interpreter (CPython {version}): "), done.stderr


def fake(path: Path, answer: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{answer}\n")
    path.chmod(0o755)


def test_the_newest_final_release_of_each_version_is_found(tmp_path):
    pyenv, on_path = tmp_path / "pyenv", tmp_path / "bin"
    fake(pyenv / "versions" / "3.11.7" / "bin" / "python3.11", "echo cpython 3.11 7 final /a/3.11.7")
    fake(pyenv / "versions" / "3.11.10" / "bin" / "python3.11", "echo cpython 3.11 10 final /a/3.11.10")
    fake(on_path / "python3.11", "echo cpython 3.11 9 final /usr/bin/python3.11")
    fake(on_path / "python3.12", "exit 127")  # a shim of a version that is not switched on
    fake(on_path / "python3.13", "echo cpython 3.13 0 candidate /usr/bin/python3.13")
    fake(pyenv / "versions" / "3.14.0" / "bin" / "python3.14", "echo pypy 3.14 0 final /a/3.14.0")
    fake(pyenv / "versions" / "3.15.0t" / "bin" / "python3.15", "echo cpython 3.15 0 nogil /a/3.15.0t")
    found = matrix.interpreters(["3.11", "3.12", "3.13", "3.14", "3.15"], str(on_path), pyenv)
    assert found == {"3.11": "/a/3.11.10"}


def test_the_mirror_of_a_chroot_is_the_one_of_this_machine(tmp_path):
    assert chroot.mirror(tmp_path) is None
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d" / "other.sources").write_text("Types: deb\nURIs: https://example.org/node\nSuites: nodistro\n")
    assert chroot.mirror(tmp_path) is None
    (tmp_path / "sources.list.d" / "debian.sources").write_text("# http://snapshot.example/archive/debian/2025\nTypes: deb\nURIs: http://deb.example.org/debian\n")
    assert chroot.mirror(tmp_path) == "http://deb.example.org/debian"
    (tmp_path / "sources.list").write_text("deb [arch=amd64] https://first.example.org/debian/ bookworm main\n")
    assert chroot.mirror(tmp_path) == "https://first.example.org/debian"


def test_a_chroot_that_cannot_be_made_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(chroot.os, "geteuid", lambda: 1000)
    assert chroot.why_not() == "a chroot with it needs root"
    monkeypatch.setattr(chroot.os, "geteuid", lambda: 0)
    monkeypatch.setattr(chroot.shutil, "which", lambda name: None)
    assert chroot.why_not() == "a chroot with it needs debootstrap (apt-get install debootstrap)"
    assert [v for v in ("3.9", "3.13", "3.14", "3.15") if chroot.may_have(v)] == ["3.14", "3.15"]


def test_supported_versions_are_those_the_build_does_not_refuse(tmp_path):
    for name in ("v39", "v310", "v311", "since39"):
        (tmp_path / "cpython" / name).mkdir(parents=True)
    lists = tmp_path / "lists.cmake"
    lists.write_text("  set(FRAMEGATE_UNFINISHED_VERSIONS v311)\n")
    assert matrix.supported(lists, tmp_path / "cpython") == ["3.9", "3.10"]
    lists.write_text("  set(FRAMEGATE_UNFINISHED_VERSIONS)\n")
    assert matrix.supported(lists, tmp_path / "cpython") == ["3.9", "3.10", "3.11"]


def test_every_supported_version_is_a_classifier_and_accepted_by_the_package():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    versions = matrix.supported()
    assert VERSION in versions
    assert [v for v in ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "3.16") if f'"Programming Language :: Python :: {v}"' in text] == versions
    first, last = versions[0], versions[-1].split(".")
    assert f'requires-python = ">={first},<3.{int(last[1]) + 1}"' in text
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"{v}" in readme.split("It needs Linux", 1)[1].split("built with the GIL", 1)[0] for v in versions)
