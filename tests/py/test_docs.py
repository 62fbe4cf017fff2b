"""Documentation that names files must name files that exist, and the tree must not name one machine."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
# A path in backticks that starts with a folder of ours and has no placeholder in it.
FOLDERS = "runtime|cache|guards|codegen|tracer|python_bindings|bench|fuzz|tests|docs|examples|tools"
PATH = re.compile(rf"`((?:{FOLDERS})/[A-Za-z0-9_./-]*)`")


def test_paths_named_in_docs_exist():
    assert ROOT / "README.md" in TEXTS
    missing = [
        (text.relative_to(ROOT).as_posix(), name)
        for text in TEXTS
        for name in PATH.findall(text.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    ]
    assert missing == []


def test_links_between_docs_lead_somewhere():
    missing = []
    for text in TEXTS:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text.read_text(encoding="utf-8")):
            if "://" not in target and not (text.parent / target).exists():
                missing.append((text.relative_to(ROOT).as_posix(), target))
    assert missing == []


def test_commands_of_the_readme_exist():
    script = (ROOT / "dev").read_text(encoding="utf-8")
    commands = set(re.findall(r"\./dev ([a-z]+)", (ROOT / "README.md").read_text(encoding="utf-8"))) - {"help"}
    assert commands and all(re.search(rf"^cmd_{c}\(\)", script, re.M) for c in commands)


def test_the_example_of_the_readme_prints_what_it_says(tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program, output = re.search(r"```python\n(.*?)```\s+prints\s+```text\n(.*?)```", readme, re.S).groups()
    (tmp_path / "smooth.py").write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, "smooth.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.replace(f"{tmp_path}/", "").strip() == output.strip()
