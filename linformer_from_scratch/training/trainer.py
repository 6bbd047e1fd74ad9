"""The training loop: one update after another, each written down, so that a killed run continues exactly."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm.auto import tqdm

from linformer_from_scratch.common.checks import check_size
from linformer_from_scratch.common.files import expanded, locked, make_folder
from linformer_from_scratch.common.random_state import get_rng_state, seeded, use_rng_state
from linformer_from_scratch.common.ranks import (
    assert_same_across_ranks,
    device_of_rank,
    mean_over_ranks,
    rank,
    share_of,
    world_size,
)
from linformer_from_scratch.training import checkpoints, metrics
from linformer_from_scratch.training.groups import parameter_groups, total_norm
from linformer_from_scratch.training.interrupts import uninterrupted
from linformer_from_scratch.training.modes import evaluating, keep_modes
from linformer_from_scratch.training.settings import check_ranges, setting

CLIP = 1.0  # largest norm of all gradients together
BETAS = (0.9, 0.98)  # of AdamW; Liu et al. 2019 (RoBERTa), section 2.4
Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class Config:
    """Settings of a run, beside its model and its data.

    Raises: ValueError if a number is out of its range.
    """

    steps: int = setting(2000, "updates of the weights", least=1, most=10**8 - 1)
    learning_rate: float = setting(4e-3, "the highest of the run", least=0, most=1e6)
    warmup: int = setting(100, "steps in which it rises from 0", least=0)
    weight_decay: float = setting(
        0.01, "of the weight matrices and embeddings (Loshchilov and Hutter 2019)", least=0, most=1e6
    )
    accumulation: int = setting(
        1, "batches whose gradients are added up for one update, as if they were one", least=1, most=10**6
    )
    evaluate_every: int = setting(100, "steps between validations; each also writes a checkpoint", least=1)
    seed: int = setting(0, "of dropout", least=0, most=2**63 - 1)

    def __post_init__(self) -> None:
        check_ranges(self)
        if self.learning_rate == 0:
            raise ValueError("learning_rate is 0, expected more than 0")


def learning_rate(step: int, config: Config) -> float:
    """Rate of update `step`, counted from 0: a linear rise over the warm-up, then half a cosine down to 0.

    Loshchilov and Hutter 2017 (arXiv 1608.03983), without restarts.
    """
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    return config.learning_rate * (1 + math.cos(math.pi * done)) / 2


class Trainer:
    """Trains a model; with a folder, writes metrics and checkpoints there, and continues a run that is there.

    Among several ranks (ranks.process_group) each takes its rows of every batch, gradients are averaged by
    PyTorch's DistributedDataParallel, and rank 0 writes. The curve is that of one process, up to rounding; a
    run may continue with another number of ranks. With dropout every rank draws its own.

    Dropout draws from a random stream of the run's own: training leaves the caller's random state and the
    model's modes as they were. Only `train` writes to the folder, and only one trainer at a time.

    A learned E or F moves, and is clipped, as √seq_len · E would be (parameter_groups). After Ctrl-C at any
    moment, `train` continues as if nothing had happened.

    Args:
        model: any module.
        loss: loss(model, *batch) -> a scalar, a mean over the batch's rows; over something else if the loss
            has a `count` (see mean_over). Small batches and the ranks' shares are weighted by what they hold.
        batches: batches(i) -> the i-th batch, a tuple of tensors; the same i must give the same batch again.
        config: see Config.
        validation: batches whose mean loss is the validation loss.
        folder: for `metrics.jsonl`, one line for each update, and the newest two checkpoints. None keeps
            nothing.
        device: where to train; a GPU if there is one, each rank its own.
        autocast: compute in bfloat16 where PyTorch holds that safe; by default on GPUs made for it, not on
            those that only emulate it.
        compile: compile the model first (torch.compile): slow to start, faster after.
        progress: show a bar with loss and tokens per second.
        lr_scale: parameters whose learning rate, but not their weight decay, is multiplied by a number such
            as 0.1; parameters of other models are ignored.

    Raises: ValueError if there is no such device, if the folder holds a run with another configuration or
        other scales of the learning rate, or only checkpoints that cannot be read, or if the ranks are at
        different steps, or are more than a batch has rows.
        FloatingPointError at a step whose loss or gradient is not finite; the weights before it are
        untouched. OSError if the folder cannot be written or the disk is full (what was written before is
        kept), or if another trainer is at work there.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[..., Tensor],
        batches: Callable[[int], Batch],
        config: Config,
        validation: Sequence[Batch] = (),
        folder: str | Path | None = None,
        device: str | None = None,
        autocast: bool | None = None,
        compile: bool = False,
        progress: bool = False,
        lr_scale: Mapping[nn.Parameter, float] | None = None,
    ):
        self.device = device_of_rank(device)
        self.autocast = _made_for_bfloat16(self.device) if autocast is None else autocast
        self.model, self.loss, self.batches = model.to(self.device), loss, batches
        self.config, self.validation, self.progress = config, validation, progress
        self.count = getattr(loss, "count", _rows)
        scales = lr_scale or {}
        self.lr_scale = {name: scales[p] for name, p in self.model.named_parameters() if p in scales}
        self.optimizer = _optimizer(self.model, config, scales)
        self.step = 0
        self.history: list[dict] = []  # a record for each update
        self.written: int | None = None  # lines of metrics.jsonl; None: a killed run may have left some
        self.random = self._fresh_random()
        self.folder = expanded(folder) if folder else None
        if self.folder:
            self.known = checkpoints.newest(self.folder)
            self._resume(self.folder)
        self.kept = self.step  # the step of the newest checkpoint
        if compile:
            self.model.compile()
        assert_same_across_ranks(step=self.step, config=self._settings())
        self.parallel = DistributedDataParallel(self.model) if world_size() > 1 else self.model

    @torch.inference_mode(False)  # training needs gradients, whatever the caller has switched off
    @torch.enable_grad()
    def train(self, until: int | None = None, begin: Callable[[], None] | None = None) -> list[dict]:
        """Continue to the last step, or to step `until`; return the history, one record for each update.

        begin is called once no other trainer can write to the folder, before this one does.
        """
        steps = self.config.steps
        until = steps if until is None else min(check_size("until", until, least=0), steps)
        bar = tqdm(total=until, initial=self.step, disable=not self.progress or rank() > 0, unit="step")
        with self._lock_folder(begin), keep_modes(self.model), use_rng_state(self.random, self.device), bar:
            self.written = None
            try:
                self._validate()
                self._write()
                while self.step < until:
                    record = self._update()
                    self._validate()
                    self._write()
                    bar.update()
                    bar.set_postfix(loss=f"{record['loss']:.2f}", tokens_per_s=f"{record['tokens_per_s']:,}")
            except KeyboardInterrupt:
                self._write()
                raise
        return self.history

    @torch.no_grad()
    def evaluate(self, batches: Sequence[Batch]) -> float:
        """Mean loss of some batches, without dropout; every rank takes its share of them."""
        with evaluating(self.model):
            total = sum(self._loss(self.model, batch).item() for batch in batches[rank() :: world_size()])
        return mean_over_ranks(total) * world_size() / len(batches) if batches else math.nan

    def _update(self) -> dict:
        """One step: gradients of `accumulation` batches, clipped, then AdamW."""
        start, total = time.perf_counter(), 0.0
        first = self.step * self.config.accumulation
        batches = [self.batches(i) for i in range(first, first + self.config.accumulation)]
        whole = sum(self.count(*batch) for batch in batches)
        self.model.train()
        self.optimizer.zero_grad()
        for i, batch in enumerate(batches, 1):
            own = share_of(batch)
            # DistributedDataParallel divides the ranks' sum by their number.
            weight = world_size() * self.count(*own) / whole if whole else 1.0
            with self._no_exchange(last=i == len(batches)):
                loss = weight * self._loss(self.parallel, own)
                loss.backward()
            total += loss.item() if weight else 0.0  # a mean of nothing is nan
        total = mean_over_ranks(total)
        norm = total_norm(self.model)
        rate = learning_rate(self.step, self.config)
        self._check_finite(total, norm, rate)
        nn.utils.clip_grads_with_norm_(self.model.parameters(), CLIP, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        with uninterrupted():
            self.optimizer.step()
            self.step += 1
            speed = round(sum(batch[0].numel() for batch in batches) / (time.perf_counter() - start))
            record = {"step": self.step, "loss": total, "learning_rate": rate, "tokens_per_s": speed}
            self.history.append(record)
            self.random = get_rng_state(self.device)
        return record

    def _no_exchange(self, last: bool) -> AbstractContextManager:
        """Keep ranks from exchanging gradients before the last of the batches of one update."""
        if last or not isinstance(self.parallel, DistributedDataParallel):
            return nullcontext()
        return self.parallel.no_sync()

    def _loss(self, model: nn.Module, batch: Batch) -> Tensor:
        tensors = [tensor.to(self.device, non_blocking=True) for tensor in batch]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            return self.loss(model, *tensors)

    def _check_finite(self, loss: float, norm: Tensor, rate: float) -> None:
        if not math.isfinite(loss) or not math.isfinite(norm):
            what = "loss" if not math.isfinite(loss) else "gradient"
            raise FloatingPointError(
                f"the {what} is not finite at step {self.step + 1}, learning rate {rate:g}; "
                f"the weights are still those of step {self.step}; try a lower learning rate, a longer "
                "warm-up, or float32"
            )

    @property
    def _at_checkpoint(self) -> bool:
        """Whether to validate and to write a checkpoint after this step."""
        return self.step % self.config.evaluate_every == 0 or self.step == self.config.steps

    def _validate(self) -> None:
        """Validate if that is due, also when `train` begins after an interrupted validation."""
        due = self._at_checkpoint and self.validation and self.history
        if due and "validation_loss" not in self.history[-1]:
            with use_rng_state(self.random, self.device):  # whatever it draws, training is the same
                self.history[-1]["validation_loss"] = self.evaluate(self.validation)

    def _write(self) -> None:
        """First the lines that are not yet written, then the checkpoint, so that none lacks its lines."""
        if (folder := self._own_folder) is None:
            return
        with uninterrupted():
            if self.written is None:
                metrics.write(folder, self.history)
            else:
                metrics.append(folder, self.history[self.written :])
            self.written = len(self.history)
            if self._at_checkpoint and self.step > self.kept:
                checkpoints.write(folder, self.step, self._state(), self._settings())
                self.known, self.kept = checkpoints.newest(folder), self.step

    @property
    def _own_folder(self) -> Path | None:
        """The folder, for the one rank that writes there."""
        return self.folder if rank() == 0 else None

    @contextmanager
    def _lock_folder(self, begin: Callable[[], None] | None) -> Iterator[None]:
        """Lock the folder, so that no other run mixes its lines and checkpoints with these."""
        if (folder := self._own_folder) is None:
            yield
            return
        make_folder(folder)
        with locked(folder / metrics.METRICS):
            foreign = sorted({*checkpoints.newest(folder)} - {*self.known})
            if foreign:
                raise ValueError(
                    f"{foreign[-1]} was written by another trainer since this one was made, at step "
                    f"{self.step}; make a new trainer to continue from there"
                )
            if begin:
                begin()
            yield

    def _fresh_random(self) -> dict[str, Tensor]:
        """The random state of the seed; each rank has another one, and yet another when it resumes."""
        seed = self.config.seed
        if rank() > 0:
            seed = int(np.random.SeedSequence((seed, rank(), self.step)).generate_state(1)[0])
        return seeded(seed, self.device)

    def _settings(self) -> dict:
        """What must be the same when the run continues."""
        return asdict(self.config) | ({"lr_scale": self.lr_scale} if self.lr_scale else {})

    def _state(self) -> dict[str, Tensor]:
        """What a checkpoint holds: weights, AdamW's averages and the random state."""
        state = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for i, averages in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{i}.{name}": tensor for name, tensor in averages.items()}
        return state | {f"random.{kind}": tensor for kind, tensor in self.random.items()}

    def _resume(self, folder: Path) -> None:
        """Load the newest checkpoint that can be read, and the history up to it."""
        faults = []
        for path in self.known:
            try:
                tensors, record = checkpoints.read(path)
                _check_same(self._settings(), record["config"], folder)
                checkpoints.check_weights(path, tensors, self.model)
            except checkpoints.Refused as refusal:
                faults.append(str(refusal))
                continue
            self._load(tensors, record["step"])
            self.history = metrics.read(folder, self.step)
            if len(self.history) < self.step:
                faults.append(f"{metrics.METRICS} has {len(self.history)} of {self.step} updates")
            if faults and rank() == 0:
                warnings.warn(f"{'; '.join(faults)}; going on from step {self.step}", stacklevel=3)
            return
        if faults:
            raise ValueError(f"{'; '.join(faults)}; there is no other in {folder}: remove it to start anew")

    def _load(self, tensors: dict[str, Tensor], step: int) -> None:
        """Load what _state returned at a step."""
        self.model.load_state_dict(_under("model.", tensors))
        averages: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer.", tensors).items():
            number, _, what = name.partition(".")
            averages.setdefault(int(number), {})[what] = tensor
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": averages})
        self.step = step
        self.random = self._fresh_random()
        if rank() == 0:  # the file holds the state of rank 0
            self.random |= _under("random.", tensors)


def _made_for_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def _optimizer(
    model: nn.Module, config: Config, lr_scale: Mapping[nn.Parameter, float]
) -> torch.optim.Optimizer:
    groups = parameter_groups(model, 1.0, config.weight_decay, lr_scale)
    for group in groups:
        group["factor"] = group.pop("lr")  # multiplies the rate of every step
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=BETAS)


def _rows(*batch: Tensor) -> int:
    return len(batch[0])


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _check_same(own: dict, recorded: dict, folder: Path) -> None:
    for name in {**own, **recorded}:
        if recorded.get(name) != own.get(name):
            raise ValueError(
                f"the run in {folder} has {name}={recorded.get(name)}, this one {name}={own.get(name)}; "
                "choose another folder or the same configuration"
            )
