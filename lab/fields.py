"""The runs of chapter 14: the same layers on a task for each of four fields, at equal seconds.

What is compared is a model of a few blocks that differ in what mixes their tokens (`arms`). Equal seconds:
how many updates a layer gets in SECONDS of one core is measured once, all layers in turns (14_seconds), and
then fixed. Its learning rate is the best of RATES on other data: other places, another stream (14_rates).

What we expect, written before these runs. Seen before: one run each, some of other settings, of E and F,
exact attention and slots by content on sensors and electrodes; exact attention and slots by content on
recall; both and slices on regions; six layers on the flow. Names and values were first heard by the same
sensors, right with .3 and .5: there slots by content learned as fast as E. Then they were put apart, right
with .7 each. A model with a table each for names heard and names asked for learned that through E and F on
one of three draws, whatever E's rate and k; with one table for both, and what is asked in features of its
own, on all four that were tried, in half of 40 seconds. So SECONDS are 20. In between, sensors that hear
name and value as one noisy signal were tried: slots by content led (.85, E and F .62, exact .54; one run).

                        flow, a dozen sources  sensors, electrodes    regions           recall
    who belongs together  fixed by place       fixed by place         told by content   told by content
    what a token wants    fixed by place       depends on content     its own group's   depends on content
    best                  fixed mixing, grids  E and F                slots by content  exact attention
    then                  E and F              exact attention        exact attention   none above half
    as poor as one slot   slices, exact        windows, fixed mixing  E and F, windows  all but exact

(1) Flow: fixed mixing and what knows the grid (U-Net, Fourier layers, convolution) have smaller errors than
E and F, and these than exact attention and slots by content. (2) Sensors and electrodes: E and F lead all
layers that are told no places. (3) With 4,096 sensors they lead by more. (4) Regions: slots by content or
slices lead; E and F are no better than one slot. (5) Recall of twice as many facts as slots: exact attention
leads, no other layer answers half. (6) Exact attention catches up with E on sensors within eight times the
seconds. (7) The more sensors move, the blinder is E, and slots by content do not mind.

A layer wins a task if its interval (mean_and_interval of three seeds, each with places of its own) lies
wholly on the better side of that of every other layer that is told no more of the geometry.

Added when the rates had been seen: recall of 256 facts, since slots by content recalled 64 as well; E and F
from windows in every task, since on sensors they hang less on the rate; sensors in other numbers and noise.
Added when one seed had been seen: electrodes at four times the seconds, since E and F hang on the seed.
Added after the races, when ten rivals had been looked for: the one that stood, a weight for every pair of
places, in the first block alone (in both it failed). The other nine stayed at what one slot gets.
And, since electrodes that follow one another are near on the head: there E from windows in another order.
Left out: the other tasks with 4,096 tokens, where exact attention gets 13 to 41 updates in 80 seconds.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache, partial
from statistics import fmean, median

import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.arms import (
    ARMS,
    D_MODEL,
    EVERYWHERE,
    EXTRA_OF_A_GRID,
    EXTRA_OF_ELECTRODES,
    EXTRA_OF_SENSORS,
    NUM_HEADS,
    PairWeights,
    Place,
)
from lab.electrodes import Electrodes
from lab.experiment import Experiment, every
from lab.points import Batches, Flow, PointModel, UNet, relative_error
from lab.regions import Regions
from linformer_from_scratch.benchmark.timing import both_clocks
from linformer_from_scratch.common.rows import read, select
from linformer_from_scratch.course.recorded import RESULTS
from linformer_from_scratch.data.tasks import FIRST_HELD_OUT
from linformer_from_scratch.encoder import TokenMLP
from linformer_from_scratch.fields.model import FieldModel, SumOf
from linformer_from_scratch.fields.sensors import VALUES, Sensors, listener
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer

SECONDS, RATES, SEEDS, TUNING = 20, (3e-3, 6e-3, 12e-3), (0, 1, 2), 100
ROUNDS, WARMUP, PARTS = 9, 50, 4  # of the clock; updates; how often a run is judged
N, LONG, ELECTRODES = 1024, 4096, 345
U_NET = "U-Net"
RECALL = Sensors(sources=64, names=64, right_name=1.0, right_value=1.0, moving=1.0, together=True)


@dataclass(frozen=True)
class Task:
    """What is learned, and how it is judged.

    Args:
        n: tokens.
        model: attention layers -> a model.
        loss: model and batch -> a scalar.
        batches: seed -> step -> batch.
        unseen: batches that no run trains on.
        score: model and batch -> what is told, a mean over the batch.
        layers, k, side, groups, num_heads: of the model and its places.
    """

    n: int
    model: Callable[[Sequence[nn.Module]], nn.Module]
    loss: Callable[..., Tensor]
    batches: Callable[[int], Batches]
    unseen: Sequence[tuple[Tensor, ...]]
    score: Callable[..., Tensor]
    layers: int = 2
    k: int = 32
    side: int = 0
    groups: Tensor | None = None
    num_heads: int = NUM_HEADS


def wrong(model: nn.Module, *batch: Tensor) -> Tensor:
    """Mean cross-entropy of the right values, the batch's last tensor."""
    return functional.cross_entropy(model(*batch[:-1]).flatten(0, 1), batch[-1].flatten())


def right(model: nn.Module, *batch: Tensor) -> Tensor:
    """Share of right answers."""
    return (model(*batch[:-1]).argmax(dim=-1) == batch[-1]).float().mean()


def answering(
    data: Sensors | Electrodes | Regions,
    model: Callable[[Sequence[nn.Module]], nn.Module],
    n: int,
    size: int,
    groups: Tensor | None = None,
) -> Task:
    """A task whose answers are values; 32 unseen inputs of 1,024 tokens, or more shorter ones."""
    unseen = [data.batches(8)(FIRST_HELD_OUT + i) for i in range(4 * N // n or 1)]
    return Task(n, model, wrong, partial(data.batches, size), unseen, right, groups=groups)


def of_sensors(sensors: Sensors, size: int = 4) -> Task:
    """Readings, as the chapter's own model takes them."""
    model = partial(listener, sensors, d_model=D_MODEL)
    return answering(sensors, model, sensors.n, size, sensors.source_of)


def of_electrodes(n: int, seed: int) -> Task:
    """Signals of a head."""
    data = Electrodes(places=seed)

    def model(layers: Sequence[nn.Module]) -> nn.Module:
        known = SumOf(nn.Linear(data.samples, D_MODEL), nn.Embedding(data.names, D_MODEL))
        return FieldModel(known, layers, n, D_MODEL, VALUES)

    return answering(data, model, n, size=12)


def of_regions(n: int, seed: int) -> Task:
    """Points of a plane."""

    def model(layers: Sequence[nn.Module]) -> nn.Module:
        known = SumOf(nn.Linear(18, D_MODEL), nn.Embedding(VALUES, D_MODEL))
        return FieldModel(known, layers, n, D_MODEL, VALUES)

    return answering(Regions(n), model, n, size=4)


def of_flow(n: int, seed: int, sources: int = 0) -> Task:
    """Pressure on a grid; its error, relative."""
    side = round(n**0.5)
    data = Flow(side, sources, pool=int(seed == TUNING))
    unseen = data.unseen(20)
    model = lambda layers: PointModel(n, layers, D_MODEL)  # noqa: E731
    return Task(n, model, relative_error, partial(data.batches, 8), unseen, relative_error, 3, 64, side)


TASKS: dict[str, Callable[[int, int], Task]] = {  # n and seed -> a task
    "sensors": lambda n, seed: of_sensors(Sensors(n, places=seed)),
    "electrodes": of_electrodes,
    "regions": of_regions,
    "recall": lambda n, seed: of_sensors(replace(RECALL, n=n)),
    "recall of 256 facts": lambda n, seed: of_sensors(replace(RECALL, n=n, sources=256, names=256)),
    "a dozen sources": partial(of_flow, sources=12),
    "flow": of_flow,
}
MOVED, UPDATES, MOVING = 512, 600, (0.0, 0.25, 0.5, 0.75, 1.0)  # tokens; updates of all; shares
SLOWER = "exact attention", "slots by content", "slices", "every 4th token", "chunks of n / 8"  # than E and F
KEPT = "exact attention", "E and F", "E and F, from windows", "fixed mixing"
LONGER = [  # tasks, tokens, and layers that get more seconds
    ("electrodes", ELECTRODES, (*KEPT, "every 4th token")),
    ("sensors", N, ("slots by content", "every 4th token")),
    ("sensors", LONG, (*KEPT, "slots by content")),
]
HARDER = [(256, 0.7), (512, 0.7), (N, 0.3), (N, 0.5), (N, 0.9)]  # sensors, share of right readings
PICTURES, SMALL = 16, 16  # rows of E that are kept, and points of a side
GRIDS = "flow", "a dozen sources"


def arms_of(task: str) -> list[str]:
    """Those everywhere, and those that only this task has."""
    if task in GRIDS:
        return [*EVERYWHERE, *EXTRA_OF_A_GRID, U_NET]
    return [*EVERYWHERE, *{"sensors": EXTRA_OF_SENSORS, "electrodes": EXTRA_OF_ELECTRODES}.get(task, [])]


def build(task: Task, arm: str, seed: int, k: int | None = None) -> nn.Module:
    """The model of a task with one layer's blocks, its weights drawn by the seed."""
    torch.manual_seed(seed)
    if arm == U_NET:
        return UNet(task.side)
    rest = task.side, task.groups, task.num_heads
    places = (Place(task.n, k or task.k, depth, *rest) for depth in range(task.layers))
    return task.model([ARMS[arm](place) for place in places])


def trained(task: Task, model: nn.Module, updates: int, rate: float, seed: int) -> dict:
    """Train a model; how it does on unseen data, on the way and in the end."""
    config = Config(updates, rate, min(WARMUP, updates // 5))
    trainer = Trainer(model, task.loss, task.batches(seed), config, device="cpu")
    curve = []
    for part in range(1, PARTS + 1):
        trainer.train(part * updates // PARTS)
        curve.append([trainer.step, round(judged(task, model), 4)])
    return {"score": curve[-1][1], "curve": curve}


@torch.no_grad()
def judged(task: Task, model: nn.Module) -> float:
    """The mean score of a model on unseen data."""
    model.eval()
    return fmean(task.score(model, *batch).item() for batch in task.unseen)


def seconds(task: str, n: int) -> dict:
    """Seconds of one core for an update, every layer's in every round, in shuffled turns."""
    made = TASKS[task](n, TUNING)
    busy = timed(made, {arm: build(made, arm, 0) for arm in arms_of(task)})
    return {"seconds": {arm: [round(one, 4) for one in some] for arm, some in busy.items()}}


def timed(made: Task, models: dict[str, nn.Module]) -> dict[str, list[float]]:
    """Seconds of one core for an update of each model, in ROUNDS."""
    steps = {}
    for name, model in models.items():
        trainer = Trainer(model, made.loss, made.batches(0), Config(10**6, 1e-6), device="cpu")
        steps[name] = lambda trainer=trainer: trainer.train(trainer.step + 1)
    return {name: [cpu for _, cpu in pairs] for name, pairs in both_clocks(steps, ROUNDS).items()}


@cache
def recorded(name: str) -> list[dict]:
    """Rows of an experiment that another one rests on."""
    return read(RESULTS / f"{name}.json")["rows"]


def updates_in(budget: float, task: str, arm: str, n: int) -> int:
    """How many updates a layer gets in so many seconds of one core, by 14_seconds."""
    (row,) = select(recorded("14_seconds"), task=task, n=n)
    return round(budget / median(row["seconds"][arm.partition(", from")[0]]))


def best_rate(task: str, arm: str) -> float:
    """The rate at which it did best on other data, by 14_rates.

    Raises: ValueError if some are not measured.
    """
    rows = select(recorded("14_rates"), task=task, arm=arm)
    if len(rows) != len(RATES):
        raise ValueError(f"14_rates has {len(rows)} rows of {arm!r} on {task!r}, expected {len(RATES)}")
    best = min if task in GRIDS else max
    return best(rows, key=lambda row: row["score"])["rate"]


def tuned(task: str, arm: str, n: int, rate: float) -> dict:
    """One run on other data."""
    made, updates = TASKS[task](n, TUNING), updates_in(SECONDS, task, arm, n)
    return {"updates": updates} | trained(made, build(made, arm, TUNING), updates, rate, TUNING)


def compared(task: str, arm: str, n: int, seed: int, budget: int = SECONDS) -> dict:
    """One run at its best rate."""
    made, updates, rate = TASKS[task](n, seed), updates_in(budget, task, arm, n), best_rate(task, arm)
    return {"rate": rate, "updates": updates} | trained(made, build(made, arm, seed), updates, rate, seed)


def at_equal_updates(task: str, arm: str, seed: int) -> dict:
    """One run with as many updates as E and F get in SECONDS."""
    n, updates = length(task), updates_in(SECONDS, task, "E and F", length(task))
    made = TASKS[task](n, seed)
    return {"updates": updates} | trained(made, build(made, arm, seed), updates, best_rate(task, arm), seed)


def rows_of_flow(seed: int) -> dict:
    """The rows of E in a model of the flow that have learned most, that change alone, and singular vectors.

    E is the first layer's. All as pictures of SMALL · SMALL points, in whole numbers from -100 to 100.
    """
    made, updates = TASKS["flow"](N, seed), updates_in(SECONDS, "flow", "E and F", N)
    model = build(made, "E and F", seed)
    E = next(module for module in model.modules() if isinstance(module, LearnedProjection)).weight.detach()
    before = E.clone()
    trained(made, model, updates, best_rate("flow", "E and F"), seed)
    most = (E - before).norm(dim=1).argsort(descending=True)[:PICTURES]
    fields = torch.cat([u - mean for _, mean, u in map(made.batches(seed), range(100))])
    vectors = torch.linalg.svd(fields, full_matrices=False).Vh[:PICTURES]
    share = ((E - before).norm() / before.norm()).item()
    pictures = {"rows": E[most], "learned": (E - before)[most], "vectors": vectors}
    return {"share": round(share, 3)} | {name: as_pictures(some) for name, some in pictures.items()}


def as_pictures(rows: Tensor) -> list[list[int]]:
    """Shape: (count, n) -> count lists of SMALL² whole numbers."""
    side = round(rows.size(1) ** 0.5)
    small = functional.adaptive_avg_pool2d(rows.view(-1, 1, side, side), SMALL).flatten(1)
    return (100 * small / small.abs().amax(dim=1, keepdim=True)).round().int().tolist()


def caught_up(rate: float, budget: int, seed: int) -> dict:
    """Exact attention on sensors, with more time."""
    made, updates = TASKS["sensors"](N, seed), updates_in(budget, "sensors", "exact attention", N)
    return {"updates": updates} | trained(made, build(made, "exact attention", seed), updates, rate, seed)


def with_movers(arm: str, moving: float, seed: int) -> dict:
    """Sensors that hear names and values, some of which move: a share of right answers."""
    made = of_sensors(Sensors(MOVED, moving=moving, together=True, places=seed))
    return trained(made, build(made, arm, seed), UPDATES, best_rate("sensors", arm), seed)


def harder(arm: str, n: int, right: float, seed: int) -> dict:
    """Sensors in another number, or with another share of right readings; as many updates for all."""
    made = of_sensors(Sensors(n, right_name=right, right_value=right, places=seed))
    updates = updates_in(SECONDS, "sensors", "E and F", N)
    rate = best_rate("sensors", arm)
    return {"updates": updates} | trained(made, build(made, arm, seed), updates, rate, seed)


def many_sources(sources: int, k: int, d_head: int, seed: int) -> dict:
    """Sensors with more sources, and E and F from windows with more slots; k = 0 is exact attention."""
    arm = "E and F, from windows" if k else "exact attention"
    made = of_sensors(Sensors(sources=sources, names=2 * sources, places=seed))
    model = build(replace(made, num_heads=D_MODEL // d_head), arm, seed, k or None)
    updates = updates_in(SECONDS, "sensors", arm, N)
    return {"updates": updates} | trained(made, model, updates, best_rate("sensors", arm), seed)


def pairs(n: int, budget: int, rate: float, seed: int) -> dict:
    """Sensors, and a weight for every pair of places in the first of two blocks; timed beside E and F."""
    made = TASKS["sensors"](n, seed)
    torch.manual_seed(seed)
    model = made.model([PairWeights(n), TokenMLP(D_MODEL)])
    busy = timed(made, {"E and F": build(made, "E and F", seed), "pairs": deepcopy(model)})
    slower = median(busy["pairs"]) / median(busy["E and F"])
    updates = round(updates_in(budget, "sensors", "E and F", n) / slower)
    return {"slower": round(slower, 2), "updates": updates} | trained(made, model, updates, rate, seed)


def length(task: str) -> int:
    """Tokens of a task where nothing else is said."""
    return ELECTRODES if task == "electrodes" else N


PAIRS = [{"task": task, "arm": arm, "n": length(task)} for task in TASKS for arm in arms_of(task)]
TIMED = [{"task": task, "n": length(task)} for task in TASKS]
TIMED += [{"task": task, "n": n} for task, n, _ in LONGER if n == LONG]
TUNED = [pair | {"rate": rate} for pair in PAIRS for rate in RATES]
LONG_RUNS = [{"task": t, "arm": arm, "n": n, "budget": 4 * SECONDS} for t, n, arms in LONGER for arm in arms]
WEIGHED = every(n=(N,), budget=(SECONDS,), rate=RATES)
WEIGHED += every(n=(LONG,), budget=(4 * SECONDS,), rate=RATES[:1])
AS_MANY = every(task=("sensors",), arm=SLOWER)
WAITING = every(rate=RATES[1:], budget=(8 * SECONDS,))
MOVERS = every(arm=("E and F", "slots by content", "exact attention", "one slot"), moving=MOVING)
HEARD = [{"arm": arm, "n": n, "right": right} for n, right in HARDER for arm in KEPT[1:3]]
MANY = every(d_head=(16,), sources=(1, 2, 4, 8, 16, 32, 64), k=(0, 1, 4, 8, 16, 32, 64, 128))
MANY += every(d_head=(8, 32), sources=(4, 16, 64), k=(8, 32, 128))

EXPERIMENTS = [
    Experiment("14_seconds", "seconds of an update of every layer; let nothing else run", TIMED, seconds),
    Experiment("14_rates", "every layer on every task at three rates, on other data", TUNED, tuned),
    Experiment("14_fields", "every layer on every task at equal seconds", PAIRS, compared, SEEDS),
    Experiment("14_longer", "for four times as long, also with 4,096 sensors", LONG_RUNS, compared, SEEDS),
    Experiment("14_pairs", "sensors, by a weight for every pair of places", WEIGHED, pairs, SEEDS),
    Experiment("14_updates", "layers slower than E and F, as many updates", AS_MANY, at_equal_updates, SEEDS),
    Experiment("14_rows", "rows of E that have learned the flow, and vectors", [{}], rows_of_flow, (0,)),
    Experiment("14_caught_up", "exact attention on sensors, with more seconds", WAITING, caught_up, SEEDS),
    Experiment("14_moving", "sensors of which a share moves", MOVERS, with_movers, SEEDS),
    Experiment("14_harder", "fewer sensors, more and less noise, at E's updates", HEARD, harder, SEEDS),
    Experiment("14_sources", "how many sources through how many slots; 0: exact", MANY, many_sources, (0,)),
]
