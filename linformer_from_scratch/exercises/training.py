"""Chapter 08: exercises and quiz."""

import math
import random as python_random
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from linformer_from_scratch.data import IGNORE, MASK
from linformer_from_scratch.encoder import Block
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question
from linformer_from_scratch.experiments.curves import updates_until
from linformer_from_scratch.training import Config, learning_rate

WORDS = 50  # tokens of the vocabulary from which the draws come


# 8.1: hide tokens


def hide(ids: Tensor, chosen: Tensor, fate: Tensor, random: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and targets of masked-language modelling, from draws that are already made. Shape: two of (batch, n)."""
    replaced = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, random, ids))
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


def draw_rows(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens; which of them are chosen; a number in 0 … 1, in float64, and a random token for each.

    Two of the chosen have a fate of exactly 0.8 and 0.9.
    """
    batch, n = row(seed, ((3, 41), (2, 67), (5, 1), (2, 59)))
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(3, WORDS, (batch, n), generator=generator)
    others = 3 + (ids - 3 + torch.randint(1, WORDS - 3, (batch, n), generator=generator)) % (WORDS - 3)
    chosen = torch.rand(batch, n, generator=generator) < 0.5
    fate = torch.rand(batch, n, generator=generator, dtype=torch.float64)
    chosen[:3, 0] = True
    fate[:2, 0] = torch.tensor([0.8, 0.9], dtype=torch.float64)
    return ids, chosen, fate, others


def always_masked(ids, chosen, fate, random):
    """You put MASK in every chosen place. Then the model would never learn that a token which it sees may be wrong. MASK belongs only where fate < 0.8."""
    return torch.where(chosen, MASK, ids), torch.where(chosen, ids, IGNORE)


def never_kept(ids, chosen, fate, random):
    """Your chosen tokens are all MASK or random, but one in ten stays as it is (fate ≥ 0.9)."""
    replaced = torch.where(fate < 0.8, MASK, random)
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


def shares_swapped(ids, chosen, fate, random):
    """You keep the token where 0.8 ≤ fate < 0.9 and put a random one where fate ≥ 0.9. It should be the other way round."""
    replaced = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, ids, random))
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


def everything_replaced(ids, chosen, fate, random):
    """You also replace tokens that are not chosen. Those must reach the model unchanged."""
    return hide(ids, torch.ones_like(chosen), fate, random)[0], torch.where(chosen, ids, IGNORE)


def targets_everywhere(ids, chosen, fate, random):
    """Your targets are the tokens everywhere. Where nothing is to be guessed the target is IGNORE; otherwise the model would be rewarded for copying."""
    return hide(ids, chosen, fate, random)[0], ids.clone()


def targets_only_where_changed(ids, chosen, fate, random):
    """A chosen token that stays as it is must be guessed as well: its target is the token, not IGNORE."""
    inputs, _ = hide(ids, chosen, fate, random)
    return inputs, torch.where(inputs != ids, ids, IGNORE)


def targets_after_hiding(ids, chosen, fate, random):
    """Your targets are the tokens after hiding. They should be the original tokens."""
    inputs, _ = hide(ids, chosen, fate, random)
    return inputs, torch.where(chosen, inputs, IGNORE)


def at_both_bounds(ids, chosen, fate, random):
    """A fate of exactly 0.8 is not below 0.8, nor 0.9 below 0.9: write < and not <=."""
    replaced = torch.where(fate <= 0.8, MASK, torch.where(fate <= 0.9, random, ids))
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


def at_the_lower_bound(ids, chosen, fate, random):
    """A fate of exactly 0.8 is not below 0.8, so there is no MASK in that place: write < and not <=."""
    replaced = torch.where(fate <= 0.8, MASK, torch.where(fate < 0.9, random, ids))
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


def at_the_upper_bound(ids, chosen, fate, random):
    """A fate of exactly 0.9 is not below 0.9, so the token stays: write < and not <=."""
    replaced = torch.where(fate < 0.8, MASK, torch.where(fate <= 0.9, random, ids))
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


def masks_overwritten(ids, chosen, fate, random):
    """Your random tokens overwrite the masks. A fate below 0.8 is also below 0.9, so ask for 0.8 <= fate as well."""
    replaced = torch.where(fate < 0.9, random, ids)
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


def targets_first(ids, chosen, fate, random):
    """You return the targets first; the inputs come first."""
    return hide(ids, chosen, fate, random)[::-1]


# 8.2: a pre-norm block


class Mixing(nn.Module):
    """An attention layer whose map is given, A (batch, n, n); nobody reads padding."""

    def __init__(self, A: Tensor):
        super().__init__()
        self.A = A

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """A x. Shape: x (batch, n, d), padding_mask (batch, n) -> (batch, n, d)."""
        return self.A @ (x if padding_mask is None else x * padding_mask[..., None])


def run_block(
    attempt: Callable, x: Tensor, padding_mask: Tensor | None, A: Tensor, weights: Sequence[Tensor]
) -> Tensor:
    """Build a block around A, give it the weights, and run it.

    Raises: ValueError if a weight has another name or size than in the stub.
    """
    d_model = x.size(-1)
    block, stub = attempt(d_model, Mixing(A)), Block(d_model, Mixing(A))
    own = {name: tuple(weight.shape) for name, weight in block.named_parameters()}
    given = dict(zip(dict(stub.named_parameters()), weights, strict=True))
    for name, weight in given.items():
        if own.get(name) != tuple(weight.shape):
            size = own.get(name, "missing")
            raise ValueError(f"{name} is {size}, expected {tuple(weight.shape)}: leave __init__ as it is")
    return functional_call(block, given, (x,) if padding_mask is None else (x, padding_mask))


def draw_block(seed: int) -> tuple[Tensor, Tensor | None, Tensor, list[Tensor]]:
    """Tokens, which of them are real, an attention map, and all weights of a block in their order."""
    batch, n, d = row(seed, ((2, 5, 7), (3, 4, 6), (2, 1, 5), (1, 6, 4)))
    sizes = (d,), (d,), (d,), (d,), (4 * d, d), (4 * d,), (d, 4 * d), (d,)
    x, A, *weights = normal(seed, (batch, n, d), (batch, n, n), *sizes)
    padding_mask = torch.arange(n) < n - 1 - torch.arange(batch)[:, None] % 2
    return x * 2 + 1, padding_mask if seed % 2 else None, A.softmax(dim=-1), [w / 2 for w in weights]


def with_forward(forward: Callable) -> type[Block]:
    """A block with another forward, whose docstring becomes its own."""
    return type(forward.__name__, (Block,), {"forward": forward, "__doc__": forward.__doc__})


def over_tokens(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """What LayerNorm gives where it works on the tokens of each feature."""
    spread = (x.var(1, correction=0, keepdim=True) + norm.eps).sqrt()
    return (x - x.mean(1, keepdim=True)) / spread * norm.weight + norm.bias


@with_forward
def post_norm(self, x, padding_mask=None):
    """You normalise after adding, as the Transformer of 2017 did. A pre-norm block normalises what goes into a layer, and leaves the sum alone."""
    x = self.attention_norm(x + self.attention(x, padding_mask))
    return self.feed_forward_norm(x + self.feed_forward(x))


@with_forward
def without_norms(self, x, padding_mask=None):
    """There is no norm. Attention should read attention_norm(x), and the feed-forward layer feed_forward_norm(x)."""
    x = x + self.attention(x, padding_mask)
    return x + self.feed_forward(x)


@with_forward
def without_residuals(self, x, padding_mask=None):
    """You replace x by the output of a layer. Add that output to x."""
    return self.feed_forward(self.feed_forward_norm(self.attention(self.attention_norm(x), padding_mask)))


@with_forward
def normed_residuals(self, x, padding_mask=None):
    """You add to the normalised x; add to x itself, so that it runs through unchanged from the first block to the last."""
    x = self.attention_norm(x)
    x = self.feed_forward_norm(x + self.attention(x, padding_mask))
    return x + self.feed_forward(x)


@with_forward
def first_residual_normed(self, x, padding_mask=None):
    """Your first sum adds to the normalised x; add to x itself: only what goes into attention is normalised."""
    x = self.attention_norm(x)
    x = x + self.attention(x, padding_mask)
    return x + self.feed_forward(self.feed_forward_norm(x))


@with_forward
def second_residual_normed(self, x, padding_mask=None):
    """Your second sum adds to the normalised x; add to x itself: only what goes into the feed-forward layer is normalised."""
    x = x + self.attention(self.attention_norm(x), padding_mask)
    x = self.feed_forward_norm(x)
    return x + self.feed_forward(x)


@with_forward
def side_by_side(self, x, padding_mask=None):
    """Your feed-forward layer reads the old x. It should read the x to which attention has already added something."""
    read = self.attention(self.attention_norm(x), padding_mask)
    return x + read + self.feed_forward(self.feed_forward_norm(x))


@with_forward
def normed_once(self, x, padding_mask=None):
    """Your feed-forward layer reads x without a norm. There is a norm before each of the two layers."""
    x = x + self.attention(self.attention_norm(x), padding_mask)
    return x + self.feed_forward(x)


@with_forward
def one_norm_twice(self, x, padding_mask=None):
    """You use attention_norm twice. Each of the two norms learns weights of its own, so put feed_forward_norm before the second layer."""
    x = x + self.attention(self.attention_norm(x), padding_mask)
    return x + self.feed_forward(self.attention_norm(x))


@with_forward
def norms_swapped(self, x, padding_mask=None):
    """Your norms have changed places: attention_norm belongs before attention, feed_forward_norm before the feed-forward layer."""
    x = x + self.attention(self.feed_forward_norm(x), padding_mask)
    return x + self.feed_forward(self.attention_norm(x))


@with_forward
def feed_forward_first(self, x, padding_mask=None):
    """Your feed-forward layer comes first. Attention mixes the tokens first, and then the feed-forward layer works on each of them alone."""
    x = x + self.feed_forward(self.feed_forward_norm(x))
    return x + self.attention(self.attention_norm(x), padding_mask)


@with_forward
def mask_not_passed_on(self, x, padding_mask=None):
    """Your attention is not told which tokens are padding: pass it padding_mask, after x."""
    return Block.forward(self, x)


@with_forward
def second_sum_missing(self, x, padding_mask=None):
    """You return the output of the feed-forward layer. Add it to x, as you did with the output of attention."""
    x = x + self.attention(self.attention_norm(x), padding_mask)
    return self.feed_forward(self.feed_forward_norm(x))


@with_forward
def normed_over_tokens(self, x, padding_mask=None):
    """You normalise over the tokens; LayerNorm works on the features of one token, the last axis."""
    x = x + self.attention(over_tokens(self.attention_norm, x), padding_mask)
    return x + self.feed_forward(over_tokens(self.feed_forward_norm, x))


# 8.3: the learning rate


def rate_at(step: int, steps: int, highest: float, warmup: int) -> float:
    """The learning rate of an update, counted from 0."""
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def draw_schedule(seed: int) -> tuple[int, int, float, int]:
    """A step early in the warm-up, at its end, in the middle, near the last."""
    if seed < 4:
        return ((6, 1000, 0.004, 50), (70, 311, 0.01, 70), (400, 907, 0.002, 101), (3, 19, 0.5, 0))[seed]
    generator = python_random.Random(seed)
    warmup = generator.randint(2, 90)
    steps = warmup + generator.randint(20, 900)
    step = (generator.randrange(warmup), warmup, generator.randrange(warmup, steps))[seed % 3]
    return step, steps, generator.uniform(0.001, 0.5), warmup


def without_warmup(step, steps, highest, warmup):
    """The rise is missing: during the first `warmup` steps the rate rises in equal steps."""
    return highest * (1 + math.cos(math.pi * step / steps)) / 2


def cosine_from_the_start(step, steps, highest, warmup):
    """Your cosine begins at step 0. It should begin where the rise ends, so count (step - warmup) of (steps - warmup)."""
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (1 + math.cos(math.pi * step / steps)) / 2


def zero_first_step(step, steps, highest, warmup):
    """Your first update has the rate 0 and is wasted. Update 0 has the rate highest / warmup, and update warmup - 1 the highest."""
    if step < warmup:
        return highest * step / warmup
    return rate_at(step, steps, highest, warmup)


def linear_fall(step, steps, highest, warmup):
    """Your rate falls in a straight line. Half a cosine starts and ends flat."""
    if step < warmup:
        return rate_at(step, steps, highest, warmup)
    return highest * (steps - step) / (steps - warmup)


def whole_cosine(step, steps, highest, warmup):
    """cos goes down to -1, so your rate falls below 0. Take (1 + cos) / 2."""
    if step < warmup:
        return rate_at(step, steps, highest, warmup)
    return highest * math.cos(math.pi * (step - warmup) / (steps - warmup))


def full_turn(step, steps, highest, warmup):
    """You run through a whole turn, 2π, so the rate is high again at the end. Half a turn, π, ends at 0."""
    if step < warmup:
        return rate_at(step, steps, highest, warmup)
    return highest * (1 + math.cos(2 * math.pi * (step - warmup) / (steps - warmup))) / 2


def quarter_turn(step, steps, highest, warmup):
    """You take a quarter of a turn of cos, from 1 to 0, which ends steeply. Take half a turn, from its peak to its trough, as (1 + cos) / 2."""
    if step < warmup:
        return rate_at(step, steps, highest, warmup)
    return highest * math.cos(math.pi / 2 * (step - warmup) / (steps - warmup))


def warmup_one_too_long(step, steps, highest, warmup):
    """Your rise is one update too long. Update warmup - 1 is its last and update `warmup` is the first of the cosine, so write < and not <=."""
    if step <= warmup:
        return highest * (step + 1) / (warmup or 1)
    return rate_at(step, steps, highest, warmup)


def cosine_one_ahead(step, steps, highest, warmup):
    """Your cosine is one update ahead. At update `warmup` the rate is still the highest, so count (step - warmup), without + 1."""
    if step < warmup:
        return rate_at(step, steps, highest, warmup)
    return rate_at(step + 1, steps, highest, warmup)


def zero_at_the_last(step, steps, highest, warmup):
    """Your last update has the rate 0 and is wasted. The cosine would reach 0 at `steps`, when all updates have been made."""
    if step < warmup:
        return rate_at(step, steps, highest, warmup)
    return rate_at(step, steps - 1, highest, warmup)


# 8.5: read a learning curve


def draw_curve(seed: int) -> tuple[Tensor, float]:
    """A curve of (updates, loss) and a loss; all numbers are exact in binary.

    It crosses the loss, rises again and falls; it touches it; it never comes so low; it begins there and ends there.
    """
    points, loss = (
        ([(100, 6.0), (200, 5.0), (300, 4.0), (400, 4.5), (600, 3.5)], 4.25),
        ([(50, 7.0), (150, 4.0), (250, 3.25), (350, 3.5), (450, 2.5)], 3.25),
        ([(10, 5.0), (20, 4.5), (30, 4.25)], 4.0),
        ([(30, 3.0), (40, 3.5), (50, 3.0)], 3.0),
    )[seed % 4]
    if seed >= 4:  # the same, longer and moved; and it begins below the loss
        generator = python_random.Random(seed)
        apart, higher = generator.randint(2, 9), generator.randint(1, 64) / 8
        end = points[-1][0] + 10, points[-1][1] + generator.randint(0, 4) / 8
        points = [(apart * updates, level + higher) for updates, level in (*points, end)]
        loss += higher + (seed % 8 == 7) / 4
    return torch.tensor(points), loss


def at_the_next_point(curve, loss):
    """You return the first point that is low enough. The curve crossed the loss before that point, so go back along the straight line."""
    below = [updates for updates, measured in curve.tolist() if measured <= loss]
    return below[0] if below else -1.0


def at_the_last_point_above(curve, loss):
    """You return the point before the crossing. Go on along the straight line until the loss is reached."""
    reached = updates_until(curve, loss)
    return reached if reached <= curve[0, 0] else max(u for u, _ in curve.tolist() if u <= reached)


def at_the_lowest_point(curve, loss):
    """You return where the curve is lowest. Return where it first comes down to the loss."""
    return curve[curve[:, 1].argmin(), 0].item()


def the_last_crossing(curve, loss):
    """The curve rises again and comes down a second time. The first time counts."""
    points = curve.tolist()
    above = [i for i, (_, measured) in enumerate(points) if measured > loss]
    if not above or above[-1] == len(points) - 1:
        return updates_until(curve, loss)
    return updates_until(curve[above[-1] :], loss)


def place_not_updates(curve, loss):
    """You return the place in the list. The first column says after how many updates the point was measured."""
    below = [float(i) for i, (_, measured) in enumerate(curve.tolist()) if measured <= loss]
    return below[0] if below else -1.0


def never_unless_reached_late(curve, loss):
    """The curve never reaches the loss, but you return its last point. Return -1.0 in this case."""
    reached = updates_until(curve, loss)
    return curve[-1, 0].item() if reached < 0 else reached


def crossing(
    curve: Tensor, first: Callable[[float], bool], later: Callable[[float], bool], loss: float
) -> float:
    """The first point, or the first straight line after it, whose loss passes a test."""
    points = curve.tolist()
    if first(points[0][1]):
        return points[0][0]
    for (u0, l0), (u1, l1) in pairwise(points):
        if l0 > loss and later(l1):
            return u0 + (l0 - loss) / (l0 - l1) * (u1 - u0)
    return -1.0


def only_below(curve, loss):
    """A point that has exactly this loss has come down to it: ask for <= and not <."""
    return crossing(curve, lambda measured: measured < loss, lambda measured: measured < loss, loss)


def later_only_below(curve, loss):
    """A later point that has exactly this loss has come down to it as well: ask for <= and not <."""
    return crossing(curve, lambda measured: measured <= loss, lambda measured: measured < loss, loss)


def first_point_forgotten(curve, loss):
    """If the first point is already at the loss or below it, return its updates. Look at this point by itself, with <=."""
    return crossing(curve, lambda measured: False, lambda measured: measured <= loss, loss)


def from_the_other_end(curve, loss):
    """You measure from the wrong end. Of the way from the earlier point to the later one, the share (l0 - loss) / (l0 - l1) lies before the crossing."""
    points = curve.tolist()
    for (u0, l0), (u1, l1) in zip([points[0], *points], points, strict=False):
        if l1 <= loss:
            return u1 if l0 == l1 else u0 + (loss - l1) / (l0 - l1) * (u1 - u0)
    return -1.0


# 8.6: a log of a run that was killed


def curve_of(log: Tensor) -> Tensor:
    """Losses by step, each step once: what was computed again after a resume counts. Shape: (lines, 2) -> (steps,)."""
    curve: list[Tensor] = []
    for step, loss in log:
        curve[int(step) - 1 :] = [loss]  # a step that comes again takes back what followed
    return torch.stack(curve)


def draw_log(seed: int) -> tuple[Tensor]:
    """Lines of (step, loss): killed at some steps, and each time resumed from an earlier one."""
    visits = visits_of(seed)
    steps = [step for first, last in visits for step in range(first, last + 1)]
    (losses,) = normal(seed, (len(steps),))
    return (torch.stack([torch.tensor(steps, dtype=torch.float32), 5 + losses], dim=1),)


def visits_of(seed: int) -> Sequence[tuple[int, int]]:
    """First and last step of each stretch between a resume and the next kill."""
    if seed < 4:
        return (
            ((1, 7), (5, 9)),
            ((1, 6), (4, 8), (2, 10)),
            ((1, 1),),
            ((1, 5), (1, 4), (3, 4)),
        )[seed]
    generator = python_random.Random(seed)
    visits = [(1, generator.randint(5, 12))]
    for _ in range(generator.randint(1, 3)):
        first = generator.randint(2, visits[-1][1])
        visits.append((first, first + generator.randint(0, 7)))
    return visits


def last_per_step(log):
    """You take the last line of each step, wherever it is. But a restart from an earlier checkpoint also throws away later steps that the run has not reached again."""
    losses = {int(step): loss for step, loss in log}
    return torch.stack([losses[step] for step in sorted(losses)])


def first_per_step(log):
    """You keep the first line of each step. What came after the checkpoint was lost when the run was killed, so the line written after the restart counts."""
    losses: dict[int, Tensor] = {}
    for step, loss in log:
        losses.setdefault(int(step), loss)
    return torch.stack([losses[step] for step in sorted(losses)])


def all_lines(log):
    """You return all lines, so a step that was computed twice is there twice."""
    return log[:, 1].clone()


def mean_per_step(log):
    """You average the lines of a step. Only one of them belongs to the weights that the run went on with."""
    losses: dict[int, list[Tensor]] = {}
    for step, loss in log:
        losses.setdefault(int(step), []).append(loss)
    return torch.stack([torch.stack(losses[step]).mean() for step in sorted(losses)])


def last_visit_only(log):
    """You keep only what came after the last restart, and lose the steps before its checkpoint."""
    restarts = [i for i in range(1, len(log)) if log[i, 0] <= log[i - 1, 0]]
    return log[max(restarts, default=0) :, 1].clone()


def steps_not_losses(log):
    """You return the steps. Return their losses, which are in the second column."""
    return torch.arange(1, len(curve_of(log)) + 1, dtype=torch.float32)


def lines_not_repeated(log):
    """You keep every line whose step does not come again. But if a run goes back and is then killed earlier than before, later steps are void although they never come again."""
    steps = log[:, 0].tolist()
    return torch.stack([log[i, 1] for i, step in enumerate(steps) if step not in steps[i + 1 :]])


def old_line_kept(log):
    """You cut one step too late: when step s comes again, its own old line is void as well."""
    curve: list[Tensor] = []
    for step, loss in log:
        curve[int(step) :] = [loss]
    return torch.stack(curve)


# 8.4: the training loop


def train(
    model: nn.Module,
    loss: Callable[..., Tensor],
    batches: Callable[[int], tuple[Tensor, ...]],
    validation: Sequence[tuple[Tensor, ...]],
    rate: Callable[[int], float],
    steps: int,
    evaluate_every: int,
) -> tuple[list[float], list[float]]:
    """The loss of every update, and the validation loss after every `evaluate_every` of them."""
    optimizer = torch.optim.AdamW(model.parameters())
    losses, validation_losses = [], []
    for step in range(steps):
        model.train()
        optimizer.zero_grad()
        value = loss(model, *batches(step))
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        losses.append(value.item())
        if (step + 1) % evaluate_every == 0:
            model.eval()
            with torch.no_grad():
                each = [loss(model, *batch).item() for batch in validation]
            validation_losses.append(sum(each) / len(each))
    return losses, validation_losses


class Tiny(nn.Module):
    """A model of two layers. In training some hidden features are dropped, the same ones at every update."""

    def __init__(self, weights: Sequence[Tensor], kept: Tensor):
        super().__init__()
        self.weights = nn.ParameterList(weight.clone() for weight in weights)
        self.kept = kept

    def forward(self, x: Tensor) -> Tensor:
        """Shape: (batch, d) -> (batch, outputs)."""
        hidden = (x @ self.weights[0]).tanh()
        return (2 * self.kept * hidden if self.training else hidden) @ self.weights[1]


def run_training(
    attempt: Callable,
    inputs: Tensor,
    targets: Tensor,
    unseen: Sequence[Tensor],
    asked: Sequence[Tensor],
    weights: Sequence[Tensor],
    kept: Tensor,
    highest: float,
    warmup: int,
    evaluate_every: int,
) -> tuple[list[float], list[float]]:
    """Train a tiny model on some batches; it comes in evaluation mode.

    Raises: RuntimeError if the loss of a validation batch is asked for with gradients.
    """
    config = Config(steps=len(inputs), learning_rate=highest, warmup=warmup)
    validation = [*zip(unseen, asked, strict=True)]

    def loss(model, x, y):
        if torch.is_grad_enabled() and any(x is batch for batch, _ in validation):
            raise RuntimeError("validation needs no gradients: with torch.no_grad():")
        return functional.mse_loss(model(x), y)

    return attempt(
        Tiny(weights, kept).eval(),
        loss,
        lambda step: (inputs[step], targets[step]),
        validation,
        lambda step: learning_rate(step, config),
        config.steps,
        evaluate_every,
    )


def draw_training(seed: int) -> tuple:
    """Batches to learn from, batches of different sizes to validate on, a model's weights, and the schedule."""
    table = (
        (13, 5, 3, 2, 4, 0.05, 3, 4),
        (10, 4, 6, 3, 2, 0.1, 2, 3),
        (7, 1, 5, 1, 3, 0.02, 4, 5),
        (11, 6, 4, 2, 5, 0.2, 5, 3),
    )
    steps, batch, d, held, outputs, highest, warmup, evaluate_every = row(seed, table)
    sizes = (steps, batch, d), (steps, batch, outputs), (d, 8), (8, outputs)
    inputs, targets, first, second = normal(seed, *sizes)
    unseen, asked = (normal(seed + i, *((batch + 3 * j, i) for j in range(held))) for i in (d, outputs))
    growing = torch.arange(1, steps + 1)[:, None, None] / 2  # gradients below and above the norm of 1
    kept = torch.tensor([1, 0, 1, 1, 0, 1, 1, 0])
    return (
        inputs,
        growing * targets,
        unseen,
        tuple(3 * each for each in asked),
        [first / 2, second / 4],
        kept,
        highest,
        warmup,
        evaluate_every,
    )


class Loop:
    """A training loop as a list of moves, so that a mistake is another list.

    Args: as train.
    """

    def __init__(self, model, loss, batches, validation, rate, steps, evaluate_every):
        self.model, self.loss, self.batches, self.validation = model, loss, batches, validation
        self.rate, self.steps, self.evaluate_every = rate, steps, evaluate_every
        self.losses, self.validation_losses = [], []
        self._begin()

    def run(self, moves):
        """Make these moves at every update; return the losses and the validation losses."""
        for step in range(self.steps):
            self.step = step
            for move in moves.split():
                getattr(self, f"_{move}")()
        return self.losses, self.validation_losses

    def _begin(self, kind=torch.optim.AdamW):
        self.optimizer = kind(self.model.parameters())

    def _begin_with_adam(self):
        if not self.step:
            self._begin(torch.optim.Adam)

    def _begin_with_sgd(self):
        if not self.step:
            self._begin(torch.optim.SGD)

    def _train(self):
        self.model.train()

    def _train_once(self):
        if not self.step:
            self.model.train()

    def _clear(self):
        self.optimizer.zero_grad()

    def _forward(self, step=None):
        self.value = self.loss(self.model, *self.batches(self.step if step is None else step))

    def _forward_first(self):
        self._forward(0)

    def _note(self):
        self.losses.append(self.value.item())

    def _backward(self):
        self.value.backward()

    def _clip(self, norm=1.0):
        nn.utils.clip_grad_norm_(self.model.parameters(), norm)

    def _clip_at_two(self):
        self._clip(2.0)

    def _clip_each(self):
        for weight in self.model.parameters():
            nn.utils.clip_grad_norm_(weight, 1.0)

    def _clip_numbers(self):
        nn.utils.clip_grad_value_(self.model.parameters(), 1.0)

    def _to_norm_one(self):
        norm = torch.stack([weight.grad.norm() for weight in self.model.parameters()]).norm()
        for weight in self.model.parameters():
            weight.grad /= norm

    def _set_rate(self, later=0, times=1.0):
        for group in self.optimizer.param_groups:
            group["lr"] = times * self.rate(self.step + later)

    def _set_next_rate(self):
        self._set_rate(later=1)

    def _set_last_rate(self):
        self._set_rate(later=-1)

    def _set_thousandth(self):
        self._set_rate(times=0.001)

    def _update(self):
        self.optimizer.step()

    def _due(self, after=1):
        return (self.step + after) % self.evaluate_every == 0

    def _evaluate(self):
        self.model.eval()

    def _judge(self, batches=None):
        with torch.no_grad():
            each = [self.loss(self.model, *batch).item() for batch in batches or self.validation]
        self.validation_losses.append(sum(each) / len(each))

    def _validate(self):
        if self._due():
            self._evaluate()
            self._judge()

    def _validate_as_training(self):
        if self._due():
            self._judge()

    def _validate_early(self):
        if self._due(after=0):
            self._evaluate()
            self._judge()

    def _validate_at_the_end_too(self):
        if self._due() or self.step == self.steps - 1:
            self._evaluate()
            self._judge()

    def _validate_every_time(self):
        self._evaluate()
        self._judge()

    def _validate_on_one(self):
        if self._due():
            self._evaluate()
            self._judge(self.validation[:1])

    def _validate_by_sum(self):
        self._validate()
        if self._due():
            self.validation_losses[-1] *= len(self.validation)

    def _validate_by_size(self):
        self._validate()
        if self._due():
            with torch.no_grad():
                sums = sum(self.loss(self.model, *batch).item() * len(batch[0]) for batch in self.validation)
            self.validation_losses[-1] = sums / sum(len(batch[0]) for batch in self.validation)

    def _validate_with_gradients(self):
        if self._due():
            self._evaluate()
            self.loss(self.model, *self.validation[0])


def loop_of(name: str, moves: str, sentence: str) -> Callable:
    """The mistake of making other moves at every update, with the sentence that names it."""

    def attempt(*given):
        return Loop(*given).run(moves)

    attempt.__name__, attempt.__doc__ = name, sentence
    return attempt


LOOPS = {  # name: the moves of every update, and what whoever makes them needs to hear
    "gradients_add_up": (
        "train forward note backward clip set_rate update validate",
        "Your gradients add up from batch to batch: optimizer.zero_grad() before every backward().",
    ),
    "never_moves": (
        "train clear forward note update backward clip set_rate validate",
        "Your weights never move, because there are no gradients when optimizer.step() is called. Clear them, then backward, clip and step, in this order.",
    ),
    "late_gradients": (
        "train forward note set_rate update clear backward clip validate",
        "Your update uses the gradients of the batch before. backward() comes first, and then optimizer.step().",
    ),
    "not_clipped": (
        "train clear forward note backward set_rate update validate",
        "Your gradients are not clipped when the update is made: between backward() and optimizer.step(), nn.utils.clip_grad_norm_(model.parameters(), 1.0).",
    ),
    "clipped_each": (
        "train clear forward note backward clip_each set_rate update validate",
        "You clip the gradient of every weight matrix by itself. The norm is that of all gradients together.",
    ),
    "clipped_numbers": (
        "train clear forward note backward clip_numbers set_rate update validate",
        "You clip every number to between -1 and 1. The norm of all gradients together should be at most 1: use clip_grad_norm_.",
    ),
    "clipped_elsewhere": (
        "train clear forward note backward clip_at_two set_rate update validate",
        "You clip the gradients to another norm than 1: nn.utils.clip_grad_norm_(model.parameters(), 1.0).",
    ),
    "always_norm_one": (
        "train clear forward note backward to_norm_one set_rate update validate",
        "You bring all gradients to a norm of 1. Clipping leaves gradients that are shorter as they are.",
    ),
    "rate_constant": (
        "train clear forward note backward clip update validate",
        'Your rate stays AdamW\'s own, 0.001: before every update, set group["lr"] = rate(step) in optimizer.param_groups.',
    ),
    "rate_times_its_own": (
        "train clear forward note backward clip set_thousandth update validate",
        'Your rate is a thousandth of rate(step), because LambdaLR multiplies the optimizer\'s own rate, 0.001. Set group["lr"] = rate(step) instead.',
    ),
    "rate_one_ahead": (
        "train clear forward note backward clip set_next_rate update validate",
        "Your schedule is one update ahead: updates are counted from 0, and update `step` has rate(step).",
    ),
    "rate_one_behind": (
        "train clear forward note backward clip set_last_rate update validate",
        "Your schedule is one update behind: update `step`, counted from 0, has rate(step), not rate(step - 1).",
    ),
    "rate_set_after": (
        "train clear forward note backward clip update set_rate validate",
        "You set the rate after optimizer.step(), so it serves the next update. Set it before.",
    ),
    "first_batch_always": (
        "train clear forward_first note backward clip set_rate update validate",
        "Your loop sees the same batch at every update: ask for batches(step).",
    ),
    "noted_after_the_update": (
        "train clear forward backward clip set_rate update forward note validate",
        "You note the loss after the update. The loss of a step is the one that its gradients come from, before the weights move.",
    ),
    "optimizer_anew": (
        "begin train clear forward note backward clip set_rate update validate",
        "You make a new optimizer for every update, which forgets its averages. Make one before the loop.",
    ),
    "adam": (
        "begin_with_adam train clear forward note backward clip set_rate update validate",
        "That is Adam; AdamW also shrinks the weights a little at every update: torch.optim.AdamW(model.parameters()).",
    ),
    "plain_descent": (
        "begin_with_sgd train clear forward note backward clip set_rate update validate",
        "That is plain gradient descent (SGD). Use torch.optim.AdamW(model.parameters()).",
    ),
    "validated_in_training_mode": (
        "train clear forward note backward clip set_rate update validate_as_training",
        "You validate in training mode, in which dropout is active. Call model.eval() before.",
    ),
    "training_mode_not_restored": (
        "train_once clear forward note backward clip set_rate update validate",
        "After the first validation you train on in evaluation mode, without dropout: model.train() before the next update.",
    ),
    "never_in_training_mode": (
        "clear forward note backward clip set_rate update validate",
        "You never call model.train(): the model may come in evaluation mode, and is in it after every validation.",
    ),
    "validated_with_gradients": (
        "train clear forward note backward clip set_rate update validate_with_gradients",
        "Your validation keeps what a backward pass would need, or even makes one. Put it under with torch.no_grad().",
    ),
    "validated_before_the_update": (
        "train clear forward note backward clip set_rate validate train update",
        "You validate before the update is made; do it after optimizer.step().",
    ),
    "validated_one_late": (
        "train clear forward note backward clip set_rate update validate_early",
        "You validate after updates 1, 1 + evaluate_every, …; step counts from 0, so ask whether step + 1 is a multiple.",
    ),
    "validated_at_the_end_too": (
        "train clear forward note backward clip set_rate update validate_at_the_end_too",
        "You also validate after the last update; do it after every `evaluate_every` updates only.",
    ),
    "validated_every_time": (
        "train clear forward note backward clip set_rate update validate_every_time",
        "You validate after every update, which takes too long. Do it after every `evaluate_every` of them.",
    ),
    "validated_on_one_batch": (
        "train clear forward note backward clip set_rate update validate_on_one",
        "You validate on one batch; the validation loss is the mean over all of them.",
    ),
    "validation_summed": (
        "train clear forward note backward clip set_rate update validate_by_sum",
        "Your validation loss is a sum; take the mean over the batches.",
    ),
    "validation_weighted": (
        "train clear forward note backward clip set_rate update validate_by_size",
        "You weight the validation batches by their sizes. Take the plain mean of their losses.",
    ),
}

TRAINING_LOOP = Exercise(
    id="8.4",
    question="Write the training loop with loss, backward, clipping, rate, step and validation, and return both lists of losses.",
    difficulty=3,
    minutes=15,
    trains="the order of an update, and what validation must not touch",
    reference=train,
    draw=draw_training,
    use=run_training,
    part="training_loop",
    mistakes=tuple(loop_of(name, *row) for name, row in LOOPS.items()),
    hints=(
        "An update has an order: clear the old gradients, compute the loss, call backward, clip, set the rate, and step. When must the model be in which mode?",
        "loss(model, *batches(step)) has no axes; .item() makes a number of it. A validation loss is the mean over all validation batches.",
        'for group in optimizer.param_groups: group["lr"] = rate(step); if (step + 1) % evaluate_every == 0: model.eval(), with torch.no_grad(): …',
    ),
)


EXERCISES = (
    Exercise(
        id="8.1",
        question="Hide tokens: return inputs and targets, given which tokens are chosen and the fate of each, from 0 to 1.",
        difficulty=1,
        minutes=6,
        trains="the masking rule of BERT, 80/10/10",
        reference=hide,
        draw=draw_rows,
        mistakes=(
            always_masked,
            never_kept,
            shares_swapped,
            everything_replaced,
            targets_everywhere,
            targets_only_where_changed,
            targets_after_hiding,
            at_both_bounds,
            at_the_lower_bound,
            at_the_upper_bound,
            masks_overwritten,
            targets_first,
        ),
        hints=(
            "A chosen place holds one of three things: MASK, the random token or the token itself. The targets do not depend on which.",
            "All four are (batch, n). torch.where(condition, a, b) picks entry by entry, and a or b may be a number.",
            "replaced = torch.where(fate < 0.8, MASK, torch.where(…, random, ids)); then torch.where(chosen, …, ids) and torch.where(chosen, ids, …)",
        ),
    ),
    Exercise(
        id="8.2",
        question="Write forward of a pre-norm block. The two norms, the attention layer and the feed-forward layer are given.",
        difficulty=2,
        minutes=8,
        trains="where the norms and the sums belong in a block",
        reference=Block,
        draw=draw_block,
        use=run_block,
        gradients=("x", "A", "weights"),
        part="block",
        mistakes=(
            post_norm,
            without_norms,
            without_residuals,
            normed_residuals,
            first_residual_normed,
            second_residual_normed,
            side_by_side,
            normed_once,
            one_norm_twice,
            norms_swapped,
            feed_forward_first,
            mask_not_passed_on,
            second_sum_missing,
            normed_over_tokens,
        ),
        hints=(
            "Two lines do, and each has the form x = x + layer(norm(x)). Which layer needs to know which tokens are padding?",
            "Norms and layers keep the shape, (batch, n, d_model); only attention takes padding_mask, after x.",
            "x = x + self.attention(self.attention_norm(x), padding_mask); return x + self.feed_forward(…)",
        ),
    ),
    Exercise(
        id="8.3",
        question="Return the learning rate of update `step`, counted from 0: it rises to `highest`, and then falls along half a cosine.",
        difficulty=1,
        minutes=6,
        trains="a rate that rises first and then falls along a cosine",
        reference=rate_at,
        draw=draw_schedule,
        mistakes=(
            without_warmup,
            cosine_from_the_start,
            zero_first_step,
            linear_fall,
            whole_cosine,
            full_turn,
            quarter_turn,
            warmup_one_too_long,
            cosine_one_ahead,
            zero_at_the_last,
        ),
        hints=(
            "There are two cases: before the end of the rise, and after it.",
            "The last update of the rise, step warmup - 1, has the full rate. At step = steps the cosine would reach 0.",
            "done = (step - warmup) / (steps - warmup); return highest * (1 + math.cos(…)) / 2",
        ),
    ),
    TRAINING_LOOP,
    Exercise(
        id="8.5",
        question="After how many updates does a curve (points, 2) of updates and losses first come down to a loss? Return -1.0 if never.",
        difficulty=2,
        minutes=7,
        trains="comparing runs by what they cost",
        reference=updates_until,
        draw=draw_curve,
        mistakes=(
            at_the_next_point,
            at_the_last_point_above,
            at_the_lowest_point,
            the_last_crossing,
            place_not_updates,
            never_unless_reached_late,
            only_below,
            later_only_below,
            first_point_forgotten,
            from_the_other_end,
        ),
        hints=(
            "Find the first point at or below the loss; the crossing lies on the straight line from the point before it.",
            "When the loss is reached, the share (l0 - loss) / (l0 - l1) of the way from (u0, l0) to (u1, l1) has been covered.",
            "return u0 + (l0 - loss) / (l0 - l1) * (…); if the very first point is low enough, its updates",
        ),
    ),
    Exercise(
        id="8.6",
        question="From the log (lines, 2) of a run that was killed and restarted, return the losses of the updates that led to its weights.",
        difficulty=3,
        minutes=8,
        trains="which updates a restart throws away",
        reference=curve_of,
        draw=draw_log,
        mistakes=(
            last_per_step,
            first_per_step,
            all_lines,
            mean_per_step,
            last_visit_only,
            steps_not_losses,
            lines_not_repeated,
            old_line_kept,
        ),
        hints=(
            "Read the lines from the top, as they were written. What does it mean when the step goes back?",
            "When step s comes again, everything that you have kept from step s on is void. The result has the shape (steps,).",
            "for step, loss in log: curve[int(step) - 1 :] = [loss], with a list; then torch.stack(…)",
        ),
    ),
)

QUIZ = (
    Question(
        "A masked model has a loss of 5.9 nats after an hour, and the unigram baseline has 5.9. What has it learned?",
        (
            Option(
                "judged by its loss, no more than how often each token occurs",
                "That is all that a unigram knows.",
                True,
            ),
            Option(
                "a third of the language", "A loss is not a share. Compare it with what counting reaches."
            ),
            Option("nothing at all", "A uniform guess over 1,000 tokens would cost ln 1,000 = 6.9 nats."),
            Option("to copy its input", "Only one chosen token in ten is still there to be copied."),
        ),
    ),
    Question(
        "Of 100 tokens chosen for guessing, how many reach the model as MASK, on average?",
        (
            Option("80", "10 become a random token, and 10 stay as they are.", True),
            Option("100", "Then the model would trust every token it can see."),
            Option("15", "15 % of all tokens are chosen; of these, 80 % become MASK."),
            Option("12", "12 is right for every 100 tokens of the text, but not for every 100 chosen ones."),
        ),
    ),
    Question(
        "Two models are compared after the same number of updates. One update of the second takes half the time. Then …",
        (
            Option(
                "also compare them after the same time, and say which of the two you mean",
                "Both comparisons are fair, and they can have different answers.",
                True,
            ),
            Option(
                "the comparison is fair as it is",
                "In the same time the second model could have made twice as many updates.",
            ),
            Option("halve the second one's loss", "Loss does not scale with time."),
            Option(
                "only the final loss counts",
                "What does final mean here: after so many updates, tokens, or seconds?",
            ),
        ),
    ),
    Question(
        "Measured once on 665 passages, one fine-tuned model's share of right answers is 0.01 higher than another's. Is it better?",
        (
            Option(
                "We cannot say, because another seed or other passages may reverse the order",
                "One seed says nothing about the spread over seeds, and 0.01 of 665 is about seven passages.",
                True,
            ),
            Option("yes, by 1 %", "A difference says nothing without a spread to compare it with."),
            Option(
                "yes, since both saw the same passages",
                "They saw the same passages, but one draw of the new layer and of the order.",
            ),
            Option("no, it is worse", "Nothing shows that either."),
        ),
    ),
    Question(
        "A run is killed at step 730, and checkpoints were written every 100 steps. What must a checkpoint hold so that the run continues along the same curve?",
        (
            Option(
                "the weights, AdamW's averages, the step, and the state of the random numbers",
                "With these, and batches that depend only on seed and step, every later loss is the same.",
                True,
            ),
            Option(
                "the weights",
                "Then AdamW would begin again with empty averages, and the learning rate at its start.",
            ),
            Option(
                "the weights and the loss",
                "The loss follows from the weights and the batch, so it need not be stored.",
            ),
            Option(
                "the whole process, as a pickle",
                "Reading a pickle can run any code. Tensors and JSON are enough.",
            ),
        ),
    ),
)
