"""Chapter 13's compression is that of transformers' DeepSeek-V4, up to a norm and rotary positions.

What its modules compute is shipped as deepseek_v4.safetensors, and here they compute it again.
"""

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from linformer_from_scratch.common.files import DATA
from linformer_from_scratch.descendants.blocks import compress_blocks, ended
from linformer_from_scratch.descendants.choice import best_slots, index_scores

FILE = DATA / "deepseek_v4.safetensors"
BATCH, N, HEADS, D, TOP = 2, 23, 3, 16, 2
HEAVY, SPARSE = 5, 4  # tokens in a block of either kind


def computed_by_transformers() -> dict[str, torch.Tensor]:
    """Inputs of the compressions, and what its modules make of them."""
    from transformers.models.deepseek_v4 import modeling_deepseek_v4 as peer

    rates = {"heavily_compressed_attention": HEAVY, "compressed_sparse_attention": SPARSE}
    sizes = {"hidden_size": 24, "head_dim": D, "q_lora_rank": 8, "num_hidden_layers": 2}
    index = {"index_n_heads": HEADS, "index_head_dim": D, "index_topk": TOP}
    config = peer.DeepseekV4Config(**sizes, **index, compress_rates=rates, partial_rotary_factor=0.5)
    random = torch.Generator().manual_seed(0)
    x, residual = (torch.randn(BATCH, N, size, generator=random) for size in (24, 8))
    places = torch.arange(N).expand(BATCH, -1)
    found = {}
    modules = {"heavy": peer.DeepseekV4HCACompressor(config), "sparse": peer.DeepseekV4CSACompressor(config)}
    for name, module in modules.items():
        for weight in module.parameters():
            torch.nn.init.normal_(weight, std=0.5, generator=random)
        slots, may_read = module(x, residual, places, None, 0)
        found |= {f"{name}.slots": slots[:, 0], f"{name}.seen": may_read[:, 0] == 0}
    index = modules["sparse"].indexer
    for name, module in (modules | {"index": index}).items():
        block = HEAVY if name == "heavy" else SPARSE
        cos, sin = module.rotary_emb(x, places[:, : N // block] * block, layer_type="compress")
        found |= {f"{name}.kv": module.kv_proj(x), f"{name}.gate": module.gate_proj(x)}
        found |= {f"{name}.bias": module.position_bias, f"{name}.norm": module.kv_norm.weight}
        found |= {f"{name}.cos": cos, f"{name}.sin": sin}
    q = index.q_b_proj(residual).view(BATCH, N, HEADS, D).transpose(1, 2)
    q = peer.apply_rotary_pos_emb(q, *index.rotary_emb(x, places, layer_type="compress"))
    found |= {"index.q": q, "index.weights": index.scorer.weights_proj(x)}
    return {name: tensor.detach().contiguous() for name, tensor in found.items()}


@pytest.fixture(params=["recorded", "transformers"])
def found(request):
    return load_file(FILE) if request.param == "recorded" else computed_by_transformers()


def rotated(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Its rotary positions: pairs of neighbouring features turn, the last ones of a head."""
    size = 2 * cos.size(-1)
    still, turning = x[..., :-size], x[..., -size:].unflatten(-1, (-1, 2))
    a, b = turning.unbind(-1)
    turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
    return torch.cat([still, turned], dim=-1)


def slots_of(found, name):
    """Ours, with what V4 adds: a root-mean-square norm, and rotary positions."""
    slots = compress_blocks(*(found[f"{name}.{part}"] for part in ("kv", "bias", "gate")), name != "heavy")
    slots = slots / (slots.square().mean(-1, keepdim=True) + 1e-6).sqrt() * found[f"{name}.norm"]
    return rotated(slots, found[f"{name}.cos"], found[f"{name}.sin"])


def test_slots_of_heavily_compressed_attention(found):
    assert_close(slots_of(found, "heavy"), found["heavy.slots"], atol=1e-5, rtol=0)
    assert torch.equal(ended(N, HEAVY).expand(BATCH, -1, -1), found["heavy.seen"])


def test_slots_of_compressed_sparse_attention_and_the_choice_of_its_index(found):
    assert_close(slots_of(found, "sparse"), found["sparse.slots"], atol=1e-5, rtol=0)
    keys = slots_of(found, "index")[:, None]
    scores = index_scores(found["index.q"], keys, found["index.weights"])
    ours, theirs = (
        scores.masked_fill(~chosen, -torch.inf).sort().values  # of slots that score alike either is right
        for chosen in (best_slots(scores, TOP, ended(N, SPARSE)), found["sparse.seen"])
    )
    assert torch.equal(ours, theirs)


if __name__ == "__main__":
    from safetensors.torch import save_file

    save_file(computed_by_transformers(), FILE)
