"""Right and nearly right answers: fields."""

import statistics
from collections import defaultdict
from fractions import Fraction

import numpy
import torch

from right_answers import right, wrong


@right("14.1")
def from_a_dict(case):
    mixing = dict.fromkeys(("rock", "stations"), "fixed mixing")
    fixed = dict.fromkeys(("cap", "hall"), "E and F")
    return {**mixing, **fixed, "scan": "slots by content", "manual": "exact attention"}[case]


@right("14.1")
def by_a_match(case):
    match case:
        case "rock" | "stations":
            return "Fixed mixing"
        case "cap" | "hall":
            return "e and f"
        case "scan":
            return "Slots by content"
    return "Exact attention "


@right("14.1")
def from_a_table_of_two_questions(case):
    table = [["exact attention", "slots by content"], ["E and F", "fixed mixing"]]
    return table[case not in ("scan", "manual")][case in ("rock", "stations", "scan")]


@wrong("14.1")
def by_another_name(case):
    """The last is called by its full name, which is none of the four."""
    answer = from_a_dict(case)
    return "exact softmax attention" if answer == "exact attention" else answer


@right("14.2")
def rows_by_loop(source_of):
    groups = [(source_of == source).nonzero().flatten() for source in range(int(source_of.max()) + 1)]
    E = torch.zeros(len(groups), len(source_of))
    for row, members in zip(E, groups, strict=True):
        row[members] = 1 / len(members)
    return E


@right("14.2")
def rows_by_numpy(source_of):
    source_of = source_of.numpy()
    return (numpy.arange(source_of.max() + 1)[:, None] == source_of) / numpy.bincount(source_of)[:, None]


@right("14.2")
def rows_by_counts_in_lists(source_of):
    sources = source_of.tolist()
    return [[(s == g) / sources.count(g) for s in sources] for g in range(max(sources) + 1)]


@right("14.2")
def rows_by_scattering(source_of):
    E = torch.zeros(len(source_of.unique()), len(source_of), dtype=torch.float64)
    E[source_of, torch.arange(len(source_of))] = 1 / source_of.bincount()[source_of].double()
    return E


@wrong("14.2")
def unit_rows(source_of):
    """Each row has length one, not sum one."""
    return torch.nn.functional.normalize(rows_by_loop(source_of))


@right("14.3")
def by_loops(curves, seconds, budget):
    reached = {}
    for layer, curve in curves.items():
        reached[layer] = 0
        for updates, score in curve:
            if updates * seconds[layer] > budget:
                break
            reached[layer] = score
    return reached


@right("14.3")
def by_search(curves, seconds, budget):
    scores = defaultdict(float)
    for layer, curve in curves.items():
        updates, known = numpy.array(curve).T
        i = numpy.searchsorted(updates, budget / seconds[layer], side="right")
        scores[layer] = numpy.float32(known[i - 1]) if i else 0.0
    return scores


@right("14.3")
def by_next(curves, seconds, budget):
    def last(curve, most):
        return next((torch.tensor(score) for at, score in reversed(curve) if at <= most), 0.0)

    return {layer: last(curves[layer], budget // seconds[layer]) for layer in seconds}


@wrong("14.3")
def on_a_straight_line(curves, seconds, budget):
    """Between two points a straight line is assumed, where nobody has measured."""
    return {
        layer: numpy.interp(budget / seconds[layer], *numpy.array([(0, 0), *curve]).T)
        for layer, curve in curves.items()
    }


@right("14.4")
def by_statistics(scores, layer):
    def end(name, sign):
        return statistics.mean(scores[name]) + sign * 4.303 * statistics.stdev(scores[name]) / 3**0.5

    return end(layer, -1) > max(end(name, 1) for name in scores if name != layer)


@right("14.4")
def by_arrays(scores, layer):
    values = numpy.array([*scores.values()])
    half = 4.303 * values.std(axis=1, ddof=1) / numpy.sqrt(3)
    i = list(scores).index(layer)
    above = values.mean(1)[i] - half[i] > values.mean(1) + half
    return numpy.delete(above, i).all()


@right("14.4")
def by_tensors(scores, layer):
    values = torch.tensor([some for name, some in scores.items() if name != layer], dtype=torch.float64)
    own = torch.tensor(scores[layer], dtype=torch.float64)
    low = own.mean() - 4.303 * own.std() / 3**0.5
    return (low > values.mean(1) + 4.303 * values.std(1) / 3**0.5).all()


@wrong("14.4")
def by_the_difference(scores, layer):
    """The difference of two means has its own interval, which is shorter than the sum of both."""

    def far(one, other):
        gap = statistics.mean(one) - statistics.mean(other)
        return gap > 4.303 * ((statistics.variance(one) + statistics.variance(other)) / 3) ** 0.5

    return all(far(scores[layer], some) for name, some in scores.items() if name != layer)


@right("14.5")
def rank_by_numpy(E, source_of):
    sums = numpy.zeros((len(E), int(source_of.max()) + 1))
    numpy.add.at(sums.T, source_of.numpy(), E.numpy().T)
    return numpy.linalg.matrix_rank(sums)


@right("14.5")
def rank_by_singular_values(E, source_of):
    sums = torch.zeros(len(E), int(source_of.max()) + 1, dtype=E.dtype).index_add_(1, source_of, E)
    return (torch.linalg.svdvals(sums) > 1e-3).sum()


@right("14.5")
def rank_of_the_means(E, source_of):
    groups = [source_of == source for source in source_of.unique()]
    return torch.linalg.matrix_rank(torch.stack([E[:, group].mean(1) for group in groups]).double())


@right("14.5")
def rank_by_elimination(E, source_of):
    rows = [[Fraction(0)] * (max(source_of.tolist()) + 1) for _ in E]
    for row, weights in zip(rows, E.tolist(), strict=True):
        for source, weight in zip(source_of.tolist(), weights, strict=True):
            row[source] += Fraction(weight)
    rank = 0
    while rows := [row for row in rows if any(row)]:
        first = rows.pop()
        at = next(i for i, entry in enumerate(first) if entry)
        rows = [[a - row[at] / first[at] * b for a, b in zip(row, first, strict=True)] for row in rows]
        rank += 1
    return rank


@wrong("14.5")
def pairs_that_differ(E, source_of):
    """Sources are told apart in pairs, where their columns differ; a column of zeros counts as one."""
    columns = rank_columns(E, source_of)
    return 1 + sum(all(a != b for b in columns[:i]) for i, a in enumerate(columns) if i)


def rank_columns(E, source_of):
    """The sums of each source."""
    return [tuple(E[:, source_of == source].sum(1).tolist()) for source in source_of.unique()]
