"""What the tests of ranks let several processes do; each function runs in every rank."""

import os
import signal
import time

import torch
from torch import distributed, nn
from torch.distributed.nn import functional as torchs_own
from torch.nn.parallel import DistributedDataParallel

from linformer_from_scratch.common.ranks import (
    assert_same_across_ranks,
    mean_over_ranks,
    mesh,
    process_group,
    rank,
    share_of,
    world_size,
)
from linformer_from_scratch.distributed import SequenceParallelAttention, experiments, launch
from linformer_from_scratch.distributed.sequence import own_part, shard, sharded_parameters, sum_gradients
from linformer_from_scratch.distributed.sums import sum_over_ranks
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.pretrained.lengthwise import window_encoder
from linformer_from_scratch.pretrained.network import SentenceEncoder
from linformer_from_scratch.pretrained.sentence_encoder import fitted_encoder, linformer_encoder
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer, mean_over


def everything():
    """All that layers on shards are asked for, in one start of some ranks."""
    with process_group():
        results = {
            "n = 11": experiments.errors(11),
            "E = F": experiments.errors(11, shared=True),
            "encoder": experiments.encoder_errors(11),
            "a matrix a head": own_heads(),
            "shard of padding": shard_of_padding(),
            "PyTorch's own sum": as_torch_sums(),
            "one screen": experiments.small_errors(11),
            "changes": many_sizes(),
            "in place": experiments.errors_in_place(11),
            "exchanges": experiments.exchanges([11, 64]),
            "share": share_of((torch.arange(7), torch.arange(7) + 10)),
            "mean": mean_over_ranks(float(rank() ** 2)),
            "sent": experiments.sent([64, 512], proj_dim=16),
            "sent shared": experiments.sent([64, 512], proj_dim=16, shared=True),
            "exact": experiments.sent_by_exact([64, 512]),
        }
        results["own layers"] = [
            experiments.errors_of(lambda kind=kind: kind, 11)
            for kind in (LinformerAttention, DividedByTokens)
        ]
        if world_size() == 2:
            results["batches"] = {
                "at first": sentence_of(experiments.different_batches, [3, 2]),
                "later": sentence_of(batches_after_one, 2, 3 - rank()),
                "later on rank 1 alone": sentence_of(batches_after_one, 3, 3 - rank()),
            }
            results["differences"] = differences_between_ranks()
        if world_size() == 4:
            results["a token a rank"] = experiments.errors(4)
            results["rows and columns"] = rows_and_columns()
        return results


class DividedByTokens(LinformerAttention):
    """Its slots are means over a shard's tokens: the sum over ranks is then another."""

    def slots(self, x):
        keys, values = super().slots(x)
        return keys / x.size(1), values / x.size(1)


def some_layer(num_heads=None):
    """The same on every rank: a layer in float64, and a text."""
    torch.manual_seed(1)
    E, F = (LearnedProjection(11, 3, num_heads) for _ in range(2))
    return LinformerAttention(20, 5, E, F).double(), torch.randn(2, 11, 20, dtype=torch.float64)


def batches_after_one(*sizes):
    """Batches of these sizes, one after another."""
    whole, _ = some_layer()
    layer = shard(whole)
    for size in sizes:
        layer(torch.randn(size, layer.E.seq_len, 20, dtype=torch.float64))


def own_heads():
    """A layer whose heads have their own E and F."""
    whole, x = some_layer(num_heads=5)
    return differences(shard(whole), whole, x)


def shard_of_padding():
    """Texts so short that the last rank holds nothing real."""
    whole, x = some_layer()
    mask = (torch.arange(11) < 5).expand(2, -1)
    x = torch.where(mask[..., None], x, torch.nan)  # what is there must not matter
    return differences(shard(whole), whole, x, mask)


def many_sizes():
    """One layer, given batches of several sizes and with and without gradients."""
    whole, _ = some_layer()
    layer, results = shard(whole), {}
    for i, batch in enumerate((2, 2, 3, 1, 1)):
        x = torch.randn(batch, 11, 20, dtype=torch.float64)
        with torch.no_grad():
            results[f"evaluated {i}"] = (layer(own_part(x)) - own_part(whole(x))).abs().max().item()
        whole.zero_grad()
        layer.zero_grad()
        results |= {f"{name} {i}": value for name, value in differences(layer, whole, x).items()}
    return results


def differences(layer, whole, x, mask=None):
    """Of output and gradient of E, largest absolute ones."""
    expected = whole(x, mask)
    expected.square().nansum().backward()
    output = layer(own_part(x), None if mask is None else own_part(mask))
    output.square().nansum().backward()
    columns = own_part(whole.E.weight.grad, dim=-1)
    return {
        "output": (output - own_part(expected)).nan_to_num().abs().max().item(),
        "E": (layer.E.weight.grad - columns).abs().max().item(),
    }


def as_torch_sums():
    """sum_over_ranks against PyTorch's differentiable all-reduce: the sum, and its gradient."""
    torch.manual_seed(rank())
    start, upstream = torch.randn(2, 3, 5, dtype=torch.float64)
    ours, theirs = [], []
    for add_up, results in ((sum_over_ranks, ours), (torchs_own.all_reduce, theirs)):
        x = start.clone().requires_grad_()
        total = add_up(x)
        results += [total, *torch.autograd.grad((total**3 * upstream).sum(), x)]
    return {
        name: (a - b).abs().max().item() for name, a, b in zip(("sum", "gradient"), ours, theirs, strict=True)
    }


def sentences():
    """The sentence encoder whole and on shards, its last text so short that a rank holds only padding."""
    with process_group("cpu"):
        return {
            "E and F": sentence_errors("E and F"),
            "windows": sentence_errors("windows"),
            "fitted": sentence_errors("fitted"),
            "refused": sentence_of(longer_than_its_shard),
        }


def longer_than_its_shard():
    """A whole text for each rank."""
    shard(last_blocks("E and F", 1))(torch.zeros(1, 512, dtype=torch.long))


def last_blocks(kind, count):
    """A pretrained encoder with 128 slots and its last blocks alone, the same on every rank."""
    torch.manual_seed(0)
    if kind == "E and F":
        encoder = linformer_encoder(lambda: LearnedProjection(512, 128))
    else:
        encoder = window_encoder(128) if kind == "windows" else fitted_encoder(128)
    for module in list(encoder.modules()):
        if isinstance(module, SentenceEncoder):
            module.blocks = module.blocks[-count:]
    return encoder


def sentence_errors(kind):
    """Relative ones, in float64, of the vectors of two texts that padding fills up, and of all gradients."""
    whole = last_blocks(kind, 2).double()
    ids = torch.randint(30_522, (2, 512), generator=torch.Generator().manual_seed(0))
    mask, upstream = torch.arange(512) < torch.tensor([300, 9])[:, None], torch.randn(2, 384).double()
    model = shard(whole, gather=kind == "fitted")
    computed, expected = {}, {}
    if kind != "fitted":
        with torch.no_grad():
            computed["vectors of tokens"] = model(own_part(ids), own_part(mask))
            expected["vectors of tokens"] = whole(ids, mask)
    texts, whole_texts = model.embed(own_part(ids), own_part(mask)), whole.embed(ids, mask)
    computed["vectors of texts"], expected["vectors of texts"] = texts, whole_texts
    texts.backward(upstream / world_size())  # each rank's share of the loss
    whole_texts.backward(upstream)
    sum_gradients(model)
    names = {name: name for name, _ in whole.named_parameters()}
    computed |= experiments._gradients(model, names)
    expected |= experiments._gradients(whole, names)
    return experiments._differences(computed, expected)


def rows_and_columns():
    """Two rows of ranks with texts of their own, each text cut in two: largest difference to one process."""
    table = mesh(sequence=2)
    torch.manual_seed(3)
    E, F = (LearnedProjection(11, 3) for _ in range(2))
    whole, texts = LinformerAttention(20, 5, E, F).double(), torch.randn(2, 1, 11, 20).double()
    sum(whole(text).square().sum() for text in texts).div(2).backward()  # mean over the two rows
    row, group = table["data"].get_local_rank(), table["sequence"].get_group()
    layer = shard(whole, group)
    spread = DistributedDataParallel(layer, process_group=table["data"].get_group())
    spread(own_part(texts[row], group)).square().sum().backward()
    sum_gradients(layer, group)
    pairs = [(layer.E.weight.grad, own_part(E.weight.grad, group, dim=-1))]
    pairs += [(getattr(layer, w).weight.grad, getattr(whole, w).weight.grad) for w in ("query", "output")]
    assert len(sharded_parameters(layer)) == 2
    return max((ours - theirs).abs().max().item() for ours, theirs in pairs)


def differences_between_ranks():
    """What each rank is told of layers, models and values that are not the same; and that they can go on."""
    told = {f"layer {what}": told_of_shards(what) for what in ("alike", "proj_dim", "dtype", "shared")}
    layer, x = one_shard()
    with torch.set_grad_enabled(rank() == 0):
        told["layer gradients"] = sentence_of(layer, x)
    for what in ("proj_dim", "num_heads", "numbers", "frozen"):
        whole = one_whole(what if rank() == 1 else None)
        told[f"model {what}"] = sentence_of(sharded_and_run, whole)
    told["name"] = sentence_of(assert_same_across_ranks, **({} if rank() else {"step": 4}))
    told["nan"] = sentence_of(assert_same_across_ranks, rates={"a": float("nan")})
    told["sum"] = sum_over_ranks(torch.ones(1)).item()
    group = distributed.new_group([0])
    told["other group"] = sentence_of(own_part, torch.ones(1, 4), group)
    return told


def sharded_and_run(whole):
    """Heads are compared in the first sum, all else before a model is cut."""
    shard(whole)(torch.randn(2, 4 + (rank() == 0), 8))


def told_of_shards(what):
    """Rank 1's layer differs from rank 0's in this; the number of tokens may always differ."""
    return sentence_of(*one_shard(what if rank() == 1 else None, tokens=4 + rank()))


def one_shard(other=None, tokens=4):
    """A layer of one shard and its text."""
    E, F = (LearnedProjection(tokens, 5 if other == "proj_dim" else 3) for _ in range(2))
    layer = SequenceParallelAttention(8, 2, E, E if other == "shared" else F)
    dtype = torch.float64 if other == "dtype" else torch.float32
    return layer.to(dtype), torch.randn(2, tokens, 8, dtype=dtype)


def one_whole(other=None):
    """A layer before it is cut."""
    torch.manual_seed(1 if other == "numbers" else 0)
    E, F = (LearnedProjection(9, 5 if other == "proj_dim" else 3) for _ in range(2))
    F.weight.requires_grad_(other != "frozen")
    return LinformerAttention(8, 4 if other == "num_heads" else 2, E, F)


def sentence_of(call, *arguments, **named):
    """What a refusal says."""
    try:
        call(*arguments, **named)
    except ValueError as error:
        return str(error)
    except Exception as error:  # another test's turn comes all the same
        return repr(error)


def together(folder):
    """All that two ranks can do one after another: what they train, and what every rank is refused."""
    with process_group():
        return {
            "threads": torch.get_num_threads(),
            "trained": train(5, 2),
            "begun": train(7, 1, folder / "run", until=5),  # its last checkpoint is that of step 4
            "apart": sentence_of(train, 4, 1, folder / str(rank())),  # only rank 0's holds a checkpoint
            "mesh": sentence_of(mesh, sequence=4),  # more ranks a text than there are
            "rows": sentence_of(train, 1, 1),
            "sum": sum_over_ranks(torch.ones(1)).item(),
        }


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
    """Rank 1 leaves early; what rank 0 is told."""
    try:
        with process_group():
            if rank() == 0:
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
