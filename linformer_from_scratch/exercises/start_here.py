"""Chapter 00: one easy exercise and the quiz."""

from linformer_from_scratch.exercises.engine.checking import Exercise
from linformer_from_scratch.exercises.engine.draws import row
from linformer_from_scratch.exercises.engine.quiz import Option, Question

# 0.1: how many numbers the attention maps of one layer hold


def map_entries(n: int, num_heads: int) -> int:
    """Entries of the attention maps of one layer: each head has a map of n×n."""
    return num_heads * n * n


def draw_layer(seed: int) -> tuple[int, int]:
    """Tokens and heads; one token at the end."""
    return row(seed, ((512, 12), (7, 3), (4096, 8), (1, 5)))


def one_map(n, num_heads):
    """You counted one head's map. Every head brings its own, so there are num_heads of them."""
    return n * n


def one_row_a_head(n, num_heads):
    """You counted one row for each head. But each of the n tokens has a row, and each row has n numbers."""
    return n * num_heads


def tokens_shared_out(n, num_heads):
    """You shared the tokens out among the heads. It sounds fair, but every head looks at all n: its map is n×n."""
    return num_heads * (n / num_heads) ** 2


def whole_tokens_shared_out(n, num_heads):
    """You gave each head n // num_heads of the tokens. What heads share out is features; each sees all n tokens."""
    return num_heads * (n // num_heads) ** 2


def without_itself(n, num_heads):
    """You left out the diagonal. A token may attend to itself too, so a row has n entries, not n − 1."""
    return num_heads * n * (n - 1)


def in_bytes(n, num_heads):
    """You counted bytes, four for each number. We only want to know how many numbers."""
    return 4 * num_heads * n * n


def lower_triangle(n, num_heads):
    """You counted each pair once. But i attending to j isn't j attending to i: all n·n pairs have an entry."""
    return num_heads * n * (n + 1) // 2


def heads_squared(n, num_heads):
    """You squared the heads too. Heads don't look at one another: there are num_heads maps, not num_heads²."""
    return (n * num_heads) ** 2


EXERCISES = (
    Exercise(
        id="0.1",
        question="How many numbers are there in the attention maps of one layer, for n tokens and num_heads heads?",
        difficulty=1,
        minutes=2,
        trains="seeing the square",
        reference=map_entries,
        draw=draw_layer,
        mistakes=(
            one_map,
            one_row_a_head,
            tokens_shared_out,
            whole_tokens_shared_out,
            without_itself,
            in_bytes,
            lower_triangle,
            heads_squared,
        ),
        hints=(
            "Start with one head: how many tokens look, and at how many does each of them look?",
            "One map is n × n: a row for each token that looks. And a layer has num_heads maps.",
            "return num_heads * … * …",
        ),
    ),
)

QUIZ = (
    Question(
        "A text gets three times as long. Its attention maps now hold …",
        (
            Option(
                "nine times as many numbers",
                "Three times the rows, and each of them three times as long.",
                True,
            ),
            Option(
                "three times as many numbers",
                "There are three times as many rows, but each is three times as long, too.",
            ),
            Option("six times as many numbers", "Both sides grow, and factors multiply: 3 · 3."),
            Option(
                "as many as before, if there are three times as many heads",
                "More heads are more maps of n×n, not smaller ones.",
            ),
        ),
    ),
    Question(
        "In Linformer, a token attends to …",
        (
            Option(
                "k summaries, each mixed from all tokens",
                "E and F mix all n tokens into k, and those are all that a token sees.",
                True,
            ),
            Option(
                "the k most important tokens", "That's sparse attention. Linformer picks nothing; it mixes."
            ),
            Option("its k nearest neighbours", "That's local attention. A summary can reach the whole text."),
            Option(
                "all n tokens, with k features each",
                "Features stay as they are. What shrinks is the number of things to attend to.",
            ),
        ),
    ),
    Question(
        "A sentence of n tokens goes into a Linformer layer. Out come …",
        (
            Option("n outputs", "Nobody compresses the tokens that look, so each gets its output.", True),
            Option(
                "k outputs",
                "Only what is looked *at* becomes k. With k outputs the sentence would have lost its words.",
            ),
            Option(
                "n/k outputs",
                "Nothing is cut into groups on the way out: n tokens go in, n outputs come out.",
            ),
        ),
    ),
    Question(
        "Linformer's cost is called linear because …",
        (
            Option(
                "at fixed k, twice the tokens cost twice as much",
                "The strip is n×k: linear in n as long as k stays put.",
                True,
            ),
            Option(
                "it does not depend on n",
                "Every token still has to go into some summary. Linear means proportional to n, not constant.",
            ),
            Option(
                "it leaves the softmax out",
                "The softmax stays. Attention without one is another family, by kernels (chapter 09).",
            ),
            Option(
                "its layers are all nn.Linear",
                "Linear is about the cost. The softmax in the middle is as nonlinear as ever.",
            ),
        ),
    ),
)
