"""``--ask``: a person types questions as any tenant, and sees for each what the cache decided."""

from collections.abc import Callable, Mapping

from rich.console import Console
from rich.text import Text

import stampcache
from stampcache.demo.app import RagApp
from stampcache.demo.story import ACME
from stampcache.demo.table import printable
from stampcache.errors import StampCacheError

HELP = (
    "Type a question. :tenant NAME asks as another tenant, :edit TOPIC replaces a document, "
    ":topics lists them, :quit ends."
)


class Prompt:
    """The loop. ``read`` returns the next line that was typed, given a prompt to show."""

    def __init__(
        self,
        app: RagApp,
        *,
        texts: Mapping[str, str],
        console: Console,
        read: Callable[[str], str],
    ) -> None:
        self._app = app
        self._texts = texts
        self._console = console
        self._read = read
        self._tenant = ACME

    def run(self) -> int:
        """Answer until ``:quit`` or the end of input; return 0."""
        self._say(HELP, style="dim")
        while True:
            try:
                line = self._read(f"{self._tenant}> ").strip()
            except (EOFError, KeyboardInterrupt):
                return 0
            if line in (":quit", ":q"):
                return 0
            if line:
                self._obey(line)

    def _obey(self, line: str) -> None:
        verb, _, rest = line.partition(" ")
        rest = rest.strip()
        try:
            match verb:
                case ":tenant" if rest:
                    self._tenant = rest
                case ":edit" if rest in self._texts:
                    self._edit(rest)
                case ":edit" if rest:
                    self._say(f'There is no topic "{rest}"; :topics lists them.', style="red")
                case ":topics":
                    self._say(", ".join(sorted(self._texts)))
                case _ if line.startswith(":"):
                    self._say(HELP, style="dim")
                case _:
                    self._answer(line)
        except StampCacheError as error:
            self._say(str(error), style="red")

    def _answer(self, question: str) -> None:
        with stampcache.scope(tenant=self._tenant):
            explained = self._app.explain(question)
            answer, _ = self._app.ask(question)
        self._say(answer, style="bold")
        for line in explained.splitlines():
            self._console.print(Text("  " + printable(line), style="dim"))

    def _edit(self, source: str) -> None:
        self._say(self._texts[source], style="dim")
        text = self._read(f'new text of "{source}" (empty: leave it)> ').strip()
        if text:
            self._app.edit(source, text)
            self._say(f'"{source}" was replaced until the demo is started again.', style="cyan")

    def _say(self, text: str, *, style: str = "") -> None:
        self._console.print(Text(printable(text), style=style), soft_wrap=True)
