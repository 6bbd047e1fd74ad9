"""Right and nearly right answers: training."""

import itertools
import math
import statistics
from fractions import Fraction

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from linformer_from_scratch.data import IGNORE, MASK
from right_answers import right, wrong


@right("8.1")
def hide_in_loops(ids, chosen, fate, random):
    inputs, targets = ids.tolist(), [[IGNORE] * ids.size(1) for _ in ids]
    for i, j in chosen.nonzero().tolist():
        targets[i][j] = inputs[i][j]
        if fate[i, j] < 0.8:
            inputs[i][j] = MASK
        elif fate[i, j] < 0.9:
            inputs[i][j] = int(random[i, j])
    return inputs, targets


@right("8.1")
def hide_in_numpy(ids, chosen, fate, random):
    ids, chosen, fate, random = (x.numpy() for x in (ids, chosen, fate, random))
    inputs = np.select([~chosen, fate < 0.8, fate < 0.9], [ids, MASK, random], default=ids)
    return inputs, np.where(chosen, ids, IGNORE).astype(np.int32)


@right("8.1")
def hide_by_products(ids, chosen, fate, random):
    masked, changed = (chosen & (fate < 0.8)).float(), (chosen & (fate < 0.9) & (fate >= 0.8)).float()
    inputs = masked * MASK + changed * random + (1 - masked - changed) * ids
    return [inputs, chosen * ids + ~chosen * IGNORE]


@right("8.1")
def hide_in_order(ids, chosen, fate, random):
    inputs, replaced = ids.clone(), chosen & (fate < 0.9)
    inputs[replaced] = random[replaced]
    inputs[chosen & (fate < 0.8)] = MASK
    return inputs, ids.masked_fill(~chosen, IGNORE)


class GivenBlock(nn.Module):
    """What the chapter's stub gives."""

    def __init__(self, d_model, attention):
        super().__init__()
        self.attention_norm = nn.LayerNorm(d_model)
        self.attention = attention
        self.feed_forward_norm = nn.LayerNorm(d_model)
        up, down = nn.Linear(d_model, 4 * d_model), nn.Linear(4 * d_model, d_model)
        self.feed_forward = nn.Sequential(up, nn.GELU(), down)


@right("8.2")
class BlockByFormula(GivenBlock):
    def normed(self, x, norm):
        centred = x - x.mean(dim=-1, keepdim=True)
        spread = centred.square().mean(dim=-1, keepdim=True)
        return norm.weight * centred / (spread + norm.eps).sqrt() + norm.bias

    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.normed(x, self.attention_norm), padding_mask)
        hidden = self.normed(x, self.feed_forward_norm) @ self.feed_forward[0].weight.T
        hidden = hidden + self.feed_forward[0].bias
        hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
        return x + hidden @ self.feed_forward[2].weight.T + self.feed_forward[2].bias


@right("8.2")
class BlockOfFunctionals(GivenBlock):
    def forward(self, x, padding_mask=None):
        size, (up, _, down) = x.shape[-1:], self.feed_forward
        one, two = self.attention_norm, self.feed_forward_norm
        normed = functional.layer_norm(x, size, one.weight, one.bias)
        x = torch.add(self.attention(normed, padding_mask=padding_mask), x)
        hidden = functional.linear(functional.layer_norm(x, size, two.weight, two.bias), up.weight, up.bias)
        return torch.add(functional.linear(functional.gelu(hidden), down.weight, down.bias), x)


@right("8.2")
class BlockTokenByToken(GivenBlock):
    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.attention_norm(x), padding_mask)
        rows = [self.feed_forward(self.feed_forward_norm(row)) for row in x.flatten(0, 1)]
        return x + torch.stack(rows).view_as(x)


@wrong("8.2")
class TanhBlock(GivenBlock):
    """GELU in its approximation by tanh."""

    def __init__(self, d_model, attention):
        super().__init__(d_model, attention)
        self.feed_forward[1] = nn.GELU(approximate="tanh")

    def forward(self, x, padding_mask=None):
        x = x + self.attention(self.attention_norm(x), padding_mask)
        return x + self.feed_forward(self.feed_forward_norm(x))


@right("8.3")
def rate_by_sine(step, steps, highest, warmup):
    if step < warmup:
        return highest / warmup * (step + 1)
    return highest * math.cos(math.pi / 2 * (step - warmup) / (steps - warmup)) ** 2


@right("8.3")
def rate_in_numpy(step, steps, highest, warmup):
    rising = highest * np.arange(1, warmup + 1) / max(warmup, 1)
    falling = highest * (1 + np.cos(np.linspace(0, np.pi, steps - warmup + 1))) / 2
    return np.concatenate([rising, falling])[step]


@right("8.3")
def rate_by_torch(step, steps, highest, warmup):
    weight = nn.Parameter(torch.zeros(()))
    optimizer = torch.optim.SGD([weight], lr=highest)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps - warmup)
    if step < warmup:
        return torch.tensor(highest, dtype=torch.float64) * (step + 1) / warmup
    for _ in range(step - warmup):
        optimizer.step()
        schedule.step()
    return optimizer.param_groups[0]["lr"]


@wrong("8.3")
def warmup_of_one_at_least(step, steps, highest, warmup):
    """Without a warm-up, one step of it is made all the same."""
    warmup = max(1, warmup)
    if step < warmup:
        return highest * (step + 1) / warmup
    return highest * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


@right("8.6")
def curve_as_a_list(log):
    curve = {}
    for step, loss in log.tolist():
        curve = {earlier: kept for earlier, kept in curve.items() if earlier < step}
        curve[step] = loss
    return list(curve.values())


@right("8.6")
def curve_in_numpy(log):
    steps, losses = log.numpy().T
    later = np.minimum.accumulate(steps[::-1])[::-1]  # the least step from this line on
    return losses[np.append(later[1:], np.inf) > steps]


@right("8.6")
def curve_up_to_the_last_step(log):
    last = {int(step): loss for step, loss in log}
    return torch.stack([last[step] for step in range(1, int(log[-1, 0]) + 1)])


@wrong("8.6")
def last_restart_only(log):
    """Of several restarts only the last takes anything back."""
    steps = log[:, 0]
    restarts = (steps[1:] <= steps[:-1]).nonzero().flatten()
    if len(restarts) == 0:
        return log[:, 1]
    i = int(restarts[-1]) + 1
    return torch.cat([log[: int(steps[i]) - 1, 1], log[i:, 1]])


@right("8.5")
def updates_in_tensors(curve, loss):
    below = (curve[:, 1] <= loss).nonzero()
    if not len(below):
        return torch.tensor(-1.0)
    i = below[0, 0]
    if i == 0:
        return curve[0, 0]
    (before, high), (after, low) = curve[i - 1], curve[i]
    return torch.lerp(before, after, (loss - high) / (low - high))


@right("8.5")
def updates_in_numpy(curve, loss):
    updates, losses = curve.double().numpy().T
    if losses.min() > loss:
        return np.float64(-1)
    i = int(np.argmax(losses <= loss))
    return np.interp(-loss, -losses[max(i - 1, 0) : i + 1], updates[max(i - 1, 0) : i + 1])


@right("8.5")
def updates_as_a_fraction(curve, loss):
    before = None
    for updates, measured in ([Fraction(x) for x in point] for point in curve.tolist()):
        if measured <= loss:
            if before is None:
                return updates
            slope = (measured - before[1]) / (updates - before[0])
            return before[0] + (Fraction(loss) - before[1]) / slope
        before = updates, measured
    return Fraction(-1)


@wrong("8.5")
def begins_at_zero(curve, loss):
    """A curve that begins below the loss is said to reach it after 0 updates."""
    points = curve.tolist()
    if points[0][1] <= loss:
        return 0.0
    for (u0, l0), (u1, l1) in itertools.pairwise(points):
        if l0 > loss >= l1:
            return u0 + (l0 - loss) / (l0 - l1) * (u1 - u0)
    return -1.0


@right("8.4")
def train_by_lambda(model, loss, batches, validation, rate, steps, evaluate_every):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    losses, held = [], []
    for step in range(1, steps + 1):
        model.train()
        value = loss(model, *batches(step - 1))
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(value)
        if not step % evaluate_every:
            model.eval()
            with torch.inference_mode():
                held.append(torch.stack([loss(model, *batch) for batch in validation]).mean())
    return losses, held


@right("8.4")
def train_by_hand(model, loss, batches, validation, rate, steps, evaluate_every):
    weights = list(model.parameters())
    first, second = [torch.zeros_like(w) for w in weights], [torch.zeros_like(w) for w in weights]
    losses, held = [], []
    model.train()
    for step in range(steps):
        value = loss(model, *batches(step))
        losses.append(value.item())
        gradients = torch.autograd.grad(value, weights)
        norm = math.sqrt(sum(g.square().sum().item() for g in gradients))
        with torch.no_grad():
            for w, g, m, v in zip(weights, gradients, first, second, strict=True):
                g = g / max(1, norm)
                m.mul_(0.9).add_(0.1 * g)
                v.mul_(0.999).add_(0.001 * g * g)
                w -= rate(step) * 0.01 * w
                spread = (v / (1 - 0.999 ** (step + 1))).sqrt() + 1e-8
                w -= rate(step) * m / (1 - 0.9 ** (step + 1)) / spread
            if step % evaluate_every == evaluate_every - 1:
                model.eval()
                held.append(np.mean([loss(model, *batch).item() for batch in validation]))
                model.train()
    return np.array(losses), np.array(held)


@right("8.4")
def train_with_a_new_optimizer_state(model, loss, batches, validation, rate, steps, evaluate_every):
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate(0), foreach=False)
    losses, held = torch.zeros(steps, dtype=torch.float64), []

    @torch.no_grad()
    def validate():
        model.eval()
        total = 0.0
        for x, y in validation:
            total += loss(model, x, y)
        held.append(float(total) / len(validation))

    for step in range(steps):
        model.train(True)
        model.zero_grad(set_to_none=False)
        optimizer.param_groups[0]["lr"] = float(rate(step))
        value = loss(model, *batches(step))
        value.backward()
        torch.nn.utils.clip_grad_norm_([p for p in model.parameters() if p.requires_grad], 1.0, foreach=False)
        optimizer.step()
        losses[step] = value.detach()
        if (step + 1) % evaluate_every == 0:
            validate()
    return losses.tolist(), held


@right("8.4")
def train_with_gradients_put_in(model, loss, batches, validation, rate, steps, evaluate_every):
    weights = list(model.parameters())
    optimizer = torch.optim.AdamW(weights)
    losses, held = [], []
    for step in range(steps):
        model.train(True)
        optimizer.param_groups[0].update(lr=rate(step))
        value = loss(model, *batches(step))
        for weight, gradient in zip(weights, torch.autograd.grad(value, weights), strict=True):
            weight.grad = gradient
        nn.utils.clip_grad_norm_(weights, max_norm=1)
        optimizer.step()
        losses.append(value.detach())
        if (step + 1) % evaluate_every == 0:
            model.train(False)
            with torch.no_grad():
                held.append(statistics.fmean(float(loss(model, *batch)) for batch in validation))
    return losses, held


DEAD = "a branch for post-norm blocks, which this exercise does not build"
SAME = {
    "8.2": {
        "x + self.dropout(self.attention(x, padding_mask)) -> "
        "x - self.dropout(self.attention(x, padding_mask))": DEAD,
        "x + self.dropout(self.feed_forward(x)) -> x - self.dropout(self.feed_forward(x))": DEAD,
    },
}
