"""Interpreters that this machine has not, from a Debian release that has them: for tools/matrix.py.

The chroot is made once by debootstrap, from the mirror that this machine's apt uses, and is kept under build/matrix. A command in it sees the project at the
path that it has outside, and mounts nothing that outlives it. Needs root.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

SUITE = "forky"
FIRST = (3, 14)  # what is older than this is not in the release
SCRIPTS = Path("/usr/share/debootstrap/scripts")
TOOLS = ["ca-certificates", "ccache", "gcc", "libc6-dev", "libcmocka-dev", "libmimalloc3", "libxxhash-dev", "pkg-config"]
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
ENTER = """set -e
project=$1; root=$2; shift 2
mount --bind "$project" "$root$project"
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
exec chroot "$root" /bin/sh -c 'cd "$1"; shift; exec "$@"' sh "$project" "$@"
"""


def may_have(version: str) -> bool:
    return tuple(map(int, version.split("."))) >= FIRST


def mirror(folder: Path = Path("/etc/apt")) -> str | None:
    """The Debian archive that this machine installs from."""
    files = [folder / "sources.list", *sorted(folder.glob("sources.list.d/*.list")), *sorted(folder.glob("sources.list.d/*.sources"))]
    for file in files:
        if not file.is_file():
            continue
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            found = re.search(r"^\s*(?:deb\s.*?|URIs:.*?)(https?://\S+/debian)/?(?:\s|$)", line)
            if found:
                return found[1]
    return None


def why_not() -> str | None:
    """What is missing to make a chroot, in one line."""
    if os.geteuid() != 0:
        return "a chroot with it needs root"
    for program, package in (("debootstrap", "debootstrap"), ("unshare", "util-linux"), ("chroot", "coreutils")):
        if shutil.which(program) is None:
            return f"a chroot with it needs {program} (apt-get install {package})"
    return None if mirror() else "a chroot with it needs a Debian mirror in /etc/apt"


def packages(version: str) -> list[str]:
    return [f"python{version}", f"python{version}-dev", f"python{version}-venv"]


def inside(project: Path, root: Path, command: list[str]) -> list[str]:
    """The command, as it is to be run in the chroot with the project where it is outside."""
    return ["unshare", "--mount", "--propagation", "private", "bash", "-c", ENTER, "enter", str(project), str(root), *command]


def making(project: Path, root: Path, version: str) -> list[str]:
    """A command that makes the chroot, or adds the interpreter to it."""
    script = next((str(SCRIPTS / name) for name in (SUITE, "sid") if (SCRIPTS / name).exists()), "")
    install = (
        "export DEBIAN_FRONTEND=noninteractive; apt-get -o Acquire::Check-Valid-Until=false update"
        f" && apt-get -o Acquire::Check-Valid-Until=false install -y --no-install-recommends {' '.join(TOOLS + packages(version))}"
    )
    enter = " ".join(_quoted(word) for word in inside(project, root, ["sh", "-c", install]))
    return [
        "bash",
        "-c",
        f'set -e; if [ ! -e "{root}/.made" ]; then rm -rf "{root}"; debootstrap --variant=minbase {SUITE} "{root}" {mirror()} {script}; touch "{root}/.made"; fi;'
        f' mkdir -p "{root}{project}"; cp /etc/resolv.conf "{root}/etc/resolv.conf"; {enter};'
        f' if [ -e /{CERTIFICATES} ]; then cp /{CERTIFICATES} "{root}/{CERTIFICATES}"; fi',
    ]


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def has(root: Path, version: str) -> bool:
    return (root / "usr" / "bin" / f"python{version}").exists() and (root / "usr" / "include" / f"python{version}" / "Python.h").exists()
