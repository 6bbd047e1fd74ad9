"""Larger public corpora by name, through the library `datasets`, where it is installed and online."""

from collections.abc import Iterable, Mapping
from itertools import islice
from types import ModuleType

HUB = {  # name -> where the Hugging Face hub keeps it: repository, configuration
    "wikitext-103": ("Salesforce/wikitext", "wikitext-103-raw-v1"),
    "imdb": ("stanfordnlp/imdb", "plain_text"),
}


def public_documents(name: str, split: str = "train", limit: int | None = None) -> dict[str, str]:
    """Documents of a public corpus, title -> text.

    Args:
        name: "wikitext-103", as in Wang et al. 2020, figure 1, or "imdb".
        split: a part of the corpus as its publishers cut it: "train", "validation", "test".
        limit: rows to read at most: lines of wikitext-103, reviews of imdb. All by default.

    Raises: ValueError if the name is unknown, ImportError if `datasets` is not installed, ConnectionError if
        the corpus cannot be fetched (the library tries for about half a minute).
    """
    rows = islice(_load(name, split), limit)
    if name == "wikitext-103":
        return _articles(row["text"] for row in rows)
    return {f"{name} {split} {i}": row["text"] for i, row in enumerate(rows)}


def public_reviews(split: str = "train", limit: int | None = None) -> tuple[list[str], list[int]]:
    """Film reviews of IMDB and their labels: 0 = negative, 1 = positive (Maas et al. 2011).

    Raises: as public_documents.
    """
    rows = list(_load("imdb", split))
    rows = rows if limit is None else rows[:: -(-len(rows) // max(1, limit))]  # they are sorted by label
    return [row["text"] for row in rows], [row["label"] for row in rows]


def _load(name: str, split: str) -> Iterable[Mapping]:
    if name not in HUB:
        raise ValueError(f"there is no corpus {name!r}; known are {', '.join(HUB)}")
    datasets = _library()
    repository, configuration = HUB[name]
    try:
        return datasets.load_dataset(repository, configuration, split=split)
    except (OSError, RuntimeError) as error:  # what the library raises offline, and for a half-read download
        raise ConnectionError(
            f"{name} cannot be fetched from {repository}: {_first_line(error)}; "
            "the shipped text needs no network"
        ) from None


def _library() -> ModuleType:
    try:
        import datasets
    except ImportError:
        raise ImportError("corpora by name need the library datasets: pip install datasets") from None
    datasets.disable_progress_bars()
    return datasets


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _articles(lines: Iterable[str]) -> dict[str, str]:
    """Lines to articles: a heading of the first level, " = Title = ", begins each."""
    found: dict[str, list[str]] = {}
    title = "beginning"
    for line in lines:
        if line.startswith(" = ") and line.endswith(" = \n") and not line.startswith(" = = "):
            title = line.strip(" =\n")
        else:
            found.setdefault(title, []).append(line)
    texts = {title: "".join(part) for title, part in found.items()}
    return {title: text for title, text in texts.items() if text.strip()}
