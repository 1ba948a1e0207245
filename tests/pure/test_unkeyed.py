"""Secrets are never keyed, and nothing else is taken for one."""

import pytest

from stampcache.unkeyed import holds_secret, is_secret, is_secret_header, shaping


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "openai_api_key", "apikey", "api_keys", "api_token", "access_token", "token",
        "auth_token", "azure_ad_token", "azure_ad_token_provider", "aws_access_key_id",
        "aws_secret_access_key", "aws_session_token", "private_key", "private_key_id", "password",
        "client_secret", "huggingfacehub_api_token", "hf_token", "credentials", "db_password",
        "OPENAI_API_KEY", "authorization", "cookies", "license_key",
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_name(name: str) -> None:
    assert is_secret(name)
    assert holds_secret(name, "sk-1")


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens", "max_token", "token_limit", "eos_token", "stop_token", "pad_token", "top_k",
        "output_key", "history_messages_key", "target_metadata_key", "text_key", "keyword", "monkey",
        "tokenizer", "model", "keys", "key", "tokens", "keys_to_keep", "author", "think_token",
        "secretary",
    ],
)  # fmt: skip
def test_a_setting_is_no_secret(name: str) -> None:
    assert not is_secret(name)
    assert not holds_secret(name, "text")


@pytest.mark.parametrize("value", [3, 0.5, True, {"type": "string"}])
def test_numbers_and_schemas_are_no_secrets_whatever_they_are_called(value: object) -> None:
    assert not holds_secret("api_key", value)


def test_a_text_may_be_a_single_header() -> None:
    assert holds_secret("auth_header", "Bearer x")
    assert not holds_secret("team_header", "a")
    assert not holds_secret("auth_header", {"a": "b"})


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "x-api-key", "X-Api-Token", "cookie", "api-key", "Proxy-Authorization",
        "x-request-id", "traceparent", "x-amz-signature", "x-goog-api-key",
    ],
)  # fmt: skip
def test_a_header_that_authenticates_or_traces(name: str) -> None:
    assert is_secret_header(name)


@pytest.mark.parametrize(
    "name", ["x-team", "x-author", "x-max-tokens", "x-tokenizer", "anthropic-beta", "x-keyword"]
)
def test_a_header_that_may_shape_an_answer(name: str) -> None:
    assert not is_secret_header(name)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer a", "X-Team": "b", "x-team": "c"},
        [("Authorization", "Bearer a"), ("X-Team", "b"), ("x-team", "c")],
        [(b"Authorization", "Bearer a"), (b"X-Team", "b"), (b"x-team", "c")],
    ],
)
def test_of_headers_those_are_kept_that_may_shape_an_answer(headers: object) -> None:
    assert shaping("default_headers", headers) == {"x-team": ["b", "c"]}


@pytest.mark.parametrize("value", ["Bearer", None, [1, 2], ["ab", "cd", "efg"]])
def test_what_is_no_list_of_headers_stays_as_it_is(value: object) -> None:
    assert shaping("default_headers", value) is value


def test_other_settings_stay_as_they_are() -> None:
    assert shaping("params", {"Authorization": "x"}) == {"Authorization": "x"}
