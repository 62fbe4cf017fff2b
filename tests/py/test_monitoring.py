"""sys.monitoring (CPython 3.12 and later): a compiled function gives the events that plain Python gives."""

import sys

import framegate
import pytest

pytestmark = pytest.mark.skipif(sys.version_info < (3, 12), reason="no sys.monitoring")

TOOL = 4


def shape(a, b):
    c = a + b
    if c > 3:
        c = c * 2
    return [c + i for i in (1, 2)]


def events_of(call, code, local):
    """(event, line or offset) of the function while call() runs."""
    monitoring, seen = sys.monitoring, []
    events = monitoring.events.LINE | monitoring.events.PY_START | monitoring.events.PY_RETURN
    monitoring.use_tool_id(TOOL, "test")
    try:
        for event in (monitoring.events.LINE, monitoring.events.PY_START, monitoring.events.PY_RETURN):
            monitoring.register_callback(TOOL, event, lambda code, where, *rest, event=event: seen.append((code.co_name, event, where)))
        if local:
            monitoring.set_local_events(TOOL, code, events)
        else:
            monitoring.set_events(TOOL, events)
        call()
    finally:
        monitoring.set_local_events(TOOL, code, 0)
        monitoring.set_events(TOOL, 0)
        monitoring.free_tool_id(TOOL)
    return [s for s in seen if s[0] == "shape"]


@pytest.mark.parametrize("local", [False, True])
def test_a_compiled_function_gives_the_events_of_the_plain_one(local):
    compiled = framegate.compile(shape)
    assert compiled(1, 2) == compiled(1, 2) == shape(1, 2)
    plain = events_of(lambda: shape(2, 3), shape.__code__, local)
    assert plain and events_of(lambda: compiled(2, 3), shape.__code__, local) == plain
    assert compiled(2, 3) == shape(2, 3)
