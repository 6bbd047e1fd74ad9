import json
cells=[]
def md(id,text,slide='skip',tags=(),defines=()): 
    m={'slideshow':{'slide_type':slide}}
    if defines: m['defines']=list(defines)
    if tags: m['tags']=list(tags)
    cells.append({'cell_type':'markdown','id':id,'metadata':m,'source':text.strip('\n').splitlines(True)})
def code(id,text,slide='skip',tags=()):
    m={'slideshow':{'slide_type':slide}}
    if tags: m['tags']=list(tags)
    if slide=='': m.pop('slideshow')
    if 'answer' in tags: m['jupyter']={'outputs_hidden':True}
    cells.append({'cell_type':'code','execution_count':None,'id':id,'metadata':m,'outputs':[],'source':text.strip('\n').splitlines(True)})
def notes(id,minute,text): md(id,f"<details><summary>For the teacher · minute {minute}</summary>\n\n{text}\n\n</details>",'notes')

md('13-001','''
# 13 · Descendants

**What became of E?** · 80 minutes

At the end of this chapter you can

- turn Linformer, in five edits, into the attention that the largest open models of 2026 use for a million tokens;
- name for each edit the failure that forced it, and run that failure;
- say what such a model keeps in memory for every token, and what it can no longer look up.

You need chapters 01, 02, 06 and 12.
''','slide')
notes('13-002',0,'Ask who has heard that Linformer is dead. It is not causal, it takes one length, it forgets facts: chapter 12 says so. Then show a line of the configuration of DeepSeek-V4: `compress_ratios: 0, 0, 4, 128, 4, 128 …`. Compress what? Keys and values, along the sequence.')
code('13-here','''
# The course's package must be installed; prepare() does what Colab and Kaggle need for its live pictures.
try:
    from linformer_from_scratch.course.elsewhere import prepare
except ModuleNotFoundError:
    raise ModuleNotFoundError(
        "linformer_from_scratch is missing: put its wheel, from the book or a release, beside this notebook "
        'and run %pip install "linformer_from_scratch-1.0.0-py3-none-any.whl[course]" (Python 3.11 or newer)'
    ) from None
prepare()
''')
code('13-003','''
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

from linformer_from_scratch import plots
from linformer_from_scratch.attention import attention_weights, causal_mask, scaled_dot_product_attention
from linformer_from_scratch.common.files import DATA
from linformer_from_scratch.common.tables import aligned
from linformer_from_scratch.course.listing import listing
from linformer_from_scratch.descendants.blocks import block_attention, compress_blocks, ended
from linformer_from_scratch.descendants.choice import best_slots, index_scores
from linformer_from_scratch.descendants.layer import CompressedAttention
from linformer_from_scratch.descendants.memory import BoundedMemoryAttention, bounded_memory_attention
from linformer_from_scratch.exercises import check, hint, quiz, yours
from linformer_from_scratch.limits import leak
from linformer_from_scratch.linformer import LinformerAttention, linformer_attention
from linformer_from_scratch.low_rank import best_rank
from linformer_from_scratch.pretrained import stored_heads, stored_tokens
from linformer_from_scratch.projections import LearnedProjection, MeanPooling, start_at_windows
''')
md('13-004','''
## A dead end?

Chapter 12 left Linformer in a sorry state. It can't write, because every slot has read the whole text. Its E has a column for every position, so it's built for one length. And it loses single facts. If you had to bet in 2020 on which idea the models of 2026 would run on, you wouldn't have bet on this one.

Yet in April 2026 DeepSeek released V4, a family of models that read a million tokens, and here is what the attention layers of its smaller sibling do with those tokens:
''','slide')
code('13-005','''
published = {"window only": 2, "one slot for 4 tokens": 21, "one slot for 128 tokens": 20}  # layers
for kind, layers in published.items():
    print(f"{layers:2} layers: {kind}")
''','fragment',['no-code'])
md('13-006','''
*One slot for 128 tokens.* Keys and values, compressed along the sequence. That's E.

(V4-Flash, 43 layers; `compress_ratios` in its configuration, 0, 4 or 128 for each layer; DeepSeek-AI 2026, section 2.3.) Nobody calls it Linformer, and it isn't quite. Between E and V4 lie five edits. Each repairs a failure, Linformer's or that of the edit before, and each is a few lines of code. Let's make them.

(Linformer wasn't the first to shorten keys and values, either: Liu et al. 2018, arXiv 1801.10198, did it by a strided convolution, and Rae et al. 2019, arXiv 1911.05507, for a memory of old text.)
''')

notes('13-104',2,'Before you show the layers, ask how many of the 43 read every token. None does: two read a window, and all others slots beside it.')
# ---------- edit 1
md('13-010','''
## Edit 1: cut E into blocks

Why can't Linformer write? Let's look at the fault once more. We edit one token, and look at what changes *before* it:
''','slide')
code('13-011','''
torch.manual_seed(0)
n, d = 128, 64
x = torch.randn(1, n, d)
layer = LinformerAttention(d, 4, *(start_at_windows(LearnedProjection(n, 8)) for _ in range(2)))
edited = x.index_fill(1, torch.tensor([100]), 0.0)
print(f"token 100 edited: an earlier output changes by {leak(layer(x)[0], layer(edited)[0], 100):.3f}")
''','fragment',['no-code'])
md('13-012','''
It should be zero. The culprit isn't E: its rows were windows, and slot 6 holds tokens 96 to 111 only. The culprit is that *every* query reads slot 6, also query 3, for which token 100 is the future.

So let each query read only slots whose block has ended. A block of m tokens ends with its last token: query t may read the first (t + 1) // m slots, rounded down.

**Predict.** With blocks of 16 tokens, which slots does token 15 read? Token 16? And token 5?
''')
code('13-013','''
seen = ended(n, 16)
for t in (5, 15, 16, 127):
    print(f"token {t:3} reads slots {seen[t].nonzero().flatten().tolist()}")
''','fragment',['no-code','answer'])
md('13-014','''
Token 15 is the last of its block, so it already reads slot 0, and itself in it. Token 5 reads nothing at all, and we'll come back to that. Drawn for all tokens, it's a staircase:
''')
code('13-015','''
staircase = {"which slot a query may read": seen.float().tolist()}
plots.heatmaps(staircase, range(n), range(8), None, rows="query", columns="slot")
''','fragment',['no-code'])
notes('13-016',6,'The staircase is the picture to redraw from memory. Ask what its steps would be in chapter 01: steps of one token, the causal triangle.')
md('13-017','''
There's a bonus. E no longer needs a column for each of n positions, only one weight for each *place in a block*: m numbers, the same for every block. So the layer runs at any length. (Whether it's any good at lengths it wasn't trained on is another question.) Both in one function:
''')
code('13-018','''
bias = torch.zeros(16)  # a logit for each place; zeros make every slot a mean
slots = compress_blocks(x, bias)
same = torch.allclose(slots[0, 6], x[0, 96:112].mean(0), atol=1e-6)
print(f"{n} tokens, {slots.size(1)} slots; slot 6 is the mean of tokens 96 to 111:", same)
''')
code('13-019','''
E = torch.block_diag(*8 * [bias.softmax(0)[None]])  # what this is as a Linformer
same = torch.allclose(E @ x, slots, atol=1e-6)
print(f"E is {tuple(E.shape)}, {(E > 0).float().mean():.0%} of it filled; E x is the same:", same)
''')
md('13-020','''
### Exercise 13.1 · ★ · 6 minutes · part: block_slots

Write it yourself. `x` is `(batch, n, d)` and `bias` `(m,)`; return one slot for each *whole* block of m tokens, `(batch, n // m, d)`: the mean of its tokens, weighed by the softmax of bias. Tokens after the last whole block have no slot yet. Gradients are compared, too.
''')
code('13-021','''
def block_slots(x, bias):
    raise NotImplementedError


check("13.1", block_slots)
''')
md('13-022','''
### Exercise 13.2 · ★★ · 6 minutes

When a model writes, it reads its text in pieces, often token by token. The real thing got this wrong: in May 2026 two issues of the `transformers` library (#45758, #45820) reported that queries of its DeepSeek-V4 read blocks that had not ended. Do better. A piece holds the tokens start … start + n - 1 of a text. Return booleans `(n, (start + n) // block)`: which slots may each of its queries read? Blocks are counted from the beginning of the text.
''')
code('13-023','''
def may_read(start, n, block):
    raise NotImplementedError


check("13.2", may_read)
''')
md('13-024','''
### Does it write now?

We test it the hard way: every token is edited once, for texts of every remainder by m, and nothing before it may change.
''')
code('13-025','''
def worst_leak(attend, n):  # the largest change of an output before the token that was edited
    x = torch.randn(1, n, 16)
    edits = [x.index_fill(1, torch.tensor([place]), 3.0) for place in range(n)]
    return max(leak(attend(x)[0], attend(edit)[0], place) for place, edit in enumerate(edits))


def blocks_alone(x, m=4):
    slots = compress_blocks(x, torch.zeros(m))
    return block_attention(x, x, x, slots, slots, block=m, window=0)


print("worst leak for n = 29 … 32:", [worst_leak(blocks_alone, n) for n in range(29, 33)])


def own_block_too(x, m=4):  # the fault of the two issues, to see that the test can see it
    slots, t = compress_blocks(x, torch.zeros(m)), torch.arange(x.size(1))
    early = torch.arange(slots.size(1)) <= t[:, None] // m
    return scaled_dot_product_attention(x, slots, slots, early)


print(f"with the block that hasn't ended: {worst_leak(own_block_too, 32):.1f}")
''','skip',['claim-causal-linformer'])
md('13-026','''
No leak anywhere, and the test does find the fault when it's there. Edit 1 made Linformer causal and cured it of its fixed length. The first failure is gone. What did we pay?
''')

# ---------- edit 2
md('13-030','''
## Edit 2: put a window beside the slots

Look at token 5 again. It reads *nothing*. And token 127 reads everything up to its own block's end, but token 126 doesn't know the fourteen tokens before it. Here's a sentence, and what its words can see through blocks of eight:
''','slide')
code('13-031','''
words = stored_tokens()[24:48]
for t in (6, 14, 22):
    whole = (t + 1) // 8 * 8
    print(f"“{words[t]}” reads slots of: {' '.join(words[:whole]) or 'nothing'}")
    print(f"   and does not see:  {' '.join(words[whole:t])}")
''','fragment',['no-code'])
md('13-032','''
To guess the next word you need the last few words most of all, and these are just the ones that it doesn't see. So we show them: besides the slots, each query reads the last w tokens, uncompressed. One softmax goes over both, so slots and neighbours compete for the same attention.
''')
code('13-033','''
def with_a_window(x, m=4, w=4):
    slots = compress_blocks(x, torch.zeros(m))
    return block_attention(x, x, x, slots, slots, block=m, window=w)


print("worst leak for n = 29 … 32:", [worst_leak(with_a_window, n) for n in range(29, 33)])
y = torch.randn(1, 12, 16)
exact = scaled_dot_product_attention(y, y, y, causal_mask(12))
same = torch.allclose(with_a_window(y, m=99, w=12), exact, atol=1e-5)
print("a window over the whole text is exact causal attention:", same)
''')
md('13-034','''
### Exercise 13.3 · ★★★ · 12 minutes · part: block_attention

This is the heart of the chapter. `q`, `k`, `v` are `(batch, n, d)`, the slots `(batch, n // block, d)`. Every query reads the slots of all blocks that have ended, and the last `window` tokens, its own among them, in one softmax with scores divided by √d. A query with nothing to read gets zeros. Gradients are compared, too. (Don't worry about cost: an n × n mask is fine here. Ours never builds one.)
''')
code('13-035','''
def attend(q, k, v, slots_k, slots_v, block, window):
    raise NotImplementedError


check("13.3", attend)
''')
md('13-100','''
`yours(…)` gives you the two parts that you have written, or ours where an exercise is still open. Do they leak together?
''')
code('13-101','''
make_slots, read_both = yours("block_slots"), yours("block_attention")


def parts_of_yours(x, m=4, w=4):
    slots = make_slots(x, torch.zeros(m))
    return read_both(x, x, x, slots, slots, m, w)


print("worst leak for n = 29 … 32:", [worst_leak(parts_of_yours, n) for n in range(29, 33)])
''')
md('13-036','''
### What does it cost?

Count the scores of one head, for blocks of 128 tokens and for blocks of four:
''')
code('13-037','''
texts = [4_096, 131_072, 1_048_576]
scores = {"exact": [n * n / 2 for n in texts]}
scores |= {f"m = {m}, w = 128": [n * (n / m / 2 + 128) for n in texts] for m in (4, 128)}
scores["Linformer, k = 256"] = [n * 256 for n in texts]
shown = {name: [f"{count:.1e}" for count in counts] for name, counts in scores.items()}
print(aligned("scores of a head, n =", [f"{n:,}" for n in texts], shown, ""))
''','fragment',['no-code','claim-linear-again'])
md('13-038','''
Here's the part that the press releases skip: **it's quadratic again.** The number of slots grows with n, so about n²/2m scores are left. With m = 128 that's hundreds of times fewer than n²/2, and at a million tokens it makes all the difference; with m = 4 it's four times fewer, and something will have to be done about that (edit 4). But the exponent is back. Linformer's linear cost was bought with a fixed number of slots, and chapter 12 showed the price: k has to grow with what you want to remember. The descendants let it grow.
''')
notes('13-039',16,'The honest moment of the lecture. Let them say the exponent themselves before you show the table.')

# ---------- edit 3
md('13-040','''
## Edit 3: let the content choose its weight

Remember the sharp head of chapter 12, layer 5, head 6: nearly all queries want one token, and a mean drowns it in its neighbours. A slot that is a mean of 128 tokens gives the word "not" and the comma beside it the same 1/128.

So let the tokens decide. A **content gate** gives each token logits of its own, $xW_g$, one for every feature. The bias of its place is added, and in each block a softmax over the tokens makes the weights:

$$\\text{slot}_i = \\sum_{j \\in \\text{block } i} \\text{softmax}_j\\,(x_j W_g + b_j) \\odot x_j$$
''','slide',defines=['content gate'])
code('13-041','''
gate = nn.Linear(d, d, bias=False)
by_place, by_content = compress_blocks(x, torch.zeros(16, d)), compress_blocks(x, torch.zeros(16, d), gate(x))
nn.init.zeros_(gate.weight)
again = compress_blocks(x, torch.zeros(16, d), gate(x))
print("with W_g = 0 it is edit 1 again:", torch.allclose(again, by_place))
print(f"with a random W_g the slots differ by {(by_content - by_place).norm() / by_place.norm():.0%}")
''')
md('13-042','''
Compare it with E. A row of E is the same for every text. A row of *this* is written by the text itself, and it's a different one for each feature: the slot may take its first feature from the verb and its second from the subject. It's still a weighted mean along the sequence.
''')
md('13-115','''
### Exercise 13.4 · ★★ · 6 minutes

`x` and `gate` are `(batch, n, d)`, `bias` is `(m, d)`. `gate` already holds the logits $xW_g$. Return the slots of all whole blocks, `(batch, n // m, d)`. Gradients are compared, too.
''')
code('13-043','''
def gated_slots(x, gate, bias):
    raise NotImplementedError


check("13.4", gated_slots)
''')
md('13-044','''
What can such a gate do that a mean can't? We ask a head from chapter 12 for its own best answer. The test is small: blocks of eight tokens, the head's real keys and values, and a gate that prefers the one token that nearly all its queries choose.
''')
cells.pop()  # 13-044, rewritten below
md('13-044','''
Is it worth anything? We ask two heads that you know from chapter 12, made causal: the one that rests on the first token, and the one that looks up what a word refers to. Each reads a window of 8 tokens and slots of 8, and has to give what exact causal attention gives. Bias and gate are fitted on 12 passages, and judged on 8 others.

**Predict.** How much of the error does the bias take away, and how much the gate? And what would the simplest thing do: no slots, a window of 24 tokens, which is as much reading?
''')
code('13-045','''
from linformer_from_scratch.data import docstrings, split
from linformer_from_scratch.limits import capstone
from linformer_from_scratch.pretrained import encode

to_learn, to_judge = (capstone.passages(some, n=128)[0] for some in split(docstrings()))
learned_maps, judged_maps = ([encode(ids) for ids in some] for some in (to_learn[:12], to_judge[:8]))


def qkv(maps, layer, head):  # (passages, 128, 32) each
    return [torch.stack([getattr(text, name)[layer - 1, head - 1] for text in maps]) for name in "qkv"]
''','skip',['answer'])
code('13-046','''
def read(q, k, v, bias, gate, m=8, w=8):
    logits = k @ gate if gate is not None else None
    return block_attention(q, k, v, compress_blocks(k, bias, logits), compress_blocks(v, bias, logits), m, w)


def fitted(texts, wanted, with_gate, updates=150):
    bias, gate = torch.zeros(8, 32, requires_grad=True), torch.zeros(32, 32, requires_grad=True)
    optimizer = torch.optim.Adam([bias, gate], lr=0.03)
    for _ in range(updates):
        optimizer.zero_grad()
        (read(*texts, bias, gate if with_gate else None) - wanted).square().sum().backward()
        optimizer.step()
    return bias.detach(), gate.detach() if with_gate else None
''','skip',['answer'])
code('13-047','''
def window_of(tokens, and_the_first=False):  # which token each query may read
    t = torch.arange(128)
    back = t[:, None] - t
    return (back >= 0) & ((back < tokens) | (and_the_first & (t == 0)))


errors = {}
for layer, head in ((5, 6), (4, 2)):
    learn, judge = qkv(learned_maps, layer, head), qkv(judged_maps, layer, head)
    wanted, exact = (scaled_dot_product_attention(*some, causal_mask(128)) for some in (learn, judge))
    outputs = {"window 24": scaled_dot_product_attention(*judge, window_of(24))}
    outputs["23 + first"] = scaled_dot_product_attention(*judge, window_of(23, and_the_first=True))
    outputs["means"] = read(*judge, torch.zeros(8, 32), None)
    for name, with_gate in (("bias", False), ("bias + gate", True)):
        outputs[name] = read(*judge, *fitted(learn, wanted, with_gate))
    off = [((some - exact).norm() / exact.norm()).item() for some in outputs.values()]
    errors[f"layer {layer}, head {head}"] = off
print(aligned("relative error, new passages", [*outputs], errors, ".2f"))
''','fragment',['no-code','answer'])
md('13-048','''
Means are useless here, as chapter 12 said they would be: with them the error is larger than the output itself. A learned bias for each place takes most of that away, because it lets a slot stand for one place and not for eight.

And the gate? On these two heads it takes little on top, or nothing. Worse, look at the second column: a window and *the first token*, kept uncompressed, come close to all that learning on one head and beat it on the other. That's no accident. An **attention sink** is a place where a head rests when it has nothing to look for. For both heads it's the first token; V4 has one of its own, one more number in the softmax's denominator. So before you praise slots, give your baseline a sink.

Frozen heads have never seen a gate. What it's worth to a model that learns with it stands further down, under "The price".
''',defines=['attention sink'])
notes('13-049',24,'This is a test that went against us. Ask what one would have concluded without the second column.')

# ---------- edit 4
md('13-050','''
## Edit 4: small blocks that overlap, and a choice among them

One slot for 128 tokens is a headline, not a sentence. To look up a name you need small blocks. But small blocks are many, and reading them all costs a quarter of exact attention. So V4's other kind of layer takes blocks of *four* tokens and reads only the best few.

Two things are new. Blocks **overlap**: a slot mixes its own four tokens and the four before, by logits of their own, so that nothing is cut in two at an edge. An **indexer**, a small part of the layer, scores all slots for each query, and the query reads only those that score best.
''','slide',defines=['indexer'])
code('13-051','''
k_slots, queries, weights = torch.randn(1, 1, 8, 16), torch.randn(1, 4, 32, 16), torch.ones(1, 32, 4)
scores = index_scores(queries, k_slots, weights)  # (batch, n, slots)
seen = ended(32, 4)
chosen = best_slots(scores, top=2, seen=seen)[0]
for t in (3, 13, 31):
    may, does = (some[t].nonzero().flatten().tolist() for some in (seen, chosen))
    print(f"query {t:2} may read slots {may}, and reads {does}")
''','',['no-code'])
md('13-052','''
The score of a slot is what lies in the query's direction, summed over small heads of the indexer's own: $\\sum_h w_h\\,\\text{ReLU}(q_h \\cdot k_s)$. That's n²/8 scores, quadratic like the rest, but cheap ones: no softmax, nothing is mixed, one small key for all heads. Everything is scored and little is read.

Do facts come back? Remember chapter 12's recall: a text gives each of 64 keys a value, and asks for all of them. Linformer with 16 slots got a third of them right. Here every layer reads 32 keys a query, whatever it's made of:
''')
code('13-053','''
PRICE_RECALL
''','fragment',['no-code'])
md('13-054','''
TEXT054
''')

notes('13-105',29,'Ask why the query cannot know the best slots without scoring them all. That is why the indexer has to be small. Wrong answer to expect: "take the latest ones", which is a longer window.')
# ---------- edit 5
md('13-060','''
## Edit 5: one tensor for keys, values and all heads

A model that writes keeps keys and values of everything it has read: its cache. At a million tokens this is what fills the machine, not the scores. You know one way to make it smaller, from chapter 02: let all query heads share *one* head of keys and values. V4 goes one step further: **the key is the value**. One vector of 512 numbers for each slot is all that 64 heads read.

**Predict.** A text has a million tokens. How many times smaller is V4-Flash's cache than that of exact attention over as many layers, with eight heads of 128 features for keys and for values, as Llama 3 has them?
''','slide')
code('13-061','''
def cache_numbers(n, block=None, index=0, window=128, size=512):  # of one layer, after n tokens
    slots = n // block if block else 0
    return (min(n, window) + slots) * size + slots * index


tokens, of_16_bits = 2**20, 2
sizes = dict(zip(published, [{}, {"block": 4, "index": 128}, {"block": 128}], strict=True))
bytes_of = {}
for kind, layers in published.items():
    bytes_of[kind] = of_16_bits * layers * cache_numbers(tokens, **sizes[kind]) / tokens
    print(f"{layers:2} layers, {kind:24} {bytes_of[kind]:9,.1f} bytes a token")
grouped = of_16_bits * 43 * 2 * 8 * 128
others = {"exact, 8 heads of keys and values": grouped, "the same, one tensor of 512": of_16_bits * 43 * 512}
others["latent attention, 576 numbers (MLA)"] = of_16_bits * 43 * 576
print(f"   together {sum(bytes_of.values()):33,.1f}")
for name, count in others.items():
    print(f"{name:36} {count:8,}, {count / sum(bytes_of.values()):.0f} times as many")
''','fragment',['no-code','answer'])
md('13-062','''
Nearly all of it is the 21 layers with small blocks, a fifth of that for the indexer. Part of the saving isn't compression along the sequence at all: a single tensor for keys and values is worth a factor of four by itself. **Latent attention** compresses the features of keys and values and keeps every token. It gets within a factor of seven. (We count 16 bits throughout; the published model keeps part of its cache in fewer.)
''',defines=['latent attention'])
notes('13-106',32,'Take bets on the factor before the table. Wrong answer to expect: 128, from the headline. Nearly all of the cache belongs to the layers with blocks of four.')
md('13-063','''
That's all five edits. Here they are as one layer, with a switch for each, and it writes: token by token, with nothing but its cache, it gives what it gives for the whole text at once.
''')
code('13-064','''
states = {
    "1 blocks": {"content": False, "window": 0},
    "2 a window": {"content": False},
    "3 content": {},
    "4 overlap, choice": {"overlap": True, "top": 2},
    "5 one tensor": {"overlap": True, "top": 2, "one_tensor": True},
}
text = torch.randn(1, 30, 64)
for name, how in states.items():
    torch.manual_seed(0)
    compressed = CompressedAttention(64, 4, **{"block": 4, "window": 6} | how)
    written, cache = [], None
    for token in text.split(1, dim=1):
        output, cache = compressed.write(token, cache)
        written.append(output)
    same = torch.allclose(torch.cat(written, dim=1), compressed(text), atol=1e-5)
    print(f"{name:18} written = read: {same}, cache of {cache.nbytes:,} bytes")
''')
md('13-102','''
## From reading everything to reading seven things

In the clip every query of one sentence reads, first as in Linformer and then edit by edit, in blocks of four tokens and at last of two. (The fifth edit changes what is kept, and not what is read.)

<video controls muted loop width="49%" src="scenes/media/13_descendants.mp4"></video>
<img width="49%" src="scenes/media/13_descendants.png" alt="The last moment of the clip: 24 queries, a row each; on the left up to three slots that each of them reads, all in its past, on the right a narrow band of its last four tokens; the relative error is 0.31">
''','slide')
notes('13-103',34,'Play it once, then stop at edit 1 and ask what the first three queries read: nothing. Ask which edit lowers the error most: the window.')
md('13-095','''
## All five on one sentence

Move the query, and go through the states from top to bottom.
''','slide')
md('13-117','''
That's all of it in one picture: one sentence, a head of MiniLM, and what the query reads. Watch the orange boxes, which are slots, the green ones, which are the window, and the number that says how far off the head is.
''')
code('13-096','''
from linformer_from_scratch.widgets import BlockExplorer

BlockExplorer()
''','',['no-code'])
notes('13-107',35,'Stay with one query and go through the states. In three of the four heads edit 1 makes the error larger: that is what not knowing the future costs. Then take the head that reads the token before, and add the window.')
md('13-065','''
## Its slots are DeepSeek-V4's, to the fifth digit

How close are these few lines to the real thing? The library `transformers` has V4's two compressors. We ran them on random inputs and stored what went in and what came out. Two things stand between our slots and theirs, and both are standard: a norm, and rotary positions.
''','slide')
code('13-066','''
stored = load_file(DATA / "deepseek_v4.safetensors")


def rotated(x, cos, sin):  # pairs of neighbouring features turn with the position; the first ones stay
    still, turning = x[..., : -2 * cos.size(-1)], x[..., -2 * cos.size(-1) :].unflatten(-1, (-1, 2))
    a, b = turning.unbind(-1)
    return torch.cat([still, torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)], -1)


for name, kind in (("heavy", "heavily compressed attention"), ("sparse", "compressed sparse attention")):
    names = [f"{name}.{part}" for part in ("kv", "bias", "gate", "norm", "cos", "sin")]
    kv, bias_v4, gate_v4, scale, cos, sin = map(stored.get, names)
    ours = compress_blocks(kv, bias_v4, gate_v4, overlap=name == "sparse")
    ours = ours / (ours.square().mean(-1, keepdim=True) + 1e-6).sqrt() * scale  # the norm
    off = (rotated(ours, cos, sin) - stored[f"{name}.slots"]).abs().max()
    print(f"{kind}: {ours.size(1)} slots, largest difference {'below' if off < 1e-5 else 'above'} 1e-5")
    without = compress_blocks(kv, bias_v4, None, overlap=name == "sparse")  # a control: the gate left out
    without = without / (without.square().mean(-1, keepdim=True) + 1e-6).sqrt() * scale
    print(f"   without the gate: {(rotated(without, cos, sin) - stored[f'{name}.slots']).abs().max():.1f}")
''','fragment',['no-code'])
md('13-067','''
So that's the line from E to V4. What heavily compressed attention **shares** with Linformer: keys and values are mixed along the sequence by learned weights, and every query reads the mixtures. What it **changed**: the mixing is done block by block, so that it may write and so that slots grow with the text, and the weights depend on content, are positive and sum to one. What it **added**: a window, because a summary can't tell you the last word.

(The tests compare the choice of the indexer, too. V4 has more: sinks, low-rank queries, experts. And likeness is not ancestry: we show that two things compute alike, not that one came from the other.)
''')
notes('13-068',37,'Likeness is shown here by a run, ancestry is not. Ask what one would need to claim ancestry.')

# ---------- beside
md('13-070','''
## The other way out: a Linformer that may write

There's a road that V4 didn't take. Keep the number of slots fixed, as Linformer does, but let each slot be a *running* mean: at every token, a softmax over all tokens so far.

$$\\text{slot}_j(t) = \\frac{\\sum_{s \\le t} e^{l_{s,j}} x_s}{\\sum_{s \\le t} e^{l_{s,j}}}$$

A **bounded memory** is a fixed number of slots, each of them a running mean of all tokens so far (Peng et al. 2022, arXiv 2110.02488). Their abstract says that an approach which was thought not to work in causal attention does: it's Linformer. Let's check that. With logits that depend on the position alone, the *last* token should read what Linformer reads:
''','slide',defines=['bounded memory'])
code('13-071','''
q, k, v = torch.randn(3, 24, 16).unbind()
logits = torch.randn(24, 4)  # of 24 positions, for 4 slots
E = logits.softmax(dim=0).T
running, whole = bounded_memory_attention(q, k, v, logits), linformer_attention(q, k, v, E, E)
agree = ["yes" if torch.allclose(running[t], whole[t], atol=1e-5) else "no" for t in (0, 12, 23)]
print("tokens 0, 12, 23 read what Linformer reads:", ", ".join(agree))
''','fragment',['no-code','claim-abc'])
md('13-072','''
Only the last one does; all the others read a memory of their own past. Chapter 06's E isn't a softmax, though. It may have negative entries, and its rows sum to anything. Does any E do? Instead of a running mean take a running *sum*, with E's own numbers:
''')
code('13-077','''
E = torch.randn(4, 24)
# The slots at every token, (24, 4, 16):
keys, values = ((E.T[:, :, None] * some[:, None]).cumsum(0) for some in (k, v))
P = torch.softmax(torch.einsum("nd,nsd->ns", q, keys) / 4, dim=-1)
sums = torch.einsum("ns,nsd->nd", P, values)
same = torch.allclose(sums[-1], linformer_attention(q, k, v, E, E)[-1], atol=1e-4)
print("the last token, any E:", "yes" if same else "no")
''')
code('13-078','''
torch.manual_seed(0)
memory_layer = BoundedMemoryAttention(16, 2, slots=4)
print(f"worst leak of a layer of running means: {worst_leak(memory_layer, 32):.0e}")
''')
md('13-079','''
So there has been a legal causal Linformer all along. (With logits of positions it's still built for one length; with logits of content, as in this layer, it isn't.) Its state is k slots, however long the text.
''')
md('13-116','''
### Exercise 13.5 · ★★★ · 8 minutes

One step of such a memory. `slots` `(k, d)` are the means so far, and `total` `(k,)` is the *logarithm* of the sum of their weights (minus infinity where nothing has been read). A token `x` `(d,)` comes with its logits `(k,)`. Return slots and total as they are after it. The logits may be as large as 200. Gradients are compared, too.
''')
code('13-073','''
def remember(slots, total, x, logits):
    raise NotImplementedError


check("13.5", remember)
''')
md('13-074','''
Others went down this road, or near it. **Luna** (Ma et al. 2021, two of Linformer's authors among them) lets E be attention itself: k learned queries read the text. **Gated slots** (GSA, Zhang et al. 2024) let a bounded memory forget. **Transformer-LS** (Zhu et al. 2021) computes E from the text and puts a window beside it, five years before V4. **NSA** (Yuan et al. 2025) has overlapping compressed blocks, a choice and a window, and adds their three outputs; what it chooses are blocks of uncompressed tokens.
''')
notes('13-108',39,'Let them vote on tokens 0, 12 and 23 first. Then ask which of the two roads keeps less of a long text: k slots, or a slot for every m tokens.')
md('13-080','''
## What does a fixed E give away?

E is the same for every text. How much better could slots be if somebody made them for *this* text? We give a head 16 slots, and its own queries: half of them may be used to make the slots, and the other half judge. Keys may be means, mixed by a learned E, or the 16 keys that get most attention; and the 16 *values* are then fitted by least squares (a little ridge keeps 64 queries from being learned by heart), so that what queries read is as close as possible to the exact output. Attention Matching (arXiv 2602.16284) shrinks caches this way. The last column is the best map of rank 16, which needs the whole map.
''','slide')
code('13-081','''
half, other = slice(0, None, 2), slice(1, None, 2)
means, ridge = MeanPooling(128, 16)(torch.eye(128)), 0.01 * torch.eye(16)
ceiling = {}
for (layer, head), (q, k, v, learned) in stored_heads().items():
    map_of_head = attention_weights(q, k)
    exact = map_of_head @ v
    most = map_of_head[half].sum(0).topk(16).indices
    outputs = []
    E, F = learned[16]
    for keys, values in ((means @ k, means @ v), (E @ k, F @ v), (k[most], v[most])):
        P = attention_weights(q, keys)
        fitted_values = torch.linalg.solve(P[half].T @ P[half] + ridge, P[half].T @ exact[half])
        outputs += [P @ values, P @ fitted_values]
    outputs.append(best_rank(map_of_head, 16) @ v)
    off = [((some - exact)[other].norm() / exact[other].norm()).item() for some in outputs]
    ceiling[f"layer {layer}, head {head}"] = off
ways = ["means", "+ values", "E, F", "+ values", "chosen", "+ values", "best rank"]
print(aligned("relative error, 16 slots", ways, ceiling, ".2f"))
''','fragment',['no-code'])
md('13-082','''
Read it in pairs, before and after the values are fitted. For two of the four heads fitting them to the text is worth more than learning E on other texts, whatever the keys: with means it leaves a third and a half of the error. Which keys it's done for matters less. One head gains nothing, and for the head that reads the token before no 16 slots help, not even the best map of rank 16. That one wants a window.

A model that writes doesn't have the queries yet that it would need for this, so it's no method, only a measure of what a fixed E leaves on the table.
''')
notes('13-109',42,'Ask what would be unfair: slots that are judged by the queries that made them. Hence the two halves.')
# ---------- faults
md('13-085','''
## Two old faults are back

Compression along the sequence came back, and its bugs came with it. You met both in chapter 06. One was the leak of exercise 13.2. The other is padding: in May 2026 issue #45938 of `transformers` reported that tokens which are masked as padding enter V4's blocks all the same. Here's a module with that fault. A text of ten words stands alone, and then with three padded tokens before it:
''')
code('13-086','''
def wild(x, mask, bias):  # padding is set to zero, and then everything is compressed
    return compress_blocks(x * mask[:, None], bias)


alone, bias_4 = torch.randn(10, 8), torch.zeros(4)
padded, mask = torch.cat([torch.full((3, 8), 7.0), alone]), torch.tensor(3 * [False] + 10 * [True])
without, with_padding = compress_blocks(alone, bias_4), wild(padded, mask, bias_4)
print(f"slots alone {tuple(without.shape)}, with padding {tuple(with_padding.shape)}")
print(f"the first slot has moved by {(with_padding[0] - without[0]).norm():.1f}")
''')
md('13-087','''
### Exercise 13.6 · ★★ · 5 minutes

Mend it. `x` is `(n, d)`, `mask` is `(n,)` with True for a real token, wherever the padding stands, and `bias` is `(m,)`. Padded tokens must enter no block. Return `(real tokens // m, d)`.
''')
code('13-088','''
def slots_of_real(x, mask, bias):
    raise NotImplementedError


check("13.6", slots_of_real)
''')
# ---------- price
md('13-090','''
## The price

PRICE
''','slide')
notes('13-110',44,'Collect bets on the order of the kinds before you show it.')
md('13-120','''
## The other axis

Compressing along the sequence isn't the only thing the models of 2026 do about long texts. For contrast:

| what | kept for n tokens | read by a query | who |
| --- | --- | --- | --- |
| latent attention (MLA) | n narrow vectors | n | DeepSeek-V2 (arXiv 2405.04434) |
| sparse attention (MoBA, DSA) | n | the best few | Lu et al. 2025 (arXiv 2502.13189); DeepSeek-V3.2 |
| gated delta rule, KDA | a state of fixed size | the state | Yang et al. 2024 (arXiv 2412.06464); Kimi Linear 2025 |
| bounded memory | k slots | k | Linformer 2020 (not causal), Peng et al. 2022 |
| **blocks of slots** | **n / m slots and a window** | **all, or the best few** | **DeepSeek-V4 2026** |
''')
code('13-121','''
listing(compress_blocks)
''','skip',['whole'])
md('13-130','''
## What we checked

| | claim | where it is said | verdict |
| --- | --- | --- | --- |
| causal-linformer | Linformer cannot be made causal | tutorials: blog posts and READMEs on Linformer's limits | **only if every slot reads the whole text** |
| abc | Linformer, thought not to work in causal attention, does | Peng et al. 2022, abstract | **right** |
| linear-again | compressing keys and values by blocks makes attention linear in n | tutorials: posts that explain the models of 2026 | **only if m grows with n** |
''','slide')
md('13-131','''
**Claim causal-linformer: only if every slot reads the whole text.** Slots of blocks that have ended, and slots that are running means, are both Linformers of a kind, and no edit of a token changed anything before it.
**Claim abc: right.** With running sums of E's own numbers the last token reads what Linformer reads, for any E, and each token before it a memory of its own past. How well such a model learns is measured under "The price".
**Claim linear-again: only if m grows with n.** With m fixed, n²/2m scores are left.
''')
notes('13-111',46,'The third claim is the one that they will meet. Ask what would make it true: blocks that grow with the text.')
md('13-132','''
## Quiz
''','slide')
code('13-133','''
quiz("13")
''','',['no-code'])
notes('13-112',47,'On the cost of blocks: whoever says n (m + w) has counted the tokens of a block, and not the blocks.')
md('13-134','''
## Summary

1. Cut into blocks that a query may read once they have ended, E writes, at any length, with one weight for each place in a block.
2. A window beside the slots gives back what no summary has: the last few tokens. One softmax goes over both.
3. Weights by content let a slot hold one word of its block. On two frozen heads a learned bias did about as well, and on one of them a window with the first token did better than both.
4. Small blocks that overlap, and a choice of the best, PRICE_SUMMARY.
5. With one tensor for keys, values and all heads, and layers of different kinds, V4-Flash keeps 6,885 bytes a token, a twenty-sixth of grouped exact attention and a seventh of latent attention. It's quadratic again, and it can afford it.
''','slide')
notes('13-113',49,'Homework: 13.3 and 13.5. Ask which failure of chapter 12 is still there, and which of the five edits made it smaller.')
md('13-114','''
### What you can now do

- Cut E into blocks that may write, put a window beside the slots, and test any layer for leaks at every length.
- Count the scores and the bytes of such a layer, and say where the exponent is back.
- Read the configuration of a model of 2026 and name the edits that stand in it.
''')
md('13-135','''
### Further reading

- DeepSeek-AI 2026, *DeepSeek-V4*, section 2.3: compressed sparse and heavily compressed attention. The modules in `transformers`: `models/deepseek_v4`.
- Peng et al. 2022, arXiv 2110.02488: attention with bounded memory. Yuan et al. 2025, arXiv 2502.11089: native sparse attention (NSA).
- Ma et al. 2021, arXiv 2106.01540: Luna. Zhu et al. 2021, arXiv 2107.02192: Transformer-LS. Zhang et al. 2024, arXiv 2409.07146: gated slot attention.
- arXiv 2602.16284: Attention Matching.

The worked exercises are in `solutions/13_descendants.ipynb`. This was the last chapter: thank you for reading to the end.
''')
with open('/var/tmp/w13/chapters/13_descendants.ipynb','w') as f:
    meta=json.load(open('/var/tmp/w13/chapters/12_limits.ipynb'))
    json.dump({'cells':cells,'metadata':meta['metadata'],'nbformat':meta['nbformat'],'nbformat_minor':meta['nbformat_minor']},f,indent=1,ensure_ascii=False); f.write('\n')
