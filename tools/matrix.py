"""Build and test on every supported CPython that is found: pythonX.Y on PATH, pyenv's, and for 3.14 and later one of Debian's in a chroot (chroot.py).

    python tools/matrix.py [--list] [--jobs N] [VERSION ...]

Each version has an environment and a build tree of its own under build/matrix/X.Y, so nothing is built twice. What runs is the build, the C tests, the conformance
round trip of decoder and assembler, and the language tests; each step has a limit. A version that is named and not found is an error.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import chroot

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "matrix"
CHROOT = FOLDER / chroot.SUITE
ASK = """import sys, sysconfig
level = sys.version_info[3] if not sysconfig.get_config_var("Py_GIL_DISABLED") else "nogil"
print(sys.implementation.name, "%d.%d" % sys.version_info[:2], sys.version_info[2], level, sys.executable)"""
ROUND_TRIP = ["test_roundtrip_stdlib.py", "test_roundtrip_synthetic.py", "test_verify.py"]
FAST = [
    "test_interpreter_refusal.py", "test_breaks.py", "test_guards.py", "test_lifetimes.py", "test_monitoring.py", "test_soundness.py", "test_straight.py",
]  # fmt: skip
SECONDS = {"chroot": 1800, "environment": 600, "build": 1200, "C tests": 240, "round trip": 240, "fast tests": 240}


def supported(cmake: Path = ROOT / "tools" / "cmake" / "FramegateDependencies.cmake", folder: Path = ROOT / "runtime" / "cpython") -> list[str]:
    """The versions that have a folder and are not refused as unfinished, oldest first."""
    line = re.search(r"^\s*set\(FRAMEGATE_UNFINISHED_VERSIONS(.*)\)$", cmake.read_text(encoding="utf-8"), re.M)
    unfinished = line[1].split() if line else []
    tags = sorted((p.name for p in folder.glob("v[0-9]*") if p.name not in unfinished), key=lambda tag: int(tag[2:]))
    return [f"{tag[1]}.{tag[2:]}" for tag in tags]


def candidates(versions: list[str], path: str, pyenv: Path) -> list[str]:
    """Programs that may be one of the versions; shims come last, because they may be for a version that is not switched on."""
    found = [str(p) for v in versions for p in sorted(pyenv.glob(f"versions/{v}.*/bin/python{v}"))]
    for folder in path.split(os.pathsep):
        found += [str(p) for v in versions if (p := Path(folder) / f"python{v}").is_file() and os.access(p, os.X_OK)]
    return found


def interpreters(versions: list[str], path: str | None = None, pyenv: Path | None = None) -> dict[str, str]:
    """The newest final CPython of each version that runs and has the GIL."""
    path = os.environ.get("PATH", "") if path is None else path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) if pyenv is None else pyenv
    best: dict[str, tuple[int, str]] = {}
    for program in candidates(versions, path, pyenv):
        try:
            done = subprocess.run([program, "-c", ASK], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode != 0:
            continue
        name, version, patch, level, real = done.stdout.strip().split(" ", 4)
        if name == "cpython" and level == "final" and version in versions and int(patch) > best.get(version, (-1, ""))[0]:
            best[version] = int(patch), real
    return {v: best[v][1] for v in versions if v in best}


def run(what: str, command: list[str], log: Path, env: dict[str, str] | None = None) -> bool:
    """One step; its output goes to the log, and the end of that to the terminal if it fails."""
    start = time.monotonic()
    with log.open("w", encoding="utf-8") as out:
        try:
            code = subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=SECONDS[what], env=env).returncode
            said = "ok" if code == 0 else f"FAILED ({code})"
        except subprocess.TimeoutExpired:
            code, said = 1, f"FAILED: more than {SECONDS[what]} s"
    print(f"    {what}: {said} in {time.monotonic() - start:.0f} s", flush=True)
    if code != 0:
        print("\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-40:]))
    return code == 0


def test_one(version: str, program: str, jobs: int, root: Path | None = None) -> bool:
    """root: the chroot that the program is in."""
    home = FOLDER / version
    build, python = home / "build", home / "venv" / "bin" / "python"
    home.mkdir(parents=True, exist_ok=True)

    def there(command: list[str]) -> list[str]:
        return chroot.inside(ROOT, root, command) if root else command

    wanted = hashlib.sha256((ROOT / "tools" / "requirements" / "dev.txt").read_bytes() + program.encode()).hexdigest()
    stamp = home / "stamp"
    if not (stamp.is_file() and stamp.read_text() == wanted and (python.exists() or root)):
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        install = f'"{program}" -m venv "{home}/venv" && "{python}" -m pip --disable-pip-version-check install -q -r tools/requirements/dev.txt'
        if not run("environment", there(["bash", "-c", install]), home / "environment.log"):
            return False
        stamp.write_text(wanted)
    env = dict(os.environ, PATH=f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}", CI="1", PYTHONPATH=str(build / "site"))
    env.pop("PYTHONHOME", None)
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DFRAMEGATE_DEBUG=ON", f"-DPython_EXECUTABLE={python}"]
    if root or shutil.which("ccache"):
        options += ["-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
    with_c_tests = any(Path(root or "/", p, "cmocka.h").is_file() for p in ("usr/include", "usr/local/include"))
    options += [f"-DFRAMEGATE_TESTS={'ON' if with_c_tests else 'OFF'}"]
    make = (
        f'cmake -S . -B "{build}" {" ".join(options)} && cmake --build "{build}" -j {jobs} && rm -rf "{build}/site"'
        f' && cmake --install "{build}" --prefix "{build}/site" --component framegate && cp -r python_bindings/framegate "{build}/site/"'
    )
    if not run("build", there(["bash", "-c", make]), home / "build.log", env):
        return False
    ok = True
    if with_c_tests:
        ok &= run("C tests", there(["ctest", "--test-dir", str(build), "--output-on-failure", "--no-tests=error", "-j", str(jobs)]), home / "ctest.log", env)
    pytest = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    language = sorted(p.name for p in (ROOT / "tests" / "py").glob("test_language_*.py"))
    for what, names in (("round trip", ROUND_TRIP), ("fast tests", FAST + language)):
        ok &= run(what, there([*pytest, *(f"tests/py/{n}" for n in names)]), home / f"{what.replace(' ', '_')}.log", env)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="only say what would be tested")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="3.12, …; without any: all that are supported")
    args = parser.parse_args()
    known = supported()
    unknown = [v for v in args.versions if v not in known]
    if unknown:
        parser.error(f"not supported: {', '.join(unknown)}; supported: {', '.join(known)}")
    wanted = [v for v in known if not args.versions or v in args.versions]
    found = interpreters(wanted)
    roots: dict[str, Path] = {}
    for version in wanted:
        reason = None
        if version not in found and chroot.may_have(version):
            reason = chroot.why_not() if not chroot.has(CHROOT, version) or os.geteuid() != 0 else None
            if reason is None:
                found[version], roots[version] = f"/usr/bin/python{version}", CHROOT
        where = f" in {CHROOT.relative_to(ROOT)}" if version in roots else ""
        print(f"{version}: {found.get(version, f'not found ({reason})' if reason else 'not found')}{where}", flush=True)
    if args.list:
        return 0
    results = {}
    for version, program in found.items():
        print(f"CPython {version}", flush=True)
        root = roots.get(version)
        if root and not chroot.has(root, version):
            FOLDER.mkdir(parents=True, exist_ok=True)
            if not run("chroot", chroot.making(ROOT, root, version), FOLDER / f"{chroot.SUITE}.log"):
                results[version] = False
                continue
        results[version] = test_one(version, program, args.jobs, root)
    missing = [v for v in args.versions if v not in found]
    failed = [v for v, ok in results.items() if not ok]
    print(f"passed: {', '.join(v for v, ok in results.items() if ok) or 'none'}; failed: {', '.join(failed) or 'none'}; not found: {', '.join(missing) or 'none'}")
    return 1 if failed or missing or not found else 0


if __name__ == "__main__":
    sys.exit(main())
