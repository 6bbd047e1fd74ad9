"""pages.py and long_texts.py: pages of manuals, parsed, without copies, and as they are looked up."""

import math
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup

from lab import long_texts, pages
from lab.pages import Page, in_order, parse, without_copies
from linformer_from_scratch.pretrained import tokenize

WORDS = " ".join(f"word{i}" for i in range(60))


def test_a_page_is_its_title_and_its_paragraphs_without_what_only_leads_about():
    html = f"""<body><nav><p>next</p></nav><main>
    <h1>12.3.&nbsp;Two <em>indexes</em><a class="headerlink">¶</a></h1><p>Some <code>x</code>y words.</p>
    <ul><li><p>{WORDS}</p></li></ul><div class="toc"><p>1 2 3</p></div>
    <script>var no = 1</script><pre>a = 1</pre></main></body>"""
    page = parse(BeautifulSoup(html, "html.parser"), "Rust", "a.html")
    assert page == Page("Rust", "a.html", "Two indexes", ["Some xy words.", WORDS, "a = 1"])
    assert parse(BeautifulSoup("<main><h1>A</h1><p>few words</p></main>", "html.parser"), "Rust", "b") is None
    assert parse(BeautifulSoup(f"<main><p>{WORDS}</p></main>", "html.parser"), "Rust", "c") is None


def test_pages_follow_their_links_and_none_is_lost():
    a, b, c, d, e = map(Path, "abcde")
    assert [*in_order([a, b, c, d], {a: c, c: b, b: d})] == [a, c, b, d]
    circle_and_a_link_that_leads_out = {b: a, a: b, d: e}
    assert [*in_order([a, b, c, d], circle_and_a_link_that_leads_out)] == [c, d, a, b]
    assert [*in_order([], {})] == []


def test_a_page_that_stands_in_an_earlier_one_is_a_copy():
    first = Page("Rust", "1", "One", [WORDS])
    half = Page("Rust", "2", "Two", [WORDS[: len(WORDS) // 2], " ".join(f"new{i}" for i in range(60))])
    same = Page("Rust", "3", "Three", [WORDS.upper()])
    short = Page("Rust", "4", "Four", ["too short for one run"])
    assert without_copies([first, half, same, short]) == [first, half]


@pytest.fixture
def page():
    return Page("Rust", "a.html", "A title", [f"p{i} " + WORDS for i in range(9)] + ["the end"])


@pytest.mark.parametrize("n", [200, 700])
def test_the_text_is_the_page_without_the_paragraph_that_is_asked_for(page, n):
    paragraph, ids = long_texts.without_a_paragraph(page, n)
    at = page.paragraphs.index(paragraph)
    rest = tokenize(" ".join(text for text in page.paragraphs if text != paragraph), None)
    assert len(ids) == n and torch.equal(ids[:-1], rest[: n - 1]) and ids[-1] == rest[-1]
    assert sum(len(tokenize(text, None)) - 2 for text in page.paragraphs[:at]) < n - 2
    again, _ = long_texts.without_a_paragraph(page, n)
    assert again == paragraph


def test_a_page_that_is_too_short_has_no_text(page):
    assert long_texts.without_a_paragraph(page, 8192)[1].numel() == 0
    assert long_texts.without_a_paragraph(page._replace(paragraphs=["few words"]), 100)[1].numel() == 0


def test_without_the_manuals_one_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    with pytest.raises(FileNotFoundError, match="is missing; install the manuals: apt-get install python3"):
        pages.parsed("Python")


@torch.no_grad()
@pytest.mark.parametrize("way", long_texts.WAYS)
def test_every_way_reads_a_long_text_and_what_it_learned_can_be_kept(way):
    ids = torch.cat([torch.tensor([101]), torch.randint(1000, 2000, (700,)), torch.tensor([102])])[None]
    model = long_texts.WAYS[way]().eval()
    vector = model.embed(ids)
    parts = dict.fromkeys(long_texts.IN_PARTS, 11) | {"mean of chunks, best part": 12}  # of 64 tokens at most
    assert vector.shape == ((1, parts[way], 384) if way in parts else (1, 384))
    torch.testing.assert_close(vector.norm(dim=-1), torch.ones(vector.shape[:-1]))
    moved = model.embed(torch.cat([ids[:, :600], ids[:, 600:-1].roll(7, dims=1), ids[:, -1:]], dim=1))
    assert torch.equal(vector, moved) == (way == "first 512 tokens")  # only it does not read the end


def test_counting_words_adds_up_the_rarity_of_those_that_query_and_page_share():
    pages = torch.tensor([[3, 3, 5, 7], [3, 4, 4, 4], [3, 6, 8, 8]])
    scores = long_texts.bm25([torch.tensor([4, 4, 3]), torch.tensor([5, 8]), torch.tensor([99])], pages)
    everywhere, once = math.log(1 + 0.5 / 3.5), math.log(1 + 2.5 / 1.5)  # held by three pages, and by one
    by_hand = [everywhere * 2 * 2.2 / 3.2, everywhere + once * 3 * 2.2 / 4.2, everywhere]
    assert scores[0].tolist() == pytest.approx(by_hand)
    assert scores[1].tolist() == pytest.approx([once, 0, once * 2 * 2.2 / 3.2])
    assert scores[2].tolist() == [0, 0, 0]  # no page holds it


def test_a_page_that_looks_for_the_next_does_not_find_itself(monkeypatch):
    monkeypatch.setattr(long_texts, "neighbours", lambda n: torch.tensor([0, 1]))
    scores = torch.tensor([[9.0, 2.0, 1.0], [5.0, 9.0, 4.0], [0.0, 0.0, 9.0]])
    assert long_texts.following_ranks(scores, 1024) == [1, 2]
