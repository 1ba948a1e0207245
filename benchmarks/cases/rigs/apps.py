"""What the applications of all rigs have in common, and what hardly any seam has."""

from benchmarks.cases.rig import App
from benchmarks.cases.script import Script
from benchmarks.cases.words import Ability, Lack, Saying, Verdict, elsewhere

CORE = Lack(Verdict.CORE, "decided in the core, below every seam: the column `Cache`")
NO_VECTORS = elsewhere("gives answers, no vectors: the columns of embedders")
NOT_LLAMA = elsewhere("is no seam of LlamaIndex")
EVERYWHERE = {
    Ability.CORE: CORE,
    Ability.VECTORS: NO_VECTORS,
    Ability.LLAMA: NOT_LLAMA,
}
"""What hardly any seam has."""


class ScriptedApp(App):
    """An application whose model follows a script."""

    script: Script

    @property
    def calls(self) -> int:
        """See `App.calls`."""
        return self.script.calls

    def reply_with(self, saying: Saying) -> None:
        """See `App.reply_with`."""
        self.script.saying = saying

    def break_streams(self, *, at: int | None) -> None:
        """See `App.break_streams`."""
        self.script.breaks_at = at
