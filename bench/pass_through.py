"""pass_through.c as a Python object: an evaluator of frames that passes each of them on."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
import sysconfig
import tempfile

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pass_through.c")


class CannotBuild(Exception):
    """There is no C compiler, or it has no headers of Python."""


class PassThrough:
    """Builds and loads the evaluator; the attributes are its functions."""

    def __init__(self) -> None:
        compiler = shlex.split(sysconfig.get_config_var("CC") or "cc")[:1]
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "pass_through.so")
            command = [*compiler, "-O3", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}", SOURCE, "-o", library]
            try:
                done = subprocess.run(command, capture_output=True, text=True)
            except OSError as error:
                raise CannotBuild(str(error)) from error
            if done.returncode != 0:
                raise CannotBuild(done.stderr)
            self._library = ctypes.PyDLL(library)

    def install(self, chains: bool = True, counts: bool = False) -> None:
        self._library.install(int(chains), int(counts))

    def uninstall(self) -> None:
        self._library.uninstall()

    def drop_all(self) -> None:
        """Leave the slot to the interpreter, whoever has it."""
        self._library.drop_all()

    @property
    def is_on_top(self) -> bool:
        return bool(self._library.is_on_top())

    @property
    def n_frames(self) -> int:
        return ctypes.c_long.in_dll(self._library, "n_frames").value
