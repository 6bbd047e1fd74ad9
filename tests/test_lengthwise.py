"""lengthwise.py: exact attention for short texts, Linformer for long ones, in a folder and back."""

import json

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from linformer_from_scratch.pretrained import lengthwise, low_rank_updates, sentence_encoder, tokenize
from linformer_from_scratch.pretrained.lengthwise import Layout, LengthwiseEncoder, window_encoder
from linformer_from_scratch.pretrained.windows import WindowAttention

SAME = {"atol": 1e-6, "rtol": 0}
LAYOUT = Layout(proj_dim=8, exact_layers=(5,), crossover=12)
SHORT = "Rates rose again today."
LONG = "The bank raised its rates because it expected inflation to rise, twice."


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(0)
    found = LengthwiseEncoder(LAYOUT)
    with torch.no_grad():
        for parameter in found.linformer.blocks.parameters():
            parameter.mul_(1.01)  # other weights than the exact network's
    return found.eval()


@torch.no_grad()
def test_every_text_goes_through_the_network_of_its_length(encoder):
    exact = sentence_encoder.full_encoder()
    short, long = tokenize(SHORT)[None], tokenize(LONG)[None]
    assert short.size(1) < 12 <= long.size(1)
    assert_close(encoder.embed(short), exact.embed(short), **SAME)
    assert_close(encoder.embed(long), encoder.linformer.embed(long), **SAME)
    assert (encoder.embed(long) - exact.embed(long)).abs().max() > 1e-3
    at = tokenize("Rates rose again today and the day before.")[None]
    assert at.size(1) == 11
    assert_close(encoder.embed(at), exact.embed(at), **SAME)
    at = tokenize("Rates rose again today and the day before that.")[None]
    assert_close(encoder.embed(at), encoder.linformer.embed(at), **SAME)


def test_a_vector_does_not_depend_on_what_else_is_in_the_batch(encoder):
    texts = [SHORT, LONG, "x", LONG + " And so it did."]
    together = encoder.encode(texts)
    for text, vector in zip(texts, together, strict=True):
        assert_close(vector, encoder.encode(text), **SAME)


def test_misuse_is_refused_in_one_sentence(encoder, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"^expected ids \(batch, n\), got list; `encode` takes texts$"):
        encoder(["a text"])
    ids, mask = torch.ones(2, 20, dtype=torch.long), torch.ones(2, 20, dtype=torch.bool)
    with pytest.raises(ValueError, match="padding stands before a real token"):
        encoder.embed(ids, mask.index_fill(1, torch.arange(15), False))
    with pytest.raises(ValueError, match="crossover is 7, expected at least proj_dim=8"):
        LengthwiseEncoder(Layout(8, (), 7))
    monkeypatch.setattr(encoder, "state_dict", lambda: {"packed": (torch.int8, None)})
    with pytest.raises(ValueError, match="some weights are not plain tensors; save an encoder before it is"):
        encoder.save_pretrained(tmp_path)


def test_layers_are_what_the_layout_says():
    kinds = [type(block.attention).__name__ for block in window_encoder(8, (0, 5)).blocks]
    assert kinds == ["MultiHeadAttention", *4 * ["WindowAttention"], "MultiHeadAttention"]
    layers = [block.attention for block in window_encoder(8).blocks]
    assert all(isinstance(layer, WindowAttention) and layer.proj_dim == 8 for layer in layers)
    with pytest.raises(ValueError, match="exact_layers holds 6, expected layers from 0 to 5"):
        window_encoder(8, (1, 6))


def test_an_encoder_comes_back_from_its_folder(encoder, tmp_path):
    encoder.save_pretrained(tmp_path / "new" / "folder")
    found = LengthwiseEncoder.from_pretrained(tmp_path / "new" / "folder")
    assert found.layout == LAYOUT and not found.training
    assert_close(found.encode([SHORT, LONG]), encoder.encode([SHORT, LONG]))
    assert found.linformer.tokens is found.exact.tokens
    about = json.loads((tmp_path / "new" / "folder" / "config.json").read_text(encoding="utf-8"))
    assert about["base_model"] == "sentence-transformers/all-MiniLM-L6-v2"
    encoder.save_pretrained(tmp_path / "new" / "folder")  # again


def test_the_folder_may_lie_at_home(encoder, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder.save_pretrained("~/saved")
    assert [*tmp_path.iterdir()] == [home]
    assert LengthwiseEncoder.from_pretrained("~/saved").layout == LAYOUT


def test_where_it_cannot_be_written_is_said_in_one_sentence(encoder, tmp_path):
    (tmp_path / "notes").write_text("mine", encoding="utf-8")
    (tmp_path / "model.safetensors").mkdir()
    for folder in (tmp_path / "notes", tmp_path / "notes" / "below"):
        with pytest.raises(NotADirectoryError, match=r"notes is a file, expected a folder$"):
            encoder.save_pretrained(folder)
    with pytest.raises(OSError, match=r"model\.safetensors cannot be written: "):
        encoder.save_pretrained(tmp_path)


def test_a_folder_that_holds_something_else_is_refused(encoder, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no config\.json, expected what save_pretrained "):
        LengthwiseEncoder.from_pretrained(tmp_path)
    encoder.save_pretrained(tmp_path)
    for config in ('{"proj_dim": 8}', '{"proj_dim": "8", "exact_layers": [5], "crossover": 12}'):
        (tmp_path / "config.json").write_text(config, encoding="utf-8")
        with pytest.raises(ValueError, match=r"config\.json is not a layout: .*expected JSON with proj_dim"):
            LengthwiseEncoder.from_pretrained(tmp_path)
    lengthwise.write_layout(LAYOUT, tmp_path / "config.json")
    (tmp_path / "model.safetensors").write_bytes(b"half a file")
    with pytest.raises(ValueError, match=r"model\.safetensors does not hold this encoder's weights: "):
        LengthwiseEncoder.from_pretrained(tmp_path)


def small():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 4), nn.LayerNorm(4), nn.Linear(4, 3, bias=False), nn.Embedding(2, 2))


def test_updates_begin_with_nothing_and_are_all_that_is_learned():
    model, x = small(), torch.randn(6, 5)
    before, kept = model[:3](x), {name: tensor.clone() for name, tensor in model.state_dict().items()}
    some = low_rank_updates.add_updates(model, rank=2)
    assert_close(model[:3](x), before)
    assert sum(p.numel() for p in some) == 2 * (5 + 4) + 4 + 2 * 4 + 2 * (4 + 3)  # B A, biases, LayerNorm
    model[:3](x).square().sum().backward()
    torch.optim.SGD(some, lr=0.1).step()
    assert (model[:3](x) - before).abs().max() > 1e-3
    assert torch.equal(model[0].parametrizations.weight.original, kept["0.weight"])
    change = model[0].weight - kept["0.weight"]
    assert torch.linalg.matrix_rank(change, rtol=1e-4) == 2


def test_what_was_learned_makes_the_same_of_another_copy():
    model, x = small(), torch.randn(6, 5)
    low_rank_updates.add_updates(model, rank=2)
    with torch.no_grad():
        for parameter in low_rank_updates.learned(model).values():
            parameter.add_(torch.randn_like(parameter))
    found, copy = low_rank_updates.learned(model), small()
    low_rank_updates.load_updates(copy, 2, found)
    assert_close(copy[:3](x), model[:3](x))
    assert copy.state_dict().keys() == small().state_dict().keys()  # plain matrices again
    with pytest.raises(ValueError, match="got 7 tensors, expected the 7 of updates of rank 3"):
        low_rank_updates.load_updates(small(), 3, found)


def test_a_shared_weight_is_updated_where_it_was_learned_and_nowhere_else():
    def tied():
        model = nn.Sequential(nn.Embedding(5, 4), *(nn.Linear(4, 5, bias=False) for _ in range(2)))
        model[0].weight = model[2].weight = model[1].weight
        return model

    torch.manual_seed(3)
    model = tied()
    copy = tied()
    copy.load_state_dict(model.state_dict())
    low_rank_updates.add_updates(model, rank=2)
    with torch.no_grad():
        for parameter in low_rank_updates.learned(model).values():
            parameter.add_(torch.randn_like(parameter))
    low_rank_updates.load_updates(copy, 2, low_rank_updates.learned(model))
    for module, expected in zip(copy, model, strict=True):
        assert_close(module.weight, expected.weight)


@pytest.mark.parametrize(
    "computed",
    [nn.utils.parametrizations.weight_norm, lambda layer: low_rank_updates.add_updates(layer, rank=2)],
)
def test_a_weight_that_is_computed_gets_no_update_and_the_model_stays(computed):
    model = small()
    computed(model[2])
    before = [(name, p.requires_grad) for name, p in model.named_parameters()]
    with pytest.raises(ValueError, match=r"^2\.weight is a Tensor, expected a Parameter$"):
        low_rank_updates.load_updates(model, 2, {})
    assert [(name, p.requires_grad) for name, p in model.named_parameters()] == before


LENGTHS = (1, 7, 8, 9, 31)  # below and above the slots of LAYOUT


def some(n, batch=3):
    """Ids, and a mask that gives the first text all n tokens and the others fewer."""
    ids = torch.randint(1000, 30_000, (batch, n), generator=torch.Generator().manual_seed(n))
    return ids, torch.arange(n) < torch.tensor([n, -(-n // 2), 1])[:batch, None]


def traced(model, given):
    return torch.jit.trace(model, given, check_trace=False)


def exported(model, given):
    sizes = {0: torch.export.Dim("batch", min=1, max=64), 1: torch.export.Dim("n", min=1, max=512)}
    return torch.export.export(model, given, dynamic_shapes=len(given) * (sizes,), strict=False).module()


def compiled(model, given):
    torch.compiler.reset()
    return torch.compile(model, backend="eager", fullgraph=True, dynamic=True)


GRAPHS = {"traced": traced, "exported": exported, "compiled": compiled}


class Vectors(nn.Module):
    """`embed` as a forward, of two layers: one with windows, one exact."""

    def __init__(self):
        super().__init__()
        self.encoder = window_encoder(8, (1,)).eval()
        self.encoder.blocks = self.encoder.blocks[:2]

    def forward(self, ids, padding_mask=None):
        return self.encoder.embed(ids, padding_mask)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("way", GRAPHS)
@torch.no_grad()
def test_a_graph_of_a_network_holds_for_every_length(way, padded):
    model = Vectors()
    program = GRAPHS[way](model, some(40)[: 1 + padded])
    for n, batch in [*((n, 3) for n in LENGTHS), (23, 1)]:
        given = some(n, batch)[: 1 + padded]
        assert_close(program(*given), model(*given), atol=1e-5, rtol=0)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("way", ["traced", "exported"])
def test_a_graph_of_what_asks_for_the_length_is_refused(encoder, way):
    sentence = (
        "which network reads a text depends on its length, which a graph cannot ask: trace or export `exact` "
        r"\(below 12 tokens\) and `linformer` \(from there on\)"
    )
    with pytest.raises(RuntimeError, match=sentence):
        GRAPHS[way](encoder, some(40))


@pytest.mark.slow
@torch.no_grad()
def test_compiled_it_still_asks_for_the_length(encoder):
    torch.compiler.reset()
    program = torch.compile(encoder, backend="eager", dynamic=True)
    for n in (11, 12):
        assert_close(program(some(n)[0]), encoder(some(n)[0]), **SAME)


@pytest.mark.parametrize("network", ["exact", "linformer"])
def test_a_text_of_padding_alone_has_no_vector(encoder, network):
    ids, mask = some(20)
    for one in (encoder, getattr(encoder, network)):
        with pytest.raises(ValueError, match="a text has 0 real tokens, expected at least 1: an empty mean"):
            one.embed(ids, mask & torch.tensor([True, True, False])[:, None])
