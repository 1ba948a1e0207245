"""What a judge is told, in two languages, and from a file of the user's own."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from stampcache import Answer, Freshness, open_cache
from stampcache.errors import ConfigError
from stampcache.freshness import Observed
from stampcache.judging import Template
from stampcache.judging.prompt import language_of, templates
from stampcache.ports import Facts
from stampcache.testing.contract import NOW, make_entry

NEEDED = "{question} {answer} {updated} {now} {rate}"


def facts(question: str = "What is it?", answer: str = "It is 3.", **said: object) -> Facts:
    entry = replace(make_entry("k"), question=question, answer=Answer(text=answer), **said)
    return Facts(entry=entry, updated_at=NOW - 3_600.0, now=NOW, observed=Observed(3, 7_200.0))


@pytest.mark.parametrize("json_mode", [False, True])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_shipped_prompt_states_all_that_is_known(language: str, json_mode: bool) -> None:
    template = templates(Freshness(json_mode=json_mode))[language]
    prompt = template.render(facts(kind="price"), kinds=("news", "price"))
    for stated in (
        "What is it?",
        "It is 3.",
        "Saturday, 2025-11-29 14:26 UTC",
        "Saturday, 2025-11-29 15:26 UTC",
        "price",
        "1.5 per hour: changed 3 times in 2 hours",
        '"fresh": true',
        '"reason": ',
    ):
        assert stated in prompt
    assert "news" not in prompt, "the kind is known, so it is not asked for"
    last = prompt.rstrip().splitlines()[-1]
    assert last.index('"reason"') < last.index('"fresh"') if json_mode else "{" in last


@pytest.mark.parametrize("language", ["en", "zh"])
def test_an_unknown_kind_is_asked_for_and_nothing_is_invented(language: str) -> None:
    unseen = replace(facts(), observed=Observed())
    prompt = templates(Freshness())[language].render(unseen, kinds=("news", "price"))
    assert "one of news, price" in prompt
    assert "unknown: nothing was observed yet" in prompt
    assert '"kind"' not in templates(Freshness())[language].render(unseen, kinds=())


def test_in_the_language_of_the_question() -> None:
    assert (language_of("What is 3?"), language_of("价格是多少？"), language_of("")) == (
        "en",
        "zh",
        "en",
    )


def test_braces_in_what_was_asked_are_braces() -> None:
    prompt = Template(NEEDED, where="mine").render(facts("{answer} {0}", "{{x}}"), kinds=())
    assert prompt.startswith("{answer} {0} {{x}} ")


def test_a_long_text_is_shown_from_both_ends() -> None:
    long = facts("Q" * 20_000, "a" * 20_000 + "the end")
    prompt = Template(NEEDED, where="mine").render(long, kinds=())
    assert len(prompt) < 25_000
    assert prompt.count("[...]") == 2
    assert "the end" in prompt


def test_a_template_of_the_users_own_is_for_all_languages(tmp_path: Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(f"判断： {NEEDED} {{kind}}", encoding="utf-8")
    own = templates(Freshness(template=str(path)))
    assert own["en"] is own["zh"]
    assert own["en"].render(facts(), kinds=()).startswith("判断： What is it? It is 3. Saturday")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no fields", "it needs"),
        (NEEDED.replace("{rate}", ""), "it needs"),
        (NEEDED + " {secret}", "may have"),
        (NEEDED + " {answer.__class__}", "may have"),
        (NEEDED + " {}", "may have"),
        (NEEDED + " {question", "cannot be read"),
        (NEEDED + " }", "cannot be read"),
    ],
)
def test_a_template_that_is_none_is_refused_at_once(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "mine.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=why):
        open_cache("memory://", judge=str, freshness=Freshness(template=str(path)))


def test_a_template_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name in ("absent", "binary", ""):
        with pytest.raises(ConfigError, match="cannot be read"):
            Template.read(tmp_path / name)
