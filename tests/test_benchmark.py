"""benchmark.py: seconds and bytes of calls whose cost is known."""

import subprocess
import sys
import time

import pytest
import torch

from linformer_from_scratch import benchmark
from linformer_from_scratch.benchmark import median_seconds, peak_bytes


def test_a_slow_call_takes_longer_and_every_call_has_its_turns():
    turns = []
    calls = {
        name: lambda name=name, s=s: (turns.append(name), time.sleep(s))
        for name, s in (("a", 0.02), ("b", 0))
    }
    seconds = median_seconds(calls, rounds=3)
    assert seconds["a"] > 0.019 > seconds["b"]
    assert sorted(turns) == ["a"] * 4 + ["b"] * 4  # a warm-up, and three rounds


@pytest.mark.parametrize("pauses", [[0.2, 0], [0, 0, 0, 0.3]], ids=["the warm-up", "one slow round of three"])
def test_what_is_slow_once_does_not_count(pauses):
    rounds, pauses = len(pauses) - 1, iter(pauses)
    assert median_seconds({"a": lambda: time.sleep(next(pauses))}, rounds)["a"] < 0.05


def test_the_order_of_turns_is_shuffled():
    turns = []
    median_seconds({name: lambda name=name: turns.append(name) for name in "abcd"}, rounds=9)
    rounds = {tuple(turns[i : i + 4]) for i in range(0, len(turns), 4)}
    assert len(rounds) > 1 and all(sorted(one) == list("abcd") for one in rounds)


def test_no_rounds_are_refused():
    with pytest.raises(ValueError, match="rounds is 0"):
        median_seconds({"a": int}, rounds=0)


def test_the_peak_counts_what_was_held_at_once():
    def call(x):
        y = x + 1  # 4,000 bytes
        del y
        return torch.zeros(3000)  # 12,000 bytes, the result

    held = torch.zeros(1000)
    assert peak_bytes(call, held) == 12_000
    assert peak_bytes(lambda: (held + 1) + (held + 2)) == 12_000  # two terms and their sum
    assert peak_bytes(lambda: held.view(10, 100)) == 0


def test_measuring_bytes_writes_nothing_to_the_terminal():
    code = "import torch; from linformer_from_scratch.benchmark import peak_bytes; peak_bytes(torch.ones, 9)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")


def test_ceilings_count_two_operations_a_multiply_add_and_bytes_both_ways(monkeypatch):
    def one_second(calls, rounds):
        for call in calls.values():
            call()
        return dict.fromkeys(calls, 1.0)

    monkeypatch.setattr(benchmark, "median_seconds", one_second)
    assert benchmark.matmul_ceiling() == benchmark.matmul_ceiling(torch.bfloat16) == 2 * benchmark.SIDE**3
    assert benchmark.copy_ceiling() == 2 * 4 * benchmark.NUMBERS


def test_ceilings_of_this_machine_are_plausible():
    assert 1e9 < benchmark.matmul_ceiling() < 1e15
    assert 1e8 < benchmark.copy_ceiling() < 1e14
