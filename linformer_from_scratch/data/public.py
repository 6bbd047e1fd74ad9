"""Larger public corpora by name, through the library `datasets`, where it is installed and online."""

from collections.abc import Iterable, Mapping
from itertools import islice

from linformer_from_scratch.common.checks import check_size

HUB = {  # name -> where the Hugging Face hub keeps it: repository, configuration
    "wikitext-103": ("Salesforce/wikitext", "wikitext-103-raw-v1"),
    "imdb": ("stanfordnlp/imdb", "plain_text"),
}


def public_documents(name: str, split: str = "train", limit: int | None = None) -> dict[str, str]:
    """Documents of a public corpus, title -> text.

    Args:
        name: "wikitext-103", as in Wang et al. 2020, figure 1, or "imdb".
        split: a part of the corpus as published: "train", "validation", "test".
        limit: rows to read at most: lines of wikitext-103, reviews of imdb. All by default.

    Raises: ValueError if there is no such name or split, or limit is below 1, ImportError if `datasets` is
        not installed, ConnectionError if the corpus cannot be fetched (the library tries for about half a
        minute).
    """
    rows = _load(name, split)
    texts = (row["text"] for row in islice(rows, None if limit is None else check_size("limit", limit)))
    if name == "wikitext-103":
        return _articles(texts)
    return {f"{name} {split} {i}": text for i, text in enumerate(texts)}


def _load(name: str, split: str) -> Iterable[Mapping]:
    if name not in HUB:
        raise ValueError(f"there is no corpus {name!r}; known are {', '.join(HUB)}")
    try:
        import datasets
    except ImportError:
        raise ImportError(
            "corpora by name need the library datasets: run `python tools/course.py install --with corpora`, "
            "or, in an environment of your own, `pip install datasets`"
        ) from None
    datasets.disable_progress_bars()
    repository, configuration = HUB[name]
    try:
        return datasets.load_dataset(repository, configuration, split=split)
    except ValueError as error:  # an unknown split, a damaged file
        raise ValueError(f"{name}, split {split!r}: {_first_line(error)}") from None
    except (OSError, RuntimeError, datasets.exceptions.DatasetsError) as error:  # offline, half a download
        raise ConnectionError(
            f"{name} cannot be fetched from {repository}: {_first_line(error)}; "
            "the shipped text needs no network"
        ) from None


def _first_line(error: Exception) -> str:
    return str(error.__cause__ or error).partition("\n")[0]


def _articles(lines: Iterable[str]) -> dict[str, str]:
    """Lines to articles: a heading of the first level, " = Title = ", begins each."""
    parts: dict[str, list[str]] = {}
    title = "beginning"
    for line in lines:
        if line.startswith(" = ") and line.endswith(" = \n") and line[3] not in "=\n":
            title = line.strip(" =\n")
        else:
            parts.setdefault(title, []).append(line)
    texts = {title: "".join(part) for title, part in parts.items()}
    return {title: text for title, text in texts.items() if text.strip()}
