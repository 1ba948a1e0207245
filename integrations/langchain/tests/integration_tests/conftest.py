"""Gives the tests of each module of this folder a scripted server."""

from collections.abc import Iterator

import pytest

from integrations.langchain.tests.scripted_openai import Script, scripted_openai


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    with scripted_openai() as script:
        yield script
