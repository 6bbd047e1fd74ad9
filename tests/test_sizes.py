"""True counts as 1 in Python; as a size, a count, a seed or a rank it is a slip, and is refused by name."""

from functools import partial

import pytest
import torch
from torch import nn

from linformer_from_scratch import cost, encoder, fitting, projections
from linformer_from_scratch import random_projections as rp
from linformer_from_scratch.benchmark import ceilings, statistics, timing
from linformer_from_scratch.data import batches, tasks
from linformer_from_scratch.descendants import blocks
from linformer_from_scratch.distributed import plan
from linformer_from_scratch.efficient import nystrom
from linformer_from_scratch.limits import recall, writing
from linformer_from_scratch.pretrained import adapting, sentence_encoder, texts
from linformer_from_scratch.training import Config, Trainer

SIZES, X, IDS = cost.Sizes(8), torch.zeros(1, 2, 8, 4), torch.arange(8)
TEXT = ["of a text of some words"]


def trained(until):
    Trainer(nn.Linear(4, 1), lambda model, x: model(x).mean(), lambda i: (X,), Config(2)).train(until)


REFUSED = {  # name of the argument, after what it is of -> a call with it
    "Block mlp_ratio": lambda size: encoder.Block(4, nn.Identity(), mlp_ratio=size),
    "Encoder neighbours": lambda size: encoder.Encoder(9, 8, 4, [nn.Identity()], size),
    "sinusoids n": lambda size: encoder.sinusoids(size, 4),
    "sinusoids d_model": partial(encoder.sinusoids, 4),
    "fit_projections updates": lambda size: fitting.fit_projections(X, X, X, 4, updates=size),
    "empty_slots n": partial(projections.empty_slots, X[0, 0]),
    "gaussian_projection proj_dim": lambda size: rp.gaussian_projection(size, 4),
    "gaussian_projection n": partial(rp.gaussian_projection, 4),
    "failure_bound proj_dim": lambda size: rp.failure_bound(size, 0.5),
    "failure_bound vectors": partial(rp.failure_bound, 4, 0.5),
    "needed_dim vectors": lambda size: rp.needed_dim(size, 0.5),
    "theorem_1_dim n": lambda size: rp.theorem_1_dim(size, 0.5),
    "theorem_2_dims n": lambda size: rp.theorem_2_dims(size, 4, 0.5),
    "theorem_2_dims d": lambda size: rp.theorem_2_dims(4, size, 0.5),
    "crossover longest": partial(cost.crossover, float, float),
    "needle seed": lambda seed: tasks.needle(8, 2, seed)(0),
    "generator_of step": partial(batches.generator_of, 0),
    "pad seq_len": partial(batches.pad, [[1]]),
    "validation_batches count": partial(tasks.validation_batches, tasks.needle(8, 2)),
    "vocab_size n": partial(tasks.vocab_size, "recall"),
    "ended n": lambda size: blocks.ended(size, 2),
    "ended block": partial(blocks.ended, 4),
    "plan ranks": lambda size: plan.plan(SIZES, size, cost.DEVICES[0]),
    "wire_of ranks": plan.wire_of,
    "hops ranks": lambda size: plan.hops(size, "ring"),
    "training_bytes layers": partial(plan.training_bytes, SIZES),
    "training_bytes ranks": partial(plan.training_bytes, SIZES, 2),
    "training_bytes matrices": partial(plan.training_bytes, SIZES, 2, 1),
    "training_bytes kept": partial(plan.training_bytes, SIZES, 2, 1, 4),
    "segment_means segments": partial(nystrom.segment_means, X),
    "pseudoinverse steps": partial(nystrom.pseudoinverse, torch.eye(4)),
    "median_seconds rounds": partial(timing.median_seconds, {"nothing": int}),
    "matmul_ceiling side": lambda size: ceilings.matmul_ceiling(side=size),
    "coverage rounds": lambda size: statistics.coverage(size, 0),
    "coverage left_out": partial(statistics.coverage, 5),
    "Crops shortest": lambda size: adapting.Crops(TEXT, size, 4),
    "Crops longest": lambda size: adapting.Crops(TEXT, 3, size),
    "copy_error n": lambda size: recall.copy_error(size, 0),
    "copy_error rank": partial(recall.copy_error, 4),
    "write_on count": partial(writing.write_on, nn.Embedding(8, 8), IDS),
    "leak place": partial(writing.leak, X[0, 0], X[0, 0]),
    "BestRankAttention rank": partial(sentence_encoder.BestRankAttention, 4, 2),
    "chunks window": partial(texts.chunks, IDS),
    "train until": trained,
}


@pytest.mark.parametrize("name", REFUSED)
def test_true_is_no_size(name):
    with pytest.raises(ValueError, match=f"^{name.split()[1]} is True, expected an integer"):
        REFUSED[name](True)
