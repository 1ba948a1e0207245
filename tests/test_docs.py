"""The documentation is true: code runs, commands exist, tables are complete, links lead on.

All blocks of one page share a namespace and run in order, in an empty folder; the network is closed
by pytest's own settings. Blocks that a reader need not see stand in HTML comments.
"""

import importlib.util
import inspect
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

import stampcache
from stampcache import Reason
from tests.redis.servers import Server

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LANGUAGES = {"python", "bash", "text", "toml", ""}
FRAMEWORKS = {
    "langchain_stampcache": "langchain_core",
    "llama_index_stampcache": "llama_index.core",
}
SHELL_PROGRAMS = {"cd", "mkdir", "cp", "export", "towncrier"}
SERVERS = {"vllm"}  # run by readers on a machine with a GPU; we only document how
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
FENCE = re.compile(r"^(`{3,})(.*)$", re.MULTILINE)


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


# -- code ------------------------------------------------------------------------------------------


def check_commands(example: Example) -> None:
    """Evaluate a shell block: every command in it must exist, with the options that it is given."""
    for line in str(example.parsed).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        while words and re.fullmatch(r"\w+=.*", words[0]):
            words.pop(0)
        if words:
            check_command([Path(words[0]).name, *words[1:]])


def check_command(words: list[str]) -> None:
    match words:
        case ["make", *targets]:
            known = set(re.findall(r"^(\w+):", text_of("Makefile"), re.MULTILINE))
            named = {target for target in targets if "=" not in target}
            assert named <= known, f"make has no target {named - known}"
        case ["stampcache", *arguments]:
            check_stampcache(arguments)
        case ["python", "-m", module, *_]:
            assert importlib.util.find_spec(module) is not None, f"there is no module {module}"
        case ["pip", "install", *wanted]:
            for project in wanted:
                check_project(project)
        case [program, *_]:
            assert program in SHELL_PROGRAMS | SERVERS, f"nobody checks the command {program}"


def check_stampcache(arguments: list[str]) -> None:
    """Let the command line parse the arguments, without running the command."""
    typer_main = pytest.importorskip("typer.main")
    from stampcache.cli.app import build_app

    group = typer_main.get_command(build_app())
    name, *rest = arguments
    assert name in group.commands, f"stampcache has no command {name}"
    if rest != ["--help"]:
        group.commands[name].make_context(name, rest)


def check_project(wanted: str) -> None:
    folder, _, extras = wanted.removesuffix("]").partition("[")
    assert folder.startswith("."), f"{wanted} is not installed from this repository"
    project = tomllib.loads(text_of(f"{folder}/pyproject.toml"))["project"]
    known = set(project.get("optional-dependencies", {}))
    assert set(filter(None, extras.split(","))) <= known, f"{wanted} names an unknown extra"


def examples(page: Path) -> Iterator[Example]:
    sybil = Sybil(
        parsers=[PythonCodeBlockParser(), CodeBlockParser("bash", check_commands)],
        path=str(ROOT),
    )
    yield from sybil.parse(page).examples()


@pytest.fixture
def no_global_cache() -> Iterator[None]:
    """Take LangChain's global cache away again, also after a block that failed."""
    yield
    langchain = sys.modules.get("langchain_core.globals")
    if langchain is not None:
        langchain.set_llm_cache(None)


# LlamaIndex's bridge imports langchain-community where it is installed, which warns of its own end.
@pytest.mark.filterwarnings("ignore:.langchain-community. is being sunset:DeprecationWarning")
@pytest.mark.usefixtures("no_global_cache")
@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    for adapter, framework in FRAMEWORKS.items():
        if f"import {adapter}" in text or f"from {adapter}" in text:
            pytest.importorskip(framework)
    with ExitStack() as stack:
        if "CACHE_URL" in text:  # the page shares a cache: it is given a server
            monkeypatch.setenv("CACHE_URL", stack.enter_context(Server()).url)
        for example in examples(page):
            example.evaluate()


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_no_block_escapes(page: Path) -> None:
    opening = FENCE.findall(page.read_text(encoding="utf-8"))[::2]
    assert {language.strip() for _, language in opening} <= LANGUAGES


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


# -- completeness ----------------------------------------------------------------------------------


def test_every_public_name_is_listed() -> None:
    listed = set(re.findall(r"`(\w+)`", text_of("docs/reference/api.md")))
    assert set(stampcache.__all__) - listed == set()


def test_every_reason_is_explained() -> None:
    explained = set(re.findall(r"`([A-Z_]+)`", text_of("docs/reference/outcomes-and-reasons.md")))
    assert set(Reason.__members__) - explained == set()


def test_every_argument_is_listed_with_its_default() -> None:
    page = text_of("docs/reference/configuration.md")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    parameters = inspect.signature(stampcache.open_cache).parameters
    assert list(rows) == list(parameters)
    for name, parameter in parameters.items():
        stated = re.match(r"`([^`]+)`", rows[name])
        if stated and parameter.default is not None:
            assert eval(stated[1]) == parameter.default, name


def test_no_figure_without_its_run_file() -> None:
    _, _, rest = text_of("README.md").partition("<!-- measured: begin")
    block, _, _ = rest.partition("<!-- measured: end")
    rows = re.findall(r"^\| (.*?) \| (.*?) \| ?(.*?) ?\|$", block, re.MULTILINE)[2:]
    assert rows
    for what, figure, run_file in rows:
        filled = figure != "not yet filled"
        assert filled == bool(LINK.fullmatch(run_file)), what


def test_every_record_is_listed() -> None:
    records = {path.name for path in (ROOT / "docs/adr").glob("[0-9]*.md")}
    assert records == set(LINK.findall(text_of("docs/adr/README.md")))


def test_records_that_code_cites_exist() -> None:
    cited = {
        number
        for path in (ROOT / "src").rglob("*.py")
        for number in re.findall(r"ADR (\d{4})", path.read_text(encoding="utf-8"))
    }
    existing = {path.name[:4] for path in (ROOT / "docs/adr").glob("[0-9]*.md")}
    assert cited <= existing


def test_records_are_short() -> None:
    lengths = {
        path.name: len(path.read_text(encoding="utf-8").splitlines())
        for path in (ROOT / "docs/adr").glob("[0-9]*.md")
    }
    assert {name: length for name, length in lengths.items() if length > 60} == {}
