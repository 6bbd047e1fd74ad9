"""All promises: each in words, and as lines of Python that find what moves and should not."""

import re
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from linformer_from_scratch.promises.adapters import Subject
from linformer_from_scratch.promises.report import BROKEN, FOUND, KEPT, NOT_APPLICABLE, Verdict

Check = Callable[[Subject], Verdict]
SHORT, LONG = range(2, 14), 1024  # lengths that have every remainder; one at which cost is counted
SIXTEEN_BITS = 0.05  # of the largest output: how far 16 bits may move one
# A name, a promise, and lines that find what `moved`: f(x, mask) is the layer's output, far(gap) how far each
# token moved, stuck(gap) 1 if none did. A comment says what is wrong then. After `\` a line goes on.
LINES = """
padding: what padding holds moves no real token
  y = x.where(mask[..., None], 1000 * z); moved = far((f(y, mask) - f(x, mask)).where(mask[..., None], 0))
  mask = mask.flip(1); y = x.where(mask[..., None], 1000 * z); \
moved = far((f(y, mask) - f(x, mask)).where(mask[..., None], 0))
padding amount: how much padding there is moves no real token
  moved = far(f(x, mask)[:1, :real] - f(x[:1, :real]))
  moved = far(f(x, mask)[1:] - f(x[1:]))
all padding: padding alone is finite, and moves no other
  mask[0] = False; moved = far(0 * f(x, mask))
  mask[0] = False; moved = far(f(x, mask)[1:] - f(x[1:]))
  mask[0] = False; f(x.requires_grad_(), mask).mul(z).sum().backward(); moved = far(0 * x.grad)
mask: the mask hides padding, and nothing else
  mask = mask.flip(1); moved = stuck((f(x, mask) - f(x))[:1, n - real :])  # swallowed, it changes nothing
  mask, i = mask.flip(1), n - real; y = x.clone(); y[0, i] = z[0, i]; \
moved = stuck((f(y, mask) - f(x, mask))[:1, i + 1 :])  # inverted, a real token reaches no other
batch: no text moves another one of its batch
  y = x.clone(); y[1] = z[1]; moved = far((f(y) - f(x))[:1])
  moved = far(f(x)[:1] - f(x[:1]))
  y = x.clone(); y[0] = z[0]; moved = far((f(y) - f(x))[1:])
  moved = far(f(x)[1:] - f(x[1:]))
16 bits: 16-bit numbers give nearly the same
  y = f(x); layer.bfloat16(); moved = far(f(x.bfloat16()) - y)
  y = f(x); layer.half(); moved = far(f(x.half()) - y)
large inputs: large inputs give finite outputs
  layer.float(); moved = far(0 * f(10_000 * x.float()))
  layer.half(); moved = far(0 * f(10 * x.half()))
training mode: without dropout, training changes no answer
  y = f(x); layer.train(); [setattr(d, "p", 0) for d in layer.modules() if isinstance(d, torch.nn.Dropout)]; \
a, b = f(x), f(x); moved = far(a - y) * torch.equal(a, b)
same twice: the same text gets the same answer again
  y = f(x); f(z); moved = far(f(x) - y)
cache: token by token gives what the whole gives
  y = f(x); step = write(layer, x[:, :real], None); \
x = [step[0], *((step := write(layer, x[:, t : t + 1], step[1]))[0] for t in range(real, n))]; \
moved = far(torch.cat(x, 1) - y)
  y = f(x); step = write(layer, x[:, :1], None); \
x = [step[0], *((step := write(layer, x[:, t : t + 1], step[1]))[0] for t in range(1, n))]; \
moved = far(torch.cat(x, 1) - y)
state dict: what is saved is all that counts
  memo = {}; other = copy.deepcopy(layer, memo); buffers = {id(t) for t in other.buffers()}; \
parts = [t for t in memo.values() if torch.is_tensor(t) and t.is_floating_point() and id(t) not in buffers]; \
[t.data.add_(1) for t in parts]; other.load_state_dict(layer.state_dict()); \
y = f(x); layer = other; moved = far(f(x) - y)
deep copy: a copy reads weights of its own
  y = f(x); w = [w.data.zero_() for w in layer.parameters()]; \
moved = stuck(f(x) - y) * (w != [])  # it reads the original's
compile: torch.compile makes one graph of it
  y = f(x); torch.compiler.reset(); layer = torch.compile(layer, backend="eager", fullgraph=True); \
moved = far(f(x) - y)
export: torch.export takes it
  y = f(x); box = torch.nn.Module(); box.layer, box.forward = layer, f; \
moved = far(torch.export.export(box, (x,)).module()(x) - y)
"""
NEED_MASK = ("padding", "padding amount", "all padding", "mask")
MUST_RUN = ("cache", "state dict", "deep copy", "compile", "export")  # an error breaks the promise


def causal(s: Subject) -> Verdict:
    """no output depends on later tokens"""
    if not s.causal:
        return Verdict(NOT_APPLICABLE, "it was not asked for")
    lengths = [n for n in (*SHORT, s.length) if not s.failure(n)]
    line = "y = x.clone(); y[:, {0}:] = z[:, {0}:]; moved = far((f(y{1}) - f(x{1}))[:, :{0}])"
    calls = ["", ", mask"] if s.masks else [""]
    return s.still(s.run(line.format(t, call), n) for call in calls for n in lengths for t in range(1, n))


def axes(s: Subject) -> Verdict:
    """tokens are not taken for features"""
    other = s.asked if s.asked != s.length else s.length - 1
    failed = s.failure(other) if s.asked != s.length or s.length in (s.dim, s.dim // s.heads) else None
    if failed is None or failed.is_refusal:
        return Verdict(KEPT)
    return Verdict(BROKEN, f"runs at n = {s.length}; n = {other}: {failed}", failed.lines)


def length(s: Subject) -> Verdict:
    """other lengths work, or are refused in words"""
    for n in (s.length // 2 + 1, 2 * s.length, 1, 0):
        failed = s.failure(n)
        if failed and not failed.is_refusal:
            return Verdict(BROKEN, f"n = {n}: {failed}", failed.lines)
        if not failed and (found := s.run("moved = far(0 * f(x))", n)).by:
            return Verdict(BROKEN, f"n = {n}: not finite", found.lines)
    if s.failure(2 * s.length):
        return Verdict(KEPT)
    later = f"{s.length} : {3 * s.length // 2 - 1}"
    line = f"y = x.clone(); y[:, {later}] = z[:, {later}]; gap = f(y) - f(x); gap[:, {later}] = 0; "
    return s.still([s.run(f"{line}moved = stuck(gap)  # later tokens reach no other", 2 * s.length)])


def scale(s: Subject) -> Verdict:
    """a text said eight times is as said once"""
    n = s.length // 8
    if n < 2 or s.failure(n):
        return Verdict(NOT_APPLICABLE, f"it does not run on an eighth, {n} tokens")
    end = "moved = far(f(y)[:, -1:] - f(x)[:, -1:])"
    if s.run(f"y = torch.cat([x[:, :-1].flip(1), x[:, -1:]], 1); {end}").by > s.small:
        return Verdict(NOT_APPLICABLE, "order matters")
    return s.still([s.run(f"x = x[:, :{n}]; y = x.repeat(1, 8, 1); {end}")])


def gradients(s: Subject) -> Verdict:
    """gradients reach every weight, and are finite"""
    weights = "w = [x.requires_grad_(), *(w for w in layer.parameters() if w.requires_grad)]; "
    weights += f"(f(x){' + f(x, mask)' * s.masks}).mul(z).sum()"
    lost = "[1.0 * (w.grad is None or not w.grad.any() or not w.grad.isfinite().all()) for w in w]"
    found = s.run(f"{weights}.backward(); moved = torch.tensor({lost})")
    own = s.given["layer"].named_parameters() if isinstance(s.given["layer"], nn.Module) else ()
    names = ["the input", *(name for name, weight in own if weight.requires_grad)]
    wrong = f"{names[int(found.moved.argmax())]} gets none, or NaN"
    return Verdict(BROKEN, wrong, found.lines) if found.by else Verdict(KEPT)


def order(s: Subject) -> Verdict:
    """whether the order of tokens matters"""
    moved = s.run("p = z[0, :, 0].argsort(); moved = far(f(x[:, p]) - f(x)[:, p])").by > s.small
    return Verdict(FOUND, "order matters" if moved else "order does not matter")


def cost(s: Subject) -> Verdict:
    """operations and memory grow as promised"""
    line = "from linformer_from_scratch.promises import exponents; layer.float(); x = x[:1].float(); "
    found = s.run(f"{line}moved = exponents(f, x)", s.length if s.failure(LONG) else LONG)
    words = "operations ∝ n^{:.1f}, memory ∝ n^{:.1f}".format(*found.moved)
    if found.by <= s.exponent + 0.25:
        return Verdict(FOUND, words)
    return Verdict(BROKEN, f"{words}, and n^{s.exponent:g} was promised", found.lines)


def exponents(f: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The powers of n by which operations and memory grow, while n doubles and doubles again.

    Operations are those of matrix products; memory is what is kept for the backward pass. What does not grow
    is left out, and so is the last quarter of x: at their full length some layers go another way.

    Shape: x (batch, n, dim) -> (2,)
    """
    part = 3 * x.size(1) // 16
    growth = torch.tensor([_cost(f, x[:, : times * part].clone()) for times in (1, 2, 4)]).diff(dim=0)
    return (growth[1].clamp(min=1) / growth[0].clamp(min=1)).log2()


def _cost(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[int, int]:
    kept = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.untyped_storage())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        f(x.requires_grad_())
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        f(x)
    return counter.get_total_flops(), sum({some.data_ptr(): some.nbytes() for some in kept}.values())


def _check(lines: str, share: float | None) -> Check:
    return lambda s: s.still(map(s.run, lines.split("\n  ")), share)


CHECKS: dict[str, tuple[str, Check]] = {"causal": (causal.__doc__ or "", causal)}
for _name, _words, _some in re.findall(r"^(\w.*?): (.*)\n  ((?:.*\n  )*.*)", LINES, re.MULTILINE):
    CHECKS[_name] = _words, _check(_some, SIXTEEN_BITS if _name == "16 bits" else None)
for _each in (axes, length, scale, gradients, order, cost):
    CHECKS[_each.__name__] = _each.__doc__ or "", _each
