"""Where a text's sentences end, in several scripts; the page's are Python's."""

import json
import random

import pytest
from jupyter_lab import open_page

from linformer_from_scratch.course.front_page import sentences, spans, texts
from linformer_from_scratch.course.widgets.live import source
from linformer_from_scratch.pretrained.tokens import tokenize

SENTENCES = {  # a text, by a bar where one sentence ends and the next begins
    "latin": "Crème brûlée costs 3.50!| «Où ?» asked nobody in Zürich.|\n\n Then 😀 went\n| home",
    "cyrillic": "Всё ясно.| Правда?| Да\n|Ελληνικά.| Τι;",
    "chinese and japanese": "我喜欢。|谁？|你呢？！|他说：「好。」|走\n|東京で食べました。| はい",
    "arabic": "مرحبا بالعالم.| كيف حالك؟| بخير، 3.5\n| شكرا!",
    "hebrew and hindi": "שלום עולם 🎉.| מה נשמע?| नमस्ते।| कैसे हो?| ठीक 😀",
}
PLACES = "texts => JSON.stringify(JSON.parse(texts).map((text) => text.match(SENTENCE) ?? []))"
AWKWARD = "aaבя 😀.。！？」؟।!?\n\n\r\x85\x1c\x1f\u2028\ufeff   \t"


@pytest.mark.parametrize("script", SENTENCES)
def test_sentences_end_with_the_marks_of_their_script_and_with_the_line(script):
    parts = SENTENCES[script].split("|")
    text = "".join(parts)
    assert sentences(text) == [part.strip() for part in parts]
    (_, *_, (_, end)), ids = spans(text), tokenize(text, None)
    assert end == len(ids) - 1


def test_an_empty_text_has_none_and_a_mark_alone_is_one():
    assert sentences(" \n ") == [] and sentences(". a") == [".", "a"]


@pytest.mark.browser
def test_the_pages_sentences_are_pythons(browser):
    draw = random.Random(0)
    some = ["".join(draw.choice(AWKWARD) for _ in range(draw.choice((1, 4, 40)))) for _ in range(5000)]
    some += [text.replace("|", "") for text in SENTENCES.values()] + [one.text for one in texts()]
    with open_page(browser) as page:
        page.add_script_tag(content=source("sentences"))
        found = json.loads(page.evaluate(PLACES, json.dumps(some)))
    assert [ascii(text) for text, lines in zip(some, found, strict=True) if lines != sentences(text)] == []
