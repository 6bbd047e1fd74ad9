"""Three ways to run the same layer: step by step, compiled, and as one recorded graph."""

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor, nn

from linformer_from_scratch.benchmark.timing import wait


def forward(layer: Callable[[Tensor], Tensor], x: Tensor) -> Callable[[], Tensor]:
    """A call that runs the layer without gradients."""
    return torch.no_grad()(lambda: layer(x))


def forward_and_backward(layer: nn.Module, x: Tensor) -> Callable[[], None]:
    """A call that runs the layer forward, then backward from random gradients to input and weights."""
    upstream = torch.randn_like(x)

    @torch.inference_mode(False)
    @torch.enable_grad()
    def call() -> None:
        layer(x.detach().requires_grad_()).backward(upstream)
        layer.zero_grad()

    return call


PASSES: dict[str, Callable[[nn.Module, Tensor], Callable[[], object]]] = {
    "forward": forward,
    "forward + backward": forward_and_backward,
}


@cache
def can_compile(device: str) -> bool:
    """Whether torch.compile works on a device: it needs a compiler of the system, or Triton."""
    try:
        x = torch.ones(1, 1, dtype=torch.float32, device=device)
        compiled(nn.Linear(1, 1, dtype=x.dtype, device=device), x)
    except Exception:  # a missing compiler raises errors of many types
        return False
    return True


def compiled(layer: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    """The forward pass after torch.compile, which is done before this returns."""
    call = forward(torch.compile(layer, dynamic=False), x)
    call()
    return call


def graph(layer: nn.Module, x: Tensor) -> Callable[[], Tensor]:
    """The forward pass recorded as a CUDA graph, to be replayed with a single launch."""
    call, stream = forward(layer, x), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # recording needs a warm-up on another stream
        for _ in range(3):
            call()
    wait()
    recorded = torch.cuda.CUDAGraph()
    with torch.cuda.graph(recorded):
        output = call()

    def replay(_kept: object = call) -> Tensor:  # the graph reads the layer's memory, so the layer must live
        recorded.replay()
        return output

    return replay
