"""``stampcache explain``: why a question would hit or miss now, and what else is close to it."""

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from stampcache import canonical, guards
from stampcache.cache import Cache
from stampcache.cli.explain_view import Neighbour, Surroundings, Twin, show
from stampcache.cli.options import (
    Audience,
    CorpusName,
    EmbedderName,
    Model,
    ModelEndpoint,
    Namespace,
    Params,
    Prompt,
    Question,
    Secret,
    StampTexts,
    System,
    Tenant,
    Threshold,
    Url,
    params_from,
    scope_from,
    stamps_from,
)
from stampcache.cli.screen import screen
from stampcache.cli.target import (
    existing_file,
    existing_store,
    keys_in_environment,
    secret_of,
)
from stampcache.errors import EmbedderError
from stampcache.explain import Explanation
from stampcache.freshness import Freshness
from stampcache.model import Identity, Vector
from stampcache.outcome import Hit, Outcome
from stampcache.request import Request
from stampcache.stores.sqlite_survey import SqliteSurvey, survey

_NEIGHBOURS = 8
_ENTRIES_READ = 20_000
_TWINS = 10


def explain(
    url: Url,
    question: Question,
    *,
    tenant: Tenant = None,
    namespace: Namespace = None,
    audience: Audience = None,
    model: Model = "",
    param: Params = None,
    system: System = "",
    endpoint: ModelEndpoint = "",
    corpus: CorpusName = "",
    prompt: Prompt = None,
    stamp: StampTexts = None,
    embedder: EmbedderName = None,
    threshold: Threshold = None,
    secret: Secret = None,
) -> None:
    """Look a question up without serving, counting or touching anything, and tell every check.

    Also shows which stored questions are close, and what the guard sees in each. Entries are
    visible only under the settings they were made with: give them as the application does.
    """
    request = Request(
        question=question,
        model=model,
        params=params_from(param),
        system=system,
        endpoint=endpoint,
        corpus=corpus,
        prompt=prompt,
        scope=scope_from(tenant, namespace, audience),
    )
    stamps, path = stamps_from(stamp), existing_file(url)
    store = existing_store(url)
    try:
        key = secret_of(url, secret)
        with screen(stderr=True).status("Looking ..."):
            cache = Cache(
                store,
                embedder=embedder,
                calibration=threshold,
                freshness=Freshness(),  # what an entry is doubted from on stands in the entry
                stamps=stamps,
                secret=key,
            )
            explanation = cache.explain(request)
            around = _around(cache, path, explanation)
    finally:
        store.close()
    show(screen(), explanation, around)


def _around(cache: Cache, path: Path, explanation: Explanation) -> Surroundings:
    """Return what lies near the question in the store; nothing for a request that bypasses it."""
    request = explanation.request
    where = _identity(explanation.outcome)
    if where is None:
        return Surroundings()
    neighbours: Sequence[Neighbour] = ()
    problem = ""
    try:
        vector = _vector(cache, explanation)
        if vector is not None:
            neighbours = _neighbours(cache, request, where, vector)
    except EmbedderError as error:
        problem = str(error)
    with survey(path, encryption_key=keys_in_environment()) as seen:
        return Surroundings(
            partition=where.partition,
            same_settings=seen.entries_in(where.partition),
            all_entries=sum(one.entries for one in seen.stamps()),
            stamps=seen.stamps(where.scope),
            neighbours=neighbours,
            compared=cache.core.parts.embedding is not None,
            problem=problem,
            twins=tuple(islice(_twins(seen, where, request.question), _TWINS)),
        )


def _twins(seen: SqliteSurvey, where: Identity, question: str) -> Iterator[Twin]:
    """Yield entries of the scope that have this very question at another address."""
    asked = canonical.text(question)
    for entry in seen.latest(where.scope, _ENTRIES_READ):
        if entry.identity != where and canonical.text(entry.question) == asked:
            yield Twin(entry, entry.identity.partition == where.partition)


def _identity(outcome: Outcome) -> Identity | None:
    """Return the address of what was asked; of a semantic hit only the key is another one."""
    return outcome.entry.identity if isinstance(outcome, Hit) else outcome.identity


def _vector(cache: Cache, explanation: Explanation) -> Vector | None:
    embedding = cache.core.parts.embedding
    if embedding is None or not explanation.request.question.strip():
        return None
    outcome = explanation.outcome
    carried = None if isinstance(outcome, Hit) else outcome.vector
    return embedding.embed(explanation.request.question).vector if carried is None else carried


def _neighbours(
    cache: Cache, request: Request, where: Identity, vector: Vector
) -> Sequence[Neighbour]:
    found = cache.core.store.nearest(
        where.partition, vector, _NEIGHBOURS, asked=where.key, now=time.time()
    )
    return tuple(
        Neighbour(one, tuple(map(str, guards.findings(request.question, one.entry.question))))
        for one in found
    )
