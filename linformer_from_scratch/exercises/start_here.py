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
    """That is the map of one head; every head has a map of its own, so multiply by num_heads."""
    return n * n


def one_row_a_head(n, num_heads):
    """You counted one row for each head; every one of the n tokens has a row of n numbers."""
    return n * num_heads


def tokens_shared_out(n, num_heads):
    """You divided the tokens among the heads; every head reads all n of them, so each map is n×n."""
    return num_heads * (n / num_heads) ** 2


def whole_tokens_shared_out(n, num_heads):
    """A head does not get n // num_heads of the tokens; it gets some of the features, and reads all n tokens."""
    return num_heads * (n // num_heads) ** 2


def without_itself(n, num_heads):
    """A token reads itself as well: n entries in each row, not n − 1."""
    return num_heads * n * (n - 1)


def in_bytes(n, num_heads):
    """These are bytes in float32; the question is how many numbers."""
    return 4 * num_heads * n * n


def lower_triangle(n, num_heads):
    """You counted the pairs i ≥ j; token i reads j and token j reads i, so all n·n pairs have an entry."""
    return num_heads * n * (n + 1) // 2


def heads_squared(n, num_heads):
    """Heads do not read one another: there are num_heads maps, not num_heads² of them."""
    return (n * num_heads) ** 2


EXERCISES = (
    Exercise(
        id="0.1",
        question="How many numbers do the attention maps of one layer hold, for n tokens and num_heads heads?",
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
            "Count one head first: how many tokens read, and how many does each of them read?",
            "One map is n × n, a row for each token that reads; a layer has num_heads maps.",
            "return num_heads * … * …",
        ),
    ),
)

QUIZ = (
    Question(
        "A text becomes three times as long. Its attention maps then hold …",
        (
            Option("nine times as many numbers", "Three times the rows, each three times as long.", True),
            Option("three times as many numbers", "The rows are three times as many, but also as long."),
            Option("six times as many numbers", "Both sides grow, and their factors multiply: 3 · 3."),
            Option(
                "as many as before, if there are three times as many heads",
                "More heads mean more maps of n×n, not smaller ones.",
            ),
        ),
    ),
    Question(
        "In Linformer, a token reads …",
        (
            Option("k summaries, each mixed from all tokens", "E and F mix all n tokens into k.", True),
            Option("the k most important tokens", "That is sparse attention; nothing is picked out here."),
            Option("its k nearest neighbours", "That is local attention; a summary reaches the whole text."),
            Option(
                "all n tokens, with k features each",
                "The features stay as they are; the number of keys and values is what shrinks.",
            ),
        ),
    ),
    Question(
        "For a sentence of n tokens, a Linformer layer returns …",
        (
            Option("n outputs", "The queries are not compressed, so every token keeps its output.", True),
            Option(
                "k outputs",
                "Only keys and values become k; with k queries the sentence would lose its words.",
            ),
            Option("n/k outputs", "Nothing is divided into groups: n queries go in, n outputs come out."),
        ),
    ),
    Question(
        "Linformer's cost is called linear because …",
        (
            Option("at fixed k, twice the tokens cost twice as much", "The strip is n×k.", True),
            Option(
                "it does not depend on n",
                "Every token still has to be read; the cost is proportional to n, not constant.",
            ),
            Option(
                "it leaves the softmax out",
                "The softmax stays. Attention without it is another family, by kernels.",
            ),
            Option("its layers are all nn.Linear", "Linear speaks of the cost; the softmax is not linear."),
        ),
    ),
)
