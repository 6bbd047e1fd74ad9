"""What the tests of ranks let several processes do; each function runs in every rank."""

import os
import signal
import sys
import time

import torch
from torch import distributed, nn
from torch.distributed.nn import functional as torchs_own
from torch.nn.parallel import DistributedDataParallel

from linformer_from_scratch.distributed import SequenceParallelAttention, experiments, launch
from linformer_from_scratch.distributed.ranks import (
    assert_same_across_ranks,
    mean_over_ranks,
    mesh,
    process_group,
    rank,
    share_of,
    world_size,
)
from linformer_from_scratch.distributed.sequence import own_part, shard, sharded_parameters, sum_gradients
from linformer_from_scratch.distributed.sums import sum_over_ranks
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.projections import LearnedProjection
from linformer_from_scratch.training import Config, Trainer, mean_over


def everything():
    """All that layers on shards are asked for, in one start of some ranks."""
    with process_group():
        found = {f"n = {n}": experiments.errors(n) for n in (4, 11, 13, 16)}  # uneven, and one token a rank
        found["E = F"] = experiments.errors(11, shared=True)
        found["encoder"] = experiments.encoder_errors(11)
        found["a matrix a head"] = own_heads()
        found["own layers"] = [
            experiments.errors_of(lambda kind=kind: kind, 11)
            for kind in (LinformerAttention, DividedByTokens)
        ]
        found["shard of padding"] = shard_of_padding()
        found["changes"] = many_sizes()
        found["PyTorch's own sum"] = as_torch_sums()
        if world_size() == 2:
            found["batches"] = {
                "at first": sentence_of(experiments.different_batches, [3, 2]),
                "later": sentence_of(experiments.different_batches, [3, 2], 2),
                "later on rank 1 alone": sentence_of(experiments.different_batches, [3, 2], 1, 3),
            }
            found["differences"] = differences_between_ranks()
        if world_size() == 4:
            found["rows and columns"] = rows_and_columns()
        return found | {
            "in place": experiments.errors_in_place(11),
            "exchanges": experiments.exchanges([11, 64]),
            "share": share_of((torch.arange(7), torch.arange(7) + 10)),
            "mean": mean_over_ranks(float(rank() ** 2)),
            "sent": experiments.sent([64, 512], proj_dim=16),
            "sent shared": experiments.sent([64, 512], proj_dim=16, shared=True),
            "exact": experiments.sent_by_exact([64, 512]),
        }


class DividedByTokens(LinformerAttention):
    """Its slots are means over a shard's tokens: the sum over ranks is then another."""

    def slots(self, x):
        keys, values = super().slots(x)
        return keys / x.size(1), values / x.size(1)


def own_heads():
    """A layer whose heads have their own E and F."""
    torch.manual_seed(1)
    E, F = (LearnedProjection(11, 3, num_heads=5) for _ in range(2))
    whole, x = LinformerAttention(20, 5, E, F).double(), torch.randn(2, 11, 20, dtype=torch.float64)
    layer = shard(whole)
    return differences(layer, whole, x)


def shard_of_padding():
    """Texts so short that the last rank holds nothing real."""
    torch.manual_seed(2)
    E, F = (LearnedProjection(11, 3) for _ in range(2))
    whole, x = LinformerAttention(20, 5, E, F).double(), torch.randn(2, 11, 20, dtype=torch.float64)
    mask = (torch.arange(11) < 5).expand(2, -1)
    x = torch.where(mask[..., None], x, torch.nan)  # what stands there must not matter
    return differences(shard(whole), whole, x, mask)


def many_sizes():
    """One layer, given batches of several sizes and with and without gradients: output and gradient of E."""
    torch.manual_seed(4)
    E, F = (LearnedProjection(11, 3) for _ in range(2))
    whole = LinformerAttention(20, 5, E, F).double()
    layer, found = shard(whole), {}
    for i, batch in enumerate((2, 2, 3, 1, 1)):
        x = torch.randn(batch, 11, 20, dtype=torch.float64)
        with torch.no_grad():
            found[f"evaluated {i}"] = (layer(own_part(x)) - own_part(whole(x))).abs().max().item()
        whole.zero_grad()
        layer.zero_grad()
        found |= {f"{name} {i}": value for name, value in differences(layer, whole, x).items()}
    return found


def differences(layer, whole, x, mask=None):
    """Of output and gradient of E, largest absolute ones."""
    expected = whole(x, mask)
    expected.square().nansum().backward()
    found = layer(own_part(x), None if mask is None else own_part(mask))
    found.square().nansum().backward()
    columns = own_part(whole.E.weight.grad, dim=-1)
    return {
        "output": (found - own_part(expected)).nan_to_num().abs().max().item(),
        "E": (layer.E.weight.grad - columns).abs().max().item(),
    }


def as_torch_sums():
    """sum_over_ranks against PyTorch's differentiable all-reduce: the sum and its gradient; and once more."""
    torch.manual_seed(rank())
    start, upstream = torch.randn(2, 3, 5, dtype=torch.float64)
    seen = []
    for add_up in (sum_over_ranks, torchs_own.all_reduce):
        x = start.clone().requires_grad_()
        total = add_up(x)
        (gradient,) = torch.autograd.grad((total**3 * upstream).sum(), x, create_graph=True)
        seen.append((total.detach(), gradient.detach()))
    (again,) = torch.autograd.grad(gradient_of_cube(start, upstream).sum(), upstream.requires_grad_())
    assert again.shape == upstream.shape
    return {
        name: (ours - theirs).abs().max().item()
        for name, ours, theirs in zip(("sum", "gradient"), *seen, strict=True)
    }


def gradient_of_cube(start, upstream):
    """Differentiable once more."""
    x = start.clone().requires_grad_()
    upstream.requires_grad_()
    return torch.autograd.grad((sum_over_ranks(x) ** 3 * upstream).sum(), x, create_graph=True)[0]


def sentences():
    """The sentence encoder whole and on shards, its last text so short that a rank holds only padding."""
    some = {"real": (300, 9), "num_blocks": 2, "dtype": torch.float64}
    with process_group("cpu"):
        return {
            "E and F": experiments.sentence_errors("E and F", **some),
            "windows": experiments.sentence_errors("windows", **some),
            "fitted": experiments.sentence_errors("fitted", **some),
            "all blocks in float32": experiments.sentence_errors("windows", gradients=False),
            "all fitted blocks in float32": experiments.sentence_errors("fitted", gradients=False),
            "refused": sentence_of(longer_than_its_shard),
            "encode": sentence_of(shard(experiments.sentence_encoder()).encode, "A short text."),
        }


def longer_than_its_shard():
    """A whole text for each rank."""
    shard(experiments.sentence_encoder(num_blocks=1))(torch.zeros(1, 512, dtype=torch.long))


def rows_and_columns():
    """Two rows of ranks with texts of their own, each text cut in two: largest difference to one process."""
    with process_group():
        table = mesh(sequence=2)
        torch.manual_seed(3)
        E, F = (LearnedProjection(11, 3) for _ in range(2))
        whole, texts = LinformerAttention(20, 5, E, F).double(), torch.randn(2, 1, 11, 20).double()
        sum(whole(text).square().sum() for text in texts).div(2).backward()  # mean over the two rows
        row, group = table["data"].get_local_rank(), table["sequence"].get_group()
        layer = shard(whole, group)
        layer.zero_grad()
        spread = DistributedDataParallel(layer, process_group=table["data"].get_group())
        spread(own_part(texts[row], group)).square().sum().backward()
        sum_gradients(layer, group)
        pairs = [(layer.E.weight.grad, own_part(E.weight.grad, group, dim=-1))]
        pairs += [(getattr(layer, w).weight.grad, getattr(whole, w).weight.grad) for w in ("query", "output")]
        assert len(sharded_parameters(layer)) == 2
        return max((ours - theirs).abs().max().item() for ours, theirs in pairs)


def together(folder):
    """All that two ranks can do one after another: what they train, and what every rank is refused."""
    with process_group():
        return {
            "threads": torch.get_num_threads(),
            "trained": {sizes: train(*sizes) for sizes in ((4, 1), (5, 2))},
            "begun": train(7, 1, folder / "run", until=5),  # its last checkpoint is that of step 4
            "steps": sentence_of(assert_same_across_ranks, step=40 * (1 - rank()), name="same"),
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


ALIKE = {"proj_dim": 3, "d_model": 8, "num_heads": 2, "batch": 2, "dtype": torch.float32, "tokens": 4}


def one_shard(**other):
    """A layer of one shard and its text; rank 1's may be other than rank 0's. None: E = F."""
    size = ALIKE | (other if rank() == 1 else {})
    torch.manual_seed(0)
    per_head = size["num_heads"] if "matrices" in size else None
    E, F = (LearnedProjection(size["tokens"], size["proj_dim"], per_head) for _ in range(2))
    layer = SequenceParallelAttention(size["d_model"], size["num_heads"], E, E if "shared" in size else F)
    return layer.to(size["dtype"]), torch.randn(
        size["batch"], size["tokens"], size["d_model"], dtype=size["dtype"]
    )


def whole(**other):
    """A layer before it is cut; rank 1's may be other than rank 0's."""
    size = ALIKE | {"tokens": 9, "seed": 0} | (other if rank() == 1 else {})
    torch.manual_seed(size["seed"])
    E, F = (LearnedProjection(size["tokens"], size["proj_dim"]) for _ in range(2))
    F.weight.requires_grad_("frozen" not in size)
    layer = LinformerAttention(size["d_model"], size["num_heads"], E, E if "shared" in size else F)
    return layer.to(size["dtype"])


def sentence_of(call, *arguments, **named):
    """What a refusal says."""
    try:
        call(*arguments, **named)
    except ValueError as error:
        return str(error)
    except Exception as error:  # another test's turn comes all the same
        return repr(error)


def differences_between_ranks():
    """What each rank is told of layers, models and values that are not the same; and that they can go on."""
    with process_group():
        found = {}
        for what, value in OTHERS.items():
            layer, x = one_shard(**{what: value})
            found[f"layer {what}"] = sentence_of(layer, x)
        layer, x = one_shard()
        with torch.set_grad_enabled(rank() == 0):
            found["layer gradients"] = sentence_of(layer, x)
        found["layer tokens"] = sentence_of(*one_shard(tokens=5))  # uneven shards are nothing wrong
        for what, value in {**OTHERS, "tokens": 7, "seed": 1, "frozen": True}.items():
            if what not in ("batch", "matrices"):
                found[f"model {what}"] = sentence_of(lambda model: shard(model), whole(**{what: value}))
        found["agree name"] = sentence_of(assert_same_across_ranks, **({} if rank() else {"step": 4}))
        found["agree other name"] = sentence_of(assert_same_across_ranks, **({"step": 4} if rank() else {}))
        found["agree nan"] = sentence_of(
            assert_same_across_ranks, rate=float("nan"), rates={"a": float("nan")}
        )
        found["agree kinds"] = sentence_of(
            assert_same_across_ranks, shape=(1, 2) if rank() else "a longer text"
        )
        found["other group"] = sentence_of(rank_in_group_of_first)
        found["sum"] = sum_over_ranks(torch.ones(1)).item()
        return found


OTHERS = {
    "proj_dim": 5,
    "d_model": 12,
    "num_heads": 4,
    "batch": 3,
    "dtype": torch.float64,
    "shared": True,
    "matrices": 2,
}


def rank_in_group_of_first():
    """Rank 1 asks for its part of a text that only rank 0 holds."""
    group = distributed.new_group([0])
    if rank() == 1:
        own_part(torch.ones(1, 4), group)


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


def leaves_with(code):
    """As a program may."""
    sys.exit(code)


def vanishes():
    """Without a word, as if all were well."""
    os._exit(0)


def crashes():
    """As compiled code may."""
    os.kill(os.getpid(), signal.SIGSEGV)


def fails(*words):
    """With what is said, or without a word."""
    raise KeyError(*words) if words else ArithmeticError


def changes(numbers):
    """Its own copy."""
    numbers.add_(1)
    return numbers


def sleeps(folder):
    """Until it is ended; says first that it began."""
    (folder / str(os.getpid())).touch()
    time.sleep(600)


def die():
    """Rank 1 is killed while rank 0 waits for it."""
    assert os.name == "posix", "a signal kills it"
    with process_group():
        if rank() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        distributed.all_reduce(torch.ones(1))


def dies(victim):
    """One of several ranks is killed between two exchanges."""
    assert os.name == "posix", "a signal kills it"
    with process_group("cpu"):
        distributed.all_reduce(torch.ones(1))
        if rank() == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        distributed.all_reduce(torch.ones(1))


def stopped():
    """Rank 1 does nothing any more, as on a machine that hangs."""
    assert os.name == "posix", "a signal stops it"
    with process_group("cpu"):
        pass  # both have begun
    with process_group("cpu", wait=2):
        if rank() == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
        distributed.all_reduce(torch.ones(1))


def late():
    """Rank 1 is alive and does not come, though it came once."""
    with process_group("cpu"):
        pass  # both have begun, however busy the machine is
    with process_group("cpu", wait=2):
        if rank() == 1:
            time.sleep(20)
        distributed.all_reduce(torch.ones(1))


def threads():
    """With how many a rank computes."""
    return torch.get_num_threads()


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


def train_apart(folder):
    """Every rank has a folder of its own, and only rank 0's holds a checkpoint."""
    with process_group():
        return train(4, 1, folder / str(rank()))


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
