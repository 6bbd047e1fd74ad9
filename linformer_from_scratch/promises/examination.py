"""A layer examined: every promise in turn."""

import warnings
from collections.abc import Callable
from typing import Any

import torch

from linformer_from_scratch.promises.adapters import Failed, Subject, name_of, subject_of
from linformer_from_scratch.promises.checks import CHECKS, MUST_RUN, NEED_MASK
from linformer_from_scratch.promises.report import BROKEN, NOT_APPLICABLE, Report, Verdict


def examine(
    layer: Any,
    dim: int | None = None,
    length: int = 128,
    causal: bool = False,
    *,
    heads: int | None = None,
    call: Callable | None = None,
    write: Callable | None = None,
    exponent: float = 2,
    promises: tuple[str, ...] = (*CHECKS,),
) -> Report:
    """Which promises does an attention layer keep? On the CPU, with random texts; a module is copied.

    Args:
        layer: a module for self-attention, (batch, n, dim) -> the same, with or without a mask (batch, n),
            True at real tokens (at padding if it has PyTorch's name `key_padding_mask`); or a function of
            q, k and v, each (batch, heads, n, d_head).
        dim: features of a token; by default what the first nn.Linear takes.
        length: tokens of a text.
        causal: whether the layer promises that no output depends on later tokens.
        heads: by default the layer's `num_heads`, or 4.
        call: how another layer is called, lambda layer, x, mask: output; the mask is True at real tokens, or
            None. Without its last argument, the layer takes no mask.
        write: how it reads on with a cache, lambda layer, x, cache: (output, cache); by default its `write`.
        exponent: operations and memory grow no faster than n to this power.
        promises: their names, from CHECKS; all by default.

    Raises: ValueError in one sentence if the layer cannot be called so, or if there is no such promise.

    A change of up to 1e-6 of the largest output counts as none; 1e-3 where the layer takes float32 only, 0.05
    for 16 bits. PyTorch's random numbers are afterwards as they were.
    """
    if unknown := {*promises} - {*CHECKS}:
        raise ValueError(
            f"got {', '.join(sorted(unknown))} as promises, expected some of {', '.join(CHECKS)}"
        )
    with torch.random.fork_rng([]), torch.enable_grad(), warnings.catch_warnings(action="ignore"):
        given = {"layer": layer, "call": call, "write": write}
        subject = subject_of(given, dim, length, heads, causal, exponent)
        again, names = _verdict("same twice", subject), [name for name in CHECKS if name in promises]
        verdicts = dict.fromkeys(names, Verdict(NOT_APPLICABLE, "it gives another answer each time"))
        if again.status != BROKEN:
            verdicts = {name: _verdict(name, subject) for name in names}
        elif "same twice" in names:
            verdicts["same twice"] = again
    what = f"{name_of(layer)} on {subject.length} tokens of {subject.dim} features in {subject.dtype}"
    return Report(f"{what}, as {subject.form}", {name: CHECKS[name][0] for name in verdicts}, verdicts)


def assert_keeps(layer: Any, *promises: str, **options: Any) -> None:
    """Raise AssertionError unless the layer keeps these promises; without any, if it breaks one of all.

    Args: as `examine`, whose other arguments are the options.
    """
    report = examine(layer, promises=promises or (*CHECKS,), **options)
    wrong = (BROKEN, NOT_APPLICABLE) if promises else (BROKEN,)
    verdicts = {name: verdict for name, verdict in report.verdicts.items() if verdict.status in wrong}
    if verdicts:
        raise AssertionError(str(Report(report.layer, report.promises, verdicts)))


def _verdict(name: str, s: Subject) -> Verdict:
    if name in NEED_MASK and "mask" not in s.form:
        return Verdict(NOT_APPLICABLE, "it takes no mask")
    if name == "cache" and "write" not in s.start and s.given["write"] is None:
        return Verdict(NOT_APPLICABLE, "no cache; or give write=")
    try:
        return CHECKS[name][1](s)
    except Failed as failed:
        if name in MUST_RUN:
            return Verdict(BROKEN, str(failed), failed.lines)
        return Verdict(NOT_APPLICABLE, str(failed))
