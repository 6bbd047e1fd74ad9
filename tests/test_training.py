"""training: against AdamW written out, the definitions of the losses, and uninterrupted runs."""

import gc
import json
import math
import re
import shutil
from dataclasses import replace
from functools import cache

import pytest
import torch
from cuda_stand_in import StandIn
from torch import Tensor, nn
from torch.nn import functional
from torch.testing import assert_close

from linformer_from_scratch import training
from linformer_from_scratch.data import IGNORE, PAD, mask_tokens
from linformer_from_scratch.encoder import Classifier, MaskedLanguageModel
from linformer_from_scratch.training import Config, Trainer, accuracy, learning_rate, masked_loss
from linformer_from_scratch.training.recipes import Recipe, encoder

ROWS, WIDTH, HIDDEN, CLASSES = 7, 5, 11, 3
CONFIG = Config(steps=17, learning_rate=0.05, warmup=3, weight_decay=0.1, evaluate_every=4, seed=2)
TINY = Recipe(seq_len=13, d_model=6, num_heads=2, num_layers=1, proj_dim=5)


@pytest.fixture(autouse=True)
def one_thread():
    """Curves are compared to the last bit, also with those of processes that have one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def classifier(dropout=0.3, hidden=HIDDEN):
    torch.manual_seed(1)
    head = nn.LayerNorm(hidden), nn.Linear(hidden, CLASSES)
    return nn.Sequential(nn.Linear(WIDTH, hidden), nn.Tanh(), nn.Dropout(dropout), *head)


def cross_entropy(model, x, labels):
    return functional.cross_entropy(model(x), labels)


def batches(i, rows=ROWS):
    generator = torch.Generator().manual_seed(i)
    x = torch.randn(rows, WIDTH, generator=generator)
    return x, torch.randint(CLASSES, (rows,), generator=generator)


VALIDATION = batches(1000), batches(1001)


def trainer_of(folder=None, config=CONFIG, model=None, batches=batches, loss=cross_entropy, **settings):
    settings = {"validation": VALIDATION, "device": "cpu"} | settings
    return Trainer(model or classifier(), loss, batches, config, folder=folder, **settings)


def curve(history):
    return [{name: value for name, value in record.items() if name != "tokens_per_s"} for record in history]


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def same(left, right):
    pairs = zip(left.state_dict().values(), right.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@cache
def straight():
    """A run that nobody interrupts."""
    trainer = trainer_of()
    trainer.train()
    return trainer


def is_the_same_run(folder):
    trainer = trainer_of(folder)
    trainer.train()
    assert curve(trainer.history) == curve(lines(folder)) == curve(straight().history)
    return same(trainer.model, straight().model)


def test_the_learning_rate_rises_straight_and_falls_as_half_a_cosine():
    config = Config(steps=20, learning_rate=0.8, warmup=4)
    by_hand = {0: 0.2, 3: 0.8, 4: 0.8, 8: 0.4 * (1 + 2**-0.5), 12: 0.4}
    by_hand[19] = 0.4 * (1 - math.cos(math.pi / 16))
    assert {step: learning_rate(step, config) for step in by_hand} == pytest.approx(by_hand)


@pytest.mark.parametrize("warmup", [0, 3, 17])
def test_the_learning_rate_is_positive_at_every_step_and_the_highest_at_one(warmup):
    config = replace(CONFIG, warmup=warmup)
    rates = [learning_rate(step, config) for step in range(config.steps)]
    assert min(rates) > 0 and max(rates) == pytest.approx(0.05)


def test_masked_loss_is_cross_entropy_of_all_scores_at_the_chosen_places():
    torch.manual_seed(0)
    model = MaskedLanguageModel(encoder(TINY, 31))
    inputs, targets = mask_tokens(torch.randint(3, 31, (2, 13)), 31, torch.Generator())
    every = functional.cross_entropy(model(inputs).flatten(0, 1), targets.flatten(), ignore_index=IGNORE)
    assert_close(masked_loss(model, inputs, targets), every)


def test_classification_loss_does_not_see_padding():
    torch.manual_seed(0)
    model = Classifier(encoder(TINY, 31), CLASSES)
    ids, labels = torch.randint(3, 31, (2, 7)), torch.tensor([2, 0])
    by_hand = -model(ids).log_softmax(dim=-1)[[0, 1], labels].mean()
    assert_close(training.classification_loss(model, functional.pad(ids, (0, 6), value=PAD), labels), by_hand)


class CountsRealTokens(nn.Module):
    def forward(self, ids, real):
        assert not self.training
        return functional.one_hot(real.sum(dim=-1), CLASSES)


def test_accuracy_is_the_share_of_right_classes():
    ids = torch.tensor([[1, PAD], [1, 1], [3, PAD], [3, 4], [4, 4]])
    labels = torch.tensor([1, 0, 1, 2, 0])
    assert accuracy(CountsRealTokens(), ids, labels, batch_size=2) == pytest.approx(3 / 5)


def quieter(model, x, labels):
    return 0.7 * cross_entropy(model, x, labels)


def adamw_by_hand(model, batches, config, steps, slow):
    """Norms of the gradients before they are clipped; the model is trained."""
    weights, norms = list(model.parameters()), []
    first, second = ([torch.zeros_like(w) for w in weights] for _ in range(2))
    for t in range(1, steps + 1):
        gradients = torch.autograd.grad(quieter(model, *batches(t - 1)), weights)
        norms.append(torch.cat([g.flatten() for g in gradients]).norm().item())
        with torch.no_grad():
            for i, (w, g, m, v) in enumerate(zip(weights, gradients, first, second, strict=True)):
                rate = learning_rate(t - 1, config) * (0.1 if i in slow else 1)
                g = g * min(1.0, 1.0 / (norms[-1] + 1e-6))
                m.copy_(0.9 * m + 0.1 * g)
                v.copy_(0.98 * v + 0.02 * g**2)
                w.mul_(1 - learning_rate(t - 1, config) * config.weight_decay * (w.dim() > 1))
                w.sub_(rate * (m / (1 - 0.9**t)) / ((v / (1 - 0.98**t)).sqrt() + 1e-8))
    return norms


@pytest.mark.parametrize("slow", [(), (1, 4)])
def test_updates_are_clipped_adamw_only_matrices_decay_and_some_are_slow(slow):
    def precise(i):
        x, labels = batches(i)
        return x.double(), labels

    ours, by_hand = classifier(dropout=0).double(), classifier(dropout=0).double()
    config = replace(CONFIG, learning_rate=0.3, weight_decay=0.5)
    scale = {parameter: 0.1 for i, parameter in enumerate(ours.parameters()) if i in slow}
    run = {"loss": quieter, "batches": precise, "config": config, "validation": [], "lr_scale": scale}
    trainer_of(model=ours, **run).train(until=5)
    norms = adamw_by_hand(by_hand, precise, config, 5, slow)
    assert min(norms) < 1 < max(norms), "some are clipped, some are not"
    assert_close(ours.state_dict(), by_hand.state_dict())


def cut(whole, *rows):
    """Batches of these rows, which together are the whole."""
    parts = list(zip(*(tensor.split(rows) for tensor in whole), strict=True))
    return lambda i: parts[i % len(rows)]


def masked(rows=5, n=9):
    """Ids of which the first text has all tokens masked, the second one, the others none."""
    ids = torch.randint(11, (rows, n), generator=torch.Generator().manual_seed(0))
    chosen = torch.arange(n) < torch.tensor([n, 1, *[0] * (rows - 2)])[:, None]
    return ids, ids.where(chosen, IGNORE)


def small_language_model():
    torch.manual_seed(0)
    return MaskedLanguageModel(encoder(replace(TINY, attention="full"), 11))


def of_masked_tokens(model, ids, targets):
    """The definition: a mean over masked tokens."""
    scores = model(ids).flatten(0, 1)
    return functional.cross_entropy(scores, targets.flatten(), ignore_index=IGNORE)


@pytest.mark.parametrize("rows", [(4, 1), (3, 1, 1)], ids=str)
@pytest.mark.parametrize("kind", ["rows", "masked tokens"])
def test_unequal_small_batches_weigh_what_they_hold(kind, rows):
    if kind == "rows":
        small, large = classifier(dropout=0), classifier(dropout=0)
        loss, definition, whole = cross_entropy, cross_entropy, batches(3, 5)
    else:
        small, large = small_language_model(), small_language_model()
        loss, definition, whole = masked_loss, of_masked_tokens, masked()
    config = replace(CONFIG, accumulation=len(rows))
    one = trainer_of(model=small, loss=loss, batches=cut(whole, *rows), config=config, validation=[])
    other = trainer_of(model=large, loss=definition, batches=lambda i: whole, validation=[])
    losses = [[record["loss"] for record in trainer.train(until=3)] for trainer in (one, other)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and losses[1][0] != losses[1][2]
    assert_close(small.state_dict(), large.state_dict(), atol=1e-5, rtol=1e-4)


def test_nothing_to_learn_from_is_no_update():
    ids, targets = masked()
    empty = ids, torch.full_like(targets, IGNORE)
    model = small_language_model()
    trainer = trainer_of(model=model, loss=masked_loss, batches=lambda i: empty, validation=[])
    with pytest.raises(FloatingPointError, match="the loss is not finite at step 1"):
        trainer.train()


def test_scales_of_other_models_parameters_count_for_nothing():
    other = torch.nn.Parameter(torch.zeros(2))
    assert trainer_of(lr_scale={other: 0.1}).lr_scale == {}


def test_metrics_can_be_read_after_every_update(tmp_path):
    seen = []

    def watching(i):
        if i:
            seen.append(len(lines(tmp_path)))
        return batches(i)

    history = trainer_of(tmp_path, batches=watching).train()
    assert seen == list(range(1, CONFIG.steps)) and lines(tmp_path) == history
    assert [r["step"] for r in history] == list(range(1, 18))
    assert [r["step"] for r in history if "validation_loss" in r] == [4, 8, 12, 16, 17]
    assert [r["learning_rate"] for r in history] == [learning_rate(i, CONFIG) for i in range(17)]
    assert all(type(r["tokens_per_s"]) is int and r["tokens_per_s"] > 0 for r in history)


def test_progress_is_shown_only_when_asked_for(capsys):
    trainer_of().train(until=2)
    assert capsys.readouterr() == ("", "")
    trainer_of(progress=True).train(until=2)
    shown = capsys.readouterr().err
    assert all(word in shown for word in ("2/2", "loss=", "tokens_per_s="))


@pytest.mark.parametrize(
    ("kind", "name", "value", "bound"),
    [
        (Config, "steps", 0, "at least 1"),
        (Config, "seed", 2**63, f"at most {2**63 - 1}"),
        (Config, "accumulation", 2.5, "an integer"),
        (Config, "weight_decay", math.nan, "at least 0"),
        (Config, "learning_rate", 0, "more than 0"),
        (Recipe, "d_model", 0, "at least 1"),
        (Recipe, "seq_len", 2**31, f"at most {2**31 - 1}"),
    ],
)
def test_a_bad_number_is_refused_in_one_sentence(kind, name, value, bound):
    with pytest.raises(ValueError, match=f"^{name} is {re.escape(repr(value))}, expected {bound}$"):
        kind(**{name: value})
    assert Recipe(seq_len=2**31 - 1).seq_len == 2**31 - 1


def test_autocast_computes_in_bfloat16_and_ends_close_by():
    dtypes = set()

    def loss(model, x, labels):
        scores = model(x)
        dtypes.add(scores.dtype)
        return functional.cross_entropy(scores.float(), labels)

    full, half = ([r["loss"] for r in trainer_of(autocast=on, loss=loss).train()] for on in (False, True))
    assert dtypes == {torch.float32, torch.bfloat16}
    assert half != full and half == pytest.approx(full, abs=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning:torch")
@pytest.mark.skipif(not shutil.which("g++"), reason="torch.compile needs a compiler")
def test_a_compiled_model_has_the_same_curve():
    model, config = classifier(dropout=0), replace(CONFIG, steps=5)
    plain = trainer_of(model=classifier(dropout=0), config=config).train()
    compiled = trainer_of(model=model, compile=True, config=config).train()
    assert model._compiled_call_impl is not None
    assert [r["loss"] for r in compiled] == pytest.approx([r["loss"] for r in plain], rel=1e-4)


@pytest.mark.parametrize("made_for_it", [True, False])
def test_a_gpu_that_only_emulates_bfloat16_computes_in_float32(made_for_it):
    with StandIn(bf16=made_for_it):
        assert trainer_of(device="cuda").autocast == made_for_it
    assert not trainer_of(device="cpu").autocast


def modes(model):
    return [part.training for part in model.modules()]


class Classes(nn.Sequential):
    def forward(self, x, real=None):
        return super().forward(x)


LOOKS = {
    "evaluate": lambda model: trainer_of(model=model).evaluate(VALIDATION),
    "train": lambda model: trainer_of(model=model).train(until=4),
    "accuracy": lambda model: accuracy(model, torch.ones(3, WIDTH), torch.ones(3)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_every_part_of_a_model_is_afterwards_in_the_mode_it_was_in(look):
    model = Classes(*classifier())
    model[1].eval()
    before = modes(model)
    LOOKS[look](model)
    assert modes(model) == before


def test_a_model_is_in_its_mode_after_an_error_too():
    def broken(model, *batch):
        assert not model.training
        raise KeyError

    model = classifier()
    with pytest.raises(KeyError):
        trainer_of(model=model, loss=broken).evaluate(VALIDATION)
    assert all(modes(model))


def test_training_leaves_the_random_state_of_the_caller_alone(tmp_path):
    torch.manual_seed(17)
    expected = torch.rand(3).tolist()
    model = classifier()
    torch.manual_seed(17)
    trainer = trainer_of(tmp_path, model=model)
    trainer.train(until=6)
    resumed = trainer_of(tmp_path, model=model)
    resumed.evaluate(VALIDATION)
    resumed.train()
    assert torch.rand(3).tolist() == expected


def test_every_rank_draws_its_own_dropout_and_another_when_it_resumes(monkeypatch):
    trainer, drawn = trainer_of(), set()
    for rank, trainer.step in ((0, 0), (1, 0), (2, 0), (1, 5)):
        monkeypatch.setattr("linformer_from_scratch.training.trainer.rank", lambda rank=rank: rank)
        drawn.add(trainer._fresh_random()["cpu"].numpy().tobytes())
    assert len(drawn) == 4


def test_training_leaves_the_random_state_on_a_gpu_alone():
    with StandIn() as gpu:
        models = classifier(), classifier()
        torch.manual_seed(17)
        before = gpu.random.clone()
        curves = [curve(trainer_of(model=model, device="cuda").train(until=3)) for model in models]
        assert torch.equal(gpu.random, before) and curves[0] == curves[1]


def test_the_caller_may_draw_between_two_parts_of_a_run():
    trainer = trainer_of()
    for until in range(1, 18):
        trainer.train(until)
        torch.rand(until)
    assert curve(trainer.history) == curve(straight().history)


@pytest.mark.parametrize("seed", [2, 3])
def test_the_seed_alone_decides_about_dropout(seed):
    model = classifier()
    torch.rand(3)
    history = trainer_of(model=model, config=replace(CONFIG, seed=seed)).train()
    assert (curve(history) == curve(straight().history)) == (seed == CONFIG.seed)


def test_validation_does_not_change_the_training_even_if_it_draws_random_numbers():
    def noisy(model, x, labels):
        return cross_entropy(model, x if model.training else x + torch.randn_like(x), labels)

    trainer = trainer_of(loss=noisy, config=replace(CONFIG, evaluate_every=3))
    assert [r["loss"] for r in trainer.train()] == [r["loss"] for r in straight().history]


def test_validation_is_the_mean_loss_without_dropout():
    calm = classifier(dropout=0)
    calm.load_state_dict(straight().model.state_dict())
    by_hand = sum(cross_entropy(calm, *batch).item() for batch in VALIDATION) / 2
    assert straight().evaluate(straight().validation) == by_hand == straight().history[-1]["validation_loss"]


def test_memory_does_not_grow_with_the_steps(tmp_path):
    alive = []

    def counting(i):
        if i in (50, 290):
            gc.collect()
            alive.append(sum(issubclass(type(thing), Tensor) for thing in gc.get_objects()))
        return batches(i)

    trainer_of(tmp_path, batches=counting, config=Config(steps=300, evaluate_every=40)).train()
    assert alive[1] <= alive[0]  # other tests may have left what goes in between
