"""Chapter 07: exercises and quiz."""

import torch
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question
from linformer_from_scratch.linformer import linformer_attention

BATCH = 2
POOLS = ((4, 3, 5), (5, 1, 3), (1, 7, 4), (3, 6, 7))  # slots, tokens of a window, features, for each draw


# 7.1: pool


def mean_pool(x: Tensor, proj_dim: int) -> Tensor:
    """Slot i is the mean of the i-th window of n / proj_dim tokens. Shape: (batch, n, d) -> (batch, proj_dim, d)."""
    return x.unflatten(1, (proj_dim, -1)).mean(dim=2)


def draw_pool(seed: int) -> tuple:
    """A batch of tokens, and a number of slots that divides theirs."""
    slots, width, d = row(seed, POOLS)
    return *normal(seed, (BATCH, slots * width, d)), slots


def every_kth_token(x, proj_dim):
    """Your slot i averages every proj_dim-th token of the text; a window holds neighbours: unflatten to (proj_dim, -1), in this order."""
    return x.unflatten(1, (-1, proj_dim)).mean(dim=1)


def picked_not_averaged(x, proj_dim):
    """You pick the first token of each window; average all its tokens."""
    return x.unflatten(1, (proj_dim, -1))[:, :, 0]


def summed_windows(x, proj_dim):
    """You sum each window; a mean keeps the slots as large as the tokens, however wide the window is."""
    return x.unflatten(1, (proj_dim, -1)).sum(dim=2)


def pooled_by_max(x, proj_dim):
    """That is max pooling, which is not linear; take the mean."""
    return x.unflatten(1, (proj_dim, -1)).amax(dim=2)


def windows_of_k(x, proj_dim):
    """Your windows have proj_dim tokens; there should be proj_dim windows, of n / proj_dim tokens each."""
    return x.unflatten(1, (-1, proj_dim)).mean(dim=2)


# 7.2: pooling as a matrix


def pooling_matrix(n: int, proj_dim: int) -> Tensor:
    """The E of mean pooling. Shape: (proj_dim, n)."""
    return torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1) * proj_dim / n


def draw_sizes(seed: int) -> tuple[int, int]:
    """Tokens, and a number of slots that divides theirs."""
    slots, width, _ = row(seed, POOLS)
    return slots * width, slots


def matrix_transposed(n, proj_dim):
    """That is n × proj_dim; E has a row for each slot and a column for each token."""
    return pooling_matrix(n, proj_dim).mT.clone()


def matrix_of_sums(n, proj_dim):
    """Your rows sum to n / proj_dim, so slots are sums; the rows of a mean sum to one."""
    return torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1)


def matrix_over_slots(n, proj_dim):
    """You divide by proj_dim, the number of windows; a mean divides by the number of tokens in a window, n / proj_dim."""
    return torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1) / proj_dim


def matrix_interleaved(n, proj_dim):
    """Slot i takes every proj_dim-th token; its tokens should be neighbours: repeat_interleave, not repeat."""
    return torch.eye(proj_dim).repeat(1, n // proj_dim) * proj_dim / n


def matrix_that_picks(n, proj_dim):
    """Each row picks a single token; a mean spreads its 1 over the window."""
    return torch.eye(n)[:: n // proj_dim].clone()


def matrix_of_everything(n, proj_dim):
    """Every slot averages the whole text, so all slots are the same; slot i averages window i."""
    return torch.full((proj_dim, n), 1 / n)


# 7.3: one step of learning


def step_of_E(q: Tensor, k: Tensor, v: Tensor, E: Tensor, F: Tensor, rate: float) -> Tensor:
    """E after one step down the gradient of the mean squared distance to full attention. Shape: as E."""
    E = E.detach().requires_grad_()
    difference = linformer_attention(q.detach(), k.detach(), v.detach(), E, F.detach())
    difference = difference - scaled_dot_product_attention(q, k, v).detach()
    return (E - rate * torch.autograd.grad(difference.square().mean(), E)[0]).detach()


def draw_step(seed: int) -> tuple:
    """A batch of heads, E, F and a learning rate."""
    n, slots, d, rate = row(seed, ((7, 4, 5, 5.0), (5, 3, 4, 3.0), (6, 2, 3, 7.0), (9, 5, 4, 2.0)))
    return *normal(seed, *3 * [(BATCH, n, d)], *2 * [(slots, n)]), rate


def gradient_of_E(q, k, v, E, F, reduce=Tensor.mean, target=True):
    """The gradient of the mean, or of something else, of the squared distance to full attention or to zero."""
    E = E.detach().requires_grad_()
    difference = linformer_attention(q.detach(), k.detach(), v.detach(), E, F.detach())
    if target:
        difference = difference - scaled_dot_product_attention(q, k, v).detach()
    return torch.autograd.grad(reduce(difference.square()), E)[0]


def step_uphill(q, k, v, E, F, rate):
    """You walk uphill: the gradient points to more error, so subtract it."""
    return (E + rate * gradient_of_E(q, k, v, E, F)).detach()


def step_without_rate(q, k, v, E, F, rate):
    """The learning rate is missing: E - rate · gradient."""
    return (E - gradient_of_E(q, k, v, E, F)).detach()


def step_of_the_sum(q, k, v, E, F, rate):
    """You sum the squared differences; the mean keeps the step from growing with the batch."""
    return (E - rate * gradient_of_E(q, k, v, E, F, Tensor.sum)).detach()


def step_of_the_relative_loss(q, k, v, E, F, rate):
    """You divide by the size of full attention, as the fit above does; here it is the plain mean of the squares."""
    size = scaled_dot_product_attention(q, k, v).detach().square().sum()
    gradient = gradient_of_E(q, k, v, E, F, lambda squares: squares.sum() / size)
    return (E - rate * gradient).detach()


def step_of_the_mean_over_tokens(q, k, v, E, F, rate):
    """You sum over the features and average over tokens only; take the mean of all squares."""
    gradient = gradient_of_E(q, k, v, E, F, lambda squares: squares.sum(dim=-1).mean())
    return (E - rate * gradient).detach()


def step_without_target(q, k, v, E, F, rate):
    """This makes Linformer's output small, not close to full attention: subtract full attention before you square."""
    return (E - rate * gradient_of_E(q, k, v, E, F, target=False)).detach()


def the_gradient_alone(q, k, v, E, F, rate):
    """That is the gradient; the new E is the old one minus rate times it."""
    return gradient_of_E(q, k, v, E, F)


# 7.4: how many parameters


def projection_parameters(
    layers: int, heads: int, seq_len: int, proj_dim: int, per_head: bool, per_role: bool, per_layer: bool
) -> int:
    """Numbers in all E and F of a model: one pair for each head, each role (E, F) and each layer, unless shared."""
    matrices = (heads if per_head else 1) * (2 if per_role else 1) * (layers if per_layer else 1)
    return matrices * seq_len * proj_dim


def draw_sharing(seed: int) -> tuple[int, int, int, int, bool, bool, bool]:
    """A model's sizes, and what is not shared."""
    T, F = True, False  # with their opposites the four rows are all eight ways to share
    return row(
        seed,
        (
            (12, 7, 512, 128, T, T, T),
            (6, 5, 99, 16, F, T, T),
            (3, 8, 65, 32, T, F, T),
            (24, 16, 1024, 255, T, T, F),
        ),
    )


def count_both_ways(attempt, layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """What an attempt counts with the flags, and with all of them turned round."""
    sizes = layers, heads, seq_len, proj_dim
    return attempt(*sizes, per_head, per_role, per_layer), attempt(
        *sizes, not per_head, not per_role, not per_layer
    )


def without_F(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """Where F is not shared with E, there are two matrices and not one; you left F out."""
    return projection_parameters(layers, heads, seq_len, proj_dim, per_head, False, per_layer)


def both_roles_always(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """You always count E and F as two; where per_role is False, they are one object."""
    return projection_parameters(layers, heads, seq_len, proj_dim, per_head, True, per_layer)


def flags_turned_round(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """True says that each head, role or layer has its own; you multiply where they share."""
    return projection_parameters(layers, heads, seq_len, proj_dim, not per_head, not per_role, not per_layer)


def heads_always(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """Heads that share one matrix count once; multiply by heads only where per_head is True."""
    return projection_parameters(layers, heads, seq_len, proj_dim, True, per_role, per_layer)


def layers_always(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """Layers that share one matrix count once; multiply by layers only where per_layer is True."""
    return projection_parameters(layers, heads, seq_len, proj_dim, per_head, per_role, True)


def one_layer(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """That is the count of one layer; where per_layer is True, every layer has matrices of its own."""
    return projection_parameters(layers, heads, seq_len, proj_dim, per_head, per_role, False)


def one_head(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """Where per_head is True, every head has a matrix of its own: multiply by heads there."""
    return projection_parameters(layers, heads, seq_len, proj_dim, False, per_role, per_layer)


def matrices_only(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """That is the number of matrices; each holds seq_len · proj_dim numbers."""
    return projection_parameters(layers, heads, 1, 1, per_head, per_role, per_layer)


def square_matrices(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
    """A matrix has seq_len · proj_dim numbers, not seq_len²: it leads from tokens to slots."""
    return projection_parameters(layers, heads, seq_len, seq_len, per_head, per_role, per_layer)


# 7.5: where to spend slots


def slots_per_layer(sigma: Tensor, budget: int) -> Tensor:
    """Slots of each layer, so that the singular values kept in all layers have the largest Σσ². Shape: (layers, p) -> (layers,)."""
    chosen = sigma.flatten().topk(budget).indices
    return torch.bincount(chosen // sigma.size(1), minlength=len(sigma))


def draw_spectra(seed: int) -> tuple[Tensor, int]:
    """Spectra of layers that fall at different speeds, and slots to share out; once none is left for the last."""
    layers, p, budget = row(seed, ((3, 7, 11), (5, 8, 13), (2, 9, 7), (4, 11, 17)))
    rates = torch.linspace(0.15, 1.2, layers)[
        torch.randperm(layers, generator=torch.Generator().manual_seed(seed))
    ]
    scale = torch.linspace(0.5, 2, layers)
    if seed % 4 == 0:
        scale[-1] = 1e-4
    return scale[:, None] * torch.exp(-rates[:, None] * torch.arange(p)), min(budget, layers * p - 1)


def shared_alike(sigma, budget):
    """Every layer gets the same, as in a uniform k; look which layers have singular values left that matter."""
    return torch.tensor([budget // len(sigma) + (i < budget % len(sigma)) for i in range(len(sigma))])


def smallest_first(sigma, budget):
    """You keep the smallest singular values; what is kept should be as large as possible."""
    chosen = sigma.flatten().topk(budget, largest=False).indices
    return torch.bincount(chosen // sigma.size(1), minlength=len(sigma))


def index_within_the_layer(sigma, budget):
    """After flatten, index // p is the layer and index % p the place within it; you counted places."""
    chosen = sigma.flatten().topk(budget).indices
    return torch.bincount(chosen % sigma.size(1), minlength=len(sigma))


def by_share_of_the_layer(sigma, budget):
    """You compare shares within each layer; what is lost adds up over layers, so compare the values themselves."""
    return slots_per_layer(sigma / sigma.sum(dim=-1, keepdim=True), budget)


def proportional_to_energy(sigma, budget):
    """You share the slots out in proportion to Σσ²; but a layer with one huge σ needs one slot: take the largest σ² of all, one by one."""
    energy = sigma.square().sum(dim=-1)
    return (budget * energy / energy.sum()).round().long()


def proportional_to_the_sum(sigma, budget):
    """You share the slots out in proportion to Σσ; give each to the largest σ² that no slot keeps yet, in whatever layer it is."""
    total = sigma.sum(dim=-1)
    return (budget * total / total.sum()).round().long()


def proportional_rounded_down(sigma, budget):
    """In proportion to Σσ², rounded down, slots are left over; and a layer's sum does not say how many of its σ² are large."""
    energy = sigma.square().sum(dim=-1)
    return (budget * energy / energy.sum()).long()


def proportional_to_the_last_slot(sigma, budget):
    """All slots are spent, in proportion to each layer's Σσ²; what counts is the next σ² that a slot would keep, not the layer's sum."""
    energy = sigma.square().sum(dim=-1)
    wanted = budget * energy / energy.sum()
    slots = wanted.long()
    slots[(wanted - slots).topk(budget - int(slots.sum())).indices] += 1
    return slots


def last_layers_missing(sigma, budget):
    """A layer without a slot still counts, with 0: tell bincount how many there are, minlength=len(sigma)."""
    return torch.bincount(sigma.flatten().topk(budget).indices // sigma.size(1))


def one_winner(sigma, budget):
    """All slots went to the layer with the largest sum; give each slot to the largest value that is not kept yet."""
    return torch.zeros(len(sigma), dtype=torch.long).index_fill(0, sigma.sum(-1).argmax(), budget)


EXERCISES = (
    Exercise(
        id="7.1",
        question="Pool x (batch, n, d) to (batch, proj_dim, d): slot i is the mean of window i; proj_dim divides n.",
        difficulty=1,
        minutes=5,
        trains="compressing a sequence without parameters",
        reference=mean_pool,
        draw=draw_pool,
        gradients=("x",),
        mistakes=(every_kth_token, picked_not_averaged, summed_windows, pooled_by_max, windows_of_k),
        hints=(
            "Cut the tokens into windows of neighbours, then average inside each.",
            "x.unflatten(1, (…, …)) makes two axes of one: (batch, proj_dim, n / proj_dim, d).",
            "x.unflatten(1, (proj_dim, -1)).mean(dim=…)",
        ),
    ),
    Exercise(
        id="7.2",
        question="Write mean pooling as a matrix E, (proj_dim, n), so that E @ x pools; proj_dim divides n.",
        difficulty=2,
        minutes=6,
        trains="writing a compression as a matrix",
        reference=pooling_matrix,
        draw=draw_sizes,
        mistakes=(
            matrix_transposed,
            matrix_of_sums,
            matrix_over_slots,
            matrix_interleaved,
            matrix_that_picks,
            matrix_of_everything,
        ),
        hints=(
            "Row i has equal numbers at the tokens of window i, zeros elsewhere, and sums to one.",
            "The identity of proj_dim rows, every column repeated n / proj_dim times, has the right pattern.",
            "torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1), times what makes rows sum to one: …",
        ),
    ),
    Exercise(
        id="7.3",
        question="Return E after one gradient step on the mean squared distance to full attention.",
        difficulty=3,
        minutes=10,
        trains="learning E from the output of full attention",
        reference=step_of_E,
        draw=draw_step,
        mistakes=(
            step_uphill,
            step_without_rate,
            step_of_the_sum,
            step_of_the_relative_loss,
            step_of_the_mean_over_tokens,
            step_without_target,
            the_gradient_alone,
        ),
        hints=(
            "The loss is ((linformer_attention(…) - scaled_dot_product_attention(…)) ** 2).mean().",
            "Work on E.detach().requires_grad_(); torch.autograd.grad(loss, E) returns a tuple of one.",
            "(gradient,) = torch.autograd.grad(loss, E); return (E - rate * …).detach()",
        ),
    ),
    Exercise(
        id="7.4",
        question="Count the numbers in all E and F of a model; True says that each head, role or layer has its own.",
        difficulty=1,
        minutes=5,
        trains="counting what sharing saves",
        reference=projection_parameters,
        draw=draw_sharing,
        use=count_both_ways,
        mistakes=(
            without_F,
            both_roles_always,
            flags_turned_round,
            heads_always,
            layers_always,
            one_layer,
            one_head,
            matrices_only,
            square_matrices,
        ),
        hints=(
            "Count matrices first, then numbers in one matrix.",
            "per_role is about E and F: two matrices where it is True, one where they are the same object.",
            "matrices = (heads if per_head else 1) * (2 if … else 1) * …; each has seq_len * proj_dim numbers.",
        ),
    ),
    Exercise(
        id="7.5",
        question="Share `budget` slots among layers so that Σσ² of all kept singular values is largest.",
        difficulty=2,
        minutes=8,
        trains="giving each layer a k of its own",
        reference=slots_per_layer,
        draw=draw_spectra,
        mistakes=(
            shared_alike,
            smallest_first,
            index_within_the_layer,
            by_share_of_the_layer,
            proportional_to_energy,
            proportional_to_the_sum,
            proportional_rounded_down,
            proportional_to_the_last_slot,
            last_layers_missing,
            one_winner,
        ),
        hints=(
            "Every slot keeps one singular value of one layer. Which ones would you keep, of all layers together?",
            "sigma is (layers, p), largest first in each row; sigma.flatten().topk(budget) finds the largest of all.",
            "chosen // p is the layer of each; torch.bincount(…, minlength=layers) counts them.",
        ),
    ),
)

QUIZ = (
    Question(
        "In the paper's trained models, E and F are …",
        (
            Option("learned, like any other weight", "Random matrices appear only in the proofs.", True),
            Option(
                "fixed random matrices",
                "The theorems use random matrices, the experiments do not. Ours were worse than answering zero.",
            ),
            Option(
                "computed from the text",
                "Some relatives do that (chapter 09); Linformer's E is the same for every text.",
            ),
            Option("singular vectors of P", "Those need the whole n × n map, which we want to avoid."),
        ),
    ),
    Question(
        "In each of 12 layers, the 12 heads share one E and one F, and E is not F. How many matrices are there?",
        (
            Option("24", "Each layer has two; this is headwise sharing.", True),
            Option("288", "That is an E and an F for each head, with nothing shared."),
            Option("12", "That is key-value sharing, where E is F."),
            Option("1", "That is layerwise sharing."),
        ),
    ),
    Question(
        "With which of these does it pay to compress X first, and only then apply W?",
        (
            Option("mean pooling", "It is a matrix on the token axis, the same for every head.", True),
            Option("max pooling", "The largest of a mixture is not the mixture of the largest."),
            Option("a convolution that mixes features", "It multiplies features before W would."),
            Option(
                "one learned matrix for each head",
                "The result would be the same, but X would have to be compressed once for every head.",
            ),
        ),
    ),
    Question(
        "The error of theorem 1's random construction falls like 1/√k. To halve it by more slots alone takes …",
        (
            Option("four times as many slots", "1/√(4k) is half of 1/√k.", True),
            Option("twice as many", "That would be right for an error like 1/k."),
            Option("one more slot for each head", "Then the error would barely move."),
            Option("as many slots as tokens", "RᵀR of a random R is not the identity, not even for k = n."),
        ),
    ),
    Question(
        "At n = 131,072 and k = 256, E and F of one layer hold …",
        (
            Option(
                "67 million numbers, sixteen times as many as its four weight matrices at d_model = 1,024",
                "2 · n · k = 67,108,864; 4 · d² = 4,194,304.",
                True,
            ),
            Option("few numbers, since k is small", "They grow with n: there are 2 · n · k."),
            Option("as many as the attention map", "The map n × n would be 17 billion."),
            Option("none, they are activations", "Learned E and F are parameters, kept and trained."),
        ),
    ),
)
