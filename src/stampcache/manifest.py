"""The ingestion manifest: what an index was made with, written beside it by whoever ingests (ADR 0014).

An application cannot see how its index was made. So ingestion writes it down, and the application
reads it: as the stamp of its index, and to refuse a mixture, such as chunks that were measured with
one tokenizer before a model that reads with another.
"""

import os
import secrets
from pathlib import Path

import msgspec
from msgspec import Struct

from stampcache import canonical
from stampcache.errors import ConfigError
from stampcache.identity import refuse_mixture
from stampcache.model import Stamps

_FORMAT = 1


class Manifest(Struct, frozen=True, kw_only=True):
    """What one index was made with. Names are the user's own; an empty one is unknown.

    ``version`` is that of the index as it was built: change it whenever documents are ingested in
    another way. ``corpus`` is the body of documents; a cache that is opened with the manifest takes it
    for requests that name none, but for bare calls of a model.
    """

    corpus: str
    version: str
    tokenizer: str = ""
    embedder: str = ""
    chunker: str = ""
    format: int = _FORMAT

    def __post_init__(self) -> None:
        if not self.corpus or not self.version:
            raise ConfigError("A manifest needs corpus= and version=; name both.")

    @property
    def index(self) -> str:
        """The stamp of the index: its version, and a digest of what it was made with."""
        made_with = (self.corpus, self.version, self.chunker, self.embedder, self.tokenizer)
        digest = canonical.digest([canonical.encode(one) for one in made_with], person=b"manifest")
        return f"{self.corpus}@{self.version}:{digest.removeprefix(canonical.FORMAT)[:16]}"

    def write(self, path: str | Path) -> None:
        """Write it as JSON; a reader sees the old file or the new one, never a part."""
        target = Path(path)
        raw = msgspec.json.format(msgspec.json.encode(self), indent=2)
        new = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            with new.open("xb") as file:
                file.write(raw + b"\n")
                file.flush()
                os.fsync(file.fileno())
            new.replace(target)
        except BaseException:
            new.unlink(missing_ok=True)
            raise

    @staticmethod
    def read(path: str | Path) -> "Manifest":
        """Return the manifest in a file.

        Raises:
            ConfigError: the file is not there, or is no manifest.
        """
        try:
            manifest = msgspec.json.decode(Path(path).read_bytes(), type=Manifest)
        except OSError as error:
            raise ConfigError(
                f"The manifest {path} cannot be read ({error.strerror}); let ingestion write it"
                " with Manifest(...).write(path)."
            ) from error
        except (msgspec.MsgspecError, UnicodeDecodeError, ConfigError) as error:
            raise ConfigError(f"{path} is no ingestion manifest: {error}") from error
        if manifest.format != _FORMAT:
            raise ConfigError(
                f"The manifest {path} has the format {manifest.format}; this stampcache reads"
                f" {_FORMAT}."
            )
        return manifest

    def checked(self, stamps: Stamps) -> Stamps:
        """Return the stamps with that of this index.

        Raises:
            ConfigError: the index was made with another tokenizer than the model's, or the stamps name
                another index.
        """
        refuse_mixture(
            "tokenizer",
            made=self.tokenizer,
            where=f"the index of corpus {self.corpus!r}",
            runs=stamps.tokenizer,
        )
        refuse_mixture("index", made=self.index, where=f"corpus {self.corpus!r}", runs=stamps.index)
        return Stamps(tokenizer=self.tokenizer, index=self.index).over(stamps)


def as_manifest(given: Manifest | str | Path | None) -> Manifest | None:
    """Return the manifest that a user passes, itself or the path of its file."""
    return Manifest.read(given) if isinstance(given, str | Path) else given
