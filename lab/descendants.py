"""The runs of chapter 13: language models whose attention is, edit by edit, what became of Linformer.

Only full attention reads every key; in all others a query reads at most READ of them, tokens or slots. The
widest window is a control: in texts of 512 tokens it keeps as many bytes as small slots do. So is a window
that learns for longer, as many seconds as the slowest kind.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from lab.efficient import train
from lab.experiment import BUILD, Experiment, every
from lab.pages import Page, split_pages
from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.benchmark import median_seconds
from linformer_from_scratch.data import SubwordVocabulary, generator_of, tasks
from linformer_from_scratch.descendants.layer import CompressedAttention, SharedSlots
from linformer_from_scratch.efficient import EfficientAttention, sliding_window_attention
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel, with_sinusoids
from linformer_from_scratch.heads import merge_heads
from linformer_from_scratch.limits.writing import next_token_loss
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.training import Config, Trainer

RUNS = BUILD / "descendants"
D_MODEL, NUM_HEADS, NUM_LAYERS = 64, 4, 2
VOCABULARY, TOKENS = 1000, 2048  # of the vocabulary; in an update
HELD_OUT = 3  # every third page of those held out is read
READ, RECALLED = 64, 32  # keys that a query reads: of a text, of one to be recalled
SMALL = 4  # tokens in a block of those that are chosen
LENGTHS, SEEDS = (512, 2048), (0, 1, 2)
COSTED, WRITTEN, ROUNDS = (512, 2048), 64, 9  # lengths; tokens that are timed; times
STEPS, LONGER, RATE, RATES, RECALL_STEPS = 1500, 4900, 8e-3, (4e-3, 16e-3), 2000
RECALL_RATES = (3e-3, 1e-3, 1e-2)
PLACES = 8  # parts of a text, in which its loss is told
FACTS = [(256, 64), (256, 16), (128, 16)]  # tokens, and facts among them


def slots(block: int, read: int, top: int | None = None, **how: Any) -> nn.Module:
    """Half of what it reads are tokens, half are slots: all, or the best."""
    return CompressedAttention(D_MODEL, NUM_HEADS, block, read // 2, top=top, **how)


def window(quarters: int, n: int, read: int) -> nn.Module:
    """The last tokens, so many quarters of `read`."""
    before = quarters * read // 4 - 1
    return EfficientAttention(
        D_MODEL, NUM_HEADS, lambda q, k, v: sliding_window_attention(q, k, v, before, causal=True)
    )


def of_means(layer: Any) -> nn.Module:
    """The layer, whose slots stay means of blocks, whatever is learned."""
    layer.bias.requires_grad_(False)
    return layer


def tokens(read: int, content: bool) -> nn.Module:
    """Half of what it reads are the tokens of the best blocks."""
    return slots(SMALL, read, read // 2 // SMALL, content=content, choose="tokens")


WINDOWS = {"window": 4, "window, half": 2, "window, 2.5": 10}  # quarters of the keys that a query reads
KINDS: dict[str, Callable[[int, int], nn.Module]] = {  # (n, keys that a query reads) -> a layer
    "full": lambda n, read: MultiHeadAttention(D_MODEL, NUM_HEADS, causal=True),
    **{kind: partial(window, quarters) for kind, quarters in WINDOWS.items()},
    "means of blocks": lambda n, read: of_means(slots(2 * n // read, read, content=False)),
    "content": lambda n, read: slots(2 * n // read, read),
    "overlap and choice": lambda n, read: slots(SMALL, read, read // 2, overlap=True),
    "tokens by means": lambda n, read: of_means(tokens(read, content=False)),
    "tokens by content": lambda n, read: tokens(read, content=True),
}
SHARED = "shared slots"  # of blocks half as small, and as many over both layers
ALL_KINDS = (*KINDS, SHARED)


class WithTheTokenBefore(nn.Module):
    """Attention in which each token knows the one before it: so two layers learn sooner to look things up.

    Shape: as the attention's.
    """

    def __init__(self, d_model: int, attention: nn.Module):
        super().__init__()
        self.attention, self.before = attention, nn.Linear(d_model, d_model, bias=False)

    def forward(self, x: Tensor, padding_mask: Tensor | None = None) -> Tensor:
        """Of all tokens."""
        return self.attention(x + self.before(functional.pad(x, (0, 0, 1, -1))), padding_mask)


def attention_layers(kind: str, n: int, read: int) -> list[nn.Module]:
    """Those of one model."""
    if kind == SHARED:
        shared = SharedSlots()
        return [slots(SMALL // 2, read, read // 2, shared=shared) for _ in range(NUM_LAYERS)]
    return [KINDS[kind](n, read) for _ in range(NUM_LAYERS)]


@cache
def texts() -> tuple[Tensor, list[Tensor]]:
    """Long pages of the manuals: all tokens to learn from, and the pages that are held out."""
    learned, held = ([long_text(page) for page in side] for side in split_pages())
    vocabulary = SubwordVocabulary(learned, VOCABULARY)

    def long_ones(side: list[str]) -> list[Tensor]:
        tokens = (torch.tensor(vocabulary.encode(text)) for text in side)
        return [ids for ids in tokens if len(ids) > LENGTHS[-1]]

    return torch.cat(long_ones(learned)), long_ones(held)[::HELD_OUT]


def long_text(page: Page) -> str:
    """A page as one text."""
    return "\n".join([page.title, *page.paragraphs])


def model_of(kind: str, n: int) -> nn.Module:
    """A language model of texts of n tokens."""
    attention = [WithTheTokenBefore(D_MODEL, some) for some in attention_layers(kind, n, READ)]
    return MaskedLanguageModel(with_sinusoids(Encoder(VOCABULARY, n, D_MODEL, attention)))


def losses_of_writer(kind: str, n: int, learning_rate: float, seed: int, steps: int = STEPS) -> dict:
    """Train one language model; its held-out loss on the way, and in the end by the place in a text."""
    torch.manual_seed(seed)
    learned, held = texts()
    pieces, unseen = learned.unfold(0, n + 1, 1), torch.stack([page[: n + 1] for page in held])
    model = model_of(kind, n)

    def batches(step: int) -> tuple[Tensor]:
        return (pieces[torch.randint(len(pieces), (TOKENS // n,), generator=generator_of(seed, step))],)

    config = Config(steps, learning_rate, warmup=100, evaluate_every=steps // 10, seed=seed)
    validation = [(some,) for some in unseen.split(TOKENS // n)]
    folder = RUNS / f"{kind} {n} {learning_rate} {steps} {seed}"
    history = Trainer(model, next_token_loss, batches, config, validation, folder, device="cpu").train()
    curve = [[r["step"], round(r["validation_loss"], 4)] for r in history if "validation_loss" in r]
    return {"curve": curve, "by place": [round(loss, 4) for loss in losses_by_place(model, unseen)]}


@torch.no_grad()
def losses_by_place(model: nn.Module, texts: Tensor) -> list[float]:
    """The mean loss of the next token in each of PLACES parts of a text, from its beginning on."""
    model.eval()
    losses = []
    for some in texts.split(1):
        scores = model(some[:, :-1])
        losses.append(functional.cross_entropy(scores.mT, some[:, 1:], reduction="none"))
    return [part.mean().item() for part in torch.cat(losses).tensor_split(PLACES, dim=1)]


def recall(kind: str, n: int, facts: int, learning_rate: float, seed: int) -> dict:
    """Train one model to recall facts; its accuracy ten times on the way, until nothing is wrong."""
    torch.manual_seed(seed)
    encoder = Encoder(tasks.VOCAB_SIZE + facts, n, D_MODEL, attention_layers(kind, n, RECALLED), neighbours=1)
    batches = tasks.scattered_recall(n, facts, TOKENS // n, seed)
    model = MaskedLanguageModel(with_sinusoids(encoder))
    return {"curve": train(model, batches, 8, learning_rate, RECALL_STEPS)}


def cost(n: int) -> dict:
    """Seconds of an update of every model, and of its attention layers that write the last tokens of a text.

    They write from caches, whose bytes at the end of the text are told, too. Processor seconds on one
    thread, medians.
    """
    torch.manual_seed(0)
    x = torch.randn(1, n, D_MODEL)
    steps = {kind: writing_step(kind, attention_layers(kind, n, READ)) for kind in ALL_KINDS}
    texts = torch.randint(VOCABULARY, (max(1, TOKENS // n), n + 1))
    updates = {kind: partial(forward_and_back, model_of(kind, n), texts) for kind in ALL_KINDS}
    caches = {kind: write_on(step, x[:, :-WRITTEN], None) for kind, step in steps.items()}
    calls = {kind: partial(write_on, steps[kind], x[:, -WRITTEN:], caches[kind]) for kind in ALL_KINDS}
    return {
        "training": median_seconds(updates, ROUNDS, busy=True),
        "writing": median_seconds(calls, ROUNDS, busy=True),
        "bytes": {
            kind: sum(some.nbytes for cache in call() for some in cache if isinstance(some, Tensor))
            for kind, call in calls.items()
        },
    }


def forward_and_back(model: nn.Module, texts: Tensor) -> None:
    """As in training; the gradients are thrown away."""
    model.zero_grad()
    next_token_loss(model, texts).backward()


@torch.no_grad()
def write_on(step: Callable, x: Tensor, cache: Any) -> Any:
    """The cache after some more tokens, one by one."""
    for token in x.split(1, dim=1):
        _, cache = step(token, cache)
    return cache


def writing_step(kind: str, layers: list[nn.Module]) -> Callable:
    """One more token of every text, by one layer after another: (x, caches) -> its output, and the caches."""
    steps = [_writing_step(kind, layer) for layer in layers]

    def step(x: Tensor, caches: list[Any] | None) -> tuple[Tensor, list[Any]]:
        after = []
        for one, before in zip(steps, caches or [None] * len(steps), strict=True):
            x, kept = one(x, before)
            after.append(kept)
        return x, after

    return step


def _writing_step(kind: str, layer: Any) -> Callable:
    if hasattr(layer, "write"):
        return layer.write
    last = WINDOWS[kind] * READ // 4 if kind in WINDOWS else None

    def step(x: Tensor, cache: tuple[Tensor, ...] | None) -> tuple[Tensor, tuple[Tensor, ...]]:
        q, *new = layer.project(x)
        k, v = (torch.cat(both, dim=-2) for both in zip(cache or (new[0][..., :0, :],) * 2, new, strict=True))
        k, v = (some[..., -last:, :] if last else some for some in (k, v))
        return layer.output(merge_heads(scaled_dot_product_attention(q, k, v))), (k, v)

    return step


def recalling(kinds: Iterable[str], facts: Iterable[tuple[int, int]], **rest: Iterable) -> list[dict]:
    """Settings of models that recall."""
    return [{"n": n, "facts": count} | some for n, count in facts for some in every(kind=kinds, **rest)]


GUESSING = ("window", "window, 2.5", "means of blocks", "tokens by means")
UNEQUAL = ("full", "content", "overlap and choice", "tokens by content", SHARED)  # to a guess, at 64 facts
RECALLING = (*UNEQUAL, *GUESSING)
TUNING = every(seed=SEEDS[:1], kind=ALL_KINDS, n=LENGTHS[:1], learning_rate=RATES)
WRITERS = every(kind=ALL_KINDS, n=LENGTHS[:1], learning_rate=[RATE])
LASTING = every(seed=SEEDS, kind=["window"], n=LENGTHS[:1], learning_rate=[RATE], steps=[LONGER])
LASTING += every(seed=SEEDS[:1], kind=["window"], n=LENGTHS[:1], learning_rate=RATES, steps=[LONGER])
RECALLERS = recalling(RECALLING, FACTS[:1], seed=SEEDS, learning_rate=RECALL_RATES[:1])
RECALLERS += recalling(RECALLING, FACTS[:1], seed=SEEDS[:1], learning_rate=RECALL_RATES[1:])
RECALLERS += recalling(UNEQUAL, FACTS[1:], seed=SEEDS, learning_rate=RECALL_RATES[:1])
EXPERIMENTS = [
    Experiment("13_rate", "language models of long pages at other rates", TUNING, losses_of_writer),
    Experiment("13_writing", "language models of long pages", WRITERS, losses_of_writer, SEEDS),
    Experiment("13_seconds", "windows, for as long as the slowest kind", LASTING, losses_of_writer),
    Experiment("13_cost", "seconds and bytes of both layers, in training and writing", every(n=COSTED), cost),
    Experiment("13_recall", "facts recalled, at other rates, too; facts and n vary apart", RECALLERS, recall),
]
