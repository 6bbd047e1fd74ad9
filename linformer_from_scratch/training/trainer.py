"""The loop: one update after another, each written down, so that a killed run goes on where it was."""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from tqdm.auto import tqdm

from linformer_from_scratch.common.files import expanded, locked, make_folder
from linformer_from_scratch.common.random_state import get_rng_state, seeded, use_rng_state
from linformer_from_scratch.distributed.ranks import (
    assert_same_across_ranks,
    device_of_rank,
    mean_over_ranks,
    rank,
    share_of,
    world_size,
)
from linformer_from_scratch.training import checkpoints, metrics, older
from linformer_from_scratch.training.groups import parameter_groups, total_norm
from linformer_from_scratch.training.interrupts import uninterrupted
from linformer_from_scratch.training.modes import as_it_was, evaluating
from linformer_from_scratch.training.settings import check_ranges, setting

CLIP = 1.0  # largest norm of all gradients together
BETAS = (0.9, 0.98)  # of AdamW; Liu et al. 2019 (RoBERTa), section 2.4
Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class Config:
    """What a run is made of, beside its model and its data.

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

    def __post_init__(self):
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate is {self.learning_rate}, expected more than 0 and finite")
        check_ranges(self)


def learning_rate(step: int, config: Config) -> float:
    """Rate of update `step`, counted from 0: a linear rise over the warm-up, then half a cosine down to 0.

    Loshchilov and Hutter 2017 (arXiv 1608.03983), without restarts.
    """
    if step < config.warmup:
        return config.learning_rate * (step + 1) / config.warmup
    done = (step - config.warmup) / max(1, config.steps - config.warmup)
    return config.learning_rate * (1 + math.cos(math.pi * done)) / 2


class Trainer:
    """Trains a model; with a folder, writes metrics and checkpoints there and goes on from what lies there.

    Among several ranks (ranks.process_group) each takes its rows of every batch, gradients are averaged by
    PyTorch's DistributedDataParallel, and rank 0 writes. The curve is that of one process, to rounding; a run
    may go on with another number of ranks. With dropout every rank draws its own.

    Dropout has its own random numbers: those of the caller stand afterwards where they stood before, and so
    do the model's modes. A folder is written only by `train`, and by one trainer at a time.

    A learned E or F moves, and is clipped, as √seq_len · E would be (parameter_groups). Ctrl-C at any moment
    keeps what was trained.

    Args:
        model: any module.
        loss: loss(model, *batch) -> a scalar, a mean over the batch's rows; over something else if the loss
            has a `count` (see mean_over). Micro-batches and the ranks' shares weigh as much as they hold.
        batches: batches(i) -> the i-th batch, a tuple of tensors; asked again, it must be the same again.
        config: see Config.
        validation: batches whose mean loss is the validation loss.
        folder: for `metrics.jsonl`, a line each update, and the newest two checkpoints. None keeps nothing.
        device: where to train; a GPU if there is one, each rank its own.
        autocast: compute in bfloat16 where PyTorch holds that safe; by default on GPUs made for it, not on
            those that only emulate it.
        compile: compile the model first (torch.compile): slow to start, faster after.
        progress: show a bar with loss and tokens per second.
        lr_scale: parameters whose learning rate is multiplied by a number, such as 0.1, but not their weight
            decay; those of other models count for nothing.

    Raises: ValueError if there is no such device, if the folder holds a run with another configuration or
        other scales of the learning rate, or only checkpoints that cannot be read, or if ranks stand at
        different steps, or are more than a batch has rows.
        FloatingPointError at a step whose loss or gradient is not finite; the weights before it are
        untouched. OSError if the folder cannot be written or the disk is full (what was written before is
        kept), or if another trains there.
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
        self.step = self.kept = 0  # kept: the step of the newest checkpoint
        self.written: int | None = None  # lines of metrics.jsonl; None: the file is of another time
        self.history: list[dict] = []
        self.random = self._fresh_random()
        self.folder = expanded(folder) if folder else None
        if self.folder:
            self.found = checkpoints.newest(self.folder)
            self._resume(self.folder)
        if compile:
            self.model.compile()
        assert_same_across_ranks(step=self.step, config=self._settings())
        self.parallel = DistributedDataParallel(self.model) if world_size() > 1 else self.model

    @torch.inference_mode(False)  # it learns, whatever the caller has switched off
    @torch.enable_grad()
    def train(self, until: int | None = None, begin: Callable[[], None] | None = None) -> list[dict]:
        """Go on to the last step, or to step `until`; return the history, one record for each update.

        begin is called when nobody else can train in the folder, before anything is written there.
        """
        until = self.config.steps if until is None else min(until, self.config.steps)
        bar = tqdm(total=until, initial=self.step, disable=not self.progress or rank() > 0, unit="step")
        with self._alone(begin), as_it_was(self.model), use_rng_state(self.random, self.device), bar:
            self.written = None  # what a killed run wrote beyond this step is computed again
            try:
                self._validate()
                self._keep()
                while self.step < until:
                    record = self._update()
                    self._validate()
                    self._keep()
                    bar.update()
                    bar.set_postfix(loss=f"{record['loss']:.2f}", tokens_per_s=f"{record['tokens_per_s']:,}")
            except KeyboardInterrupt:
                self._keep()
                raise
        return self.history

    @torch.no_grad()
    def evaluate(self, batches: Sequence[Batch]) -> float:
        """Mean loss of some batches, without dropout; every rank takes its share of them."""
        with evaluating(self.model):
            total = sum(self._loss(self.model, batch).item() for batch in batches[rank() :: world_size()])
        return mean_over_ranks(total) * world_size() / len(batches) if batches else math.nan

    @contextmanager
    def _alone(self, begin: Callable[[], None] | None) -> Iterator[None]:
        """Hold the folder, so that no other run mixes its lines and checkpoints with these."""
        if (folder := self._own_folder) is None:
            yield
            return
        make_folder(folder)
        with locked(folder / metrics.METRICS):
            strange = sorted({*checkpoints.newest(folder)} - {*self.found})
            if strange:
                raise ValueError(
                    f"{strange[-1]} was written by another since this run stood at step {self.step}; "
                    "start again from there"
                )
            if begin:
                begin()
            yield

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
            weight = (
                world_size() * self.count(*own) / whole if whole else 1.0
            )  # DistributedDataParallel: mean
            with self._no_exchange(last=i == len(batches)):
                loss = weight * self._loss(self.parallel, own)
                loss.backward()
            total += loss.item() if weight else 0.0  # the mean of nothing is no number
        total = mean_over_ranks(total)
        norm = total_norm(self.model)
        rate = learning_rate(self.step, self.config)
        self._check_finite(total, norm, rate)
        nn.utils.clip_grads_with_norm_(self.model.parameters(), CLIP, norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        with uninterrupted():  # weights, step and history belong together
            self.optimizer.step()
            self.step += 1
            speed = round(sum(batch[0].numel() for batch in batches) / (time.perf_counter() - start))
            record = {"step": self.step, "loss": total, "learning_rate": rate, "tokens_per_s": speed}
            self.history.append(record)
            self.random = get_rng_state(self.device)
        return record

    def _no_exchange(self, last: bool):
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
        """Whether to validate and keep a checkpoint after this step."""
        return self.step % self.config.evaluate_every == 0 or self.step == self.config.steps

    def _validate(self) -> None:
        """Validate where that is due; at the beginning, where an interrupt has prevented it."""
        due = self._at_checkpoint and self.validation and self.history
        if due and "validation_loss" not in self.history[-1]:
            found = self.evaluate(self.validation)
            with uninterrupted():
                self.history[-1]["validation_loss"] = found
                self.random = get_rng_state(self.device)
                self.kept = min(self.kept, self.step - 1)  # an earlier checkpoint holds other random numbers

    def _keep(self) -> None:
        """First the lines that are not written yet, then the checkpoint, so that none lacks its lines."""
        if (folder := self._own_folder) is None:
            return
        with uninterrupted():
            if self.written is None:
                metrics.write(folder, self.history)
            else:
                metrics.append(folder, self.history[self.written :])
            self.written = len(self.history)
            if self._at_checkpoint and self.step > self.kept:
                checkpoints.write(folder, self.step, self._state(), {"config": self._settings()})
                self.found, self.kept = checkpoints.newest(folder), self.step

    @property
    def _own_folder(self) -> Path | None:
        """The folder, for the one rank that writes there."""
        return self.folder if rank() == 0 else None

    def _fresh_random(self) -> dict[str, Tensor]:
        """Random numbers of the seed; each rank has others, and others again when it goes on."""
        seed = self.config.seed
        if rank() > 0:
            seed = int(np.random.SeedSequence((seed, rank(), self.step)).generate_state(1)[0])
        return seeded(seed, self.device)

    def _settings(self) -> dict:
        """What must be the same when the run goes on."""
        return asdict(self.config) | ({"lr_scale": self.lr_scale} if self.lr_scale else {})

    def _state(self) -> dict[str, Tensor]:
        """Weights, what AdamW remembers, and where the random numbers stand."""
        state = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for i, memory in self.optimizer.state_dict()["state"].items():
            state |= {f"optimizer.{i}.{name}": tensor for name, tensor in memory.items()}
        return state | {f"random.{kind}": state for kind, state in self.random.items()}

    def _expected(self) -> dict[str, Tensor]:
        """Tensors in the shapes and dtypes of those that a checkpoint holds."""
        expected = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        weights = [weight for group in self.optimizer.param_groups for weight in group["params"]]
        precise = torch.float64 if torch.get_default_dtype() == torch.float64 else torch.float32
        for i, weight in enumerate(weights):
            if weight.requires_grad:
                moments = {"step": torch.zeros((), dtype=precise), "exp_avg": weight, "exp_avg_sq": weight}
                expected |= {f"optimizer.{i}.{name}": tensor for name, tensor in moments.items()}
        return expected | {"random.cpu": self.random["cpu"]}

    def _resume(self, folder: Path) -> None:
        """Load the newest checkpoint that can be read, and the history up to it."""
        refusals = []
        for path in self.found:
            try:
                tensors, record = checkpoints.read(path)
                tensors, config = older.as_now(tensors, record["config"], self.model, self.optimizer)
                _check_same(self._settings(), config, folder)
                checkpoints.check(path, tensors, record, self._expected())
            except checkpoints.Refused as refusal:
                refusals.append(str(refusal))
                continue
            if refusals:
                warnings.warn(f"{'; '.join(refusals)}; going on from step {record['step']}", stacklevel=3)
            return self._load(folder, tensors, record["step"])
        if refusals:
            raise ValueError(f"{'; '.join(refusals)}; there is no other in {folder}: remove it to start anew")

    def _load(self, folder: Path, tensors: dict[str, Tensor], step: int) -> None:
        self.model.load_state_dict(_under("model.", tensors))
        memory: dict[int, dict[str, Tensor]] = {}
        for name, tensor in _under("optimizer.", tensors).items():
            number, _, what = name.partition(".")
            memory.setdefault(int(number), {})[what] = tensor
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": memory})
        self.step = self.kept = step
        self.random = self._fresh_random()
        if rank() == 0:  # what the file holds is rank 0's
            self.random |= _under("random.", tensors)
        self.history, fault = metrics.read(folder, step)
        if fault and rank() == 0:
            warnings.warn(f"{fault}; going on from step {step}", stacklevel=4)


def _made_for_bfloat16(device: torch.device) -> bool:
    return device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)


def _optimizer(
    model: nn.Module, config: Config, lr_scale: Mapping[nn.Parameter, float]
) -> torch.optim.Optimizer:
    groups = parameter_groups(model, 1.0, config.weight_decay, lr_scale)
    for group in groups:
        group["factor"] = group.pop("lr")  # of the rate of every step
    return torch.optim.AdamW(groups, lr=config.learning_rate, betas=BETAS)


def _rows(*batch: Tensor) -> int:
    return len(batch[0])


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _check_same(settings: dict, found: dict, folder: Path) -> None:
    for name in {**settings, **found}:
        if found.get(name) != settings.get(name):
            raise ValueError(
                f"the run in {folder} has {name}={found.get(name)}, this one {name}={settings.get(name)}; "
                "choose another folder or the same configuration"
            )
