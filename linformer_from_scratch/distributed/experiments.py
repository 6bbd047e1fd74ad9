"""The experiments of chapter 11: each function runs in every rank, called by launch; on CPUs.

torchrun --standalone --nproc-per-node 2 -m linformer_from_scratch.distributed makes the comparisons with one
process on GPUs as well, by NCCL, with which it was never run.
"""

import math
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional

from linformer_from_scratch.common import ranks
from linformer_from_scratch.common.ranks import device_of_rank, own_part, process_group, rank, world_size
from linformer_from_scratch.distributed.sequence import shard, shard_projection, sum_gradients
from linformer_from_scratch.distributed.small import updated
from linformer_from_scratch.distributed.sums import Reduce, sum_over_ranks
from linformer_from_scratch.distributed.wire import sent_bytes
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.projections import LearnedProjection

CPU = torch.device("cpu")
PROJ_DIM = 7  # of the layers that are compared
PAUSE = 0.05  # seconds, so that what was sent has been counted
MATRICES = {"E": "E.weight", "F": "F.weight"}  # what the chapter calls a parameter -> its name
WEIGHTS = {"W_Q": "query.weight", "W_K": "key.weight", "W_V": "value.weight", "W_O": "output.weight"}
OF_ENCODER = {
    "E": "encoder.blocks.0.attention.E.weight",
    "positions": "encoder.positions.weight",
    "tokens": "encoder.tokens.weight",
}


def errors(
    seq_len: int, shared: bool = False, device: str = "cpu", reduce: Reduce = sum_over_ranks
) -> dict[str, float]:
    """How far this rank's part of a layer is from the same layer in one process, in float64.

    Of the output, and of the gradients of the input, E, F and the weights: the largest difference divided by
    the largest number. Some tokens are padding. reduce: sums the ranks' slots.
    """
    with process_group(device):
        whole, *inputs = _layer_and_texts(seq_len, shared, device_of_rank(device))
        expected = _run(whole, *inputs) | _gradients(whole, MATRICES | WEIGHTS)
        layer = shard(whole)
        layer.add_up.reduce = reduce
        computed = _run(layer, *map(own_part, inputs))
        sum_gradients(layer)
        return _differences(computed | _gradients(layer, MATRICES | WEIGHTS), expected)


def errors_of(load_class: Callable[[], type[LinformerAttention]], seq_len: int) -> dict[str, float]:
    """As `errors`, but of a learner's own layer, and in float32: of its output and the gradients of x, E, F.

    Every rank calls load_class. The class takes the arguments of LinformerAttention and has its weights; its
    method `slots` is the one that changes.
    """
    layer_class: Any = load_class()

    class Sharded(layer_class):
        def slots(self, x: Tensor) -> tuple[Tensor, Tensor]:
            keys, values = sum_over_ranks(torch.stack(super().slots(x)))
            return keys, values

    with process_group("cpu"):
        whole, x, upstream, mask = _layer_and_texts(seq_len, layer_class=layer_class)
        inputs = x.float(), upstream.float(), mask
        expected = _run(whole.float(), *inputs) | _gradients(whole, MATRICES)
        layer = Sharded(20, 5, *(LearnedProjection(seq_len, whole.E.proj_dim) for _ in range(2)))
        layer.load_state_dict(whole.state_dict())
        for matrix in (layer.E, layer.F):
            shard_projection(matrix)
        return _differences(_run(layer, *map(own_part, inputs)) | _gradients(layer, MATRICES), expected)


def small_errors(seq_len: int) -> dict[str, float]:
    """As `errors`, but of the weights, E and F after one update by chapter 11's short layer."""
    with process_group("cpu"):
        whole, x, wanted, _ = _layer_and_texts(seq_len)
        layer = updated(whole, x, wanted, rate=0.1)
        (whole(x) - wanted).square().sum().backward()
        torch.optim.SGD(whole.parameters(), 0.1).step()
        computed, expected = (
            {letters: after.state_dict()[name] for letters, name in (WEIGHTS | MATRICES).items()}
            for after in (layer, whole)
        )
        return _differences(computed, expected)


def first_sum(numbers: Sequence[float]) -> list[float]:
    """This rank's own number, and what it holds after an all-reduce."""
    with process_group("cpu"):
        x = torch.tensor([numbers[rank()]])
        distributed.all_reduce(x)
        return [numbers[rank()], x.item()]


def errors_in_place(seq_len: int) -> tuple[dict[str, float], list[str]]:
    """As `errors`, with slots that all_reduce sums in place, unseen by autograd; and PyTorch's warnings."""

    def in_place(x: Tensor, group: ranks.Group) -> Tensor:
        distributed.all_reduce(x, group=group)
        return x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        wrong = errors(seq_len, reduce=in_place)
    return wrong, [str(warning.message).partition(".")[0] for warning in caught]


def exchanges(lengths: Sequence[int]) -> dict[int, dict[str, dict[str, int]]]:
    """How often PyTorch sees ranks exchange something: by the text's length, the pass and the collective.

    "first": a layer's first forward pass; "forward", "backward": every later one, with batches of one size.
    """
    from torch.distributed.tensor.debug import CommDebugMode  # slow to load

    def counted(call: Callable[[], object]) -> dict[str, int]:
        with CommDebugMode() as mode:
            call()
        return {str(kind): times for kind, times in mode.get_comm_counts().items()}

    with process_group("cpu"):
        counts = {}
        for n in lengths:
            whole, x, upstream, _ = _layer_and_texts(n)
            layer, own = shard(whole), own_part(x).requires_grad_()
            first, forward = (counted(partial(layer, own)) for _ in range(2))
            backward = counted(partial(layer(own).backward, own_part(upstream)))
            counts[n] = {"first": first, "forward": forward, "backward": backward}
        return counts


def different_batches(sizes: Sequence[int]) -> Tensor:
    """The output of a layer whose ranks have batches of these sizes; it refuses different ones."""
    with process_group("cpu"):
        layer = shard(_layer_and_texts(seq_len=11)[0])
        return layer(torch.randn(sizes[rank()], layer.E.seq_len, 20, dtype=torch.float64)).detach()


def encoder_errors(seq_len: int, device: str = "cpu") -> dict[str, float]:
    """As `errors`, but of a masked language model of two blocks that share one E: loss, some gradients."""
    with process_group(device):
        whole, ids, targets = _model_and_texts(seq_len, device_of_rank(device))
        expected = functional.cross_entropy(whole(ids).flatten(0, 1), targets.flatten())
        expected.backward()
        model = shard(whole)
        scores = model(own_part(ids)).flatten(0, 1)
        loss = functional.cross_entropy(scores, own_part(targets).flatten(), reduction="sum") / ids.numel()
        loss.backward()
        sum_gradients(model)
        return _differences(
            {"loss": sum_over_ranks(loss.detach())} | _gradients(model, OF_ENCODER),
            {"loss": expected.detach()} | _gradients(whole, OF_ENCODER),
        )


def _model_and_texts(seq_len: int, device: torch.device) -> tuple[MaskedLanguageModel, Tensor, Tensor]:
    """The same on every rank: a model of two blocks that share one E, ids of two texts, and targets."""
    torch.manual_seed(0)
    E = LearnedProjection(seq_len, PROJ_DIM)
    encoder = Encoder(30, seq_len, 20, [LinformerAttention(20, 5, E, E) for _ in range(2)])
    ids, targets = torch.randint(30, (2, 2, seq_len)).to(device)
    return MaskedLanguageModel(encoder).double().to(device), ids, targets


def layer_forward(seq_len: int, shared: bool, device: str) -> Callable[[], Tensor]:
    """This rank's forward pass of the layer of `errors`, to be called by all ranks."""
    whole, x, _, mask = _layer_and_texts(seq_len, shared=shared, device=device_of_rank(device))
    return partial(shard(whole), own_part(x), own_part(mask))


def encoder_forward(seq_len: int, device: str) -> Callable[[], Tensor]:
    """This rank's forward pass of the model of `encoder_errors`."""
    whole, ids, _ = _model_and_texts(seq_len, device_of_rank(device))
    return partial(shard(whole), own_part(ids))


@torch.no_grad()
def measured(forward: Callable[[], object]) -> tuple[float, int | None]:
    """Seconds of a call that all ranks make, the least of five, and bytes that this rank sends in it.

    No bytes, but None, where they cannot be counted: with NCCL, or on a system other than Linux.
    """
    forward()
    seconds = math.inf
    for _ in range(5):
        if world_size() > 1:
            distributed.barrier()
        start = time.perf_counter()
        forward()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        seconds = min(seconds, time.perf_counter() - start)
    if world_size() == 1:
        return seconds, 0
    if distributed.get_backend() != "gloo" or sys.platform != "linux":
        return seconds, None
    return seconds, _sent_by(forward)


def sent(lengths: Sequence[int], proj_dim: int, d_model: int = 64, shared: bool = False) -> dict[int, int]:
    """Bytes that this rank sends for a layer's forward pass, for each length of a text of batch 1."""
    with process_group("cpu"):
        counts = {}
        for n in lengths:
            torch.manual_seed(0)
            E, F = (LearnedProjection(n, proj_dim) for _ in range(2))
            layer = shard(LinformerAttention(d_model, 1, E, E if shared else F))
            counts[n] = _sent_by(partial(layer, own_part(torch.randn(1, n, d_model))))
        return counts


def sent_by_exact(lengths: Sequence[int], d_model: int = 64) -> dict[str, dict[int, int]]:
    """Bytes that this rank sends for what exact attention must exchange, around a ring and by Ulysses."""
    with process_group("cpu"):
        return {
            exchange.__name__.removeprefix("_"): {
                n: _sent_by(partial(exchange, torch.randn(n // world_size(), d_model))) for n in lengths
            }
            for exchange in (_ring, _ulysses)
        }


def _ring(x: Tensor) -> None:
    """Keys and values go from rank to rank until they have been everywhere."""
    block = torch.stack([x, x])
    after, before = (rank() + 1) % world_size(), (rank() - 1) % world_size()
    for _ in range(world_size() - 1):
        received = torch.empty_like(block)
        operations = [
            distributed.P2POp(distributed.isend, block, after),
            distributed.P2POp(distributed.irecv, received, before),
        ]
        for work in distributed.batch_isend_irecv(operations):
            work.wait()
        block = received


def _ulysses(x: Tensor) -> None:
    """Queries, keys and values to shards of heads; results back to shards of tokens."""
    for _ in range(4):
        distributed.all_to_all_single(torch.empty_like(x), x)


def _sent_by(call: Callable[[], object]) -> int:
    """Bytes that a call sends, once connections are open."""
    call()
    distributed.barrier()
    time.sleep(PAUSE)
    before = sent_bytes()
    call()
    time.sleep(PAUSE)
    return sent_bytes() - before


def _layer_and_texts(
    seq_len: int,
    shared: bool = False,
    device: torch.device = CPU,
    layer_class: type[LinformerAttention] = LinformerAttention,
) -> tuple[LinformerAttention, Tensor, Tensor, Tensor]:
    """The same on every rank: a layer, two texts, the gradient of its output, and which tokens are real."""
    torch.manual_seed(0)
    E, F = (LearnedProjection(seq_len, PROJ_DIM) for _ in range(2))
    layer = layer_class(20, 5, E, E if shared else F).double().to(device)
    x, upstream = torch.randn(2, 2, seq_len, 20, dtype=torch.float64).to(device)
    real = torch.tensor([seq_len, seq_len - 2], device=device)
    return layer, x, upstream, torch.arange(seq_len, device=device) < real[:, None]


def _run(layer: nn.Module, x: Tensor, upstream: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Output, and gradient of the input."""
    x = x.clone().requires_grad_()
    output = layer(x, mask)
    output.backward(upstream)
    assert x.grad is not None
    return {"output": output.detach(), "gradient of x": x.grad}


def _gradients(model: nn.Module, names: dict[str, str]) -> dict[str, Tensor]:
    """Gradients of some parameters: label -> name."""
    gradients = {}
    for label, name in names.items():
        gradient = model.get_parameter(name).grad
        assert gradient is not None
        gradients[f"gradient of {label}"] = gradient
    return gradients


def _differences(computed: dict[str, Tensor], expected: dict[str, Tensor]) -> dict[str, float]:
    """How far this rank's tensors are from their parts of one process's: as `errors` has it."""
    errors = {}
    for name, tensor in computed.items():
        part = _part_like(tensor, expected[name])
        scale = part.abs().max() or expected[name].abs().max()  # all zeros where a rank has only padding
        errors[name] = ((tensor - part).abs().max() / scale).item()
    return errors


def _part_like(part: Tensor, whole: Tensor) -> Tensor:
    """This rank's part of a tensor, along the one dimension in which the part is smaller."""
    for dim in range(whole.dim()):
        if part.size(dim) != whole.size(dim):
            return own_part(whole, dim=dim)
    return whole
