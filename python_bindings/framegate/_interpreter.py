"""The first import of the package: its extension module, or one clear line about why there is none for this interpreter."""

from __future__ import annotations

import os
import re
import sys


def built_for(folder: str) -> list[str]:
    """The interpreters that the extension modules in the folder were built for, as their file names have them."""
    found = []
    for name in sorted(os.listdir(folder)):
        match = re.fullmatch(r"_core\.cpython-(\d)(\d+)([a-z]*)-.*\.so", name)
        if match:
            found.append(f"CPython {match[1]}.{match[2]}{match[3]}")
    return found


def load() -> None:
    """Import framegate._core; ImportError says which interpreter it is for."""
    try:
        import framegate._core  # noqa: F401
    except ImportError as error:
        here = "%s %d.%d" % (sys.implementation.name.replace("cpython", "CPython"), *sys.version_info[:2])
        others = built_for(os.path.dirname(os.path.abspath(__file__)))
        if here in others or (not others and isinstance(error, ModuleNotFoundError)):
            raise
        # Symbols that are missing are those of another version, too.
        reason = f"it was built for {', '.join(others)}" if others else str(error)
        raise ImportError(f"framegate has no extension module for this interpreter ({here}): {reason}. Install framegate again with this interpreter") from error


load()
