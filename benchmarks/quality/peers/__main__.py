"""Runs the peers: ``python -m benchmarks.quality.peers --data ../shared/data [--only gptcache]``.

Each peer gets an environment of its own in ``.peers``, the same pairs and the same vectors, and
writes a line for each pair, which ``python -m benchmarks.quality`` then reads.
"""

import argparse
import json
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np

from benchmarks.quality import sets
from benchmarks.quality.peers import FOLDER
from training.verifier.assembling import Embedding

NEEDS: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        "gptcache": ("gptcache==0.1.44", "sqlalchemy", "faiss-cpu", "numpy"),
        "semanticmemo": ("semanticmemo==2.0.0", "torch", "sentence-transformers", "numpy"),
        "waggle": ("waggle-cache==0.4.1", "numpy"),
        "langchain_redis": ("langchain-redis==0.2.6", "numpy"),
    }
)
HERE = Path(__file__).parent


def hand_out(data: Path, folder: Path, quick: bool, chosen: Sequence[str]) -> None:
    """Write the pairs and their vectors; of all sets if none is chosen."""
    embedding = Embedding()
    folder.mkdir(parents=True, exist_ok=True)
    texts: set[str] = set()
    with (folder / "pairs.jsonl").open("w", encoding="utf-8") as lines:
        for measured in sets.every(data, quick):
            if chosen and measured.name not in chosen:
                continue
            for at, pair in enumerate(measured.pairs):
                texts |= {pair.asked, pair.stored}
                row = {"set": measured.name, "at": at, "asked": pair.asked, "stored": pair.stored}
                lines.write(json.dumps(row) + "\n")
    ordered = sorted(texts)
    np.savez(folder / "vectors.npz", texts=np.array(ordered), vectors=embedding(ordered))


def run(peer: str, given: Path) -> int:
    """Make the peer's environment if it is not there, and let it score."""
    home = FOLDER / peer
    python = home / "bin" / "python"
    if not python.exists():
        venv.create(home, with_pip=True)
        install = [str(python), "-m", "pip", "install", "--quiet", *NEEDS[peer]]
        subprocess.run(install, check=True)
    out = FOLDER / f"{peer}.partial"
    script = str(HERE / f"score_{peer}.py")
    ended = subprocess.run([str(python), script, str(given), str(out)], check=False)
    if ended.returncode == 0:
        keep(out, FOLDER / f"{peer}.jsonl")
    return ended.returncode


def keep(found: Path, file: Path) -> None:
    """Put what was found in place of what the file holds of the same sets."""
    lines = found.read_text(encoding="utf-8").splitlines()
    new = {json.loads(line)["set"] for line in lines}
    if file.exists():
        old = file.read_text(encoding="utf-8").splitlines()
        lines += [line for line in old if json.loads(line)["set"] not in new]
    found.write_text("\n".join(lines) + "\n", encoding="utf-8")
    found.rename(file)


def main() -> int:
    """Run all peers, or one."""
    parser = argparse.ArgumentParser(description="Let peers score the pairs.")
    parser.add_argument("--data", type=Path, required=True, help="folder of the measuring data")
    parser.add_argument("--only", choices=sorted(NEEDS), help="run this peer only")
    parser.add_argument("--quick", action="store_true", help="the pairs of a quick run")
    parser.add_argument(
        "--set", action="append", default=[], help="score this set; may be repeated"
    )
    given = parser.parse_args()
    folder = FOLDER / "given"
    hand_out(given.data, folder, given.quick, given.set)
    failed = [peer for peer in NEEDS if given.only in (None, peer) and run(peer, folder)]
    for peer in failed:
        print(f"{peer} failed; its rows are left out.")
    return len(failed)


if __name__ == "__main__":
    sys.exit(main())
