"""Exercises of chapter 00."""

from linformer_from_scratch.course.exercises.engine.checking import exercise
from linformer_from_scratch.course.exercises.engine.draws import row


def map_entries(n: int, num_heads: int) -> int:
    """Entries of the attention maps of one layer: each head has a map of n×n."""
    return num_heads * n * n


@exercise("0.1", stars=1, minutes=2)
class MapEntries:
    """How many numbers the attention maps of one layer hold."""

    hints = (
        "Start with one head: how many tokens look, and at how many does each of them look?",
        "One map is n × n: a row for each token that looks. And a layer has num_heads maps.",
        "return num_heads * … * …",
    )
    reference = map_entries

    def draw(seed):
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
