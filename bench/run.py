"""The table of user-level figures: framegate beside its peers, each row in one process and interleaved.

    python bench/run.py [--json FILE] [--rows NAME,NAME] [--list]

Each row starts in a process of its own, so that one row's entries, heap and patched globals do not meet the next one's. Only public names of
framegate are used. A row that needs a package that is not installed is left out, and the table says so.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from measure import PLAIN, PLAIN_NS

HERE = Path(__file__).resolve().parent


def row_names() -> dict[str, str]:
    """Row name -> module, in the order of the table; torch rows only where torch is installed."""
    names = {}
    for module in ("rows_numpy", "rows_hook", "rows_torch"):
        text = (HERE / f"{module}.py").read_text(encoding="utf-8")
        table = text.rsplit("ROWS = {", 1)[1]
        for line in table.splitlines():
            if line.strip().startswith('"'):
                names[line.split('"')[1]] = module
    return names


def measure_here(name: str) -> None:
    """In the child: one row as JSON on the last line of standard output."""
    sys.path.insert(0, str(HERE))
    module = __import__(row_names()[name])
    row = module.ROWS[name]()
    print("\n" + json.dumps(row.as_json() if row is not None else None))


def measure(name: str) -> tuple[dict[str, Any] | None, str]:
    """In a process of its own; the row with numba in numba's environment, where there is one, with this package beside it."""
    numba = HERE.parent / ".venv-numba"
    why = ""
    if name == "numpy_call" and (numba / "bin/python").exists() and not (numba / ".failed").exists():
        spec = importlib.util.find_spec("framegate")
        if spec and spec.origin:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "framegate").symlink_to(Path(spec.origin).parent)
                row, why = run_child(numba / "bin/python", name, {**os.environ, "PYTHONPATH": folder})
            if row is not None:
                return row, ""
            print(f"numba's environment does not serve: {why}", file=sys.stderr)
    return run_child(Path(sys.executable), name, dict(os.environ))


def run_child(python: Path, name: str, env: dict[str, str]) -> tuple[dict[str, Any] | None, str]:
    done = subprocess.run([python, __file__, "--child", name], capture_output=True, text=True, timeout=600, env=env)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return None, lines[-1] if lines else f"the process ended with status {done.returncode}"
    return json.loads(done.stdout.splitlines()[-1]), ""


def figure(value: float, unit: str) -> str:
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def show(row: dict[str, Any]) -> None:
    print(f"\n{row['name']}" + (f"  ({row['note']})" if row.get("note") else ""))
    nanoseconds = 1e6 if row["unit"] == "ms" else 1.0
    for who, value in row["median"].items():
        if who == PLAIN:
            continue
        ratio = row.get("ratio_to_framegate", {}).get(who)
        plain_calls = row.get("plain_calls", {}).get(who)
        low, high = row["quartiles"][who]
        parts = [
            f"  {who:26}{figure(value, row['unit']):>14}",
            f"[{figure(low, '').strip()} - {figure(high, '').strip()}]".ljust(22),
        ]
        if plain_calls is not None:
            scaled = figure(plain_calls * PLAIN_NS / nanoseconds, row["unit"])
            parts.append(f"{figure(plain_calls, ''):>12} plain calls, {scaled:>10} where one takes {PLAIN_NS:.0f} ns")
        if ratio is not None:
            parts.append(f"{ratio:8.2f} x framegate")
        print("  ".join(parts).rstrip(), flush=True)
    if PLAIN in row["median"]:
        print(f"  {PLAIN:26}{figure(row['median'][PLAIN] * nanoseconds, 'ns'):>14}")


def environment() -> dict[str, str]:
    facts = {"python": platform.python_version(), "machine": platform.machine(), "cores": str(os.cpu_count())}
    for package in ("framegate", "numpy", "torch"):
        if importlib.util.find_spec(package):
            try:
                facts[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                facts[package] = "not installed, on the path"
    try:
        with open("/proc/cpuinfo") as f:
            facts["cpu"] = next(line.split(":", 1)[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return facts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", metavar="FILE", help="also write all figures there")
    parser.add_argument("--rows", help="only these rows, by name, separated by commas")
    parser.add_argument("--list", action="store_true", help="print the names of the rows")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        measure_here(args.child)
        return 0
    names = row_names()
    if args.list:
        print("\n".join(names))
        return 0
    wanted = args.rows.split(",") if args.rows else list(names)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"no row named {', '.join(unknown)}; the rows are {', '.join(names)}")
    facts = environment()
    print("  ".join(f"{k} {v}" for k, v in facts.items()))
    has_torch = importlib.util.find_spec("torch") is not None
    rows, missing, failed = {}, {}, {}
    for name in wanted:
        if names[name] == "rows_torch" and not has_torch:
            missing[name] = "torch is not installed: ./dev setup --torch"
            continue
        row, why = measure(name)
        if row is not None:
            rows[name] = row
            show(row)
        else:
            failed[name] = why
    for name, why in {**missing, **failed}.items():
        print(f"\n{name}: not measured: {why}")
    if args.json:
        text = json.dumps({"environment": facts, "rows": rows, "not_measured": {**missing, **failed}}, indent=1)
        Path(args.json).write_text(text + "\n", encoding="utf-8")
    print(f"\n{len(rows)} rows measured, {len(missing)} left out, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
