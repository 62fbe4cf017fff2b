"""Run by run.py with the interpreter of .venv-numba: prints figures of numba's dispatcher and of plain calls as JSON."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import numba
import numpy as np
from measure import interleave


@numba.njit
def constant(x):
    return 1


array = np.ones(8)
constant(array)
print(json.dumps(interleave("numba", {"numba": (constant, (array,))}).rounds))
