"""Chapter 08: the training loop, an exercise and a part."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from linformer_from_scratch.exercises.draws import normal, row
from linformer_from_scratch.exercises.engine import Exercise
from linformer_from_scratch.training import Config, learning_rate


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
        found = loss(model, *batches(step))
        found.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        optimizer.step()
        losses.append(found.item())
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
        self.found = self.loss(self.model, *self.batches(self.step if step is None else step))

    def _forward_first(self):
        self._forward(0)

    def _note(self):
        self.losses.append(self.found.item())

    def _backward(self):
        self.found.backward()

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


def gradients_add_up(*given):
    """Your gradients add up from batch to batch: optimizer.zero_grad() before every backward()."""
    return Loop(*given).run("train forward note backward clip set_rate update validate")


def never_moves(*given):
    """Your weights never move, because there are no gradients when optimizer.step() is called. Clear them, then backward, clip and step, in this order."""
    return Loop(*given).run("train clear forward note update backward clip set_rate validate")


def late_gradients(*given):
    """Your update uses the gradients of the batch before. backward() comes first, and then optimizer.step()."""
    return Loop(*given).run("train forward note set_rate update clear backward clip validate")


def not_clipped(*given):
    """Your gradients are not clipped when the update is made: between backward() and optimizer.step(), nn.utils.clip_grad_norm_(model.parameters(), 1.0)."""
    return Loop(*given).run("train clear forward note backward set_rate update validate")


def clipped_each(*given):
    """You clip the gradient of every weight matrix by itself. The norm is that of all gradients together."""
    return Loop(*given).run("train clear forward note backward clip_each set_rate update validate")


def clipped_numbers(*given):
    """You clip every number to between -1 and 1. The norm of all gradients together should be at most 1: use clip_grad_norm_."""
    return Loop(*given).run("train clear forward note backward clip_numbers set_rate update validate")


def clipped_elsewhere(*given):
    """You clip the gradients to another norm than 1: nn.utils.clip_grad_norm_(model.parameters(), 1.0)."""
    return Loop(*given).run("train clear forward note backward clip_at_two set_rate update validate")


def always_norm_one(*given):
    """You bring all gradients to a norm of 1. Clipping leaves gradients that are shorter as they are."""
    return Loop(*given).run("train clear forward note backward to_norm_one set_rate update validate")


def rate_constant(*given):
    """Your rate stays AdamW's own, 0.001: before every update, set group["lr"] = rate(step) in optimizer.param_groups."""
    return Loop(*given).run("train clear forward note backward clip update validate")


def rate_times_its_own(*given):
    """Your rate is a thousandth of rate(step), because LambdaLR multiplies the optimizer's own rate, 0.001. Set group["lr"] = rate(step) instead."""
    return Loop(*given).run("train clear forward note backward clip set_thousandth update validate")


def rate_one_ahead(*given):
    """Your schedule is one update ahead: updates are counted from 0, and update `step` has rate(step)."""
    return Loop(*given).run("train clear forward note backward clip set_next_rate update validate")


def rate_one_behind(*given):
    """Your schedule is one update behind: update `step`, counted from 0, has rate(step), not rate(step - 1)."""
    return Loop(*given).run("train clear forward note backward clip set_last_rate update validate")


def rate_set_after(*given):
    """You set the rate after optimizer.step(), so it serves the next update. Set it before."""
    return Loop(*given).run("train clear forward note backward clip update set_rate validate")


def first_batch_always(*given):
    """Your loop sees the same batch at every update: ask for batches(step)."""
    return Loop(*given).run("train clear forward_first note backward clip set_rate update validate")


def noted_after_the_update(*given):
    """You note the loss after the update. The loss of a step is the one that its gradients come from, before the weights move."""
    return Loop(*given).run("train clear forward backward clip set_rate update forward note validate")


def optimizer_anew(*given):
    """You make a new optimizer for every update, which forgets its averages. Make one before the loop."""
    return Loop(*given).run("begin train clear forward note backward clip set_rate update validate")


def adam(*given):
    """That is Adam; AdamW also shrinks the weights a little at every update: torch.optim.AdamW(model.parameters())."""
    return Loop(*given).run("begin_with_adam train clear forward note backward clip set_rate update validate")


def plain_descent(*given):
    """That is plain gradient descent (SGD). Use torch.optim.AdamW(model.parameters())."""
    return Loop(*given).run("begin_with_sgd train clear forward note backward clip set_rate update validate")


def validated_in_training_mode(*given):
    """You validate in training mode, in which dropout is active. Call model.eval() before."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_as_training")


def training_mode_not_restored(*given):
    """After the first validation you train on in evaluation mode, without dropout: model.train() before the next update."""
    return Loop(*given).run("train_once clear forward note backward clip set_rate update validate")


def never_in_training_mode(*given):
    """You never call model.train(): the model may come in evaluation mode, and is in it after every validation."""
    return Loop(*given).run("clear forward note backward clip set_rate update validate")


def validated_with_gradients(*given):
    """Your validation keeps what a backward pass would need, or even makes one. Put it under with torch.no_grad()."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_with_gradients")


def validated_before_the_update(*given):
    """You validate before the update is made; do it after optimizer.step()."""
    return Loop(*given).run("train clear forward note backward clip set_rate validate train update")


def validated_one_late(*given):
    """You validate after updates 1, 1 + evaluate_every, …; step counts from 0, so ask whether step + 1 is a multiple."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_early")


def validated_at_the_end_too(*given):
    """You also validate after the last update; do it after every `evaluate_every` updates only."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_at_the_end_too")


def validated_every_time(*given):
    """You validate after every update, which takes too long. Do it after every `evaluate_every` of them."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_every_time")


def validated_on_one_batch(*given):
    """You validate on one batch; the validation loss is the mean over all of them."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_on_one")


def validation_summed(*given):
    """Your validation loss is a sum; take the mean over the batches."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_by_sum")


def validation_weighted(*given):
    """You weight the validation batches by their sizes. Take the plain mean of their losses."""
    return Loop(*given).run("train clear forward note backward clip set_rate update validate_by_size")


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
    mistakes=(
        gradients_add_up,
        never_moves,
        late_gradients,
        not_clipped,
        clipped_each,
        clipped_numbers,
        clipped_elsewhere,
        always_norm_one,
        rate_constant,
        rate_times_its_own,
        rate_one_ahead,
        rate_one_behind,
        rate_set_after,
        first_batch_always,
        noted_after_the_update,
        optimizer_anew,
        adam,
        plain_descent,
        validated_in_training_mode,
        training_mode_not_restored,
        never_in_training_mode,
        validated_with_gradients,
        validated_before_the_update,
        validated_one_late,
        validated_at_the_end_too,
        validated_every_time,
        validated_on_one_batch,
        validation_summed,
        validation_weighted,
    ),
    hints=(
        "An update has an order: clear the old gradients, compute the loss, call backward, clip, set the rate, and step. When must the model be in which mode?",
        "loss(model, *batches(step)) has no axes; .item() makes a number of it. A validation loss is the mean over all validation batches.",
        'for group in optimizer.param_groups: group["lr"] = rate(step); if (step + 1) % evaluate_every == 0: model.eval(), with torch.no_grad(): …',
    ),
)
