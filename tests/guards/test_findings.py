"""Guards see differences that similarity does not, and nothing in a harmless rewording."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stampcache.guards import Finding, Guard, compare, findings, profile
from stampcache.guards.alike import flipped, replaceable
from stampcache.guards.tokens import fold

VOCABULARY = """
    how do I not don't never without reset the password in Python Java python on off enable disable
    2 two twenty four 1,000 3.11 US united States more less polite rude happy unhappy from Paris to
    Rome AWS == === `try` foo_bar --force for while loop 怎么 不 没有 三个 what when where vs open
    closed . ? 5k million by was is paid `order_by` on_to step-by-step except only last 2024 May March
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
    # equal amounts, dates and cues in other words
    ("How long is 24 hours?", "How long is one day?"),
    ("What was the revenue in Q1?", "What was the revenue in the first quarter?"),
    ("Does it take 30 minutes?", "Does it take half an hour?"),
    ("What costs $5?", "What costs 5 dollars?"),
    ("What does USD 15 buy?", "What does $15 buy?"),
    ("Is 5% a lot?", "Is 5 percent a lot?"),
    ("Do we meet at 3pm?", "Do we meet at 15:00?"),
    ("Flights on 2024-01-05", "Flights on January 5, 2024"),
    ("Flights on 5 Jan 2024", "Flights on January 5th 2024"),
    ("Which songs of the 1990s last?", "which songs of the 1990s last"),
    ("What is a 12 month plan?", "What is a one year plan?"),
    ("Is 2 km far?", "Is 2000 meters far?"),
    ("Is 3 an age of 3 years?", "Is 3 an age of 3 years"),
    ("What is COVID-19?", "what is covid"),
    ("What does GPT-4 cost?", "What does GPT 4 cost?"),
    ("How much is it per day?", "How much is it daily?"),
    ("What is the maximum size?", "What is the max size?"),
    ("Who is the CEO right now?", "Who is the current CEO?"),
    ("Who leads now?", "Who leads this year?"),
    ("Who are all users?", "Who are every user?"),
    ("What happened last year?", "What happened in the previous year?"),
    ("Does Ann pay Bob?", "Is Bob paid by Ann?"),
    ("What is due by the way?", "What is due?"),
    ("What is 3 + 4 (now)?", "what is 3 + 4 now"),
    ("How do I use `order_by`?", "How can I use `order_by`?"),
    ("Is it due in May?", "is it due in May"),
    ("May I go?", "may i go"),
    ("I was wondering how it works", "How does it work?"),
    ("How much exercise do children need?", "How much exercise is needed for children?"),
    ("Is half of it gone?", "is half of it gone"),
    ("Did Ann tell Bob that he won?", "Did Ann tell Bob he won?"),
    ("I loved it, who is he?", "I love it, who is he?"),
    ("Which display is best?", "which display is best"),
    ("Is it due on March 3?", "is it due on 3 March"),
    ("Is half an order cheap?", "is half an order cheap"),
    ("三天够吗？", "3天够吗？"),
    ("等 3 天够吗？", "等三天够吗？"),
    ("2024年1月5日的航班", "2024-01-05的航班"),
    ("周一开门吗", "星期一开门吗"),
    ("3万元够吗", "30000元够吗"),
    ("第一季度的收入", "第1季度的收入"),
    ("5公斤够吗", "5000克够吗"),
    ("北京的天气", "Beijing的天气"),
    ("为什么天是蓝的", "天为何是蓝的"),
    ("不仅如此还有什么", "还有什么"),
    ("苹果比梨贵吗", "梨比苹果更便宜吗"),
    ("从上海到北京要多久？", "坐车从上海到北京多长时间？"),
]  # fmt: skip

DIFFERENT = [
    ("What is new in python 3.11?", "What is new in python 3.12?", Guard.VERSION),
    ("What is new in python 3.10?", "What is new in python 3.1?", Guard.VERSION),
    ("Is 24 even?", "Is 42 even?", Guard.NUMBER),
    ("Give me two examples", "Give me three examples", Guard.NUMBER),
    ("Who is the CEO?", "Who was the CEO in 2010?", Guard.DATE),
    ("Is -5 odd?", "Is 5 odd?", Guard.NUMBER),
    ("Solve x > 5", "Solve x < 5", Guard.CODE),
    ("Is x = 5 true?", "Is x != 5 true?", Guard.CODE),
    ("What is 3/4 of it?", "What is 3*4 of it?", Guard.CODE),
    ("What does >= mean?", "Explain <= please", Guard.CODE),
    ("Flights on 2024-01-05", "Flights on 2024-05-01", Guard.DATE),
    ("Is 10:30k a time?", "Is 10:40k a time?", Guard.DATE),
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
    ("When was the tower built?", "Where was the tower built?", Guard.QUESTION),
    ("Flights from Paris to Rome", "Flights from Rome to Paris", Guard.DIRECTION),
    ("Is Rust better than Go?", "Is Go better than Rust?", Guard.DIRECTION),
    ("Turn a JSON string to a Python dict", "Turn a Python dict to a JSON string", Guard.DIRECTION),
    # amounts and dates
    ("Who won in 1998?", "Who won in 2002?", Guard.DATE),
    ("Flights on Monday", "Flights on Tuesday", Guard.DATE),
    ("Is it due at 3pm?", "Is it due at 4pm?", Guard.DATE),
    ("Is it open today?", "Is it open tomorrow?", Guard.DATE),
    ("How were sales last month?", "How were sales last year?", Guard.DATE),
    ("Convert 50 km to miles", "Convert 50 km to meters", Guard.UNIT),
    ("What is 5 kg?", "What is 5 lb?", Guard.UNIT),
    ("How many hours are left?", "How many days are left?", Guard.UNIT),
    ("What is 5 dollars in yen?", "What is 5 euros in yen?", Guard.CURRENCY),
    ("Convert yen to dollars", "Convert yen to euros", Guard.CURRENCY),
    ("What costs $5?", "What costs $15?", Guard.CURRENCY),
    ("How does v1.2.3 work?", "How does v1.2.4 work?", Guard.VERSION),
    ("What is in 3.11 new?", "What is in version 3.12 new?", Guard.VERSION),
    ("What is CVE-2021-44228?", "What is CVE-2021-45046?", Guard.VERSION),
    ("Is it due in May?", "Is it due in June?", Guard.DATE),
    ("Is it due on May 3?", "Is it due on June 3?", Guard.DATE),
    ("Did 3 stores open on May 3?", "Did 4 stores open on June 5?", Guard.NUMBER),
    ("What is 3-5-7?", "What is 3-5-8?", Guard.NUMBER),
    ("Is 3-5-7 days long?", "Is 3-5-8 days long?", Guard.NUMBER),
    # how it is meant
    ("List all users", "List only users", Guard.SCOPE),
    ("Who are all users?", "Who are all users except admins?", Guard.SCOPE),
    ("What is the maximum size?", "What is the minimum size?", Guard.SCOPE),
    ("What is the cost per day?", "What is the cost per month?", Guard.SCOPE),
    ("Is Ann a nurse or a cook?", "Is Ann simultaneously a nurse and a cook?", Guard.SCOPE),
    ("Plans of more than 5 users", "Plans of less than 5 users", Guard.COMPARATIVE),
    ("Plans of over 5 users", "Plans of under 5 users", Guard.COMPARATIVE),
    ("Is it more useful?", "Is it less useful?", Guard.COMPARATIVE),
    ("Explain DNS to a child", "Explain DNS to an expert", Guard.AUDIENCE),
    ("Explain DNS", "Explain DNS for beginners", Guard.AUDIENCE),
    ("Write a haiku on rain", "Write a sonnet on rain", Guard.FORM),
    ("Explain rain in one sentence", "Explain rain in detail", Guard.FORM),
    ("Say hello in French", "Say hello in German", Guard.LANGUAGE),
    ("Who is the CEO now?", "Who was the CEO last year?", Guard.DATE),
    ("How many users are there?", "How old are users there?", Guard.QUESTION),
    ("When did it open?", "When will it open?", Guard.TENSE),
    ("Is Ann a nurse?", "Did Ann use to be a nurse?", Guard.TENSE),
    ("Is Ann becoming a nurse?", "Is Ann a nurse?", Guard.TENSE),
    ("Is Ann a nurse?", "Is Ann an exceptional nurse?", Guard.MODIFIER),
    ("Does Ann pay Bob?", "Is Ann paid by Bob?", Guard.DIRECTION),
    ("If Ann met Bob, was his car old?", "If Ann met Bob, was Ann's car old?", Guard.NAME),
    # Chinese
    ("翻译成英文", "翻译成法文", Guard.LANGUAGE),
    ("从北京到上海的航班", "从上海到北京的航班", Guard.DIRECTION),
    ("小明比小红高吗", "小红比小明高吗", Guard.DIRECTION),
    ("苹果比梨贵吗", "梨比苹果还贵吗", Guard.DIRECTION),
    ("从高处到低处要多久", "从低处到高处多久", Guard.DIRECTION),
    ("把美元换成欧元", "把欧元换成美元", Guard.DIRECTION),
    ("为什么退款", "什么时候退款", Guard.QUESTION),
    ("今天的天气", "明天的天气", Guard.DATE),
    ("北京的天气", "上海的天气", Guard.NAME),
    ("所有用户", "部分用户", Guard.SCOPE),
    ("有三天假", "有三周假", Guard.UNIT),
    ("2023年1月的假期", "2023年2月的假期", Guard.DATE),
    ("周一开门吗", "周二开门吗", Guard.DATE),
    ("5美元够吗", "5欧元够吗", Guard.CURRENCY),
    ("第三章讲什么", "第四章讲什么", Guard.NUMBER),
    ("怎么退款？", "怎么不退款？", Guard.NEGATION),
    ("可以退款吗？", "没有发票可以退款吗？", Guard.NEGATION),
    ("有三个苹果", "有四个苹果", Guard.NUMBER),
    ("2023年的假期", "二〇二四年的假期", Guard.DATE),
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


def test_a_word_of_endings_alone_is_read() -> None:
    assert findings("Who is lyeding?", "Who is lyeding ?") == ()


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("enable", "disable", True), ("usual", "unusual", True), ("hopeful", "hopeless", True),
        ("usual", "casual", False), ("hopeful", "joyful", False), ("at", "hat", False),
    ],
)  # fmt: skip
def test_opposites(one: str, other: str, found: bool) -> None:
    pairs = [(fold(one), fold(other))] if found else []
    assert flipped([fold(one)], [fold("tree"), fold(other)]) == pairs
    assert flipped([fold(other)], [fold(one)]) == [(there, here) for here, there in pairs]


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ("repair", "fix", True), ("ticket", "tikcet", True), ("ticket", "itcket", True),
        ("ticket", "tickt", True), ("ticket", "tacket", True), ("ticket", "picket", False),
        ("ticket", "cricket", False), ("ticket", "ticketing office", False), ("tip", "top", False),
    ],
)  # fmt: skip
def test_words_that_stand_for_each_other(one: str, other: str, found: bool) -> None:
    assert replaceable(one, ["tree", other]) is found
    assert replaceable(other, ["tree", one]) is found


def test_a_finding_reads_as_a_phrase() -> None:
    assert str(Finding(Guard.NUMBER, "3.11", "")) == 'number: asked "3.11", stored nothing'
    seen = findings("How do I enable caching?", "How do I disable caching?")
    assert [str(finding) for finding in seen] == ['antonym: asked "enable", stored "disable"']


@given(QUESTIONS, QUESTIONS)
@example("more less happy", "unhappy polite less less")
def test_changing_places_changes_only_the_sides(asked: str, stored: str) -> None:
    turned = tuple([Finding(f.guard, f.stored, f.asked) for f in findings(asked, stored)])
    assert findings(stored, asked) == turned


@settings(max_examples=40)
@given(QUESTIONS)
def test_a_question_does_not_differ_from_itself(question: str) -> None:
    assert compare(profile(question), profile(question)) == ()
    assert findings(question, question) == ()


@settings(max_examples=40)
@given(QUESTIONS, QUESTIONS)
def test_findings_are_of_different_kinds_and_never_empty(asked: str, stored: str) -> None:
    seen = findings(asked, stored)
    assert len({finding.guard for finding in seen}) == len(seen)
    assert all(finding.asked or finding.stored for finding in seen)


@settings(max_examples=40)
@given(st.integers(13, 10**7), st.integers(13, 10**7))
def test_numbers_differ_as_numbers_do(one: int, other: int) -> None:
    seen = findings(f"How old are {one} stars?", f"How old are {other:,} stars?")
    kinds = [finding.guard for finding in seen]
    assert kinds in ([] if one == other else [Guard.NUMBER], [Guard.DATE][: one != other])


@settings(max_examples=25)
@given(st.integers(0, 4), st.integers(0, 4))
def test_negation_counts_by_parity(one: int, other: int) -> None:
    asked, stored = (" ".join(["Is it", *["not"] * n, "open"]) for n in (one, other))
    seen = findings(asked, stored)
    assert [finding.guard for finding in seen] == [Guard.NEGATION] * ((one + other) % 2)
