"""The core: a `Cache` and its async face, as an application without a framework uses them."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from benchmarks.cases.rigs.apps import NO_VECTORS, NOT_LLAMA, ScriptedApp
from benchmarks.cases.script import INPUT_TOKENS, OUTPUT_TOKENS, Script
from benchmarks.cases.stamped import StampedRig, around
from benchmarks.cases.words import Ability, Call, Lack, Model, Reply, Said, elsewhere
from stampcache import Answer, Evidence, Hit, Request, Usage
from stampcache.adapters import fields

CORPUS = "handbook"


class CoreApp(ScriptedApp):
    """An application that asks the core itself, and retrieves by the words of a question."""

    def __init__(self, rig: "CoreRig", model: Model) -> None:
        self.script = Script()
        self._rig = rig
        self._model = model

    def change(self, **settings: Any) -> None:
        """See `App.change`."""
        if "model" in settings:
            settings["name"] = settings.pop("model")
        self._model = replace(self._model, **settings)

    def ask(self, call: Call) -> Reply:
        """See `App.ask`."""
        cache = self._rig.cache
        with around(call):
            request = self._request(call)
            found = cache.lookup(request, retrieve=self._rig.retrieve)
            if isinstance(found, Hit):
                return _told(found.answer, fields(found))
            answer = self._made(call)
            cache.update(request, answer, outcome=found)
        return _told(answer, fields(found))

    async def aask(self, call: Call) -> Reply:
        """See `App.aask`."""
        cache = self._rig.cache.aio
        with around(call):
            request = self._request(call)
            found = await cache.lookup(request, retrieve=self._rig.aretrieve)
            if isinstance(found, Hit):
                return _told(found.answer, fields(found))
            answer = self._made(call)
            await cache.update(request, answer, outcome=found)
        return _told(answer, fields(found))

    def share(self, call: Call) -> str:
        """See `App.share`."""
        with around(call):
            made = self._rig.cache.get_or_create(
                self._request(call), lambda: self._made(call), retrieve=self._rig.retrieve
            )
        return made.text

    async def ashare(self, call: Call) -> str:
        """See `App.ashare`."""

        async def make() -> Answer:
            await asyncio.sleep(0)
            return self._made(call)

        with around(call):
            made = await self._rig.cache.aio.get_or_create(
                self._request(call), make, retrieve=self._rig.aretrieve
            )
        return made.text

    def follow_up(self, call: Call, reply: Reply, question: str) -> Reply:
        """See `App.follow_up`."""
        history = [*call.history, ("human", call.question), ("ai", reply.text)]
        return self.ask(replace(call, history=history, question=question))

    def spoil(self, reply: Reply) -> None:
        """See `App.spoil`."""
        for call in reply.raw.tool_calls:
            call["args"] = "spoiled"

    def _request(self, call: Call) -> Request:
        model = self._model
        return Request(
            question=call.question,
            model=model.name,
            endpoint=model.endpoint,
            params={**model.params, **_known(temperature=model.temperature), **call.options},
            tools=[*map(_tool, call.tools), *_chosen(call)],
            system=call.system,
            corpus=CORPUS,
            history=[list(turn) for turn in call.history],
            evidence=tuple(self._rig.retrieve(call.question)),
        )

    def _made(self, call: Call) -> Answer:
        said, number = self.script.say(call.question)
        usage = Usage(
            input_tokens=INPUT_TOKENS,
            output_tokens=OUTPUT_TOKENS,
            cached_tokens=5,
            reasoning_tokens=3,
        )
        return Answer(
            text=said.text, finish_reason=said.finish, usage=usage, tool_calls=_calls(said, number)
        )


def _known(**given: object) -> dict[str, object]:
    return {name: value for name, value in given.items() if value is not None}


def _tool(tool: Any) -> object:
    return dict(tool) if isinstance(tool, Mapping) else [tool.__name__, tool.__doc__]


def _chosen(call: Call) -> list[object]:
    return [] if call.tool_choice is None else [{"choice": call.tool_choice}]


def _calls(said: Said, number: int) -> tuple[Mapping[str, object], ...]:
    if said.tool is None:
        return ()
    name, arguments = said.tool
    return ({"name": name, "args": dict(arguments), "id": f"call-{number}"},)


def _told(answer: Answer, told: Any) -> Reply:
    return Reply(
        text=answer.text,
        raw=answer,
        fields=told,
        essence=(answer.text, answer.finish_reason, answer.format, answer.payload),
    )


class CoreRig(StampedRig):
    """`Cache`, and `AsyncCache` on the same core."""

    name = "Cache"
    lacks: ClassVar[Mapping[Ability, Lack]] = {
        Ability.TOOL_TURNS: elsewhere("keeps answers; a turn that calls tools is none"),
        Ability.SCHEMAS: elsewhere("knows texts; objects are the affair of adapters"),
        Ability.CONDENSES: elsewhere("is given the question"),
        Ability.PROMPTS: elsewhere("is given the question apart from the prompt"),
        Ability.PLAIN_TEXT: elsewhere("knows no model"),
        Ability.MESSAGES: elsewhere("is given no messages"),
        Ability.MADE_ANEW: elsewhere("its answers have no ids"),
        Ability.SEVERAL: elsewhere("keeps one answer of a request"),
        Ability.GENERATIONS: elsewhere("knows no generations of LangChain"),
        Ability.STREAMS: elsewhere("gives whole answers; adapters stream"),
        Ability.USAGE: elsewhere("counts no tokens for a framework"),
        Ability.VECTORS: NO_VECTORS,
        Ability.LLAMA: NOT_LLAMA,
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._shelf: dict[str, str] = {}

    def app(self, model: Model = Model()) -> CoreApp:  # noqa: B008 - frozen
        """See `Rig.app`."""
        return CoreApp(self, model)

    def with_function(self, function: Callable[[str], str]) -> CoreApp:
        """See `Rig.with_function`."""
        return self.app(Model(params={"shape": function}))

    def retrieve(self, question: str) -> Sequence[Evidence]:
        """Return the documents that share a longer word with the question."""
        words = words_of(question)
        return [
            Evidence(corpus=CORPUS, source=name, text=text)
            for name, text in sorted(self._shelf.items())
            if words & words_of(text)
        ]

    async def aretrieve(self, question: str) -> Sequence[Evidence]:
        """See `retrieve`."""
        return self.retrieve(question)

    def write(self, name: str, text: str) -> None:
        """See `Rig.write`."""
        self._shelf[name] = text
        self._cache.invalidate(corpus=CORPUS, source=name)

    def delete(self, name: str) -> None:
        """See `Rig.delete`."""
        del self._shelf[name]
        self._cache.invalidate(corpus=CORPUS, source=name)

    def move(self, name: str, other: str) -> None:
        """See `Rig.move`."""
        self._shelf[other] = self._shelf.pop(name)


def words_of(text: str) -> set[str]:
    """Return the words of more than four letters."""
    return {word for word in text.lower().strip("?.").split() if len(word) > 4}
