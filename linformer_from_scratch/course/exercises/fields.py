"""Exercises of chapter 14."""

import copy
import random
import statistics
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from linformer_from_scratch.common.rows import mean_and_interval
from linformer_from_scratch.course.exercises.engine.checking import Refused, exercise
from linformer_from_scratch.course.exercises.engine.draws import row
from linformer_from_scratch.fields.sensors import group_means

CASES = {  # name -> what is known, and what is asked
    "rock": "On a fixed grid of points you know how easily water gets through the rock; what is the pressure at every point?",
    "stations": "The cables of 500 weather stations leak, so that each sends its own temperature with fixed shares of the others' mixed in, the same stations in the same order every day; what did each one measure?",
    "cap": "Each of the 300 electrodes of a cap sits at its own place and hears a blur of all sources in the head; what is the source doing that just showed this pattern?",
    "hall": "Microphones are screwed to the walls of a hall whose seats are fixed, but other people sit in them every day; what did the speaker say who was called by this name?",
    "scan": "The points of an object come from a scanner in another order each time, and every point wants to know one thing: which part of the object do I belong to?",
    "manual": "A page of a manual says something about each of hundreds of names, on every page in other places; what does it say about this name?",
}
WRONG = {  # case -> a wrong answer -> its sentence
    "rock": {
        "E and F": "The grid is fixed, so E would know its places. But what would a query ask? Whose values a point depends on follows from where it lies, and then you can leave the queries out.",
        "slots by content": "You sort the points of the grid into groups by their content, in every input anew. But they're numbered alike in every input: what a place is, you know beforehand.",
        "exact attention": "You let every point choose among all the others by content. On this grid nothing is left to choose: where a point lies is fixed, and so is what it wants.",
    },
    "stations": {
        "E and F": "You're right about the places. But a station wants the same every day, the same others' shares taken off, and no query has to say so. Mixing there and back will do.",
        "slots by content": "You form groups of stations by what they send today. The stations are the same every day, and so is what each of them wants: learn both once, as weights.",
        "exact attention": "With exact attention you'd find out every day, for n² scores, which stations to look at. Each always stands in the same position and always wants the same: weights can learn that once.",
    },
    "cap": {
        "fixed mixing": "The electrodes sit still, and so far mixing is fine. But the question names a pattern, another one each time, and fixed sums can't be asked for anything. You need queries.",
        "slots by content": "Electrode 7 sits in the same place in every input, so you needn't find out from its signal where it belongs. Only the question depends on content.",
        "exact attention": "The pattern has to be compared with something, but with every single electrode? Who hears which source is the same in every input, so learned sums can collect a source's signal first.",
    },
    "hall": {
        "fixed mixing": "Fixed mixing can collect what each seat says. But then somebody asks for a name, and whose seat that is changes every day: to choose by content you need queries.",
        "slots by content": "You sort the microphones by what they hear. They're screwed to the wall and the seats are fixed: which of them hear which seat can be learned once.",
        "exact attention": "The name has to be looked up by content, but you can look it up among seats. Microphones and seats never move, so learned sums can have a slot for each seat.",
    },
    "scan": {
        "fixed mixing": "Fixed mixing gives point 7 the same weights in every scan. But it's on the handle in one scan and on the lid in the next, since the order changes.",
        "E and F": "E has a column for each position, and position 7 means another point in each scan. No choice of columns is right for all of them: the content has to decide what goes into a slot.",
        "exact attention": "Exact attention could do it, for n² scores. But no point asks for anything special; it only wants what its own part has in common, and a slot for each part can hold that.",
    },
    "manual": {
        "fixed mixing": "Fixed mixing does the same with every page, whatever it says and whatever you ask. Here the place of a name changes, and so does the name you want.",
        "E and F": "It's the usual guess for a text. But position 7 holds another word on every page, so E can't know which positions belong together, and each of hundreds of facts may be the one you need.",
        "slots by content": "The content does have to decide here. But a page has hundreds of names, and you don't know which one will be asked for: a few slots would have to hold all of them.",
    },
}
FIELDS = "fixed mixing", "E and F", "slots by content", "exact attention"


def layer_for(case: str) -> str:
    """The layer whose field a case lies in, one of FIELDS."""
    places_are_fixed = case in ("rock", "stations", "cap", "hall")
    wants_are_fixed = case in ("rock", "stations", "scan")
    if places_are_fixed:
        return "fixed mixing" if wants_are_fixed else "E and F"
    return "slots by content" if wants_are_fixed else "exact attention"


def taken_for(wrong: tuple[str, str, str]) -> Callable[[str], str]:
    """All cases right but one: the case, the wrong answer, its sentence."""
    case, answer, sentence = wrong

    def mistake(asked):
        return answer if asked == case else layer_for(asked)

    mistake.__doc__, mistake.__name__ = sentence, f"{case}_{answer}".lower().replace(" ", "_")
    return mistake


@exercise("14.1", stars=1, minutes=4, each=taken_for)
class WhichField:
    """Which field?"""

    hints = (
        "Ask each case two questions. Is position 7 the same thing in every input? Does what a token wants depend on its content?",
        "Four cases have fixed positions, and in two of those four somebody asks for something. Of the other two cases, one asks for a name and one doesn't.",
        'fixed = case in ("rock", "stations", "cap", "hall"), and then: which of those four ask for something?',
    )
    reference = layer_for

    def draw(seed):
        """All cases, in any order."""
        return (tuple(random.Random(seed).sample([*CASES], len(CASES))),)

    def use(attempt, cases):
        """The first wrong answer gets its sentence."""
        for case in sorted(cases, key=[*CASES].index):
            answer = attempt(case)
            said = answer.strip().lower() if isinstance(answer, str) else None
            known = {field.lower(): field for field in FIELDS}
            if said not in known:
                raise Refused(f"Got {repr(answer)[:60]} for {case!r}, expected one of {', '.join(FIELDS)}")
            if known[said] != layer_for(case):
                raise Refused(WRONG[case][known[said]])
        return True

    wrong_ones = tuple((case, *pair) for case, answers in WRONG.items() for pair in answers.items())


def placed(seed: int, n: int, sources: int) -> Tensor:
    """Whom each of n sensors hears, in no order; every source is heard, the first ones more often. Shape: (n,)"""
    draw = torch.Generator().manual_seed(seed)
    more = (torch.rand(n - sources, generator=draw).square() * sources).long()
    return torch.cat([torch.arange(sources), more])[torch.randperm(n, generator=draw)]


def hearing(source_of: Tensor) -> Tensor:
    """1 where a source is heard by a sensor, else 0. Shape: (n,) -> (sources, n)"""
    return functional.one_hot(source_of).mT.float()


def rows_of(source_of: Tensor) -> Tensor:
    """An E whose rows are means, each of the sensors that hear one source. Shape: (n,) -> (sources, n)"""
    return group_means(source_of)


@exercise("14.2", stars=2, minutes=6)
class RowsOfSources:
    """A row for each source."""

    hints = (
        "Write down row 0 by hand for source_of = (1, 0, 0, 1, 0). Which entries aren't zero, and what do they sum to?",
        "functional.one_hot(source_of) has a 1 in each row and the shape (n, sources). Turned round, row g says who hears source g.",
        "heard = functional.one_hot(source_of).mT.float(), then divide each row by …",
    )
    reference = rows_of

    def draw(seed):
        """Sensors and sources; once one of each."""
        n, sources = row(seed, ((11, 4), (1, 1), (9, 3), (30, 7)))
        return (placed(seed, n, min(n, sources)),)

    def sums(source_of):
        """Your rows are sums: a source that more sensors hear gets a louder slot. Divide each row by the number of its sensors."""
        return hearing(source_of)

    def transposed(source_of):
        """Your E lies on its side. It has a row for each slot and a column for each sensor, (sources, n), so that E @ x works."""
        return rows_of(source_of).mT

    def divided_by_n(source_of):
        """You divide by all n sensors. Row g averages only those that hear g, so divide by how many they are."""
        return hearing(source_of) / len(source_of)

    def equal_groups(source_of):
        """You divide every row by n / sources, as if all sources were heard by equally many. Here some have more sensors: count each row's own."""
        return hearing(source_of) * (source_of.max() + 1) / len(source_of)

    def one_sensor_each(source_of):
        """Each of your rows has a single sensor. It would work without noise; with noise you want all that hear the source, because their errors cancel in a mean."""
        return functional.one_hot(hearing(source_of).argmax(1), len(source_of)).float()

    def softmax_of_ones(source_of):
        """You take a softmax of zeros and ones. It does make the rows sum to one, but e⁰ isn't zero: every sensor gets into every slot."""
        return hearing(source_of).softmax(1)

    def side_by_side(source_of):
        """Your groups are windows, sensors side by side. Sensors that hear one source may stand anywhere: look them up in source_of."""
        return rows_of(source_of.sort().values)


Curves = dict[str, list[tuple[int, float]]]


def read_off(
    curves: Curves,
    within: Callable[[str, int], bool],
    pick: Callable[[list[float]], float] = lambda scores: scores[-1],
) -> dict[str, float]:
    """Layer -> what is picked of its scores after as many updates as are within; 0.0 where none are."""
    scores = {name: [score for at, score in curve if within(name, at)] for name, curve in curves.items()}
    return {name: pick(some) if some else 0.0 for name, some in scores.items()}


def at_equal_seconds(curves: Curves, seconds: dict[str, float], budget: float) -> dict[str, float]:
    """Layer -> the last score that it reached within a budget of seconds; 0.0 if it reached none."""
    return read_off(curves, lambda layer, updates: updates * seconds[layer] <= budget)


@exercise("14.3", stars=2, minutes=6)
class EqualSeconds:
    """Scores at equal seconds."""

    hints = (
        "A point of the curve says after how many updates it was measured. How many seconds had passed by then?",
        "updates * seconds[layer] is the time of a point. Keep the scores whose time is at most the budget; curves are in ascending order, so you want the last.",
        "[score for updates, score in curves[layer] if … <= budget], and 0.0 where that list is empty",
    )
    reference = at_equal_seconds

    def draw(seed):
        """A layer with a point exactly at the budget, one too slow for any, one that ends before, and others."""
        others, points, last = row(seed, ((0, 5, 3), (1, 4, 2), (2, 6, 4), (1, 3, 2)))
        rng, last = random.Random(seed), min(last, points - 1)
        more = [rng.randint(1, points - 1) + 0.5 for _ in range(others)]
        reach = [last, 0.6, 1.5 * points, *more]  # how many points are within the budget
        names = rng.sample(["one slot", "exact attention", *FIELDS[:3]], len(reach))
        steps = rng.sample(range(20, 100), len(reach))
        budget = rng.randint(40, 200) / 256 * steps[0] * last  # exact in binary, as all products are
        curves, seconds = {}, {}
        for name, step, reached in zip(names, steps, reach, strict=True):
            scores, at = sorted(rng.sample(range(100, 1000), points)), min(max(2, int(reached)), points)
            scores[at - 2 : at] = scores[at - 2 : at][::-1]  # the last within the budget is not the best
            curves[name] = [(step * (i + 1), score / 1000) for i, score in enumerate(scores)]
            seconds[name] = round(256 * budget / (reached * step)) / 256
        return curves, dict(reversed(seconds.items())), budget

    def equal_updates(curves, seconds, budget):
        """You give every layer as many updates as the slowest has time for. That's the comparison at equal updates, where a quick layer can't spend what it saves."""
        return read_off(curves, lambda layer, updates: updates * max(seconds.values()) <= budget)

    def divided_by_seconds(curves, seconds, budget):
        """You divide updates by seconds, so a slow layer gets more updates. If an update takes 2 seconds, 10 of them take 20: multiply."""
        return read_off(curves, lambda layer, updates: updates / seconds[layer] <= budget)

    def budget_in_updates(curves, seconds, budget):
        """You compare updates with the budget, but the budget is in seconds. How long does one update of this layer take?"""
        return read_off(curves, lambda layer, updates: updates <= budget)

    def end_of_the_curve(curves, seconds, budget):
        """You take the end of every curve, whatever it cost. Some layers got there long after the budget was spent."""
        return read_off(curves, lambda layer, updates: True)

    def best_score(curves, seconds, budget):
        """You take each layer's best score within the budget. To pick it you'd have to know the scores on unseen data; whoever stops when the time is up has the last one."""
        return read_off(curves, lambda layer, updates: updates * seconds[layer] <= budget, max)

    def point_after(curves, seconds, budget):
        """You take the first point after the budget is spent. The layer hasn't got that far yet: it's the last point within the budget that counts."""
        late = lambda layer, updates: updates * seconds[layer] >= budget  # noqa: E731
        after = read_off(curves, late, lambda some: some[0])
        return {layer: after[layer] or curve[-1][1] for layer, curve in curves.items()}

    def not_at_the_budget(curves, seconds, budget):
        """You leave out a point that's reached just as the budget runs out. Within the budget includes its last moment: <=, not <."""
        return read_off(curves, lambda layer, updates: updates * seconds[layer] < budget)


Scores = dict[str, list[float]]


def wins(scores: Scores, layer: str) -> bool:
    """Whether the layer's 95 % interval lies wholly above that of every other layer."""
    return wins_by(scores, layer, mean_and_interval)


def wins_by(
    scores: Scores, layer: str, interval: Callable[[list[float]], tuple[float, float]], *left_out: str
) -> bool:
    """As wins, by another interval, some layers left out."""
    intervals = {name: interval(values) for name, values in scores.items()}
    mean, half = intervals[layer]
    others = [intervals[name] for name in scores if name != layer and name not in left_out]
    return all(mean - half > other + reach for other, reach in others)


def deviations(factor: float) -> Callable[[list[float]], tuple[float, float]]:
    """A mean, and so many standard deviations."""
    return lambda values: (statistics.fmean(values), factor * statistics.stdev(values))


TABLES = (  # mean and standard deviation of each layer's seeds
    ((0.80, 0.02), (0.66, 0.02), (0.30, 0.02)),  # wins, by 7 deviations; 5 would do
    ((0.80, 0.02), (0.71, 0.02), (0.30, 0.02)),  # 4.5 deviations
    ((0.80, 0.02), (0.74, 0.02), (0.30, 0.02)),  # 3
    ((0.80, 0.02), (0.757, 0.02), (0.30, 0.01)),  # 2
    ((0.80, 0.005), (0.70, 0.08), (0.40, 0.01)),  # the second's interval is wide
    ((0.80, 0.08), (0.70, 0.005), (0.40, 0.01)),  # the first's
    ((0.80, 0.005), (0.75, 0.005), (0.60, 0.10)),  # the third's
    ((0.70, 0.005), (0.68, 0.05), (0.30, 0.01)),  # a lucky seed
    ((0.50, 0.0), (0.50, 0.0), (0.20, 0.0)),  # a tie
)
SEED_PATTERNS = (-1.0, 0.0, 1.0), (-1.1547, 0.57735, 0.57735), (-0.57735, 1.1547, -0.57735)  # deviation 1


@exercise("14.4", stars=2, minutes=6)
class Wins:
    """Who has won?"""

    hints = (
        "Draw each layer's interval as a bar, from mean − half to mean + half. Where must the winner's bar be?",
        "mean_and_interval(values) returns (mean, half). The low end of the layer's interval, mean − half, has to be above the high end of each of the others.",
        "all(mean - half > … for name, values in scores.items() if name != layer)",
    )
    reference = wins

    def draw(seed):
        """Tables of three layers with three seeds each, under names that change places."""
        rng = random.Random(seed)
        scale = rng.uniform(0.8, 1.2)

        def seeds(mean, deviation):
            pattern = rng.choice(SEED_PATTERNS)
            return [round(0.5 + scale * (mean - 0.5 + deviation * each), 4) for each in pattern]

        names = "exact attention", "E and F", "one slot"
        layers = [zip(rng.sample(names, 3), table, strict=True) for table in TABLES]
        return (tuple({name: seeds(*numbers) for name, numbers in some} for some in layers),)

    def use(attempt, tables):
        """Every layer of every table."""
        said = {}
        for scores in tables:
            for layer in scores:
                given = copy.deepcopy(scores)
                said[f"wins({scores}, {layer!r})"] = attempt(given, layer)
                if given != scores:
                    raise Refused("You changed argument scores in place, work on a copy")
        return said

    def by_the_mean(scores, layer):
        """You compare means. With three seeds a mean can be ahead by luck: ask whether the intervals are apart."""
        return wins_by(scores, layer, lambda values: (statistics.fmean(values), 0.0))

    def by_the_best_seed(scores, layer):
        """You compare the best seeds. The layer with the widest spread has the best chance there; the criterion is about means and their intervals."""
        return wins_by(scores, layer, lambda values: (max(values), 0.0))

    def one_deviation(scores, layer):
        """You use the standard deviation as half the interval. It says how far seeds lie apart; how well three of them fix a mean is 4.303 · stdev / √3."""
        return wins_by(scores, layer, deviations(1.0))

    def normal_interval(scores, layer):
        """You use 1.96, which is for many seeds. From three you hardly know the standard deviation itself, so Student's factor is 4.303."""
        return wins_by(scores, layer, deviations(1.96 / 3**0.5))

    def own_interval_only(scores, layer):
        """You give only this layer an interval and compare it with the others' means. The others have only three seeds, too: their high ends count."""
        mean, half = mean_and_interval(scores[layer])
        return all(mean - half > statistics.fmean(scores[name]) for name in scores if name != layer)

    def runner_up_only(scores, layer):
        """You look at the runner-up only. A layer with a lower mean can have a wider interval that reaches higher: compare with every other layer."""
        behind = sorted(scores, key=lambda name: statistics.fmean(scores[name]))
        second = [name for name in behind if name != layer][-1]
        return wins_by({layer: scores[layer], second: scores[second]}, layer, mean_and_interval)

    def control_left_out(scores, layer):
        """You left out one slot, because it's only the control. That's why it's there: a layer that isn't above the mean of everything has won nothing."""
        return wins_by(scores, layer, mean_and_interval, "one slot")

    def against_itself(scores, layer):
        """With you nobody can win, because you compare the layer with itself as well. Leave it out: name != layer."""
        return wins_by(scores | {"": scores[layer]}, layer, mean_and_interval)

    def tie_wins(scores, layer):
        """You let a tie win. If both have the same score without any spread, neither is above the other: >, not >=."""
        mean, half = mean_and_interval(scores[layer])
        return all(mean - half >= sum(mean_and_interval(scores[name])) for name in scores if name != layer)


def sources_apart(E: Tensor, source_of: Tensor) -> int:
    """How many independent numbers of the sources get through E. Shape: (k, n), (n,)"""
    return rank(by_source(E, source_of))


def rank(matrix: Tensor) -> int:
    """As a number."""
    return int(torch.linalg.matrix_rank(matrix))


def by_source(E: Tensor, source_of: Tensor) -> Tensor:
    """The sum of each row's weights for each source. Shape: (k, n), (n,) -> (k, sources)"""
    return E @ hearing(source_of).to(E.dtype).mT


@exercise("14.5", stars=3, minutes=8)
class SourcesApart:
    """How many sources get through."""

    hints = (
        "Suppose the sensors hear without noise. Two sensors of the same source hear the same number, so what does a slot know of each of them?",
        "E @ functional.one_hot(source_of).to(E.dtype) is (k, sources): how much of each source is in each slot. Sources get mixed there; when can you solve for them?",
        "int(torch.linalg.matrix_rank(…))",
    )
    reference = sources_apart

    def draw(seed):
        """More slots than sources, one of which cancels; fewer; two slots with the same sums; a source without weight."""
        table = (6, 11, 3, True, False, False), (2, 9, 5, False, False, False), (4, 12, 4, False, True, False)
        k, n, sources, cancelled, doubled, unheard = row(seed, (*table, (5, 10, 4, False, False, True)))
        source_of = placed(seed, n, sources)
        E = torch.randint(1, 6, (k, n), generator=torch.Generator().manual_seed(seed)).float()
        last = n - 1 - hearing(source_of).flip(1).argmax(1)  # sensor of each source
        if cancelled:
            E[:, last[0]] -= by_source(E, source_of)[:, 0]
        if doubled:
            E[-1, last] += by_source(E, source_of)[0] - by_source(E, source_of)[-1]
        if unheard:
            E[:, source_of == sources - 1] = 0
        return E, source_of

    def rank_of_E(E, source_of):
        """You return the rank of E itself. Rows can differ in how they share out one source among its sensors, and that tells no sources apart: first add up the weights source by source."""
        return rank(E)

    def smaller_size(E, source_of):
        """You return the smaller of slots and sources. That's the most there can be. Two slots with the same mix count once, and a source without weight doesn't count at all."""
        return min(len(E), int(source_of.max()) + 1)

    def sources_heard(E, source_of):
        """You count the sources that reach any slot. With two slots you can hear five sources, but only as two sums: it's the rank that says how many you can solve for."""
        return int((by_source(E, source_of) != 0).any(0).sum())

    def loudest_sources(E, source_of):
        """You ask which source is loudest in each slot, and count the different ones. Slots with the same loudest source can still have different mixes, and you can solve for several sources from those."""
        return len(by_source(E, source_of).argmax(1).unique())

    def different_rows(E, source_of):
        """You count the slots with different sums. Three different mixes of two sources are still mixes of two: take the rank."""
        return len(by_source(E, source_of).unique(dim=0))

    def last_sensor_only(E, source_of):
        """You keep the weight of only one sensor for each source. Did you write sums[:, source_of] += E? Where an index occurs several times, that adds once; index_add_ adds each time."""
        return rank(E[:, len(source_of) - 1 - hearing(source_of).flip(1).argmax(1)])
