"""Secrets and pacing are never keyed, everything else is: in live objects and in ``llm_string``."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_fakes import CountingChat
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from langchain_stampcache.fingerprint import Fingerprint
from langchain_stampcache.llm_cache.llm_string import LlmSettings
from stampcache import Stamps

Identify = Callable[[Any], str]


def live(model: Any) -> str:
    """Return what a chain keys of a model."""
    return json.dumps(Fingerprint(version=None).read(model, None).described)


def serialised(model: Any) -> str:
    """Return what a cache of model calls keys of it."""
    return settings(model._get_llm_string())


def settings(llm_string: str) -> str:
    return json.dumps(LlmSettings(stamps=Stamps()).of(llm_string).params)


def listed(**options: Any) -> str:
    return settings(str([("model", "m"), *options.items()]))


def openai(**options: Any) -> ChatOpenAI:
    return ChatOpenAI(**{"model": "m", "api_key": "sk-secret", "base_url": "http://h", **options})


def headed(**headers: str) -> ChatOpenAI:
    return openai(default_headers={name.replace("_", "-"): it for name, it in headers.items()})


@pytest.fixture(params=[live, serialised])
def identify(request: pytest.FixtureRequest) -> Identify:
    return request.param


@pytest.mark.parametrize(
    "header", ["Authorization", "authorization", "api_key", "X_Api_Key", "Cookie", "x_request_id"]
)
def test_a_header_that_authenticates_or_traces_may_rotate(identify: Identify, header: str) -> None:
    first, second = (headed(**{header: text, "x_team": "a"}) for text in ("told-1", "told-2"))
    assert identify(first) == identify(second)
    assert "told" not in identify(first)
    assert identify(first) == identify(headed(x_team="a"))


def test_every_other_header_is_keyed_in_one_case(identify: Identify) -> None:
    assert len({identify(headed(x_team=text)) for text in ("a", "b")}) == 2
    assert identify(headed(X_Team="a")) == identify(headed(x_team="a"))
    both = [openai(default_headers={"X-Team": one, "x-team": "b"}) for one in "ac"]
    assert identify(both[0]) != identify(both[1])


@pytest.mark.parametrize("place", ["headers", "extra_headers", "default_headers"])
def test_headers_are_found_wherever_a_model_is_given_them(place: str) -> None:
    def ways(header: str, text: str) -> tuple[str, ...]:
        given = {place: {header: text}}
        return (
            live(CountingChat().bind(**given)),
            live(openai(model_kwargs={"http": given})),
            serialised(openai(model_kwargs={"http": given})),
            listed(**given),
            listed(http=given),
        )

    assert ways("Authorization", "one") == ways("Authorization", "two")
    kept = zip(ways("x-team", "a"), ways("x-team", "b"), strict=True)
    assert all(one != other for one, other in kept)


def test_keys_may_rotate(identify: Identify) -> None:
    assert identify(openai(api_key="sk-1")) == identify(openai(api_key="sk-2"))
    inner = [openai(extra_body={"api_key": text, "mode": "x"}) for text in ("sk-1", "sk-2")]
    assert identify(inner[0]) == identify(inner[1])
    assert "sk-" not in identify(inner[0])
    assert identify(inner[0]) != identify(openai(extra_body={"mode": "y"}))


@pytest.mark.parametrize("name", ["api_key", "access_token", "client_secret", "password"])
def test_keys_among_the_options_of_one_call_may_rotate(name: str) -> None:
    for bound in (
        lambda text: live(CountingChat().bind(**{name: text})),
        lambda t: listed(**{name: t}),
    ):
        assert bound("one") == bound("two")
    secret, none = (live(CountingChat().bind(**{name: it})) for it in (SecretStr("one"), None))
    assert secret == none == live(CountingChat().bind(**{name: "one"}))


@pytest.mark.parametrize(
    "name",
    ["max_tokens", "max_token", "token_limit", "max_new_tokens", "top_k", "top_logprobs", "seed"],
)
def test_limits_and_sampling_are_keyed(name: str) -> None:
    for bound in (
        lambda it: live(CountingChat().bind(**{name: it})),
        lambda it: listed(**{name: it}),
    ):
        assert bound(1) != bound(2)
    for identify in (live, serialised):
        assert identify(openai(extra_body={name: 1})) != identify(openai(extra_body={name: 2}))


def test_pacing_is_a_matter_of_the_model_itself_only(identify: Identify) -> None:
    assert identify(openai(timeout=1, max_retries=3)) == identify(openai(timeout=2, max_retries=4))
    inner = [openai(extra_body={"metadata": {"tier": one}}) for one in ("a", "b")]
    assert identify(inner[0]) != identify(inner[1])


def test_arguments_of_tools_are_no_secrets_whatever_their_name() -> None:
    def tools(kind: str) -> list[dict[str, Any]]:
        properties = {"password": {"type": kind}, "headers": {"type": kind}}
        return [{"type": "function", "function": {"name": "f", "parameters": properties}}]

    assert live(CountingChat().bind(tools=tools("string"))) != live(
        CountingChat().bind(tools=tools("integer"))
    )
    assert listed(tools=tools("string")) != listed(tools=tools("integer"))


def test_names_of_inputs_and_the_apps_own_data_are_no_secrets() -> None:
    main, other = RunnableLambda(str), [RunnableLambda(len)]
    caught = [main.with_fallbacks(other, exception_key=key) for key in ("error", "failure")]
    assert live(caught[0]) != live(caught[1])
    songs = [PromptTemplate.from_template("{key}{x}").partial(key=key) for key in ("C", "D")]
    assert live(songs[0]) != live(songs[1])
    bound = [RunnableLambda(lambda text, key: key).bind(key=key) for key in ("C", "D")]
    assert live(bound[0]) != live(bound[1])


def test_names_of_headers_may_be_bytes() -> None:
    sent = [{b"X-Team": "a"}, {"x-team": "a"}, {"x-team": "b"}]
    said = [live(CountingChat().bind(headers=each)) for each in sent]
    assert said[0] == said[1] != said[2]
