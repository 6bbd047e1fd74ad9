"""Exercises of chapter 07."""

import torch
from torch import Tensor

from linformer_from_scratch.attention import scaled_dot_product_attention
from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import normal, row
from linformer_from_scratch.linformer import linformer_attention

BATCH = 2
POOLS = ((4, 3, 5), (5, 1, 3), (1, 7, 4), (3, 6, 7))  # slots, tokens of a window, features, for each draw


def mean_pool(x: Tensor, proj_dim: int) -> Tensor:
    """Slot i is the mean of the i-th window of n / proj_dim tokens. Shape: (batch, n, d) -> (batch, proj_dim, d)."""
    return x.unflatten(1, (proj_dim, -1)).mean(dim=2)


@exercise("7.1", stars=1, minutes=5, gradients=("x",))
class MeanPool:
    """Pool."""

    hints = (
        "How many windows are there, and how many tokens in each? Cut first, then average inside.",
        "x.unflatten(1, (…, …)) makes two axes out of one: (batch, proj_dim, n / proj_dim, d).",
        "x.unflatten(1, (proj_dim, -1)).mean(dim=…)",
    )
    reference = mean_pool

    def draw(seed):
        """A batch of tokens, and a number of slots that divides theirs."""
        slots, width, d = row(seed, POOLS)
        return *normal(seed, (BATCH, slots * width, d)), slots

    def every_kth_token(x, proj_dim):
        """Your slot i averages every proj_dim-th token of the whole text. A window is made of neighbours: cut the axis into (proj_dim, -1), in this order."""
        return x.unflatten(1, (-1, proj_dim)).mean(dim=1)

    def picked_not_averaged(x, proj_dim):
        """You keep the first token of each window and drop the others. That's strided sampling; pooling averages all of them."""
        return x.unflatten(1, (proj_dim, -1))[:, :, 0]

    def summed_windows(x, proj_dim):
        """You add the tokens of a window up and stop. A slot should be about as large as a token, however wide its window: divide by the width."""
        return x.unflatten(1, (proj_dim, -1)).sum(dim=2)

    def pooled_by_max(x, proj_dim):
        """That's max pooling: you keep each feature's largest number. Here we want the mean, which is a matrix product and the maximum isn't."""
        return x.unflatten(1, (proj_dim, -1)).amax(dim=2)

    def windows_of_k(x, proj_dim):
        """You've made windows of proj_dim tokens each. It's the other way round: proj_dim windows, of n / proj_dim tokens each."""
        return x.unflatten(1, (-1, proj_dim)).mean(dim=2)


def pooling_matrix(n: int, proj_dim: int) -> Tensor:
    """The E of mean pooling. Shape: (proj_dim, n)."""
    return torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1) * proj_dim / n


@exercise("7.2", stars=2, minutes=6)
class PoolingMatrix:
    """Pooling as a matrix."""

    hints = (
        "Draw row i: equal numbers at the tokens of window i, zeros everywhere else, and it sums to one.",
        "Take the identity with proj_dim rows and repeat every column n / proj_dim times: that's the pattern.",
        "torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1), and now make its rows sum to one.",
    )
    reference = pooling_matrix

    def draw(seed):
        """Tokens, and a number of slots that divides theirs."""
        slots, width, _ = row(seed, POOLS)
        return slots * width, slots

    def matrix_transposed(n, proj_dim):
        """You've built n × proj_dim, and E @ x won't fit. E has a row for each slot and a column for each token."""
        return pooling_matrix(n, proj_dim).mT.clone()

    def matrix_of_sums(n, proj_dim):
        """Each of your rows sums to n / proj_dim, so your slots are sums. The rows of a mean sum to one."""
        return torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1)

    def matrix_over_slots(n, proj_dim):
        """You divide by proj_dim, which is how many windows there are. A mean divides by how many tokens are in one: n / proj_dim."""
        return torch.eye(proj_dim).repeat_interleave(n // proj_dim, dim=1) / proj_dim

    def matrix_interleaved(n, proj_dim):
        """Your slot i takes every proj_dim-th token. Its tokens should be neighbours: repeat each column in place, with repeat_interleave instead of repeat."""
        return torch.eye(proj_dim).repeat(1, n // proj_dim) * proj_dim / n

    def matrix_that_picks(n, proj_dim):
        """Each of your rows has a single 1, so a slot copies one token. A mean spreads that 1 evenly over the window."""
        return torch.eye(n)[:: n // proj_dim].clone()

    def matrix_of_everything(n, proj_dim):
        """All your rows are alike: every slot averages the whole text. Row i should have zeros outside window i."""
        return torch.full((proj_dim, n), 1 / n)


def step_of_E(q: Tensor, k: Tensor, v: Tensor, E: Tensor, F: Tensor, rate: float) -> Tensor:
    """E after one step down the gradient of the mean squared distance to full attention. Shape: as E."""
    return (E - rate * gradient_of_E(q, k, v, E, F)).detach()


def gradient_of_E(q, k, v, E, F, reduce=Tensor.mean, target=True):
    """The gradient of the mean, or of something else, of the squared distance to full attention or to zero."""
    E = E.detach().requires_grad_()
    difference = linformer_attention(q.detach(), k.detach(), v.detach(), E, F.detach())
    if target:
        difference = difference - scaled_dot_product_attention(q, k, v).detach()
    return torch.autograd.grad(reduce(difference.square()), E)[0]


@exercise("7.3", stars=3, minutes=10)
class StepOfLearning:
    """One step of learning."""

    hints = (
        "Write the loss first: ((linformer_attention(…) - scaled_dot_product_attention(…)) ** 2).mean().",
        "Compute it with E.detach().requires_grad_(). torch.autograd.grad(loss, E) gives you a tuple of one.",
        "(gradient,) = torch.autograd.grad(loss, E); return (E - rate * …).detach()",
    )
    reference = step_of_E

    def draw(seed):
        """A batch of heads, E, F and a learning rate."""
        n, slots, d, rate = row(seed, ((7, 4, 5, 5.0), (5, 3, 4, 3.0), (6, 2, 3, 7.0), (9, 5, 4, 2.0)))
        return *normal(seed, *3 * [(BATCH, n, d)], *2 * [(slots, n)]), rate

    def step_uphill(q, k, v, E, F, rate):
        """You walk uphill: the gradient points to where the error grows, and you added it. Subtract it."""
        return (E + rate * gradient_of_E(q, k, v, E, F)).detach()

    def step_without_rate(q, k, v, E, F, rate):
        """You subtract the whole gradient. How far a step goes is for the rate to say: E - rate * gradient."""
        return (E - gradient_of_E(q, k, v, E, F)).detach()

    def step_of_the_sum(q, k, v, E, F, rate):
        """You add the squared differences up, so your step grows with the batch. Take their mean."""
        return (E - rate * gradient_of_E(q, k, v, E, F, Tensor.sum)).detach()

    def step_of_the_relative_loss(q, k, v, E, F, rate):
        """You divide by the size of full attention, as the chapter's fit does. Tempting, but here the loss is the plain mean of the squares."""
        size = scaled_dot_product_attention(q, k, v).detach().square().sum()
        gradient = gradient_of_E(q, k, v, E, F, lambda squares: squares.sum() / size)
        return (E - rate * gradient).detach()

    def step_of_the_mean_over_tokens(q, k, v, E, F, rate):
        """You average over tokens and add the features up, so your step is d times too long. Take the mean of all squares at once."""
        gradient = gradient_of_E(q, k, v, E, F, lambda squares: squares.sum(dim=-1).mean())
        return (E - rate * gradient).detach()

    def step_without_target(q, k, v, E, F, rate):
        """You pull Linformer's output towards zero, because nothing tells it where to go. Subtract full attention's output before you square."""
        return (E - rate * gradient_of_E(q, k, v, E, F, target=False)).detach()

    def the_gradient_alone(q, k, v, E, F, rate):
        """That's the gradient, and a good one. The new E is the old one minus rate times it."""
        return gradient_of_E(q, k, v, E, F)


def projection_parameters(
    layers: int, heads: int, seq_len: int, proj_dim: int, per_head: bool, per_role: bool, per_layer: bool
) -> int:
    """Numbers in all E and F of a model: one pair for each head, each role (E, F) and each layer, unless shared."""
    matrices = (heads if per_head else 1) * (2 if per_role else 1) * (layers if per_layer else 1)
    return matrices * seq_len * proj_dim


@exercise("7.4", stars=1, minutes=5)
class ParameterCount:
    """How many parameters."""

    hints = (
        "First count the matrices, then the numbers in one of them.",
        "per_role is about E and F: two matrices where it's True, one where they're the same object.",
        "matrices = (heads if per_head else 1) * (2 if … else 1) * …; each has seq_len * proj_dim numbers.",
    )
    reference = projection_parameters

    def draw(seed):
        """A model's sizes, and what is not shared."""
        T, F = True, False  # with their opposites the four rows are all eight ways to share
        half = (12, 7, 512, 128, T, T, T), (6, 5, 99, 16, F, T, T)
        return row(seed, (*half, (3, 8, 65, 32, T, F, T), (24, 16, 1024, 255, T, T, F)))

    def use(attempt, layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """What an attempt counts with the flags, and with all of them turned round."""
        sizes = layers, heads, seq_len, proj_dim
        return attempt(*sizes, per_head, per_role, per_layer), attempt(
            *sizes, not per_head, not per_role, not per_layer
        )

    def without_F(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You count E and forget F. Where per_role is True, there are two matrices."""
        return projection_parameters(layers, heads, seq_len, proj_dim, per_head, False, per_layer)

    def both_roles_always(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You always count E and F as two. Where per_role is False they're one object, so they count once."""
        return projection_parameters(layers, heads, seq_len, proj_dim, per_head, True, per_layer)

    def flags_turned_round(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You multiply where they share. True says that each head, role or layer has a matrix of its own, so that's where the count grows."""
        return projection_parameters(
            layers, heads, seq_len, proj_dim, not per_head, not per_role, not per_layer
        )

    def heads_always(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You multiply by the heads in any case. Heads that share one matrix count once: look at per_head first."""
        return projection_parameters(layers, heads, seq_len, proj_dim, True, per_role, per_layer)

    def layers_always(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You multiply by the layers in any case. Layers that share one matrix count once: look at per_layer first."""
        return projection_parameters(layers, heads, seq_len, proj_dim, per_head, per_role, True)

    def one_layer(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You've counted one layer. Where per_layer is True, every layer has matrices of its own, so multiply by layers."""
        return projection_parameters(layers, heads, seq_len, proj_dim, per_head, per_role, False)

    def one_head(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You've counted as if the heads shared. Where per_head is True, each has a matrix of its own, so multiply by heads."""
        return projection_parameters(layers, heads, seq_len, proj_dim, False, per_role, per_layer)

    def matrices_only(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """You've counted the matrices, and counted them right. Each of them holds seq_len * proj_dim numbers."""
        return projection_parameters(layers, heads, 1, 1, per_head, per_role, per_layer)

    def square_matrices(layers, heads, seq_len, proj_dim, per_head, per_role, per_layer):
        """Your matrices hold seq_len² numbers each. But E leads from tokens to slots, so it has seq_len * proj_dim."""
        return projection_parameters(layers, heads, seq_len, seq_len, per_head, per_role, per_layer)


def slots_per_layer(sigma: Tensor, budget: int) -> Tensor:
    """Slots of each layer, so that the singular values kept in all layers have the largest Σσ². Shape: (layers, p) -> (layers,)."""
    chosen = sigma.flatten().topk(budget).indices
    return torch.bincount(chosen // sigma.size(1), minlength=len(sigma))


@exercise("7.5", stars=2, minutes=8)
class SlotsByLayer:
    """Where to spend slots."""

    hints = (
        "A slot keeps one singular value of one layer. Throw all layers' values into one pot: which would you keep?",
        "That pot is sigma.flatten(), and .topk(budget) finds the largest in it, with their indices.",
        "index // p is the layer that a value came from; torch.bincount(…, minlength=layers) counts them.",
    )
    reference = slots_per_layer

    def draw(seed):
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
        """Every layer gets the same from you, whatever its σ are. Look which layers still have large σ² that nobody keeps."""
        return torch.tensor([budget // len(sigma) + (i < budget % len(sigma)) for i in range(len(sigma))])

    def smallest_first(sigma, budget):
        """You keep the smallest singular values. topk takes the largest if you leave largest=False out."""
        chosen = sigma.flatten().topk(budget, largest=False).indices
        return torch.bincount(chosen // sigma.size(1), minlength=len(sigma))

    def index_within_the_layer(sigma, budget):
        """You count places within a layer. After flatten, index // p is the layer and index % p the place in it: you want the layer."""
        chosen = sigma.flatten().topk(budget).indices
        return torch.bincount(chosen % sigma.size(1), minlength=len(sigma))

    def by_share_of_the_layer(sigma, budget):
        """You compare shares within each layer. What's kept adds up across layers, so compare the values themselves."""
        return slots_per_layer(sigma / sigma.sum(dim=-1, keepdim=True), budget)

    def proportional_to_energy(sigma, budget):
        """You share the slots out in proportion to Σσ². But a layer with one huge σ needs one slot and no more: take the largest σ² of all, one at a time."""
        energy = sigma.square().sum(dim=-1)
        return (budget * energy / energy.sum()).round().long()

    def proportional_to_the_sum(sigma, budget):
        """You share the slots out in proportion to Σσ. A sum doesn't say where the next large σ² is; give each slot to the largest one left, in whatever layer it is."""
        total = sigma.sum(dim=-1)
        return (budget * total / total.sum()).round().long()

    def proportional_rounded_down(sigma, budget):
        """In proportion to Σσ² and rounded down, some slots are never spent. And a layer's sum doesn't say how many of its σ² are large: pick them one by one."""
        energy = sigma.square().sum(dim=-1)
        return (budget * energy / energy.sum()).long()

    def proportional_to_the_last_slot(sigma, budget):
        """You spend every slot, in proportion to each layer's Σσ². What counts is the next σ² that a slot would keep, not what the layer adds up to."""
        energy = sigma.square().sum(dim=-1)
        wanted = budget * energy / energy.sum()
        slots = wanted.long()
        slots[(wanted - slots).topk(budget - int(slots.sum())).indices] += 1
        return slots

    def last_layers_missing(sigma, budget):
        """Your result is too short where the last layers get nothing. They still count, with 0: minlength=len(sigma)."""
        return torch.bincount(sigma.flatten().topk(budget).indices // sigma.size(1))

    def one_winner(sigma, budget):
        """One layer takes all your slots. Each slot looks anew for the largest value that nobody keeps yet, and that may be in another layer."""
        return torch.zeros(len(sigma), dtype=torch.long).index_fill(0, sigma.sum(-1).argmax(), budget)
