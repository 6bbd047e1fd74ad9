"""What the tests of ranks let several processes do; each function runs in every rank."""

import os
import signal
import time
from contextlib import redirect_stdout
from io import StringIO

import torch
from torch import distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.parallel import DistributedDataParallel

from linformer_from_scratch.common import ranks
from linformer_from_scratch.common.ranks import assert_same_across_ranks, process_group, rank, world_size
from linformer_from_scratch.distributed import SequenceParallelAttention, experiments, launch
from linformer_from_scratch.distributed.sequence import own_part, shard, sum_gradients
from linformer_from_scratch.distributed.sums import sum_over_ranks
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer, mean_over
from linformer_from_scratch.training.__main__ import main as training_command


def everything():
    """All that layers on shards are asked for, in one start of some ranks."""
    with process_group():
        results = {
            "n = 11": experiments.errors(11),
            "a token a rank": experiments.errors(world_size()),
            "E = F": experiments.errors(11, shared=True),
            "encoder": experiments.encoder_errors(11),
            "a matrix a head": errors_of_a_matrix_a_head(),
            "shard of padding": errors_of_a_shard_of_padding(),
            "batches of several sizes": errors_of_several_sizes(),
            "one screen": experiments.small_errors(11),
            "exchanges": experiments.exchanges([11, 64]),
            "share": ranks.share_of((torch.arange(7), torch.arange(7) + 10)),
            "mean": ranks.mean_over_ranks(float(rank() ** 2)),
            "sent": experiments.sent([64, 512], proj_dim=16),
            "sent shared": experiments.sent([64, 512], proj_dim=16, shared=True),
        }
        results["own layers"] = [
            experiments.errors_of(lambda kind=kind: kind, 11)
            for kind in (LinformerAttention, DividedByTokens)
        ]
        if world_size() == 2:
            results["batches"] = [
                sentence_of(experiments.different_batches, [3, 2]),
                sentence_of(run, shard(some_layer()), 2, 3 - rank()),
                sentence_of(run, shard(some_layer()), 3, 3 - rank()),  # another on rank 1 alone
            ]
            results["refused"] = refused_differences()
        if world_size() == 4:
            results["rows and columns"] = errors_of_rows_and_columns()
        return results


class DividedByTokens(LinformerAttention):
    """Its slots are means over a shard's tokens: the sum over ranks is then another."""

    def slots(self, x):
        keys, values = super().slots(x)
        return keys / x.size(1), values / x.size(1)


def some_layer(kind=LinformerAttention, tokens=11, matrices=None, other=None):
    """A layer, the same on every rank but for what rank 1's alone has; matrices: of E, one a head."""
    other = other if rank() == 1 else None
    matrices = 5 if other == "matrices" else matrices
    torch.manual_seed(other == "numbers")
    E, F = (LearnedProjection(tokens, 5 if other == "proj_dim" else 3, matrices) for _ in range(2))
    F.weight.requires_grad_(other != "frozen")
    layer = kind(20, 4 if other == "num_heads" else 5, E, E if other == "shared" else F)
    return layer.to(torch.float32 if other == "dtype" else torch.float64)


def run(layer, *sizes):
    """Give it batches of these sizes, one after another."""
    for size in sizes:
        layer(torch.randn(size, layer.E.seq_len, 20, dtype=layer.query.weight.dtype))


def some_texts(batch=2):
    return torch.randn(batch, 11, 20, dtype=torch.float64)


def errors_of_a_matrix_a_head():
    whole = some_layer(matrices=5)
    whole.F = whole.E
    return errors(shard(whole), whole, some_texts())


def errors_of_a_shard_of_padding():
    """Texts so short that the last rank holds nothing real."""
    whole, mask = some_layer(), (torch.arange(11) < 5).expand(2, -1)
    x = torch.where(mask[..., None], some_texts(), torch.nan)  # what is there must not matter
    return errors(shard(whole), whole, x, mask)


def errors_of_several_sizes():
    """One layer, given batches of several sizes, with and without gradients."""
    whole = some_layer()
    layer, found = shard(whole), {}
    for i, batch in enumerate((2, 2, 3, 1, 1)):
        x = some_texts(batch)
        with torch.no_grad():
            found[f"evaluated {i}"] = (layer(own_part(x)) - own_part(whole(x))).abs().max().item()
        found |= {f"{name} {i}": error for name, error in errors(layer, whole, x).items()}
    return found


def errors(layer, whole, x, mask=None):
    """Of output and gradient of E, largest absolute ones."""
    expected, output = whole(x, mask), layer(own_part(x), None if mask is None else own_part(mask))
    for result in (expected, output):
        result.square().sum().backward()
    columns = own_part(whole.E.weight.grad, dim=-1)
    return {
        "output": (output - own_part(expected)).abs().max().item(),
        "E": (layer.E.weight.grad - columns).abs().max().item(),
    }


def errors_of_rows_and_columns():
    """Two rows of ranks with texts of their own, each text cut in two."""
    table = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "sequence"))
    whole, texts = some_layer(), some_texts()
    (whole(texts).square().sum() / 2).backward()  # mean over the two rows
    row, group = table["data"].get_local_rank(), table["sequence"].get_group()
    layer = shard(whole, group)
    spread = DistributedDataParallel(layer, process_group=table["data"].get_group())
    spread(own_part(texts[row : row + 1], group)).square().sum().backward()
    sum_gradients(layer, group)
    columns = own_part(whole.E.weight.grad, group, dim=-1)
    found = {"E": (layer.E.weight.grad - columns).abs().max().item()}
    for name in ("query", "output"):
        ours, theirs = (getattr(one, name).weight.grad for one in (layer, whole))
        found[name] = (ours - theirs).abs().max().item()
    return found


def sum_of_other_orders():
    """Of numbers that rank 0 holds column by column; and these numbers afterwards."""
    x = torch.arange(6.0).view(2, 3)
    x = x if rank() else x.T.contiguous().T
    return sum_over_ranks(x).tolist(), x.tolist()


def refused_differences():
    """The sentence for each layer, model or value that is not the same on all ranks; they can go on."""
    refused = {}
    for what in ("nothing", "proj_dim", "dtype", "shared", "matrices"):
        layer = some_layer(SequenceParallelAttention, 4 + rank(), other=what)  # tokens may always differ
        refused[f"layer {what}"] = sentence_of(run, layer, 2)
    with torch.set_grad_enabled(rank() == 0):
        refused["layer gradients"] = sentence_of(run, some_layer(SequenceParallelAttention), 2)
    for what in ("proj_dim", "num_heads", "numbers", "frozen"):  # heads are compared in the first sum
        refused[f"model {what}"] = sentence_of(lambda one: run(shard(one), 2), some_layer(other=what))
    refused["name"] = sentence_of(assert_same_across_ranks, **({} if rank() else {"step": 4}))
    refused["nan"] = sentence_of(assert_same_across_ranks, rates={"a": float("nan")})
    refused["sum"] = sum_of_other_orders()
    refused["other group"] = sentence_of(own_part, torch.ones(1, 4), distributed.new_group([0]))
    refused["too few"] = sentence_of(own_part, torch.ones(1, 1))
    return refused


def sentence_of(call, *arguments, **named):
    """What a refusal says."""
    try:
        call(*arguments, **named)
    except ValueError as error:
        return str(error)


def together(folder):
    """All that two ranks can do one after another: what they train, and what every rank is refused."""
    with process_group():
        return {
            "threads": torch.get_num_threads(),
            "trained": train(5, 2),
            "begun": train(7, 1, folder / "run", until=5),  # its last checkpoint is that of step 4
            "apart": sentence_of(train, 4, 1, folder / str(rank())),  # only rank 0's holds a checkpoint
            "rows": sentence_of(train, 1, 1),
            "sum": sum_over_ranks(torch.ones(1)).item(),
            "printed": printed_by_training(folder / "command"),
        }


def printed_by_training(folder):
    """What the command prints in this rank."""
    words = "--d-model 8 --num-heads 2 --num-layers 1 --seq-len 16 --proj-dim 4 --vocabulary 259 --steps 3"
    words += f" --warmup 2 --quiet --device cpu --folder {folder}"
    with redirect_stdout(StringIO()) as printed:
        training_command(words.split())
    return printed.getvalue()


def too_long():
    """Rank 1 holds a token more than its columns."""
    with process_group():
        torch.manual_seed(0)
        layer = shard(LinformerAttention(4, 1, LearnedProjection(8, 2), LearnedProjection(8, 2)))
        layer(torch.randn(1, 4 + rank(), 4))


def joins_twice():
    """One group after another, in the same processes."""
    sums = []
    for _ in range(2):
        with process_group("cpu"):
            sums.append(sum_over_ranks(torch.ones(1)).item())
    return sums


def ranks_of_ranks():
    """A rank that starts ranks of its own."""
    return launch(joins_twice, 2)


def fails():
    """Without a word."""
    raise ArithmeticError


def changes(numbers):
    """Its own copy."""
    return numbers.add_(1)


def sleeps(folder):
    """Until it is ended; says first that it began."""
    (folder / str(os.getpid())).touch()
    time.sleep(600)


def dies(victim):
    """One of several ranks is killed between two exchanges."""
    with process_group("cpu"):
        distributed.all_reduce(torch.ones(1))
        if rank() == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        distributed.all_reduce(torch.ones(1))


def stopped():
    """Rank 1 does nothing any more, as on a machine that hangs."""
    with process_group("cpu"):
        pass  # both have begun, however busy the machine is
    with process_group("cpu", wait=2):
        if rank() == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        distributed.all_reduce(torch.ones(1))


def lost():
    """The last rank leaves early; what the others are told."""
    try:
        with process_group():
            if rank() < world_size() - 1:
                distributed.all_reduce(torch.ones(1))
    except ConnectionError as error:
        return str(error)


def nothing_to_pickle():
    """A result that cannot be handed over."""
    return lambda: None


def train(rows, accumulation, folder=None, until=None):
    """Losses of a small run, and its last weights."""
    with process_group():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))

        def batches(step):
            generator = torch.Generator().manual_seed(step)
            x, y = (torch.randn(rows, size, generator=generator) for size in (3, 1))
            y[0].abs_()  # so that no batch has none to learn from
            return x, y

        @mean_over(lambda x, y: int((y > 0).sum()))
        def loss(model, x, y):
            """Of a part of the rows: often of more on one rank than on the other, sometimes of none."""
            return (model(x) - y).square()[y > 0].mean()

        config = Config(12, 1e-2, warmup=2, accumulation=accumulation, evaluate_every=4)
        unseen = [batches(10**6 + i) for i in range(5)]
        trainer = Trainer(model, loss, batches, config, unseen, folder, device="cpu")
        begun = trainer.step
        history = trainer.train(until)
        state = trainer.model.state_dict().values()
        return begun, history, torch.cat([tensor.flatten() for tensor in state]), world_size()
