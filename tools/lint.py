"""Run the pinned linters over the tree and say which of them found something.

    python tools/lint.py --build build/venv [--fix] [--deep] [--jobs N]

clang-format and ruff rewrite files with --fix; clang-tidy and mypy only report. clang-tidy needs the compile commands of a build tree, and
remembers clean files there by the hash of the file and of all headers. Its analyzer follows so many paths of a function that a fresh tree takes
a minute or two; with --deep as many as it does by itself, which takes five times as long.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SHALLOW = ["--extra-arg=-Xclang", "--extra-arg=-analyzer-config", "--extra-arg=-Xclang", "--extra-arg=max-nodes=20000"]
ROOT = Path(__file__).resolve().parents[1]
C_FOLDERS = ["runtime", "cache", "guards", "codegen", "tracer", "python_bindings/ext", "tests/c", "bench", "fuzz"]
PYTHON_FOLDERS = ["python_bindings", "tests/py", "tools", "bench", "fuzz", "examples"]


def files(folders: list[str], *suffixes: str) -> list[Path]:
    return sorted(p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in suffixes and p.is_file())


def run(command: list[str]) -> tuple[bool, str]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return done.returncode == 0, done.stdout + done.stderr


def clang_format(args: argparse.Namespace) -> tuple[bool, str]:
    sources = [str(p) for p in files(C_FOLDERS, ".c", ".h", ".cc")]
    mode = ["-i"] if args.fix else ["--dry-run", "-Werror"]
    ok, text = run(["clang-format-14", *mode, *sources])
    # One line a file is enough: --fix mends all of them.
    names = sorted({line.split(":")[0] for line in text.splitlines() if "error:" in line})
    return ok, "\n".join(f"{name}: not formatted" for name in names) if names else text


def clang_tidy(args: argparse.Namespace) -> tuple[bool, str]:
    commands = json.loads((args.build / "compile_commands.json").read_text())
    units = sorted({Path(c["file"]) for c in commands if c["file"].startswith(str(ROOT)) and c["file"].endswith(".c")})
    common = hashlib.sha256((ROOT / ".clang-tidy").read_bytes() + (b"deep" if args.deep else b""))
    for header in files(C_FOLDERS, ".h", ".def", ".inc"):
        common.update(header.read_bytes())
    clean = args.build / "tidy"
    clean.mkdir(exist_ok=True)

    def check(unit: Path) -> tuple[bool, str]:
        key = common.copy()
        key.update(str(unit).encode() + unit.read_bytes())
        mark = clean / key.hexdigest()
        if mark.exists():
            return True, ""
        quiet = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-ignored-optimization-argument"]
        ok, text = run(["clang-tidy-14", "--quiet", *quiet, *([] if args.deep else SHALLOW), "-p", str(args.build), str(unit)])
        lines = [line for line in text.splitlines() if not line.endswith("warnings generated.") and not line.startswith("Suppressed")]
        if ok and not any(": warning:" in line for line in lines):
            mark.touch()
            return True, ""
        return False, "\n".join(lines)

    with ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(check, units))
    return all(ok for ok, _ in results), "\n".join(text for ok, text in results if not ok)


def ruff(args: argparse.Namespace) -> tuple[bool, str]:
    folders = [f for f in PYTHON_FOLDERS if (ROOT / f).is_dir()]
    return run([sys.executable, "-m", "ruff", "check", "--quiet", "--output-format=concise", *(["--fix"] if args.fix else []), *folders])


def mypy(_: argparse.Namespace) -> tuple[bool, str]:
    return run([sys.executable, "-m", "mypy"])


def stubtest(_: argparse.Namespace) -> tuple[bool, str]:
    """The stub of the extension module against the module itself."""
    if not (ROOT / "python_bindings/framegate/_core.pyi").exists():
        return False, "python_bindings/framegate/_core.pyi is missing"
    return run([sys.executable, "-m", "mypy.stubtest", "framegate._core", "--ignore-missing-stub"])


def shellcheck(_: argparse.Namespace) -> tuple[bool, str]:
    ok, text = True, ""
    for script in ("dev", ".ci/run"):
        good, said = run(["bash", "-n", script])
        ok, text = ok and good, text + said
    return ok, text


CHECKS = {
    "clang-format": clang_format,
    "clang-tidy": clang_tidy,
    "ruff": ruff,
    "mypy": mypy,
    "stubtest": stubtest,
    "bash -n": shellcheck,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="build tree with compile_commands.json")
    parser.add_argument("--fix", action="store_true", help="let clang-format and ruff rewrite files")
    parser.add_argument("--deep", action="store_true", help="let clang-tidy's analyzer follow all the paths it would follow by itself")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", choices=CHECKS, action="append", help="run this check alone (may be repeated)")
    args = parser.parse_args()
    args.build = args.build.resolve()
    failed = []
    for name in args.only or CHECKS:
        program = {"clang-format": "clang-format-14", "clang-tidy": "clang-tidy-14"}.get(name)
        if program and not shutil.which(program):
            ok, text = False, f"{program} is not installed"
        else:
            ok, text = CHECKS[name](args)
        if not ok:
            failed.append(name)
            print(text.rstrip())
        print(f"{name}: {'ok' if ok else 'FAILED'}", flush=True)
    count = len(args.only or CHECKS)
    print(f"lint: {count - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
