"""projections.py: slot by slot, and what each kind promises."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils import prune
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

from linformer_from_scratch import projections as module
from linformer_from_scratch.benchmark import peak_bytes
from linformer_from_scratch.distributed.sequence import shard_projection
from linformer_from_scratch.projections import GaussianProjection, LearnedProjection, project, start_at
from linformer_from_scratch.training import Config, Trainer, parameter_groups

D = 3
KINDS = {
    "learned": LearnedProjection,
    "Gaussian": GaussianProjection,
    "mean": module.MeanPooling,
    "max": module.MaxPooling,
    "convolution": lambda seq_len, proj_dim: module.StridedConvolution(seq_len, proj_dim, D),
}
every_kind = pytest.mark.parametrize("kind", KINDS)


def tokens(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(0))


@every_kind
@pytest.mark.parametrize(("seq_len", "proj_dim"), [(12, 4), (11, 5), (5, 11)])
def test_gives_exactly_proj_dim_slots_whatever_the_axes_before(kind, seq_len, proj_dim):
    projection = KINDS[kind](seq_len, proj_dim)
    for leading in ((), (2,), (2, 5), (1, 2, 3), (0, 3)):
        for n in {1, seq_len // 2 + 1, seq_len}:
            x = tokens(*leading, n, D)
            slots = projection(x)
            assert slots.shape == (*leading, proj_dim, D)
            extended = torch.cat([x, torch.zeros(*leading, seq_len - n, D)], dim=-2)
            assert_close(slots, projection(extended))  # missing tokens count as zeros


def test_project_multiplies_and_uses_the_first_columns():
    E = tokens(5, 11)
    assert_close(project(tokens(2, 7, D), E), E[:, :7] @ tokens(2, 7, D))
    per_head = tokens(4, 5, 11)
    by_hand = [per_head[h, :, :7] @ tokens(2, 4, 7, D)[:, h] for h in range(4)]
    assert_close(project(tokens(2, 4, 7, D), per_head), torch.stack(by_hand, dim=1))


@pytest.mark.parametrize("n", [1024, 1000])
@pytest.mark.parametrize("num_heads", [None, 8])
def test_the_slots_are_all_that_a_matrix_needs(n, num_heads):
    E = LearnedProjection(1024, 256, num_heads)
    with torch.no_grad():
        slots, one_number = 8 * 256 * 16 * 4, 64
        assert peak_bytes(E, tokens(1, 8, n, 16)) <= slots + one_number < E.weight.nbytes


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning", "ignore::torch.jit.TracerWarning")
@every_kind
@pytest.mark.parametrize(("seq_len", "n"), [(12, 12), (13, 9)])
def test_exports_and_traces_with_every_length(kind, seq_len, n):
    projection, length = KINDS[kind](seq_len, 4), torch.export.Dim("n", min=2, max=seq_len)
    shapes = {"x": {1: length}}
    exported = torch.export.export(projection, (tokens(2, n, D),), dynamic_shapes=shapes).module()
    traced = torch.jit.trace(projection, tokens(2, n, D))
    for other in (2, 9, seq_len):
        for graph in (exported, traced):
            assert_close(graph(tokens(2, other, D)), projection(tokens(2, other, D)))


@every_kind
@pytest.mark.parametrize("n", [12, 9])
def test_a_view_and_a_copy_give_the_same_gradients(kind, n, monkeypatch):
    projection, x = KINDS[kind](12, 4), tokens(2, n, D).requires_grad_()
    inputs = [x, *projection.parameters()]
    seen = torch.autograd.grad(projection(x).square().sum(), inputs)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert_close(torch.autograd.grad(projection(x).square().sum(), inputs), seen)


@pytest.mark.parametrize("kind", ["mean", "max", "convolution"])
def test_a_full_input_is_not_extended(kind):
    projection, x, called = KINDS[kind](12, 4), tokens(2, 12, D), set()

    class Listen(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
            called.add(operation.overloadpacket.__name__)
            return operation(*args, **(kwargs or {}))

    with Listen():
        projection(x)
    assert called and not called & {"constant_pad_nd", "index_select"}


@pytest.mark.parametrize("x", [torch.zeros(2, 3, 7, D), torch.zeros(7, D), torch.zeros(1, 7, D)])
def test_matrices_per_head_need_as_many_heads(x):
    with pytest.raises(ValueError, match=rf"x is \({x.size(0)}, .*each of 4 heads"):
        project(x, torch.zeros(4, 5, 11))


@every_kind
def test_too_many_tokens_are_refused_with_both_numbers(kind):
    with pytest.raises(ValueError, match="input has 12 tokens; E and F were built for seq_len=11"):
        KINDS[kind](11, 4)(tokens(12, D))


@every_kind
@pytest.mark.parametrize(
    ("sizes", "message"),
    [((0, 4), "seq_len is 0"), ((8, -1), "proj_dim is -1"), ((8, 2.0), "proj_dim is 2.0")],
)
def test_wrong_sizes_are_refused(kind, sizes, message):
    with pytest.raises(ValueError, match=f"{message}, expected an integer of at least 1"):
        KINDS[kind](*sizes)


def test_mean_and_max_pool_windows_of_the_sequence():
    x = torch.tensor([[1.0], [-2.0], [3.0], [4.0], [-5.0], [-6.0]])
    assert module.MeanPooling(6, 3)(x).flatten().tolist() == [-0.5, 3.5, -5.5]
    assert module.MaxPooling(6, 3)(x).flatten().tolist() == [1, 4, -5]
    assert module.MeanPooling(6, 4)(x).flatten().tolist() == [-0.5, 0.5, -0.5, -5.5]  # 0-1, 1-2, 3-4, 4-5


def test_convolution_mixes_features_within_a_window():
    layer = module.StridedConvolution(seq_len=7, proj_dim=3, d_head=D)  # windows of 3, which share a token
    x = tokens(7, D)
    kernel = layer.convolution.weight  # (out, in, 3)
    expected = [torch.einsum("oiw,wi->o", kernel, x[start : start + 3]) for start in (0, 2, 4)]
    assert_close(layer(x), torch.stack(expected))
    with pytest.raises(ValueError, match="x has 4 features, expected d_head=3"):
        layer(tokens(5, 4))


@every_kind
@pytest.mark.parametrize(("seq_len", "proj_dim"), [(12, 5), (11, 5), (5, 4), (5, 11)])
def test_every_slot_reads_something_and_every_token_is_read(kind, seq_len, proj_dim):
    projection = KINDS[kind](seq_len, proj_dim)
    x = tokens(seq_len, D).requires_grad_()
    reads = [torch.autograd.grad(slot.sum(), x, retain_graph=True)[0].abs().sum(-1) for slot in projection(x)]
    reads = torch.stack(reads) > 0  # (proj_dim, seq_len)
    assert reads.any(dim=1).all()
    assert reads.any(dim=0).all() or kind == "max"  # the largest numbers may all lie elsewhere


@every_kind
def test_commutes_says_whether_features_may_be_mixed_afterwards(kind):
    projection, W = KINDS[kind](11, 4), tokens(D, D)
    same = torch.allclose(projection(tokens(2, 11, D)) @ W, projection(tokens(2, 11, D) @ W), atol=1e-5)
    assert same == projection.commutes


def test_one_matrix_per_head_does_not_commute():
    assert LearnedProjection(11, 4).commutes and not LearnedProjection(11, 4, num_heads=2).commutes


def test_learned_and_gaussian_keep_the_spread_of_the_tokens():
    for projection in (LearnedProjection(4096, 256), GaussianProjection(4096, 256)):
        assert abs(projection(tokens(4096, 64)).std() - 1) < 0.05


def test_gaussian_is_fixed_seeded_and_saved():
    projection = GaussianProjection(11, 4, seed=5)
    assert torch.equal(projection.weight, GaussianProjection(11, 4, seed=5).weight)
    other = GaussianProjection(11, 4, seed=6)
    assert not torch.equal(projection.weight, other.weight)
    assert [*projection.parameters()] == [] and [*projection.state_dict()] == ["weight"]
    other.load_state_dict(projection.state_dict())
    assert torch.equal(projection.weight, other.weight)


def test_a_projection_of_your_own_needs_only_forward():
    class LastTokens(module.Projection):
        def forward(self, x):
            return x[..., -self.proj_dim :, :]

    projection = LastTokens(11, 4)
    assert projection.seq_len == 11 and projection(tokens(2, 9, D)).shape == (2, 4, D)
    assert not projection.commutes


class Scaled(nn.Module):
    """√n · E as what is trained, which a LearnedProjection at rates of its own must equal."""

    def __init__(self, E):
        super().__init__()
        self.scale = E.seq_len**0.5
        self.scaled_weight = nn.Parameter(E.weight.detach() * self.scale)

    def forward(self, x):
        return project(x, self.scaled_weight / self.scale)


@pytest.mark.parametrize("loudness", [1e-3, 1e3], ids=["within the norm of 1", "clipped"])
@pytest.mark.parametrize("num_heads", [None, 3])
def test_the_trainer_moves_E_as_if_its_numbers_were_of_size_one(num_heads, loudness):
    def loss(model, x):
        return loudness * (model(x) - x[..., :5, :]).square().mean()

    torch.manual_seed(0)
    E = LearnedProjection(11, 5, num_heads).double()
    ends = []
    for first in (E, Scaled(E)):
        model = nn.Sequential(copy.deepcopy(first), nn.Linear(4, 4, dtype=torch.double))
        nn.init.eye_(model[1].weight), nn.init.zeros_(model[1].bias)
        config = Config(8, 0.1, warmup=2, weight_decay=0.3)
        Trainer(model, loss, lambda i: (tokens(3, 11, 4).double() + i,), config, device="cpu").train()
        ends.append(model[0](torch.eye(11, dtype=torch.double).expand(3, 11, 11)))
    assert_close(*ends)
    assert not torch.allclose(ends[0], E(torch.eye(11, dtype=torch.double).expand(3, 11, 11)), atol=0.1)


@pytest.mark.parametrize("num_heads", [None, 3])
@pytest.mark.parametrize("optimizer", [torch.optim.AdamW, torch.optim.Adam])
def test_groups_give_any_optimizer_of_adams_kind_the_rates_of_E(optimizer, num_heads):
    torch.manual_seed(0)
    for seq_len in (16, 1024):
        E = LearnedProjection(seq_len, 8, num_heads)
        before = E.weight.detach().clone()
        rates = optimizer(parameter_groups(E, 0.01, weight_decay=0))
        (E(tokens(3, seq_len, 4)).square().sum() * 1e3).backward()  # (batch or heads, n, d)
        rates.step()
        moved = (E.weight.detach() - before).square().mean().sqrt() * seq_len**0.5
        assert moved.item() == pytest.approx(0.01, rel=0.02)


WRITES = {
    "copy_": lambda weight: weight.copy_(torch.ones_like(weight)),
    "init": nn.init.ones_,
    "an index": lambda weight: weight.__setitem__(..., 1),
    "data": lambda weight: weight.data.fill_(1),
    "out=": lambda weight: torch.ones(weight.shape, out=weight),
}


@pytest.mark.parametrize("make", [LearnedProjection, GaussianProjection])
@pytest.mark.parametrize("write", WRITES)
def test_whatever_is_written_to_a_matrix_is_what_the_module_computes_with(make, write):
    E, x = make(7, 3), tokens(2, 7, D)
    with torch.no_grad():
        WRITES[write](E.weight)
    assert_close(E(x), x.sum(dim=-2, keepdim=True).expand(2, 3, D))


@pytest.mark.parametrize(
    "computed", [nn.utils.parametrizations.weight_norm, lambda E: prune.random_unstructured(E, "weight", 0.5)]
)
@pytest.mark.parametrize(
    "use", [lambda E: start_at(E, torch.zeros(3, 7)), lambda E: parameter_groups(E, 0.1), shard_projection]
)
def test_a_matrix_that_is_computed_from_others_is_not_set_nor_given_a_rate_nor_cut(computed, use):
    with pytest.raises(
        ValueError, match=r"^E's weight is a Tensor, expected a Parameter: it is computed from"
    ):
        use(computed(LearnedProjection(7, 3)))


@pytest.mark.parametrize("num_heads", [None, 3])
def test_E_starts_at_any_matrix_and_weights_of_version_1_0_load(num_heads):
    E, other = (LearnedProjection(50, 8, num_heads) for _ in range(2))
    matrix = torch.randn(E.weight.shape)
    assert start_at(E, matrix) is E
    assert torch.equal(E.weight, matrix) and list(E.state_dict()) == ["weight"]
    for state in (E.state_dict(), {"stored": matrix * 50**0.5}):
        for assign in (False, True):
            again = copy.deepcopy(other)
            again.load_state_dict(state, assign=assign)
            assert_close(again.weight, nn.Parameter(matrix))
    with pytest.raises(RuntimeError, match="stored"):  # which of the two?
        other.load_state_dict({"stored": matrix, "weight": matrix})
    alike = tokens(8, 50)
    assert_close(start_at(E, alike).weight, alike.expand_as(E.weight))  # the same for every head
    with pytest.raises(ValueError, match=r"the matrix is \(50, 8\), expected \((3, )?8, 50\)"):
        start_at(E, torch.zeros(50, 8))
