"""Shared set-up: fixed seeds in CI, no torch import by accident, one clean engine for each test."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings

import pytest

HAS_TORCH = importlib.util.find_spec("torch") is not None

# Errors of the engine itself must fail a test instead of falling back to plain execution.
os.environ.setdefault("FRAMEGATE_STRICT", "1")

try:
    import hypothesis
except ImportError:
    hypothesis = None
else:
    hypothesis.settings.register_profile(
        "dev", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow], max_examples=100
    )
    hypothesis.settings.register_profile("ci", parent=hypothesis.settings.get_profile("dev"), derandomize=True, database=None)
    hypothesis.settings.load_profile("ci" if os.environ.get("CI", "") not in ("", "0", "false") else "dev")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if HAS_TORCH:
        return
    skip = pytest.mark.skip(reason="PyTorch is not installed: ./dev setup --torch")
    for item in items:
        if item.get_closest_marker("torch"):
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def clean_engine():
    """Every test starts and ends without cache entries; nothing is imported for tests that do not use the package."""
    module = sys.modules.get("framegate")
    if module is not None:
        module.reset()
    yield
    module = sys.modules.get("framegate")
    if module is not None:
        module.reset()


@pytest.fixture
def no_warnings():
    """Any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield
