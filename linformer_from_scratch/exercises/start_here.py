"""Chapter 00: one exercise, to try the machinery, and the quiz."""

from linformer_from_scratch.exercises.engine import Exercise
from linformer_from_scratch.exercises.questions import Option, Question


def map_entries(n: int, num_heads: int) -> int:
    """Numbers in the attention maps of one layer: n×n for each head."""
    return num_heads * n * n


def draw_sizes(seed: int) -> tuple[int, int]:
    """n and num_heads."""
    return ((512, 8), (7, 3), (1, 5), (4096, 12))[seed]


def one_head_only(n, num_heads):
    """That is one head's map; every head has a map of its own."""
    return n * n


def one_row_only(n, num_heads):
    """That is one row for each head; every token has a row, so a map is n×n."""
    return num_heads * n


def tokens_shared_out(n, num_heads):
    """The heads do not share out the tokens: each head's map has n×n entries, not (n/h)×(n/h)."""
    return n * n / num_heads


def past_only(n, num_heads):
    """You counted the lower triangle; here every token reads every token, the later ones too."""
    return num_heads * n * (n + 1) // 2


EXERCISES = (
    Exercise(
        id="0.1",
        question="How many numbers do the attention maps of one layer hold?",
        difficulty=1,
        minutes=2,
        trains="the machinery, and the size of the wall",
        reference=map_entries,
        draw=draw_sizes,
        mistakes=(one_head_only, one_row_only, tokens_shared_out, past_only),
        hints=(
            "Every head compares every token with every token.",
            "One head's map has n rows and n columns.",
            "return num_heads * … * …",
        ),
    ),
)

QUIZ = (
    Question(
        "What grows with the square of the text's length?",
        (
            Option("the attention maps", "Every token is compared with every token: n×n.", True),
            Option("the number of weights of the model", "They do not depend on the length at all."),
            Option("the token vectors", "There is one for each token: they grow like n."),
            Option("the vocabulary", "It is fixed before any text is read."),
        ),
    ),
    Question(
        "What does Linformer compress?",
        (
            Option("the n keys and the n values, to k of each", "Each of the k is a mixture of all n.", True),
            Option(
                "the features of a token", "Features stay as they are; the axis of length n is compressed."
            ),
            Option(
                "the text, by keeping the k most important tokens", "It mixes all tokens; it chooses none."
            ),
            Option(
                "the queries, so that there are only k outputs",
                "Every token keeps its query and its own output.",
            ),
        ),
    ),
    Question(
        "At n = 4,096 and k = 256, Linformer's map has …",
        (
            Option(
                "4,096 rows and 256 columns", "Every token still has its row; it reads 256 summaries.", True
            ),
            Option("256 rows and 256 columns", "Then only 256 tokens would get an output."),
            Option("256 rows and 4,096 columns", "Rows are queries, and all 4,096 of them stay."),
            Option(
                "4,096 rows and 4,096 columns, mostly zeros",
                "Sparse attention does that; Linformer's map is dense and small.",
            ),
        ),
    ),
    Question(
        "A cell in this course shows a ratio of two times. On your machine it …",
        (
            Option(
                "may differ: it was measured when the page was made",
                "Times are measured; counts and shapes must agree.",
                True,
            ),
            Option(
                "must be the same, or the test fails", "Only counts, shapes and values are compared strictly."
            ),
            Option(
                "is the number that the paper printed", "The paper's numbers are always named as the paper's."
            ),
            Option("does not matter", "It does: run it, and believe yours."),
        ),
    ),
)
