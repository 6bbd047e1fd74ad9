"""Measure what chapter 12 shows of recall and of writing: python tools/limits_runs.py recall width

Each word is a file course/recorded/12_WORD.json, a row for each run. A run that stands in
the file already is not measured again. The models and their training are those of tools/family_runs.py.

recall  a value for every key, then all keys again: at 32 keys a query, n rising
width   recall by Linformer, E and F learned slowly, at other k
longer  two of these that failed, with three times as many updates
writing language models of the docstrings' bytes, told to predict the next one: what they reach while they
        see the whole text, and when it is yet to be written
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
from family_runs import FULL, KEYS, MEAN, SLOW, run, size_of
from torch import nn

from linformer_from_scratch.course.results import RESULTS, Results, select
from linformer_from_scratch.data import ByteVocabulary, docstrings, generator_of
from linformer_from_scratch.efficient import EfficientAttention, sliding_window_attention
from linformer_from_scratch.encoder import Encoder, MaskedLanguageModel
from linformer_from_scratch.limits import next_token_loss, written_loss
from linformer_from_scratch.linformer import LinformerAttention
from linformer_from_scratch.multihead import MultiHeadAttention
from linformer_from_scratch.projections import LearnedProjection, start_at_windows
from linformer_from_scratch.training import Config, Trainer
from linformer_from_scratch.training.corpora import streams

NAMES = (FULL, SLOW, MEAN, "Nyström", "sliding window")
LENGTHS = (64, 128, 256, 512)
WIDTHS = [(n, keys) for keys in (16, 64, 128, 256) for n in LENGTHS if 2 * keys <= n]  # k is at most n / 4
EXPERIMENTS = {  # of recall: attentions, tokens and keys a query, what else the run is told
    "recall": (NAMES, [(n, KEYS) for n in LENGTHS], {"seed": 0}),
    "width": ((SLOW,), WIDTHS, {"seed": 0}),
    "longer": ((SLOW,), [(256, KEYS), (512, 256)], {"times": 3}),
}
SEQ_LEN, D_MODEL, NUM_HEADS, SLOTS = 128, 64, 4, 32  # of the models that write
CONFIG = Config(steps=3000, learning_rate=3e-3, warmup=100, evaluate_every=10**9)
GIVEN = (16, 32, 64, 96, 127)  # tokens, of a text yet to be written
WRITERS: dict[str, Callable[[], nn.Module]] = {
    "full, causal": lambda: MultiHeadAttention(D_MODEL, NUM_HEADS, causal=True),
    "sliding window, causal": lambda: EfficientAttention(D_MODEL, NUM_HEADS, window_before),
    "Linformer": lambda: LinformerAttention(D_MODEL, NUM_HEADS, *(windows(), windows())),
}


def windows() -> LearnedProjection:
    """A learned E that begins as means of windows."""
    return start_at_windows(LearnedProjection(SEQ_LEN, SLOTS))


def window_before(q, k, v):
    """This token and the SLOTS before it."""
    return sliding_window_attention(q, k, v, SLOTS, causal=True)


def write(attention: str, seed: int) -> dict:
    """Train one language model; ten times on the way both losses on held-out text."""
    torch.manual_seed(seed)
    train, held = streams(docstrings(), ByteVocabulary())
    texts, unseen = train.unfold(0, SEQ_LEN + 1, 1), held.unfold(0, SEQ_LEN + 1, SEQ_LEN + 1)[:256]
    model = MaskedLanguageModel(
        Encoder(ByteVocabulary.size, SEQ_LEN, D_MODEL, [WRITERS[attention]() for _ in range(2)])
    )

    def batches(step: int) -> tuple[torch.Tensor]:
        return (texts[torch.randint(len(texts), (16,), generator=generator_of(seed, step))],)

    trainer = Trainer(model, next_token_loss, batches, CONFIG, device="cpu")
    curve, tenth = [], CONFIG.steps // 10
    for until in range(tenth, CONFIG.steps + 1, tenth):
        trainer.train(until)
        seen = trainer.evaluate([(unseen,)])
        curve.append([until, round(seen, 4), round(written_loss(model, unseen, GIVEN), 4)])
    return {"curve": curve}  # updates, loss with the whole text in sight, loss of a text yet to be written


def jobs(word: str) -> Iterator[tuple[dict, partial]]:
    """What is measured, and the calls that do."""
    if word == "writing":
        for seed, attention in product((0, 1, 2), WRITERS):
            yield {"attention": attention, "seed": seed}, partial(write, attention, seed)
        return
    names, sizes, rest = EXPERIMENTS[word]
    for (n, keys), name in product(sizes, names):
        what = {"task": "recall", "attention": name, "n": n, "size": size_of(name, n, keys)}
        yield what | rest, partial(run, "recall", name, n, keys=keys, **rest)


def main() -> None:
    """Measure the experiments named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("experiments", nargs="+", choices=[*EXPERIMENTS, "writing"])
    torch.set_num_threads(1)
    for word in parser.parse_args().experiments:
        results = Results(RESULTS / f"12_{word}.json", f"python tools/limits_runs.py {word}")
        for what, call in jobs(word):
            results.measure(what, call)
            print(*select(results.content["rows"], **what), flush=True)


if __name__ == "__main__":
    main()
