"""Guards see differences that similarity does not, and nothing in a harmless rewording."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stampcache.guards import Finding, Guard, compare, findings, profile

VOCABULARY = """
    how do I not don't never without reset the password in Python Java python on off enable disable
    2 two twenty four 1,000 3.11 US united States more less polite rude happy unhappy from Paris to
    Rome AWS == === `try` foo_bar --force for while loop 怎么 不 没有 三个 what when where vs open
    closed . ? 5k million
"""
WORDS = st.sampled_from(VOCABULARY.split())
QUESTIONS = st.one_of(st.lists(WORDS, max_size=14).map(" ".join), st.text(max_size=60))

SAME = [
    ("Please tell me how DNS works", "Could you explain how DNS works?"),
    ("Please tell me how DNS works", "how does dns work"),
    ("How do I reset my password?", "how do i reset my passwrod"),
    ("How do I install numpy with pip?", "how do i instal numpy wiht pip"),
    ("Is Python's grammar simple?", "is the Python grammar simple"),
    ("Run it in Docker containers", "how to run it in a docker container"),
    ("How To Learn Advanced Python Fast", "how can I learn advanced python fast?"),
    ("HOW DO YOU RESET YOUR PASSWORD", "how do I reset my password"),
    ("How do I repair my bike?", "How do I fix my bike?"),
    ("What is the difference between Rust and Go?", "How do Go and Rust differ?"),
    ("Is Heather married to Ethan?", "Is Ethan married to Heather?"),
    ("What is an ETF?", "What is an Exchange Traded Fund (ETF)?"),
    ("What are ETFs?", "What are Exchange Traded Funds?"),
    ("How big is the US?", "How big are the United States?"),
    ("How large is the U.S.?", "How large is the USA?"),
    ("What is new in Node.js?", "what is new in node js"),
    ("What does `list.sort()` do?", "what does list.sort do"),
    ("What does git rebase do?", "What does `git rebase` do?"),
    ("How do == and === differ?", "How does double differ from triple equals?"),
    ("In Python, how do I sort a dict?", "How do I sort a dict in Python?"),
    # numbers
    ("Is 1,000 a round number?", "Is one thousand a round number?"),
    ("Is 24 even?", "is twenty-four even"),
    ("Who owns 1.5 million shares?", "Who owns 1500000 shares?"),
    ("Who earns 100k?", "Who earns 100,000?"),
    ("Who lives in 2 thousand five hundred houses?", "Who lives in 2500 houses?"),
    ("Who was the 1st king?", "Who was the first king?"),
    ("How did World War II end?", "How did World War 2 end?"),
    ("What is OAuth 2.0?", "What is OAuth 2?"),
    ("How do I use two-factor login?", "How do I use factor login?"),
    # negations
    ("How do I undo it?", "I don't know how to undo it, how do I?"),
    ("Isn't the API free?", "Is the API free?"),
    ("Can I not avoid never paying?", "Can I avoid paying?"),
    ("Should I upgrade or not?", "Should I upgrade?"),
    ("How do I become visible?", "How do I become someone who is not invisible?"),
    ("How can I be less rude?", "How can I be more polite?"),
    ("How can I be more hopeful?", "How can I be less hopeless?"),
    # Chinese
    ("怎么重置密码？", "请问如何重置密码？"),
    ("我能不能退款？", "我可以退款吗？"),
    ("有没有折扣？", "有折扣吗？"),
    ("不过怎么退款？", "怎么退款？"),
    ("这两个差不多吗？", "这两个一样吗？"),
    ("这有什么区别和特别之处？", "这有什么不同和独特之处？"),
    ("一般要多久？", "通常要多久？"),
    ("第二十四章讲什么？", "第24章讲什么？"),
    ("二〇二四年的假期", "2024年的假期"),
    ("三百零五个人", "305个人"),
    ("十二万三千个人", "123000个人"),
]  # fmt: skip

DIFFERENT = [
    ("What is new in python 3.11?", "What is new in python 3.12?", Guard.NUMBER),
    ("What is new in python 3.10?", "What is new in python 3.1?", Guard.NUMBER),
    ("Is 24 even?", "Is 42 even?", Guard.NUMBER),
    ("Give me two examples", "Give me three examples", Guard.NUMBER),
    ("Who is the CEO?", "Who was the CEO in 2010?", Guard.NUMBER),
    ("Is -5 odd?", "Is 5 odd?", Guard.NUMBER),
    ("Flights on 2024-01-05", "Flights on 2024-05-01", Guard.NUMBER),
    ("Is 10:30k a time?", "Is 10:40k a time?", Guard.NUMBER),
    ("How was World War II?", "How was World War III?", Guard.NUMBER),
    ("How do I reset my password?", "How do I NOT reset my password?", Guard.NEGATION),
    ("Cancel my order", "Don't cancel my order", Guard.NEGATION),
    ("Cancel my order", "dont cancel my order", Guard.NEGATION),
    ("Can I deploy with Docker?", "Can I deploy without Docker?", Guard.NEGATION),
    ("Why is it supported?", "Why is it no longer supported?", Guard.NEGATION),
    ("Why is it working?", "Why isn’t it working?", Guard.NEGATION),
    ("Hotels in Munich", "Hotels in Berlin", Guard.NAME),
    ("Is Bootstrap used in Spain?", "Is Bootstrap used?", Guard.NAME),
    ("AWS pricing", "GCP pricing", Guard.NAME),
    ("How do I sort in C#?", "How do I sort in C++?", Guard.NAME),
    ("在Python中怎么排序", "在Java中怎么排序", Guard.NAME),
    ("What does `try` do?", "What does `with` do?", Guard.CODE),
    ("What does 'try' do?", 'What does "with" do?', Guard.CODE),
    ("what does the for statement do", "what does the while statement do", Guard.CODE),
    ("What does foo_bar return?", "What does foo_baz return?", Guard.CODE),
    ("What does read() return?", "What does write_all() return?", Guard.CODE),
    ("How do I use --force?", "How do I use --no-verify?", Guard.CODE),
    ("What does == mean?", "What does === mean?", Guard.CODE),
    ("How do I enable logging?", "How do I disable logging?", Guard.ANTONYM),
    ("Turn off sound on my phone", "Turn on sound on my phone", Guard.ANTONYM),
    ("How do I install it?", "How do I uninstall it?", Guard.ANTONYM),
    ("Is it hopeless?", "Is it hopeful?", Guard.ANTONYM),
    ("hotels in munich", "hotels in berlin", Guard.SUBSTITUTION),
    ("do iranian cats purr", "do iranian dogs purr", Guard.SUBSTITUTION),
    ("When was the tower built?", "Where was the tower built?", Guard.SUBSTITUTION),
    ("Flights from Paris to Rome", "Flights from Rome to Paris", Guard.DIRECTION),
    ("Is Rust better than Go?", "Is Go better than Rust?", Guard.DIRECTION),
    ("Turn a JSON string to a Python dict", "Turn a Python dict to a JSON string", Guard.DIRECTION),
    ("怎么退款？", "怎么不退款？", Guard.NEGATION),
    ("可以退款吗？", "没有发票可以退款吗？", Guard.NEGATION),
    ("有三个苹果", "有四个苹果", Guard.NUMBER),
    ("2023年的假期", "二〇二四年的假期", Guard.NUMBER),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "stored"), SAME)
def test_a_rewording_passes(asked: str, stored: str) -> None:
    assert findings(asked, stored) == ()


@pytest.mark.parametrize(("asked", "stored", "guard"), DIFFERENT)
def test_a_difference_is_seen(asked: str, stored: str, guard: Guard) -> None:
    assert guard in [finding.guard for finding in findings(asked, stored)]


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("How does the cache expire old entries?", "What is the best soup for a cold day?"),
        ("How do I bake bread in a small oven?", "How do I paint walls of an old barn?"),
    ],
)
def test_unrelated_questions_are_left_to_similarity(asked: str, stored: str) -> None:
    assert findings(asked, stored) == ()


def test_a_finding_reads_as_a_phrase() -> None:
    assert str(Finding(Guard.NUMBER, "3.11", "")) == 'number: asked "3.11", stored nothing'
    seen = findings("How do I enable caching?", "How do I disable caching?")
    assert [str(finding) for finding in seen] == ['antonym: asked "enable", stored "disable"']


@given(QUESTIONS, QUESTIONS)
@example("more less happy", "unhappy polite less less")
def test_changing_places_changes_only_the_sides(asked: str, stored: str) -> None:
    turned = tuple([Finding(f.guard, f.stored, f.asked) for f in findings(asked, stored)])
    assert findings(stored, asked) == turned


@given(QUESTIONS)
def test_a_question_does_not_differ_from_itself(question: str) -> None:
    assert compare(profile(question), profile(question)) == ()
    assert findings(question, question) == ()


@given(QUESTIONS, QUESTIONS)
def test_findings_are_of_different_kinds_and_never_empty(asked: str, stored: str) -> None:
    seen = findings(asked, stored)
    assert len({finding.guard for finding in seen}) == len(seen)
    assert all(finding.asked or finding.stored for finding in seen)


@given(QUESTIONS, QUESTIONS)
def test_profiles_made_before_give_the_same_findings(asked: str, stored: str) -> None:
    assert compare(profile(asked), profile(stored)) == findings(asked, stored)


@given(st.integers(13, 10**7), st.integers(13, 10**7))
def test_numbers_differ_as_numbers_do(one: int, other: int) -> None:
    seen = findings(f"How old are {one} stars?", f"How old are {other:,} stars?")
    assert [finding.guard for finding in seen] == ([] if one == other else [Guard.NUMBER])


@given(st.integers(0, 4), st.integers(0, 4))
def test_negation_counts_by_parity(one: int, other: int) -> None:
    asked, stored = (" ".join(["Is it", *["not"] * n, "open"]) for n in (one, other))
    seen = findings(asked, stored)
    assert [finding.guard for finding in seen] == [Guard.NEGATION] * ((one + other) % 2)
