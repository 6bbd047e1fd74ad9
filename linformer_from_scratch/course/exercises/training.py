"""Exercises of chapter 08."""

import math
import random as python_random
from collections.abc import Callable, Sequence
from functools import wraps
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.course.recorded.curves import updates_until
from linformer_from_scratch.data import IGNORE, MASK
from linformer_from_scratch.encoder import Block
from linformer_from_scratch.training import Config, learning_rate

WORDS = 50  # tokens of the vocabulary from which the draws come


def hide(ids: Tensor, chosen: Tensor, fate: Tensor, random: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs and targets of masked-language modelling, from draws that are already made. Shape: two of (batch, n)."""
    return put_in(ids, chosen, torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, random, ids)))


def put_in(ids, chosen, replaced):
    """Inputs with others in the chosen places, and the targets there."""
    return torch.where(chosen, replaced, ids), torch.where(chosen, ids, IGNORE)


@exercise("8.1", stars=1, minutes=6)
class HideTokens:
    """Hide tokens."""

    hints = (
        "In a chosen place there's one of three things: MASK, the random token, or the token itself. The targets don't care which.",
        "All four have the shape (batch, n). torch.where(condition, a, b) picks entry by entry, and a or b may be a number.",
        "replaced = torch.where(fate < 0.8, MASK, torch.where(…, random, ids)); then torch.where(chosen, …, ids) and torch.where(chosen, ids, …)",
    )
    reference = hide

    def draw(seed):
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
        """You put MASK in every chosen place, so the model could trust every token that it sees. Only a fate below 0.8 means MASK: what about the other fifth?"""
        return put_in(ids, chosen, MASK)

    def never_kept(ids, chosen, fate, random):
        """Each of your chosen tokens becomes MASK or random. One in ten should get away unharmed: look at fate ≥ 0.9."""
        return put_in(ids, chosen, torch.where(fate < 0.8, MASK, random))

    def shares_swapped(ids, chosen, fate, random):
        """You keep the token where 0.8 ≤ fate < 0.9 and make it random from 0.9 on. Both tenths are there, but swapped."""
        return put_in(ids, chosen, torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, ids, random)))

    def everything_replaced(ids, chosen, fate, random):
        """You hide tokens that nobody has chosen. fate has a number for every place, so it's easy to forget: ask chosen before you use it."""
        return hide(ids, torch.ones_like(chosen), fate, random)[0], torch.where(chosen, ids, IGNORE)

    def targets_everywhere(ids, chosen, fate, random):
        """Your targets have a token in every place, so the model would earn most of its reward by copying what it sees. Where nothing is to be guessed, the target is IGNORE."""
        return hide(ids, chosen, fate, random)[0], ids.clone()

    def targets_only_where_changed(ids, chosen, fate, random):
        """You ignore the chosen tokens that stayed as they are. They have to be guessed, too, since the model can't know that they're right: their target is the token."""
        inputs, _ = hide(ids, chosen, fate, random)
        return inputs, torch.where(inputs != ids, ids, IGNORE)

    def targets_after_hiding(ids, chosen, fate, random):
        """Your targets are what is left after hiding, so the model would have to guess MASK. It should guess the original token: look at ids."""
        inputs, _ = hide(ids, chosen, fate, random)
        return inputs, torch.where(chosen, inputs, IGNORE)

    def at_both_bounds(ids, chosen, fate, random):
        """A fate of exactly 0.8 isn't below 0.8, and 0.9 isn't below 0.9. You let both in: write < instead of <=."""
        return put_in(ids, chosen, torch.where(fate <= 0.8, MASK, torch.where(fate <= 0.9, random, ids)))

    def at_the_lower_bound(ids, chosen, fate, random):
        """You put MASK where fate is exactly 0.8, and 0.8 isn't below 0.8: write < instead of <= at this bound."""
        return put_in(ids, chosen, torch.where(fate <= 0.8, MASK, torch.where(fate < 0.9, random, ids)))

    def at_the_upper_bound(ids, chosen, fate, random):
        """You replace the token where fate is exactly 0.9, and 0.9 isn't below 0.9: write < instead of <= at that bound."""
        return put_in(ids, chosen, torch.where(fate < 0.8, MASK, torch.where(fate <= 0.9, random, ids)))

    def masks_overwritten(ids, chosen, fate, random):
        """Your random tokens overwrite your masks, because a fate below 0.8 is below 0.9 as well. Put the masks in last, or ask for 0.8 <= fate."""
        return put_in(ids, chosen, torch.where(fate < 0.9, random, ids))

    def targets_first(ids, chosen, fate, random):
        """All the values are right, but you return the targets first. The inputs come first."""
        return hide(ids, chosen, fate, random)[::-1]


class Mixing(nn.Module):
    """An attention layer whose map is given, A (batch, n, n); nobody reads padding."""

    def __init__(self, A: Tensor):
        super().__init__()
        self.A = A

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """A x. Shape: x (batch, n, d), padding_mask (batch, n) -> (batch, n, d)."""
        return self.A @ (x if padding_mask is None else x * padding_mask[..., None])


def with_forward(forward: Callable) -> type[Block]:
    """A block with another forward, whose docstring becomes its own."""
    return type(forward.__name__, (Block,), {"forward": forward, "__doc__": forward.__doc__})


def over_tokens(norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """What LayerNorm gives where it works on the tokens of each feature."""
    spread = (x.var(1, correction=0, keepdim=True) + norm.eps).sqrt()
    return (x - x.mean(1, keepdim=True)) / spread * norm.weight + norm.bias


@exercise("8.2", stars=2, minutes=8, gradients=("x", "A", "weights"), part="block", each=with_forward)
class PreNormBlock:
    """A pre-norm block."""

    hints = (
        "Two lines are enough, both of the form x = x + layer(norm(x)). Which of the layers mixes tokens, and so needs to know about padding?",
        "Everything keeps the shape (batch, n, d_model). Only attention takes padding_mask, after x.",
        "x = x + self.attention(self.attention_norm(x), padding_mask); return x + self.feed_forward(…)",
    )
    reference = Block

    def draw(seed):
        """Tokens, which of them are real, an attention map, and all weights of a block in their order."""
        batch, n, d = row(seed, ((2, 5, 7), (3, 4, 6), (2, 1, 5), (1, 6, 4)))
        sizes = (d,), (d,), (d,), (d,), (4 * d, d), (4 * d,), (d, 4 * d), (d,)
        x, A, *weights = normal(seed, (batch, n, d), (batch, n, n), *sizes)
        padding_mask = torch.arange(n) < n - 1 - torch.arange(batch)[:, None] % 2
        return x * 2 + 1, padding_mask if seed % 2 else None, A.softmax(dim=-1), [w / 2 for w in weights]

    def use(attempt, x, padding_mask, A, weights):
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

    def post_norm(self, x, padding_mask=None):
        """You normalise the sum, as the Transformer of 2017 did, and many diagrams still show that. A pre-norm block normalises what goes into a layer and leaves the sum alone."""
        x = self.attention_norm(x + self.attention(x, padding_mask))
        return self.feed_forward_norm(x + self.feed_forward(x))

    def without_norms(self, x, padding_mask=None):
        """Your block never normalises anything, and __init__ has two norms waiting. What should each layer get instead of x?"""
        x = x + self.attention(x, padding_mask)
        return x + self.feed_forward(x)

    def without_residuals(self, x, padding_mask=None):
        """You replace x by what a layer returns, so the tokens themselves are lost after the first layer. Add the output to x."""
        return self.feed_forward(self.feed_forward_norm(self.attention(self.attention_norm(x), padding_mask)))

    def normed_residuals(self, x, padding_mask=None):
        """You overwrite x with its normalised version and add to that. Add to the old x, so that it runs straight through all blocks, and give the norm to the layer alone."""
        x = self.attention_norm(x)
        x = self.feed_forward_norm(x + self.attention(x, padding_mask))
        return x + self.feed_forward(x)

    def first_residual_normed(self, x, padding_mask=None):
        """Your second line is right; your first one adds to the normalised x. Only what goes into attention is normalised, and the sum is with x itself."""
        x = self.attention_norm(x)
        x = x + self.attention(x, padding_mask)
        return x + self.feed_forward(self.feed_forward_norm(x))

    def second_residual_normed(self, x, padding_mask=None):
        """Your first line is right; your second one adds to the normalised x. Only what goes into the feed-forward layer is normalised, and the sum is with x itself."""
        x = x + self.attention(self.attention_norm(x), padding_mask)
        x = self.feed_forward_norm(x)
        return x + self.feed_forward(x)

    def side_by_side(self, x, padding_mask=None):
        """You compute both layers from the same x, side by side. That trains, too, but here the feed-forward layer works on the x to which attention has already added something."""
        read = self.attention(self.attention_norm(x), padding_mask)
        return x + read + self.feed_forward(self.feed_forward_norm(x))

    def normed_once(self, x, padding_mask=None):
        """Attention gets a normalised x, but your feed-forward layer gets x raw. Each of the two layers has its own norm."""
        x = x + self.attention(self.attention_norm(x), padding_mask)
        return x + self.feed_forward(x)

    def one_norm_twice(self, x, padding_mask=None):
        """You use attention_norm for both layers. At the start of training nobody would notice, since both norms begin alike, but each learns its own weights: feed_forward_norm belongs before the second layer."""
        x = x + self.attention(self.attention_norm(x), padding_mask)
        return x + self.feed_forward(self.attention_norm(x))

    def norms_swapped(self, x, padding_mask=None):
        """Your norms have changed places. Each is named after the layer that it comes before."""
        x = x + self.attention(self.feed_forward_norm(x), padding_mask)
        return x + self.feed_forward(self.attention_norm(x))

    def feed_forward_first(self, x, padding_mask=None):
        """Your feed-forward layer runs before attention. First the tokens exchange something, and then each digests it by itself: swap the two lines."""
        x = x + self.feed_forward(self.feed_forward_norm(x))
        return x + self.attention(self.attention_norm(x), padding_mask)

    def mask_not_passed_on(self, x, padding_mask=None):
        """Your block forgets padding_mask, so attention treats padding as text. Pass it on as attention's second argument."""
        return Block.forward(self, x)

    def second_sum_missing(self, x, padding_mask=None):
        """You return what the feed-forward layer says, without x. Add it to x, just as you did with the output of attention."""
        x = x + self.attention(self.attention_norm(x), padding_mask)
        return self.feed_forward(self.feed_forward_norm(x))

    def normed_over_tokens(self, x, padding_mask=None):
        """You normalise each feature over the tokens of the text. LayerNorm does it the other way: over the features of one token, the last axis."""
        x = x + self.attention(over_tokens(self.attention_norm, x), padding_mask)
        return x + self.feed_forward(over_tokens(self.feed_forward_norm, x))


def rate_at(step: int, steps: int, highest: float, warmup: int) -> float:
    """The learning rate of an update, counted from 0."""
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def falling(step, steps, highest, warmup, share):
    """The rise, and then a share of the highest rate: of what part of the fall is done."""
    if step < warmup:
        return rate_at(step, steps, highest, warmup)
    return highest * share((step - warmup) / (steps - warmup))


@exercise("8.3", stars=1, minutes=6)
class LearningRate:
    """The learning rate."""

    hints = (
        "There are two cases: the update belongs to the rise, or to the cosine.",
        "The rise reaches the full rate at its last update, warmup - 1. The cosine would reach 0 at step = steps, which never comes.",
        "done = (step - warmup) / (steps - warmup); return highest * (1 + math.cos(…)) / 2",
    )
    reference = rate_at

    def draw(seed):
        """A step early in the warm-up, at its end, in the middle, near the last."""
        if seed < 4:
            return ((6, 1000, 0.004, 50), (70, 311, 0.01, 70), (400, 907, 0.002, 101), (3, 19, 0.5, 0))[seed]
        generator = python_random.Random(seed)
        warmup = generator.randint(2, 90)
        steps = warmup + generator.randint(20, 900)
        step = (generator.randrange(warmup), warmup, generator.randrange(warmup, steps))[seed % 3]
        return step, steps, generator.uniform(0.001, 0.5), warmup

    def without_warmup(step, steps, highest, warmup):
        """You start at the highest rate and go straight into the cosine. What about the first `warmup` updates, where the rate rises in equal steps?"""
        return highest * (1 + math.cos(math.pi * step / steps)) / 2

    def cosine_from_the_start(step, steps, highest, warmup):
        """Your rise is right, but your cosine has been running since step 0 and is on its way down when the rise ends. Count from there: (step - warmup) of (steps - warmup)."""
        if step < warmup:
            return rate_at(step, steps, highest, warmup)
        return highest * (1 + math.cos(math.pi * step / steps)) / 2

    def zero_first_step(step, steps, highest, warmup):
        """Your first update has the rate 0, so it computes gradients for nothing. Steps count from 0: which number should stand above `warmup` at step 0?"""
        if step < warmup:
            return highest * step / warmup
        return rate_at(step, steps, highest, warmup)

    def linear_fall(step, steps, highest, warmup):
        """Your rate falls in a straight line. That's a popular schedule, but not this one: half a cosine starts flat and ends flat."""
        return falling(step, steps, highest, warmup, lambda done: 1 - done)

    def whole_cosine(step, steps, highest, warmup):
        """Your rate becomes negative, because cos goes down to -1. Shift it up and halve it: (1 + cos) / 2."""
        return falling(step, steps, highest, warmup, lambda done: math.cos(math.pi * done))

    def full_turn(step, steps, highest, warmup):
        """Your rate is back at the top by the end: 2π is a whole turn. Half a turn goes from peak to trough."""
        return falling(step, steps, highest, warmup, lambda done: (1 + math.cos(2 * math.pi * done)) / 2)

    def quarter_turn(step, steps, highest, warmup):
        """You use the quarter of the cosine from 1 to 0. It ends at 0, so it looks right, but it gets there at full speed. Take half a turn, as (1 + cos) / 2."""
        return falling(step, steps, highest, warmup, lambda done: math.cos(math.pi / 2 * done))

    def warmup_one_too_long(step, steps, highest, warmup):
        """Your rise runs one update too long and overshoots `highest`. Step `warmup` already belongs to the cosine: write < instead of <=."""
        if step <= warmup:
            return highest * (step + 1) / (warmup or 1)
        return rate_at(step, steps, highest, warmup)

    def cosine_one_ahead(step, steps, highest, warmup):
        """Your cosine is one update ahead. The + 1 belongs to the rise alone: at step `warmup` the rate is still the highest."""
        return rate_at(step + (step >= warmup), steps, highest, warmup)

    def zero_at_the_last(step, steps, highest, warmup):
        """Your last update has the rate 0 and moves nothing. The cosine reaches 0 at `steps`, when all updates have been made, and not at steps - 1."""
        return rate_at(step, steps - 1, highest, warmup)


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


class Loop:
    """A training loop in moves, so that a mistake is an update of other moves.

    Args: as train.
    """

    def __init__(self, model, loss, batches, validation, rate, steps, evaluate_every):
        self.model, self.loss, self.batches, self.validation = model, loss, batches, validation
        self.rate, self.steps, self.evaluate_every = rate, steps, evaluate_every
        self.losses, self.validation_losses = [], []
        self.begin()

    def do(self, moves):
        """Make these moves, one after the other."""
        for move in moves.split():
            getattr(self, move)()

    def begin(self, kind=torch.optim.AdamW):
        self.optimizer = kind(self.model.parameters())

    def train(self):
        self.model.train()

    def clear(self):
        self.optimizer.zero_grad()

    def forward(self, step=None):
        self.value = self.loss(self.model, *self.batches(self.step if step is None else step))

    def note(self):
        self.losses.append(self.value.item())

    def backward(self):
        self.value.backward()

    def clip(self, norm=1.0):
        nn.utils.clip_grad_norm_(self.model.parameters(), norm)

    def set_rate(self, later=0, times=1.0):
        for group in self.optimizer.param_groups:
            group["lr"] = times * self.rate(self.step + later)

    def update(self):
        self.optimizer.step()

    def is_due(self, after=1):
        return (self.step + after) % self.evaluate_every == 0

    def validate(self):
        if self.is_due():
            self.model.eval()
            self.judge()

    def judge(self, batches=None):
        with torch.no_grad():
            each = [self.loss(self.model, *batch).item() for batch in batches or self.validation]
        self.validation_losses.append(sum(each) / len(each))


def looping(update: Callable[[Loop], None]) -> Callable:
    """A training loop that makes this update at every step."""

    @wraps(update)
    def attempt(*given):
        loop = Loop(*given)
        for step in range(loop.steps):
            loop.step = step
            update(loop)
        return loop.losses, loop.validation_losses

    return attempt


@exercise("8.4", stars=3, minutes=15, part="training_loop", each=looping)
class TrainingLoop:
    """The training loop."""

    hints = (
        "An update has an order: clear the old gradients, compute the loss, call backward, clip, set the rate, step. And ask yourself which mode the model is in when an update begins.",
        "loss(model, *batches(step)) has no axes, and .item() makes a number of it. A validation loss is the mean over all batches of the list.",
        'for group in optimizer.param_groups: group["lr"] = rate(step); if (step + 1) % evaluate_every == 0: model.eval(), with torch.no_grad(): …',
    )
    reference = train

    def draw(seed):
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
        wanted, weights = tuple(3 * each for each in asked), [first / 2, second / 4]
        return inputs, growing * targets, unseen, wanted, weights, kept, highest, warmup, evaluate_every

    def use(attempt, inputs, targets, unseen, asked, weights, kept, highest, warmup, evaluate_every):
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

    def gradients_add_up(loop):
        """Your gradients add up from batch to batch, and PyTorch doesn't complain. Call optimizer.zero_grad() before every backward()."""
        loop.do("train forward note backward clip set_rate update validate")

    def never_moves(loop):
        """Your weights never move: when optimizer.step() is called, the gradients have just been cleared or aren't there yet. Clear, then backward, clip and step."""
        loop.do("train clear forward note update backward clip set_rate validate")

    def late_gradients(loop):
        """Each of your updates uses the gradients of the batch before. All the calls are there, but backward() has to come before optimizer.step()."""
        loop.do("train forward note set_rate update clear backward clip validate")

    def not_clipped(loop):
        """Your update is made with unclipped gradients. Between backward() and optimizer.step() there has to be nn.utils.clip_grad_norm_(model.parameters(), 1.0)."""
        loop.do("train clear forward note backward set_rate update validate")

    def clipped_each(loop):
        """You clip each weight matrix by itself, which changes the direction of the step. It's the norm of all gradients together that should be at most 1."""
        loop.do("train clear forward note backward")
        for weight in loop.model.parameters():
            nn.utils.clip_grad_norm_(weight, 1.0)
        loop.do("set_rate update validate")

    def clipped_numbers(loop):
        """You clip every single number to between -1 and 1. Many small numbers can still be a long gradient: use clip_grad_norm_, not clip_grad_value_."""
        loop.do("train clear forward note backward")
        nn.utils.clip_grad_value_(loop.model.parameters(), 1.0)
        loop.do("set_rate update validate")

    def clipped_elsewhere(loop):
        """You clip, but not to a norm of 1. Look at the second argument: nn.utils.clip_grad_norm_(model.parameters(), 1.0)."""
        loop.do("train clear forward note backward")
        loop.clip(2.0)
        loop.do("set_rate update validate")

    def always_norm_one(loop):
        """You bring every gradient to a norm of exactly 1, short ones included. Clipping only shortens; what's shorter already stays as it is."""
        loop.do("train clear forward note backward")
        norm = torch.stack([weight.grad.norm() for weight in loop.model.parameters()]).norm()
        for weight in loop.model.parameters():
            weight.grad /= norm
        loop.do("set_rate update validate")

    def rate_constant(loop):
        """Your rate stays at 0.001, AdamW's default, and rate(step) is never used. Before every update set group["lr"] = rate(step) for each group of optimizer.param_groups."""
        loop.do("train clear forward note backward clip update validate")

    def rate_times_its_own(loop):
        """Your rate is a thousandth of rate(step). LambdaLR multiplies the optimizer's own rate, 0.001, by what it's given; set group["lr"] = rate(step) instead."""
        loop.do("train clear forward note backward clip")
        loop.set_rate(times=0.001)
        loop.do("update validate")

    def rate_one_ahead(loop):
        """Your schedule runs one update ahead. Updates count from 0, so the first has rate(0)."""
        loop.do("train clear forward note backward clip")
        loop.set_rate(later=1)
        loop.do("update validate")

    def rate_one_behind(loop):
        """Your schedule runs one update behind: update `step` has rate(step), not rate(step - 1)."""
        loop.do("train clear forward note backward clip")
        loop.set_rate(later=-1)
        loop.do("update validate")

    def rate_set_after(loop):
        """You set the rate after optimizer.step(), so it's used one update late. Set it before."""
        loop.do("train clear forward note backward clip update set_rate validate")

    def first_batch_always(loop):
        """Your loop trains on the same batch at every update, and will soon know it by heart. Ask for batches(step)."""
        loop.do("train clear")
        loop.forward(0)
        loop.do("note backward clip set_rate update validate")

    def noted_after_the_update(loop):
        """You note the loss after the weights have moved. A step's loss is the one that its gradients come from, so note it before."""
        loop.do("train clear forward backward clip set_rate update forward note validate")

    def optimizer_anew(loop):
        """You make a new optimizer for every update, and each begins with empty averages. Make one before the loop."""
        loop.do("begin train clear forward note backward clip set_rate update validate")

    def adam(loop):
        """That's Adam. AdamW also shrinks the weights a little at every update: torch.optim.AdamW(model.parameters())."""
        if not loop.step:
            loop.begin(torch.optim.Adam)
        loop.do("train clear forward note backward clip set_rate update validate")

    def plain_descent(loop):
        """That's plain gradient descent (SGD), which doesn't divide by the gradient's typical size. Use torch.optim.AdamW(model.parameters())."""
        if not loop.step:
            loop.begin(torch.optim.SGD)
        loop.do("train clear forward note backward clip set_rate update validate")

    def validated_in_training_mode(loop):
        """You validate in training mode, so dropout is still throwing features away. Call model.eval() first."""
        loop.do("train clear forward note backward clip set_rate update")
        if loop.is_due():
            loop.judge()

    def training_mode_not_restored(loop):
        """After your first validation the model stays in evaluation mode, so the rest of the training has no dropout. Where in the loop does model.train() have to be?"""
        if not loop.step:
            loop.train()
        loop.do("clear forward note backward clip set_rate update validate")

    def never_in_training_mode(loop):
        """You never call model.train(). The model may arrive in evaluation mode, and it's in that mode after every validation."""
        loop.do("clear forward note backward clip set_rate update validate")

    def validated_with_gradients(loop):
        """Your validation keeps everything that a backward pass would need, or even makes one. Put it inside with torch.no_grad()."""
        loop.do("train clear forward note backward clip set_rate update")
        if loop.is_due():
            loop.model.eval()
            loop.loss(loop.model, *loop.validation[0])

    def validated_before_the_update(loop):
        """You validate just before the update. It should be judged with the new weights, so do it after optimizer.step()."""
        loop.do("train clear forward note backward clip set_rate validate train update")

    def validated_one_late(loop):
        """You validate after the very first update, since 0 is a multiple of everything. After update `step`, step + 1 updates have been made: ask whether that is a multiple."""
        loop.do("train clear forward note backward clip set_rate update")
        if loop.is_due(after=0):
            loop.model.eval()
            loop.judge()

    def validated_at_the_end_too(loop):
        """You validate once more after the last update. It's a good habit, but not asked for here: only after every `evaluate_every` updates."""
        loop.do("train clear forward note backward clip set_rate update")
        if loop.is_due() or loop.step == loop.steps - 1:
            loop.model.eval()
            loop.judge()

    def validated_every_time(loop):
        """You validate after every update, which would take longer than the training. Do it after every `evaluate_every` of them."""
        loop.do("train clear forward note backward clip set_rate update")
        loop.model.eval()
        loop.judge()

    def validated_on_one_batch(loop):
        """You validate on one batch only. The validation loss is the mean over all batches of the list."""
        loop.do("train clear forward note backward clip set_rate update")
        if loop.is_due():
            loop.model.eval()
            loop.judge(loop.validation[:1])

    def validation_summed(loop):
        """Your validation loss is a sum over the batches, so it would grow with their number. Take the mean."""
        loop.do("train clear forward note backward clip set_rate update")
        loop.validate()
        if loop.is_due():
            loop.validation_losses[-1] *= len(loop.validation)

    def validation_weighted(loop):
        """You weight the validation batches by their sizes. That's a fair idea, but here each batch counts the same: take the plain mean."""
        loop.do("train clear forward note backward clip set_rate update")
        loop.validate()
        if loop.is_due():
            with torch.no_grad():
                sums = sum(loop.loss(loop.model, *batch).item() * len(batch[0]) for batch in loop.validation)
            loop.validation_losses[-1] = sums / sum(len(batch[0]) for batch in loop.validation)


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


@exercise("8.5", stars=2, minutes=7)
class LearningCurve:
    """Read a learning curve."""

    hints = (
        "Find the first point at or below the loss. The crossing is on the straight line that leads to it from the point before.",
        "Where the line meets the loss, it has covered the share (l0 - loss) / (l0 - l1) of its way from (u0, l0) to (u1, l1).",
        "return u0 + (l0 - loss) / (l0 - l1) * (…); if the very first point is low enough, its updates",
    )
    reference = updates_until

    def draw(seed):
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
        """You return the first point that's low enough. The curve crossed the loss somewhere before it: go back along the straight line."""
        below = [updates for updates, measured in curve.tolist() if measured <= loss]
        return below[0] if below else -1.0

    def at_the_last_point_above(curve, loss):
        """You stop at the last point above the loss. Go on along the straight line to where it's reached."""
        reached = updates_until(curve, loss)
        return reached if reached <= curve[0, 0] else max(u for u, _ in curve.tolist() if u <= reached)

    def at_the_lowest_point(curve, loss):
        """You return where the curve is lowest. We don't ask how low it gets, but when it first gets as low as `loss`."""
        return curve[curve[:, 1].argmin(), 0].item()

    def the_last_crossing(curve, loss):
        """This curve comes down to the loss, rises again, and comes down once more. You took the last time; the first one counts."""
        points = curve.tolist()
        above = [i for i, (_, measured) in enumerate(points) if measured > loss]
        if not above or above[-1] == len(points) - 1:
            return updates_until(curve, loss)
        return updates_until(curve[above[-1] :], loss)

    def place_not_updates(curve, loss):
        """You return the place in the list. How many updates that was stands in the first column."""
        below = [float(i) for i, (_, measured) in enumerate(curve.tolist()) if measured <= loss]
        return below[0] if below else -1.0

    def never_unless_reached_late(curve, loss):
        """This curve never comes down to the loss, and you return its last point, as if it had. Say so honestly: -1.0."""
        reached = updates_until(curve, loss)
        return curve[-1, 0].item() if reached < 0 else reached

    def only_below(curve, loss):
        """This curve touches the loss exactly at a point, and you walk past it: ask for <= instead of <."""
        return crossing(curve, lambda measured: measured < loss, lambda measured: measured < loss, loss)

    def later_only_below(curve, loss):
        """At the first point you ask for <=, and further along for <. A later point at exactly this loss has come down to it as well."""
        return crossing(curve, lambda measured: measured <= loss, lambda measured: measured < loss, loss)

    def first_point_forgotten(curve, loss):
        """This curve starts out low enough, and you never look at its first point because nothing comes before it. Check it by itself, with <=."""
        return crossing(curve, lambda measured: False, lambda measured: measured <= loss, loss)

    def from_the_other_end(curve, loss):
        """You found the right pair of points, but you measure from the wrong end. From the earlier point on, the share (l0 - loss) / (l0 - l1) of the way lies before the crossing."""
        points = curve.tolist()
        for (u0, l0), (u1, l1) in zip([points[0], *points], points, strict=False):
            if l1 <= loss:
                return u1 if l0 == l1 else u0 + (loss - l1) / (l0 - l1) * (u1 - u0)
        return -1.0


def curve_of(log: Tensor) -> Tensor:
    """Losses by step, each step once: what was computed again after a resume counts. Shape: (lines, 2) -> (steps,)."""
    curve: list[Tensor] = []
    for step, loss in log:
        curve[int(step) - 1 :] = [loss]  # a step that comes again takes back what followed
    return torch.stack(curve)


def visits_of(seed: int) -> Sequence[tuple[int, int]]:
    """First and last step of each stretch between a resume and the next kill."""
    if seed < 4:
        return (((1, 7), (5, 9)), ((1, 6), (4, 8), (2, 10)), ((1, 1),), ((1, 5), (1, 4), (3, 4)))[seed]
    generator = python_random.Random(seed)
    visits = [(1, generator.randint(5, 12))]
    for _ in range(generator.randint(1, 3)):
        first = generator.randint(2, visits[-1][1])
        visits.append((first, first + generator.randint(0, 7)))
    return visits


@exercise("8.6", stars=3, minutes=8)
class KilledRun:
    """A log of a run that was killed."""

    hints = (
        "Go through the lines in the order in which they were written. What has happened when the step goes back?",
        "When step s comes again, whatever you've kept from step s on is void. The result has the shape (steps,).",
        "for step, loss in log: curve[int(step) - 1 :] = [loss], with a list; then torch.stack(…)",
    )
    reference = curve_of

    def draw(seed):
        """Lines of (step, loss): killed at some steps, and each time resumed from an earlier one."""
        visits = visits_of(seed)
        steps = [step for first, last in visits for step in range(first, last + 1)]
        (losses,) = normal(seed, (len(steps),))
        return (torch.stack([torch.tensor(steps, dtype=torch.float32), 5 + losses], dim=1),)

    def last_per_step(log):
        """You take the last line of each step, which is nearly right. But if a run goes back to step 2 and ends at step 3, its old step 4 is gone as well, though nothing has replaced it."""
        losses = {int(step): loss for step, loss in log}
        return torch.stack([losses[step] for step in sorted(losses)])

    def first_per_step(log):
        """You keep the first line of each step. The weights behind it died with the run: after the restart the step was made again, and that's the line that counts."""
        losses: dict[int, Tensor] = {}
        for step, loss in log:
            losses.setdefault(int(step), loss)
        return torch.stack([losses[step] for step in sorted(losses)])

    def all_lines(log):
        """You return the whole log, so a step that was made twice is there twice. The final weights remember only one of them."""
        return log[:, 1].clone()

    def mean_per_step(log):
        """You average the lines of a step, as if both had counted a little. Only one of them led to the weights that the run went on with: which?"""
        losses: dict[int, list[Tensor]] = {}
        for step, loss in log:
            losses.setdefault(int(step), []).append(loss)
        return torch.stack([torch.stack(losses[step]).mean() for step in sorted(losses)])

    def last_visit_only(log):
        """You keep only what came after the last restart. It went on from a checkpoint, though, so the steps before that checkpoint count, too."""
        restarts = [i for i in range(1, len(log)) if log[i, 0] <= log[i - 1, 0]]
        return log[max(restarts, default=0) :, 1].clone()

    def steps_not_losses(log):
        """You return the steps. Their losses are in the second column."""
        return torch.arange(1, len(curve_of(log)) + 1, dtype=torch.float32)

    def lines_not_repeated(log):
        """You keep a line if its step never comes again. But if a run goes back and then ends earlier than before, its old later steps are void, although nothing ever replaces them."""
        steps = log[:, 0].tolist()
        return torch.stack([log[i, 1] for i, step in enumerate(steps) if step not in steps[i + 1 :]])

    def old_line_kept(log):
        """You cut one line too late. When step s comes again, its own old line is void, too, not only those after it."""
        curve: list[Tensor] = []
        for step, loss in log:
            curve[int(step) :] = [loss]
        return torch.stack(curve)
