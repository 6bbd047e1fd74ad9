"""Chapter 04: exercises and quiz."""

import torch
from torch import Tensor

from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import normal, row
from linformer_from_scratch.exercises.engine.quiz import Option, Question
from linformer_from_scratch.low_rank import (
    best_rank,
    cumulative_spectrum,
    entropy_rank,
    frobenius_error,
    rank_at,
    stable_rank,
)

SPECTRA = ((2, 12, 3), (3, 12, 1), (2, 15, 5), (4, 9, 2))  # heads, singular values, rank of each draw


def draw_spectra(seed: int) -> tuple[Tensor]:
    """Positive numbers, largest first, of several heads."""
    heads, count, _ = row(seed, SPECTRA)
    (x,) = normal(seed, (heads, count))
    return (x.abs().sort(dim=-1, descending=True).values + 0.1,)


# 4.1: the best map of rank r


def draw_maps(seed: int) -> tuple:
    """Maps of several heads, each larger than the one before, and a rank, once as high as it goes."""
    *sizes, rank = row(seed, ((2, 5, 7, 2), (3, 7, 5, 1), (2, 4, 11, 3), (4, 6, 3, 3)))
    (maps,) = normal(seed, tuple(sizes))
    return torch.arange(1, len(maps) + 1)[:, None, None] * maps, rank


def smallest_kept(maps, rank):
    """You kept the smallest singular values; they come last, and the largest are the ones that matter."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return (u[..., -rank:] * s[..., None, -rank:]) @ vt[..., -rank:, :]


def values_forgotten(maps, rank):
    """The singular values are missing: without them every kept direction is equally strong."""
    u, _, vt = torch.linalg.svd(maps, full_matrices=False)
    return u[..., :rank] @ vt[..., :rank, :]


def values_squared(maps, rank):
    """The singular values went in twice, once with U and once with Vᵀ; they belong in once."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return (u[..., :rank] * s[..., None, :rank].square()) @ vt[..., :rank, :]


def one_too_many(maps, rank):
    """That is rank r + 1: :rank is exactly the first r."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return (u[..., : rank + 1] * s[..., None, : rank + 1]) @ vt[..., : rank + 1, :]


def one_map_only(maps, rank):
    """That is right for one map; here the first axis counts maps, so [:, :rank] cuts rows and [:rank] cuts maps: write [..., :rank]."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return u[:, :rank] @ torch.diag(s[:rank]) @ vt[:rank]


def one_map_scaled(maps, rank):
    """That is right for one map. With an axis of maps in front, count axes from the end: u[..., :rank], s[..., None, :rank], vt[..., :rank, :]."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return (u[:, :rank] * s[:rank]) @ vt[:rank]


def diagonal_cut(maps, rank):
    """torch.diag of many vectors is a vector, not matrices: take s[..., None, :rank], which scales the columns of u in every map."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return u[:, :rank] @ torch.diag(s)[:rank, :rank] @ vt[:rank]


def columns_of_vt(maps, rank):
    """Vᵀ has its directions in its rows: keep vt[..., :rank, :], not its first columns."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return (u[..., :rank] * s[..., None, :rank]) @ vt[..., :rank]


def diagonal_of_many(maps, rank):
    """torch.diag makes a matrix of one vector, but takes the diagonal out of a matrix; scale columns instead: s[..., None, :rank]."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return u[..., :rank] @ torch.diag(s[..., :rank]) @ vt[..., :rank, :]


def sigma_along_rows(maps, rank):
    """σ scales the columns of U in each map, so it needs an axis for the rows: s[..., None, :rank]."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    return (u[..., :rank] * s[..., :rank]) @ vt[..., :rank, :]


def columns_kept(maps, rank):
    """You kept the first r columns of the map itself; the best rank-r map keeps directions, not columns."""
    kept = maps.clone()
    kept[..., rank:] = 0
    return kept


def ranks_shared_out(maps, rank):
    """You keep the largest singular values of all heads together; every map is cut to rank r on its own."""
    u, s, vt = torch.linalg.svd(maps, full_matrices=False)
    least = s.flatten().topk(rank * len(maps)).values[-1]
    return (u * (s * (s >= least))[..., None, :]) @ vt


# 4.2: its error, from the singular values alone


def draw_error(seed: int) -> tuple[Tensor, int]:
    """Spectra as small as those of attention maps, and a rank."""
    (sigma,) = draw_spectra(seed)
    return sigma / 16, row(seed, SPECTRA)[-1]


def squares_not_rooted(sigma, rank):
    """That is the squared error; take its root."""
    return frobenius_error(sigma, rank).square()


def kept_not_lost(sigma, rank):
    """That is the size of what was kept; the error is made of what was lost, σ_{r+1} and on."""
    return sigma[..., :rank].norm(dim=-1)


def lost_too_much(sigma, rank):
    """You count σ_r as lost, but rank r keeps it: in Python σ_{r+1} is at index r."""
    return sigma[..., rank - 1 :].norm(dim=-1)


def plain_sum(sigma, rank):
    """You add the lost values; in the Frobenius norm their squares add up, and the root is taken at the end."""
    return sigma[..., rank:].sum(dim=-1)


def first_lost_only(sigma, rank):
    """σ_{r+1} alone is the error in the spectral norm; the Frobenius norm counts all that are lost."""
    return sigma[..., rank]


# 4.3: the curve of figure 1


def cumulative_squares(sigma):
    """You sum squares, the share of energy; the paper's figure sums the singular values themselves."""
    squared = sigma.square()
    return squared.cumsum(-1) / squared.sum(-1, keepdim=True)


def not_normalised(sigma):
    """Divide by the sum of all, so that the curve ends at 1 and heads can be compared."""
    return sigma.cumsum(-1)


def by_the_largest(sigma):
    """You divide by σ₁; divide by the sum of all."""
    return sigma.cumsum(-1) / sigma[..., :1]


def across_heads(sigma):
    """You add across heads; each head has its own curve along the last axis."""
    return sigma.cumsum(0) / sigma.sum(0, keepdim=True)


def from_the_end(sigma):
    """You begin with the smallest; begin with the largest."""
    return sigma.flip(-1).cumsum(-1) / sigma.sum(-1, keepdim=True)


# 4.4: the stable rank


def sum_by_largest(sigma):
    """Without squares this is another measure: both the sum and σ₁ are squared."""
    return sigma.sum(-1) / sigma[..., 0]


def participation(sigma):
    """That is (Σσ)² / Σσ², another effective rank; the stable rank divides the sum of squares by the largest square."""
    return sigma.sum(-1).square() / sigma.square().sum(-1)


def only_below_squared(sigma):
    """σ₁ is squared, the others are not."""
    return sigma.sum(-1) / sigma[..., 0].square()


def rooted(sigma):
    """You took the root; the stable rank is a ratio of squares, so that the identity has rank n."""
    return stable_rank(sigma).sqrt()


def count_of_nonzero(sigma):
    """That is the ordinary rank, in which a tiny singular value counts as much as a large one."""
    return (sigma > 0).sum(-1).to(sigma.dtype)


def entropy_instead(sigma):
    """That is the entropy rank; the stable rank needs only Σσ² and σ₁²."""
    return entropy_rank(sigma)


# 4.5: how many for a share


def draw_share(seed: int) -> tuple[Tensor, float]:
    """Spectra, in one draw with a sum that reaches the share exactly, and a share."""
    if seed % 4 == 1:
        return torch.tensor([[2.0, 1.0, 1.0], [4.0, 3.0, 1.0], [8.0, 0.0, 0.0]]), 0.5
    (share,) = row(seed, ((0.9,), (0.5,), (0.75,), (0.95,)))
    (sigma,) = draw_spectra(seed)
    sigma[-1] = 1.0 if seed % 4 == 3 else sigma[-1]  # of equal values nearly all are needed
    return sigma, share


def index_not_count(sigma, share):
    """That is the index, which begins at 0; the number of values is one more."""
    return rank_at(sigma, share) - 1


def more_than_the_share(sigma, share):
    """Where the sum reaches the share exactly you ask for one more; "at least" is enough."""
    return (1 + (cumulative_spectrum(sigma) <= share).sum(-1)).clamp(max=sigma.size(-1))


def share_of_energy(sigma, share):
    """You sum squares; here the values themselves make up the share."""
    return rank_at(sigma.square(), share)


def larger_than_a_share_of_the_first(sigma, share):
    """You count values above a share of σ₁; add them up instead, until the share of their sum is reached."""
    return (sigma >= share * sigma[..., :1]).sum(-1)


def share_of_the_count(sigma, share):
    """That is a share of the number of values, whatever their size."""
    return torch.full(sigma.shape[:-1], -int(-share * sigma.size(-1) // 1))


EXERCISES = (
    Exercise(
        id="4.1",
        question="Return the closest maps of rank r, by the singular value decomposition; maps are (heads, n, m).",
        difficulty=2,
        minutes=8,
        trains="what a rank-r map keeps",
        reference=best_rank,
        draw=draw_maps,
        mistakes=(
            smallest_kept,
            values_forgotten,
            values_squared,
            one_too_many,
            one_map_only,
            one_map_scaled,
            diagonal_cut,
            columns_of_vt,
            diagonal_of_many,
            sigma_along_rows,
            columns_kept,
            ranks_shared_out,
        ),
        hints=(
            "Decompose, keep the first r of everything, multiply.",
            "torch.linalg.svd(maps, full_matrices=False) gives (heads, n, p), (heads, p), (heads, p, m).",
            "(u[..., :rank] * s[..., None, :rank]) @ …",
        ),
    ),
    Exercise(
        id="4.2",
        question="How far away is the best map of rank r, in the Frobenius norm? Use the singular values only.",
        difficulty=1,
        minutes=4,
        trains="the theorem of Eckart and Young",
        reference=frobenius_error,
        draw=draw_error,
        mistakes=(squares_not_rooted, kept_not_lost, lost_too_much, plain_sum, first_lost_only),
        hints=(
            "What is lost is made of the singular values that were not kept.",
            "The first r of (heads, p) are kept; the others begin at index r.",
            "sigma[..., rank:]…  squares, their sum, its root",
        ),
    ),
    Exercise(
        id="4.3",
        question="Return the normalised cumulative singular values of each head; sigma is (heads, p).",
        difficulty=1,
        minutes=4,
        trains="reading figure 1",
        reference=cumulative_spectrum,
        draw=draw_spectra,
        mistakes=(cumulative_squares, not_normalised, by_the_largest, across_heads, from_the_end),
        hints=(
            "Entry r is the sum of the first r, divided by the sum of all.",
            "(heads, p) -> (heads, p); the divisor is (heads, 1).",
            "sigma.cumsum(dim=-1) / …",
        ),
    ),
    Exercise(
        id="4.4",
        question="Return the stable rank Σσ² / σ₁² of each head; sigma is (heads, p), largest first.",
        difficulty=1,
        minutes=4,
        trains="a rank that noise does not move",
        reference=stable_rank,
        draw=draw_spectra,
        mistakes=(
            sum_by_largest,
            participation,
            only_below_squared,
            rooted,
            count_of_nonzero,
            entropy_instead,
        ),
        hints=(
            "How many values as large as the first would give the same sum of squares?",
            "(heads, p) -> (heads,): sum over the last axis; the largest is the first.",
            "sigma.square().sum(dim=-1) / …",
        ),
    ),
    Exercise(
        id="4.5",
        question="How many singular values make up at least this share of their sum? Integers, (heads, p) -> (heads,).",
        difficulty=2,
        minutes=6,
        trains="a number for each head",
        reference=rank_at,
        draw=draw_share,
        mistakes=(
            index_not_count,
            more_than_the_share,
            share_of_energy,
            larger_than_a_share_of_the_first,
            share_of_the_count,
        ),
        hints=(
            "Count how often the cumulative sum is still too small; one more is enough.",
            "4.3 gives (heads, p), rising to 1; comparing gives booleans, and they can be summed.",
            "1 + (cumulative < share)…",
        ),
    ),
)

QUIZ = (
    Question(
        "Q and K are 512×64. The map P = softmax(QKᵀ/√64) has rank …",
        (
            Option(
                "up to 512",
                "exp of every entry can turn rank 1 into full rank: the bound of 64 does not carry over.",
                True,
            ),
            Option("at most 64", "That is the rank of QKᵀ, before the softmax."),
            Option("exactly 64", "QKᵀ has rank 64; exp of its entries does not keep it."),
            Option("1, since rows sum to one", "That all rows sum to one fixes one direction, not all."),
        ),
    ),
    Question(
        "The best rank-8 map misses P by a Frobenius error of 0.7. Another map of rank 8, found by training, can miss P by …",
        (
            Option("0.7 or more", "No map of rank 8 comes closer: Eckart and Young.", True),
            Option(
                "0.5, if it is trained well", "The bound holds for every map of rank 8, however it was found."
            ),
            Option(
                "0, if it is made of two learned matrices",
                "An n×8 matrix times an 8×n matrix has rank at most 8 as well.",
            ),
            Option(
                "any error, it depends on the data", "For a given P the smallest error is a fixed number."
            ),
        ),
    ),
    Question(
        "A network with random weights has a cumulative spectrum above that of the trained one. What does this alone tell us about what training does to a map, apart from making it sharper?",
        (
            Option(
                "nothing yet: the untrained maps are nearly even, so the two differ in sharpness too",
                "To tell what training does, we need controls that are about as sharp as the trained maps. At equal spread of scores, 45 to 47 of 72 trained heads lie above their own untrained head (MiniLM, four passages).",
                True,
            ),
            Option(
                "training raises the rank of attention maps",
                "Taken whole it did, but sharpness alone can do that. At equal spread of scores, trained heads of layers 4 to 6 mostly have the lower rank: 30 or 31 of 36 by rank at 90 % (MiniLM, four passages).",
            ),
            Option(
                "training makes attention maps low rank",
                "That picture does not show it: the untrained maps lie above. The comparison must hold sharpness fixed.",
            ),
            Option(
                "the paper's figure 1 is wrong",
                "Its curves can be measured again, as we did; the question is what they show.",
            ),
        ),
    ),
    Question(
        "Which map is hardest to compress to rank 16?",
        (
            Option(
                "each token reads only the one before it",
                "A shifted identity: all singular values are 1.",
                True,
            ),
            Option("every token reads all tokens equally", "All rows are the same: rank 1."),
            Option("every token reads the first one", "Each row is the same choice: rank 1 again."),
            Option("half of the tokens read the first, half the last", "Two different rows: rank 2."),
        ),
    ),
    Question(
        "At n = 512 the heads of our model have a rank at 90 % of 145 on average. At n = 64 it is …",
        (
            Option("about 16", "From 64 to 512 tokens this rank about doubled each time n did.", True),
            Option("145 as well", "There are only 64 singular values at n = 64."),
            Option(
                "about 4, the logarithm of 64",
                "No: about 16 were measured.",
            ),
            Option("all 64", "That would be all of them; about a quarter hold 90 % of the sum."),
        ),
    ),
    Question(
        "A head has d_head = 32, and the map of rank 128 that is closest to its map P still misses half of P. Then …",
        (
            Option(
                "a map of rank 32 may still give the head's output P V",
                "The map P V V⁺, of rank 32, gives P V exactly, for this V. Eckart and Young bound the distance to P, not to P V.",
                True,
            ),
            Option(
                "every map of rank 128 misses half of the output P V",
                "The bound is about P; what V does not see costs nothing.",
            ),
            Option("no layer whose map has rank 128 can work", "It need not be near P, only near P V."),
            Option(
                "P V V⁺ makes this head cheaper",
                "It needs P, or P V itself, before it can be formed, and V changes with the text.",
            ),
        ),
    ),
)
