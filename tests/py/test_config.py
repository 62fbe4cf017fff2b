"""framegate.config: values, errors, patch."""

import asyncio
import os
import subprocess
import sys
import threading

import framegate
import pytest
from framegate import config


@pytest.fixture(autouse=True)
def restore():
    before = config.to_dict()
    yield
    for name, value in before.items():
        setattr(config, name, value)


def test_defaults_are_the_documented_ones():
    flags = config.flags()
    assert flags["cache_size"].default == 64
    assert flags["recompile_limit"].default == 16
    assert {"verify", "wait_for_compile", "compile_under_tracing"} <= set(flags)
    assert all(flag.doc.endswith(".") for flag in flags.values())


def test_a_flag_is_set_and_read():
    config.cache_size = 7
    assert config.cache_size == 7
    assert config.to_dict()["cache_size"] == 7
    config.reset("cache_size")
    assert config.cache_size == 64


@pytest.mark.parametrize("use", [lambda: setattr(config, "cache_sise", 3), lambda: config.cache_sise, lambda: config.patch(cache_sise=3), lambda: config.reset("cache_sise")])
def test_an_unknown_flag_is_an_error_that_names_the_nearest(use):
    with pytest.raises(AttributeError, match="did you mean 'cache_size'"):
        use()


def test_an_unknown_flag_without_a_near_one_lists_all():
    with pytest.raises(AttributeError, match="the flags are .*recompile_limit"):
        config.zzzzqqq  # noqa: B018


@pytest.mark.parametrize(("name", "value", "error"), [("cache_size", "8", TypeError), ("cache_size", True, TypeError), ("cache_size", 0, ValueError), ("verify", 1, TypeError), ("wait_for_compile_limit", float("nan"), ValueError)])
def test_a_bad_value_is_refused_and_changes_nothing(name, value, error):
    before = config.to_dict()
    with pytest.raises(error, match=name):
        setattr(config, name, value)
    with pytest.raises(error, match=name):
        config.patch({"recompile_limit": 3, name: value})
    assert config.to_dict() == before


def test_an_int_is_taken_for_a_float():
    config.wait_for_compile_limit = 3
    assert config.wait_for_compile_limit == 3.0 and type(config.wait_for_compile_limit) is float


def test_patch_as_context_manager_restores_also_after_an_exception():
    with pytest.raises(KeyError), config.patch(cache_size=3, verify=True):
        assert (config.cache_size, config.verify) == (3, True)
        raise KeyError
    assert (config.cache_size, config.verify) == (64, False)


def test_patches_nest_and_are_used_again():
    patch = config.patch({"cache_size": 3})
    with patch:
        with patch, config.patch(cache_size=4):
            assert config.cache_size == 4
        assert config.cache_size == 3
    assert config.cache_size == 64


def test_patch_as_decorator():
    @config.patch(cache_size=3)
    def f(x, *, y):
        "doc"
        return x, y, config.cache_size

    assert f(1, y=2) == (1, 2, 3) and f.__doc__ == "doc"
    assert config.cache_size == 64


def test_patch_decorates_coroutines_and_refuses_generators_and_classes():
    @config.patch(cache_size=3)
    async def f():
        await asyncio.sleep(0)
        return config.cache_size

    assert asyncio.run(f()) == 3
    with pytest.raises(TypeError, match="generator"):
        config.patch(cache_size=3)(lambda: (yield))
    with pytest.raises(TypeError, match="class"):
        config.patch(cache_size=3)(int)


def test_flags_cannot_be_deleted():
    with pytest.raises(AttributeError, match="reset"):
        del config.cache_size


def test_followers_hear_of_every_change():
    heard = []
    config.follow(heard.append)
    try:
        assert heard.pop()["cache_size"] == 64
        config.cache_size = 5
        with config.patch(verify=True):
            pass
        assert heard == [{"cache_size": 5}, {"verify": True}, {"verify": False}]
    finally:
        config._followers.remove(heard.append)


@pytest.mark.parametrize(("text", "value"), [("1", True), ("0", False), ("", False), ("true", True)])
def test_the_environment_sets_defaults(text, value):
    code = "from framegate import config; print(config.verify, config.strict_errors)"
    env = {**os.environ, "FRAMEGATE_VERIFY": text}
    env.pop("FRAMEGATE_STRICT", None)
    out = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert out.split() == [str(value), "False"]


def test_describe_names_every_flag():
    text = config.describe()
    assert all(name in text for name in config.flags())
    assert set(config.flags()) <= set(dir(config))


@pytest.mark.parametrize("waits", [True, False])
def test_a_miss_waits_for_another_threads_compile_if_asked_to(waits):
    torch = pytest.importorskip("torch")
    compiling, go_on, results = threading.Event(), threading.Event(), {}

    def backend(graph, example_inputs):
        compiling.set()
        go_on.wait(20)
        return lambda *args: (torch.full((2,), 7.0),)

    run = framegate.compile(lambda x: x + 1, backend=backend)
    x = torch.zeros(2)
    with config.patch(wait_for_compile=waits):
        first = threading.Thread(target=lambda: results.update(first=run(x).tolist()))
        first.start()
        assert compiling.wait(20)
        second = threading.Thread(target=lambda: results.update(second=run(x).tolist()))
        second.start()
        if not waits:
            second.join(20)
        go_on.set()
        first.join(20)
        second.join(20)
    assert results == {"first": [7, 7], "second": [7, 7] if waits else [1, 1]}
    assert framegate.stats()["compiles"] >= 1 and len(framegate.cache_entries(run)) == 1


def test_waiting_ends_at_its_limit():
    torch = pytest.importorskip("torch")
    compiling, go_on, results = threading.Event(), threading.Event(), {}

    def backend(graph, example_inputs):
        compiling.set()
        go_on.wait(20)
        return lambda *args: (torch.full((2,), 7.0),)

    run = framegate.compile(lambda x: x + 1, backend=backend)
    with config.patch(wait_for_compile=True, wait_for_compile_limit=0.05):
        first = threading.Thread(target=lambda: run(torch.zeros(2)))
        first.start()
        assert compiling.wait(20)
        results["second"] = run(torch.zeros(2)).tolist()
        go_on.set()
        first.join(20)
    assert results == {"second": [1, 1]}
