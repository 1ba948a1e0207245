"""No secret is keyed, and no setting is left out for its name: of models and of other parts."""

from collections.abc import Callable
from typing import Any

import pytest
from llama_fakes import Corpus, DigestLLM
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle
from pydantic import SecretStr
from test_li_identity import described


class TalkingLLM(DigestLLM):
    """A model with headers, limits and an organisation token of its own."""

    default_headers: dict[str, str] | None = None
    max_tokens: int | None = None
    auth_token: SecretStr | None = None
    pin: SecretStr | None = None
    auth_header: str = ""


def headers(**sent: str) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in sent.items()}


SECRETS: dict[str, Callable[[TalkingLLM], None]] = {
    "api key": lambda llm: setattr(llm, "api_key", "sk-2"),
    "token": lambda llm: setattr(llm, "auth_token", SecretStr("sk-2")),
    "a secret of any name": lambda llm: setattr(llm, "pin", SecretStr("sk-2")),
    "a header of its own": lambda llm: setattr(llm, "auth_header", "Bearer sk-2"),
    "authorization": lambda llm: setattr(
        llm, "default_headers", headers(Authorization="Bearer sk-2", X_Team="a")
    ),
    "nested authorization": lambda llm: llm.additional_kwargs.update(
        extra_headers=headers(authorization="Bearer sk-2", X_Request_Id="2", X_Team="a")
    ),
    "as pairs": lambda llm: llm.additional_kwargs.update(
        pair_headers=[(b"Cookie", "sk-2"), (b"X-Team", "a")]
    ),
    "nested key": lambda llm: llm.additional_kwargs["extra_body"].update(api_key="sk-2"),
    "a header in other letters": lambda llm: setattr(
        llm, "default_headers", headers(x_team="a", authorization="Bearer sk-1")
    ),
}
SETTINGS: dict[str, Callable[[TalkingLLM], None]] = {
    "limit": lambda llm: setattr(llm, "max_tokens", 8),
    "nested limit": lambda llm: llm.additional_kwargs["extra_body"].update(token_limit=8),
    "team": lambda llm: setattr(llm, "default_headers", headers(X_Team="b")),
    "no team": lambda llm: setattr(llm, "default_headers", None),
    "nested team": lambda llm: llm.additional_kwargs.update(extra_headers=headers(X_Team="b")),
    "team in pairs": lambda llm: llm.additional_kwargs.update(pair_headers=[("X-Team", "b")]),
    "property": lambda llm: llm.additional_kwargs["extra_body"]["schema"]["properties"].update(
        token={"type": "integer"}
    ),
}


def talking() -> TalkingLLM:
    schema = {"type": "object", "properties": {"token": {"type": "string"}}}
    return TalkingLLM(
        api_key="sk-1",
        auth_token=SecretStr("sk-1"),
        pin=SecretStr("sk-1"),
        auth_header="Bearer sk-1",
        max_tokens=4,
        default_headers=headers(Authorization="Bearer sk-1", X_Team="a"),
        additional_kwargs={
            "extra_headers": headers(Authorization="Bearer sk-1", X_Request_Id="1", X_Team="a"),
            "pair_headers": [("X-Team", "a"), ("Cookie", "sk-1")],
            "extra_body": {"api_key": "sk-1", "token_limit": 4, "schema": schema},
        },
    )


@pytest.mark.parametrize("what", sorted(SECRETS))
def test_no_secret_of_a_model_is_keyed(what: str, corpus: Corpus) -> None:
    llm = talking()
    inner = corpus.engine(llm)
    before = described(inner)
    SECRETS[what](llm)
    assert described(inner) == before
    assert "sk-" not in before


@pytest.mark.parametrize("what", sorted(SETTINGS))
def test_a_header_or_a_limit_that_shapes_answers_is_keyed(what: str, corpus: Corpus) -> None:
    llm = talking()
    inner = corpus.engine(llm)
    before = described(inner)
    SETTINGS[what](llm)
    assert described(inner) != before


@pytest.mark.parametrize("name", ["timeout", "max_retries", "verbose"])
def test_how_a_model_is_called_is_not_keyed(name: str, corpus: Corpus) -> None:
    class Called(DigestLLM):
        timeout: float = 1
        max_retries: int = 1
        verbose: int = 1

    llm = Called()
    inner = corpus.engine(llm)
    before = described(inner)
    setattr(llm, name, 2)
    assert described(inner) == before


class Tagging(BaseNodePostprocessor):
    """Asks a service, and has fields that would be no settings of a model."""

    tags: tuple[str, ...] = ("hr",)
    target_metadata_key: str = "window"
    api_key: str = "sk-1"
    verbose: bool = False

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return nodes


@pytest.mark.parametrize(
    ("options", "same"),
    [
        ({"tags": ("it",)}, False),
        ({"target_metadata_key": "other"}, False),
        ({"api_key": "sk-2"}, True),
        ({"verbose": True}, True),
    ],
)
def test_a_part_that_is_no_model_is_keyed_by_what_it_does(
    options: dict[str, Any], same: bool, corpus: Corpus, llm: DigestLLM
) -> None:
    def engine(part: Tagging) -> BaseQueryEngine:
        return corpus.engine(llm, node_postprocessors=[part])

    one, other = described(engine(Tagging())), described(engine(Tagging(**options)))
    assert (one == other) is same and "sk-1" not in one


def test_a_deepseek_model_is_identified_without_its_key(corpus: Corpus) -> None:
    deepseek = pytest.importorskip("llama_index.llms.deepseek")
    model = deepseek.DeepSeek(model="deepseek-chat", api_key="sk-secret")
    inner = corpus.index.as_query_engine(llm=model)
    one = described(inner)
    assert "deepseek-chat" in one and "api.deepseek.com" in one and "sk-secret" not in one
    model.additional_kwargs = {"thinking": {"type": "enabled"}}
    assert described(inner) != one
