"""Right and nearly right answers: descendants."""

import numpy
import torch
from torch.nn import functional

from linformer_from_scratch.attention import scaled_dot_product_attention
from right_answers import right, wrong


@right("13.1")
def slots_by_loop(x, bias):
    m, weights = len(bias), bias.softmax(0)
    slots = [torch.einsum("m,bmd->bd", weights, x[:, i : i + m]) for i in range(0, x.size(1) - m + 1, m)]
    return torch.stack(slots, dim=1) if slots else x[:, :0]


@right("13.1")
def slots_by_a_block_diagonal(x, bias):
    blocks = x.size(1) // len(bias)
    if not blocks:
        return x[:, :0]
    E = torch.block_diag(*blocks * [bias.softmax(0)[None]])
    return E @ x[:, : E.size(1)]


@right("13.1")
def slots_by_convolution_in_double(x, bias):
    if x.size(1) < len(bias):
        return x[:, :0]
    kernel = bias.double().softmax(0)[None, None].expand(x.size(2), -1, -1)
    return functional.conv1d(x.double().mT, kernel, stride=len(bias), groups=x.size(2)).mT


@right("13.1")
def by_a_projection_of_blocks(x, bias):
    blocks = x.size(1) // len(bias)
    E = torch.kron(torch.eye(blocks), bias.softmax(0)[None])
    return E @ x[:, : blocks * len(bias)]


@right("13.2")
def may_read_by_lists(start, n, block):
    slots = (start + n) // block
    rows = [[(i + 1) * block - 1 <= t for i in range(slots)] for t in range(start, start + n)]
    return torch.tensor(rows, dtype=torch.bool).view(n, slots)


@right("13.2")
def may_read_by_last_tokens(start, n, block):
    last = torch.arange((start + n) // block) * block + block - 1
    return last <= torch.arange(start, start + n)[:, None]


@right("13.2")
def may_read_by_numpy(start, n, block):
    ended = (numpy.arange(start, start + n) + 1) // block
    return ended[:, None] > numpy.arange((start + n) // block)


@wrong("13.2")
def ended_before_the_piece(start, n, block):
    """What ends within the piece is read by none of its queries."""
    return (torch.arange((start + n) // block) < start // block).expand(n, -1)


@right("13.4")
def gated_by_loop(x, gate, bias):
    m = len(bias)
    blocks = [slice(i, i + m) for i in range(0, x.size(1) - m + 1, m)]
    slots = [(functional.softmax(gate[:, block] + bias, dim=1) * x[:, block]).sum(1) for block in blocks]
    return torch.stack(slots, dim=1) if slots else x[:, :0]


@right("13.4")
def gated_by_exponentials(x, gate, bias):
    batch, n, d = x.shape
    m, blocks = len(bias), n // len(bias)
    weights = (gate[:, : blocks * m].reshape(batch, blocks, m, d) + bias).exp()
    return (weights * x[:, : blocks * m].reshape(batch, blocks, m, d)).sum(2) / weights.sum(2)


@right("13.4")
def gated_by_einsum_in_double(x, gate, bias):
    m, blocks = len(bias), x.size(1) // len(bias)
    some, logits = (each[:, : blocks * m].double().unflatten(1, (blocks, m)) for each in (x, gate))
    return torch.einsum("bimd,bimd->bid", (logits + bias).softmax(2), some)


@right("13.4")
def by_logarithms(x, gate, bias):
    m = len(bias)
    blocks = x.size(1) // m
    x, gate = (some[:, : blocks * m].unflatten(1, (blocks, m)) for some in (x, gate))
    logits = gate + bias
    return ((logits - logits.logsumexp(2, keepdim=True)).exp() * x).sum(2)


@right("13.3")
def attend_query_by_query(q, k, v, slots_k, slots_v, block, window):
    rows = []
    for t in range(q.size(1)):
        ended, first = (t + 1) // block, max(0, t + 1 - window)
        keys = torch.cat([slots_k[:, :ended], k[:, first : t + 1]], dim=1)
        values = torch.cat([slots_v[:, :ended], v[:, first : t + 1]], dim=1)
        scores = q[:, t : t + 1] @ keys.mT / q.size(-1) ** 0.5
        rows.append(scores.softmax(-1) @ values)
    return torch.cat(rows, dim=1)


@right("13.3")
def attend_by_pytorch(q, k, v, slots_k, slots_v, block, window):
    t = torch.arange(q.size(1))
    back = t[:, None] - t
    slots = torch.arange(slots_k.size(1)) < (t[:, None] + 1) // block
    mask = torch.cat([slots, (back >= 0) & (back < window)], dim=1)
    keys, values = torch.cat([slots_k, k], dim=1), torch.cat([slots_v, v], dim=1)
    return functional.scaled_dot_product_attention(q, keys, values, mask)


@right("13.3")
def attend_by_exponentials_in_double(q, k, v, slots_k, slots_v, block, window):
    n, q = q.size(1), q.double()
    last = torch.arange(block, n + 1, block) if block <= n else torch.empty(0)
    far = (last <= torch.arange(1, n + 1)[:, None]).double()
    near = torch.ones(n, n).tril().triu(1 - window)
    keys, values = torch.cat([slots_k, k], dim=1).double(), torch.cat([slots_v, v], dim=1).double()
    weights = torch.cat([far, near], dim=1) * (q @ keys.mT / q.size(-1) ** 0.5).exp()
    return weights @ values / weights.sum(-1, keepdim=True).clamp(min=1e-300)


@wrong("13.3")
def every_token_once(q, k, v, slots_k, slots_v, block, window):
    """Of the window only the tokens are read that stand in no slot yet."""
    t = torch.arange(q.size(1))
    slots = torch.arange(q.size(1) // block) < (t[:, None] + 1) // block
    back = t[:, None] - t
    near = (back >= 0) & (back < window) & (t >= (t[:, None] + 1) // block * block)
    keys, values = torch.cat([slots_k, k], 1), torch.cat([slots_v, v], 1)
    return scaled_dot_product_attention(q, keys, values, torch.cat([slots, near], 1))


@right("13.6")
def real_by_loop(x, mask, bias):
    real = [token for token, is_real in zip(x, mask, strict=True) if is_real]
    m, weights = len(bias), bias.softmax(0)
    blocks = [real[i : i + m] for i in range(0, len(real) - m + 1, m)]
    slots = [sum(w * token for w, token in zip(weights, block, strict=True)) for block in blocks]
    return torch.stack(slots) if slots else x[:0]


@right("13.6")
def real_by_nonzero(x, mask, bias):
    real = x[mask.nonzero().flatten()]
    blocks = len(real) // len(bias)
    real = real[: blocks * len(bias)].view(blocks, len(bias), x.size(1))
    return torch.einsum("m,imd->id", bias.softmax(0), real)


@right("13.6")
def real_by_sorting_in_double(x, mask, bias):
    order = torch.argsort((~mask).int(), stable=True)
    blocks, m = int(mask.sum()) // len(bias), len(bias)
    return bias.double().softmax(0) @ x[order][: blocks * m].double().view(blocks, m, x.size(1))


@right("13.6")
def block_after_block(x, mask, bias):
    real, m = mask.nonzero().flatten(), len(bias)
    slots = [bias.softmax(0) @ x[real[i : i + m]] for i in range(0, len(real) - m + 1, m)]
    return torch.stack(slots) if slots else x[:0]


@right("13.5")
def tokens_by_loop(chosen, block):
    n = len(chosen)
    rows = [
        [chosen[t, s // block].item() if s // block < (t + 1) // block else s <= t for s in range(n)]
        for t in range(n)
    ]
    return torch.tensor(rows)


@right("13.5")
def tokens_by_kron(chosen, block):
    n = len(chosen)
    mask = torch.zeros(n, n, dtype=torch.bool)
    far = torch.kron(chosen.int(), torch.ones(1, block, dtype=torch.int)).bool()
    mask[:, : far.size(1)] = far
    for t in range(n):
        mask[t, (t + 1) // block * block : t + 1] = True
    return mask


@right("13.5")
def tokens_by_gather(chosen, block):
    t = torch.arange(len(chosen))
    of = t // block  # the block of each token; what has not ended is chosen by nobody
    far = torch.cat([chosen, chosen.new_zeros(len(chosen), 1)], dim=1)[:, of]
    return far | (of == ((t + 1) // block)[:, None]) & (t <= t[:, None])


@wrong("13.5")
def without_its_own_token(chosen, block):
    """The open block is shown up to the token before the query's."""
    t = torch.arange(len(chosen))
    near = (t < t[:, None]) & (t >= (t[:, None] + 1) // block * block)
    far = functional.pad(chosen.repeat_interleave(block, 1), (0, len(chosen) % block))
    return far | near


SAME = {id: {"0 -> -1": "a vector's last axis is its first"} for id in ("13.1", "13.6")}
