"""Counts instructions under callgrind: of guard programs and of the cache beside their lower bounds, and of plain Python code.

  counts.py --build DIR                    count, print, compare
  counts.py --build DIR --update REASON    count, then make the figures the baseline; the reason is kept in the file

Counts of guards and the cache are compared with bench/counts/<compiler>_<interpreter>_<hash>.txt, the file for this compiler and this CPython build: one that
rose by more than 3 % is a failure, and so is a row that has no figure. Without such a file the figures are printed and that is said.
Plain Python code must execute the same number of instructions (within 0.5 %) with the package imported and compiled functions in use as without.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import platform
import re
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BASELINES = ROOT / "bench/counts"
RISE = 0.03
TAX = 0.005  # two names that meet in CPython's cache of methods, as addresses have it: 34 instructions of 23,000; a hook: 30 a call
MODES = ("without", "imported", "in_use")
PART = re.compile(r"^desc: Trigger: Client Request: (\S+) (\w+) (\d+)$\n(?:.*\n)*?summary: (\d+)$", re.M)

Counts = dict[tuple[str, str, int], int]  # (row, what, iterations) -> instructions


@dataclass(frozen=True)
class Figure:
    """Instructions of one evaluation, and of the loads alone."""

    run: float
    loads: float

    def text(self) -> str:
        return f"{self.run:.1f} {self.loads:.1f}"


# ---- counting ---------------------------------------------------------------------------------------------------------------------------


def parse_parts(text: str) -> Counts:
    return {(row, what, int(n)): int(total) for row, what, n, total in PART.findall(text)}


def count(program: Path, *arguments: str) -> Counts:
    """Run a program of bench/ under callgrind, with nothing random in its environment."""
    packages = [str(ROOT / "bench"), sysconfig.get_paths()["purelib"]]
    spec = importlib.util.find_spec("framegate")
    if spec and spec.origin:
        packages.insert(0, str(Path(spec.origin).parents[1]))
    env = {
        "PATH": os.environ.get("PATH", ""),
        "PYTHONHOME": sys.base_prefix,
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        "FRAMEGATE_ALLOC": "libc",
        "OPENBLAS_NUM_THREADS": "1",
        # The C library chooses its string functions by the processor: the ones that each has.
        "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-ERMS,-FSRM",
    }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "parts"
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--combine-dumps=yes", f"--callgrind-out-file={out}"]
        done = subprocess.run([*valgrind, program, *arguments], env=env, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{program.name}: status {done.returncode}\n{done.stderr[-2000:]}")
        return parse_parts(out.read_text(encoding="utf-8"))


def figures(counts: Counts) -> dict[str, Figure]:
    """Per evaluation, without what the loop does beside it."""
    out = {}
    for (row, what, n), total in counts.items():
        if what == "run":
            idle = counts.get((row, "idle", n), 0)
            out[row] = Figure((total - idle) / n, (counts.get((row, "loads", n), idle) - idle) / n)
    return out


def iterations(counts: Counts) -> dict[str, float]:
    """Per iteration, from two lengths of the same loop."""
    out = {}
    for row in dict.fromkeys(row for row, _, _ in counts):
        (short, low), (long, high) = sorted((n, total) for (r, _, n), total in counts.items() if r == row)
        out[row] = (high - low) / (long - short)
    return out


# ---- baselines --------------------------------------------------------------------------------------------------------------------------


def facts(build: Path) -> list[str]:
    """What the counts depend on, beside the source."""
    about = subprocess.run([build / "bench/count_cache", "--about"], capture_output=True, text=True, check=True).stdout.strip()
    options = [
        o
        for o in ("--enable-optimizations", "--with-lto", "--enable-shared")
        if o in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    ]
    numpy = importlib.import_module("numpy").__version__
    return [
        f"compiler {about}",
        f"python {platform.python_version()} {platform.python_compiler()} {' '.join(options)}".rstrip(),
        f"libraries {' '.join(platform.libc_ver())} numpy {numpy}",
        f"machine {platform.machine()}",
    ]


def baseline_path(about: list[str]) -> Path:
    digest = hashlib.sha256("\n".join(about).encode()).hexdigest()[:8]
    _, name, *_, version = about[0].split()[0:2] + [next((w for w in about[0].split() if re.match(r"\d+\.", w)), "unknown")]
    return BASELINES / f"{name.lower()}-{version}_cpython-{about[1].split()[1]}_{digest}.txt"


def read_baseline(path: Path) -> dict[str, Figure]:
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {row: Figure(float(run), float(loads)) for row, run, loads in lines}


def write_baseline(path: Path, about: list[str], found: dict[str, Figure], reason: str) -> None:
    kept = []
    if path.exists():
        kept = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("# because ")]
    head = [
        "# Instructions of one evaluation, and of its loads alone. Made by tools/counts.py --update.",
        *(f"# {fact}" for fact in about),
    ]
    body = [f"{row} {figure.text()}" for row, figure in found.items()]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join([*head, *kept, f"# because {reason}", *body]) + "\n", encoding="utf-8")


def compare(found: dict[str, Figure], known: dict[str, Figure]) -> tuple[list[str], list[str]]:
    """(failures, remarks)"""
    failures = [f"{row}: no figure in the baseline" for row in found if row not in known]
    failures += [f"{row}: in the baseline, but not measured" for row in known if row not in found]
    remarks = []
    for row in found.keys() & known.keys():
        now, before = found[row].run, known[row].run
        change = f"{row}: {before:.1f} -> {now:.1f} instructions"
        if now > before * (1 + RISE) + 0.05:
            failures.append(f"{change}, a rise of {now / before - 1:.1%}")
        elif now < before * (1 - RISE) - 0.05:
            remarks.append(f"{change}, a fall of {1 - now / before:.1%}")
    return sorted(failures), sorted(remarks)


def tax_failures(by_mode: dict[str, dict[str, float]]) -> list[str]:
    plain = by_mode["without"]
    failures = []
    for mode, found in by_mode.items():
        failures += [f"{mode}: other workloads than without"] if found.keys() != plain.keys() else []
        failures += [
            f"{row}, {mode}: {now:.1f} instructions instead of {plain[row]:.1f}"
            for row, now in found.items()
            if row in plain and abs(now - plain[row]) > TAX * plain[row]
        ]
    return failures if plain else ["no workload was counted"]


# ---- the command ------------------------------------------------------------------------------------------------------------------------


def show_figures(found: dict[str, Figure], known: dict[str, Figure]) -> None:
    print(f"{'instructions of one evaluation':36}{'engine':>10}{'loads':>10}{'ratio':>8}{'baseline':>11}")
    for row, figure in found.items():
        ratio = f"{figure.run / figure.loads:8.2f}" if figure.loads else " " * 8
        print(f"  {row:34}{figure.run:10.1f}{figure.loads:10.1f}{ratio}" + (f"{known[row].run:11.1f}" if row in known else ""))


def show_tax(by_mode: dict[str, dict[str, float]]) -> None:
    print(f"\n{'instructions of plain Python code':36}" + "".join(f"{mode:>12}" for mode in by_mode))
    for row in by_mode["without"]:
        print(f"  {row:34}" + "".join(f"{found.get(row, 0):12.2f}" for found in by_mode.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--build", type=Path, required=True, help="a build tree with FRAMEGATE_BENCH, Release")
    parser.add_argument("--update", metavar="REASON", help="make the figures the baseline")
    args = parser.parse_args()
    if args.update is not None and not args.update.strip():
        parser.error("--update needs a reason")
    bench = args.build.resolve() / "bench"
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        guards = pool.submit(count, bench / "count_guards")
        modes = {mode: pool.submit(count, bench / "count_tax", mode) for mode in MODES}
        cache = pool.submit(count, bench / "count_cache")
        found = figures({**guards.result(), **cache.result()})
        by_mode = {mode: iterations(counts.result()) for mode, counts in modes.items()}
    about = facts(args.build)
    path = baseline_path(about)
    known = read_baseline(path) if path.exists() else {}
    show_figures(found, known)
    show_tax(by_mode)
    failures = [f"plain code: {text}" for text in tax_failures(by_mode)]
    if args.update:
        write_baseline(path, about, found, args.update.strip())
        print(f"\nwritten: {path.relative_to(ROOT)}")
    elif not known:
        print(
            f"\nno baseline for this compiler and this CPython build ({path.relative_to(ROOT)}): guards and cache are not compared"
        )
    else:
        rises, remarks = compare(found, known)
        failures += rises
        print("".join(f"\n{text}; make it the baseline: ./dev counts --update REASON" for text in remarks))
    for text in failures:
        print(f"FAILED  {text}")
    print(f"\n{len(found)} rows, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
