"""Chapter 13's compression is that of transformers' DeepSeek-V4, GLM-5.3-Flash and Qwen4, but for norms and
rotary positions.

What their modules compute is shipped as safetensors, and here they compute it again.
"""

import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from linformer_from_scratch.common.files import DATA
from linformer_from_scratch.descendants.blocks import compress_blocks, ended
from linformer_from_scratch.descendants.choice import best_slots, index_scores, tokens_read

BATCH, N, HEADS, D, TOP = 2, 23, 3, 16, 2
HEAVY, SPARSE = 5, 4  # tokens in a block of either kind
PADDED, MANY, FEW = (
    3,
    12,
    8,
)  # where tokens are chosen: tokens before the second text; heads, so that none tie


def deepseek_v4() -> dict[str, torch.Tensor]:
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


def chosen_tokens() -> dict[str, torch.Tensor]:
    """Inputs of the indices of GLM-5.3-Flash and Qwen4, and which tokens they choose; one text is padded."""
    from transformers.models.glm5_next import modeling_glm5_next as glm
    from transformers.models.qwen4_exp import modeling_qwen4_exp as qwen

    random = torch.Generator().manual_seed(0)
    x, residual = (torch.randn(BATCH, N, size, generator=random) for size in (24, 8))
    real = torch.ones(BATCH, N, dtype=torch.bool)
    real[1, :PADDED] = False
    sizes = {"hidden_size": 24, "q_lora_rank": 8, "index_n_heads": MANY, "index_head_dim": FEW}
    config = glm.Glm5NextTextConfig(**sizes, index_topk=TOP * SPARSE, index_kpool=SPARSE)
    index = glm.Glm5NextTextIndexer(config, 0)
    heads = {"indexer_n_heads": MANY, "indexer_kv_heads": 1, "indexer_head_dim": FEW, "head_dim": FEW}
    budget = {"indexer_budget": TOP * SPARSE, "indexer_compress_ratio": SPARSE}
    rope = {"rope_type": "default", "rope_theta": 10000.0}
    config = qwen.Qwen4ExpTextConfig(hidden_size=24, rope_parameters=rope, **heads, **budget)
    means = qwen.Qwen4ExpTextQSAIndexer(config, 0)
    for weight in [*index.parameters(), *means.parameters()]:
        torch.nn.init.normal_(weight, std=0.5, generator=random)
    keys, gate = index.k_norm(index.wk(x)), x @ index.index_kpool_compress_gate.mT
    slots, _, _ = index.get_pooled_states(torch.cat([keys, gate, real[..., None]], dim=-1))
    found = {"real": real, "glm.k": keys, "glm.gate": gate, "glm.bias": index.index_kpool_compress_ape}
    found |= {"glm.slots": slots, "glm.q": index.wq_b(residual).unflatten(-1, (MANY, FEW)).transpose(1, 2)}
    found["glm.weights"] = index.weights_proj(x)
    for name, tail in (("seen", True), ("seen without tail", False)):
        index.index_kpool_always_select_tail = tail
        places = index(x, residual, real, None).long()
        found[f"glm.{name}"] = torch.zeros(BATCH, N, N + 1).scatter(2, places % (N + 1), 1.0)[..., :N] > 0
    pooled: list[torch.Tensor] = []  # of one query after another
    means.k_layernorm.register_forward_pre_hook(lambda _, inputs: pooled.append(inputs[0]))
    still = torch.ones(BATCH, N, FEW), torch.zeros(BATCH, N, FEW)  # no angle
    mask = torch.ones(N, N, dtype=torch.bool).tril() & real[:, None]
    found["qsa.seen"] = means(x, still, mask[:, None], None)[:, 0]
    q, k = means.index_qk_proj(x).split([MANY * FEW, FEW], dim=-1)
    q = means.q_layernorm(q.unflatten(-1, (MANY, FEW))).transpose(1, 2)
    found |= {"qsa.q": q, "qsa.k": k, "qsa.norm": 1 + means.k_layernorm.weight, "qsa.slots": pooled[-1]}
    return {name: tensor.detach().contiguous() for name, tensor in found.items()}


FILES = {DATA / f"{some.__name__}.safetensors": some for some in (deepseek_v4, chosen_tokens)}


def both_ways(compute):
    """What is recorded, and what transformers computes."""

    @pytest.fixture(params=["recorded", "transformers"])
    def found(request):
        (file,) = (file for file, some in FILES.items() if some is compute)
        return load_file(file) if request.param == "recorded" else compute()

    return found


found, chosen = both_ways(deepseek_v4), both_ways(chosen_tokens)


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
    return rotated(normed(slots, found[f"{name}.norm"]), found[f"{name}.cos"], found[f"{name}.sin"])


def normed(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Divided by its root mean square, and scaled."""
    return x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt() * scale


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


def of_text(found, text, *names):
    """Of the real tokens of one text."""
    first = PADDED * text
    return [found[name][text, ..., first:, :] for name in names]


@pytest.mark.parametrize("text", range(BATCH))
def test_pooled_keys_and_chosen_tokens_of_glm(chosen, text):
    q, k, gate, weights = of_text(chosen, text, "glm.q", "glm.k", "glm.gate", "glm.weights")
    slots = compress_blocks(k, chosen["glm.bias"], gate)
    assert_close(slots, chosen["glm.slots"][text, : len(slots)], atol=1e-5, rtol=0)
    without = compress_blocks(k, chosen["glm.bias"])
    assert (without - slots).abs().max() > 0.1  # the gate matters
    scores = index_scores(q[None], slots[None, None], weights[None])
    first, n = PADDED * text, len(k)
    seen, headless = (chosen[f"glm.{name}"][text, first:, first:] for name in ("seen", "seen without tail"))
    assert torch.equal(tokens_read(scores, n, SPARSE, 0, TOP)[0], seen)
    t = torch.arange(n)
    tail = (t <= t[:, None]) & (t >= (t[:, None] + 1) // SPARSE * SPARSE)
    assert torch.equal(seen & ~headless, tail)  # what a query misses that is shown whole blocks only


@pytest.mark.parametrize("text", range(BATCH))
def test_mean_keys_and_chosen_tokens_of_qwen(chosen, text):
    q, k = of_text(chosen, text, "qsa.q", "qsa.k")
    slots, first, n = compress_blocks(k, torch.zeros(SPARSE)), PADDED * text, len(k)
    if text == BATCH - 1:
        assert_close(slots, chosen["qsa.slots"], atol=1e-5, rtol=0)
    keys = normed(slots, chosen["qsa.norm"])
    scores = index_scores(q[None], keys[None, None], torch.ones(1, n, MANY))
    assert torch.equal(tokens_read(scores, n, SPARSE, 0, TOP)[0], chosen["qsa.seen"][text, first:, first:])


def test_padding_that_enters_a_block_moves_all_slots_behind_it(chosen):
    whole = compress_blocks(chosen["glm.k"], chosen["glm.bias"], chosen["glm.gate"])
    assert_close(whole[0], chosen["glm.slots"][0], atol=1e-5, rtol=0)
    assert ((whole[1] - chosen["glm.slots"][1]).abs().amax(-1) > 0.1).all()


if __name__ == "__main__":
    from safetensors.torch import save_file

    for file, compute in FILES.items():
        save_file(compute(), file)
