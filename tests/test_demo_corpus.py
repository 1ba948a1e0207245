"""The documents of the demo: readable, stable, and small enough for its embedder."""

import pytest

from stampcache.demo.corpus import (
    CHUNK_CHARS,
    Document,
    documents,
    python_reference,
    split,
)
from stampcache.demo.story import STORY, Edit
from stampcache.embedders.scripts import check_english_script

TOPIC = """The "spam" statement
********************

   spam_stmt ::= "spam"

The "spam" statement
makes “spam”, 20°.

The following code:

   for egg in eggs:
       spam(egg)

   more()

+-----+-----+
| a   | b   |
+=====+=====+


Notes
=====

Last.
"""


@pytest.fixture(scope="module")
def cut() -> list[str]:
    return [chunk for document in python_reference() for chunk in split(document.text)]


def test_prose_stands_on_one_line_code_as_it_is_and_grammar_is_gone() -> None:
    (document,) = documents({"spam": TOPIC})
    assert document == Document(
        "spam",
        '# The "spam" statement\n\nThe "spam" statement makes "spam", 20 .\n\n'
        "The following code:\n\n   for egg in eggs:\n       spam(egg)\n\n   more()\n\n"
        "a b\n\n# Notes\n\nLast.",
    )


def test_a_chunk_carries_its_heading() -> None:
    first, second = split(documents({"spam": TOPIC})[0].text)
    assert first.startswith('The "spam" statement\nThe "spam" statement makes')
    assert second == "Notes\nLast."


def test_a_section_of_two_topics_is_kept_in_the_shorter_one() -> None:
    longer = TOPIC + "\nMore\n====\n\nOnly here.\n"
    one, other = documents({"a": longer, "b": TOPIC})
    assert one == Document("a", "# More\n\nOnly here.")
    assert "spam(egg)" in other.text


def test_a_short_last_paragraph_is_repeated_in_the_next_chunk() -> None:
    long = "x" * 50
    text = "\n\n".join(f"{number} {long}" for number in range(20))
    first, second, *_ = split(text)
    assert first.splitlines()[-1] == second.splitlines()[0]


@pytest.mark.parametrize("text", ["y" * 5000, "word " * 1000, "A sentence. " * 400, "\n" * 10, ""])
def test_whatever_the_text_no_chunk_is_too_long_and_no_letter_is_lost(text: str) -> None:
    cut = split(text)
    assert all(0 < len(chunk) <= CHUNK_CHARS for chunk in cut)
    joined = "".join("".join(chunk.split()) for chunk in cut)
    assert len(joined) >= len("".join(text.split()))


def test_the_reference_of_this_python_is_cut_into_some_hundred_chunks(
    cut: list[str],
) -> None:
    assert 200 < len(cut) < 600
    assert max(map(len, cut)) <= CHUNK_CHARS
    assert python_reference() == python_reference()


def test_the_embedder_reads_every_chunk(cut: list[str]) -> None:
    for chunk in cut:
        check_english_script(chunk)


def test_what_the_story_edits_is_there() -> None:
    texts = {document.source: document.text for document in python_reference()}
    edits = [step for step in STORY if isinstance(step, Edit)]
    assert edits
    for edit in edits:
        assert edit.old in texts[edit.source]
