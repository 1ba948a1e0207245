"""Says a question in other words that mean the same: forms, politeness, synonyms, typos, order."""

import random
import re
from collections.abc import Callable, Sequence

Rewording = Callable[[str, random.Random], str | None]

_OPENINGS = """
Please tell me: |Could you tell me: |Hi, |Hello, |Quick question: |Hey, |I was wondering, |Hi there! |
Sorry to bother you, |Question: |I'd like to know: |Help please, |Just wondering, |Good morning, |ok so |
""".replace("\n", "").split("|")[:-1]
_CLOSINGS = """
 Thanks!| Thank you.| Please help.| thx| please| Any idea?| Thanks in advance.| Can you help?|
 Appreciate it.| I'd like to know.
""".replace("\n", "").split("|")
_HOW_TO = re.compile(
    r"^(?:how (?:do|can|would|should|could) (?:i|we|you|one)|how to"
    r"|what(?:'s| is) the (?:best |right )?way to"
    r"|what are the steps to|what steps do i need to take to|what do i (?:need to|have to) do to"
    r"|what should i do to|steps to|is there a way to|what is the process to|can you tell me how to"
    r"|please tell me how to|i want to know how to|what is the procedure to) (?P<what>.+?)[?.! ]*$",
    re.I,
)
_HOW_FORMS = """
How do I {}?|How can I {}?|How to {}?|What is the way to {}?|What are the steps to {}?|
What do I need to do to {}?|I want to {}, how do I do that?|I need to {}. How?|Steps to {}|
How would one {}?|Could you explain how to {}?|Show me how to {}|What's the best way to {}?|
I'd like to {}, what should I do?|how do you {}|How should I go about it if I want to {}?|
What is the procedure to {}?|Is there a guide on how to {}?|I am trying to {}, how does that work?|
What do I do if I want to {}?|instructions to {}|Help me {}|way to {}
""".replace("\n", "").split("|")
_WHAT_IS = re.compile(
    r"^(?:what(?:'s| is| are)|can you (?:tell me|explain) what (?:is|are)|define|explain|tell me about) "
    r"(?P<what>.+?)[?.! ]*$",
    re.I,
)
_WHAT_FORMS = """
What is {}?|Can you explain {}?|Tell me what {} is|Explain {} to me|Could you tell me {}?|
I'd like to know {}|whats {}|Please tell me {}|{}?|Do you know {}?
""".replace("\n", "").split("|")
_YES_NO = re.compile(
    r"^(?P<aux>can|could|may|should|do|must|will|am) i (?P<what>.+?)[?.! ]*$", re.I
)
_CAN_FORMS = """
Can I {}?|Is it possible to {}?|Am I able to {}?|Could I {}?|Is it possible for me to {}?|
Would I be able to {}?|am i allowed to {}|Is there any way I can {}?|Do you let me {}?
""".replace("\n", "").split("|")
_MUST = """
Should I {}?|Do I need to {}?|Is it necessary to {}?|Must I {}?|Do I have to {}?
"""
_MUST_FORMS = _MUST.replace("\n", "").split("|")
_WHY = re.compile(r"^why (?P<aux>is|are|was|were|did|does|do) (?P<what>.+?)[?.! ]*$", re.I)
_LONG = re.compile(r"^how long (?:does|do|will|would) (?:it take )?(?P<what>.+?)[?.! ]*$", re.I)

SYNONYMS = """
buy/purchase|price/cost|cost/price|begin/start|start/begin|error/problem|problem/issue|issue/problem
|fix/repair|repair/fix|big/large|large/big|quickly/fast|fast/quickly|child/kid|children/kids
|kids/children|car/vehicle|film/movie|movie/film|delete/remove|remove/delete|cancel/terminate
|change/modify|change/update|modify/change|create/make|make/create|find/locate|show/display
|job/position|company/firm|money/cash|obtain/get|get/obtain|receive/get|received/got|got/received
|require/need|required/needed|needed/required|allowed/permitted|permitted/allowed|help/assist
|doctor/physician|photo/picture|picture/photo|holiday/vacation|phone/cell phone|phone/mobile
|stolen/taken|lost/misplaced|happens/occurs|happen/occur|main/primary|often/frequently
|correct/right|wrong/incorrect|incorrect/wrong|difference/distinction|reason/cause
|important/significant|type/kind|types/kinds|kind/type|use/utilize|used/utilized|choose/select
|select/choose|send/transmit|verify/confirm|verify/check|check/verify|enough/sufficient
|currently/at the moment|now/right now|immediately/right away|because of/due to|about/regarding
|everywhere/all over|replace/swap|pin/passcode|top up/add money|fee/charge|fees/charges|charged/billed
|transfer/wire|declined/rejected|rejected/declined|refund/money back|country/nation
|explain/clarify|increase/raise|reduce/lower|best/ideal|advantages/benefits|benefits/advantages
|disadvantages/drawbacks|effects/consequences|begin/commence|end/finish|finish/complete
|broken/damaged|expensive/costly|cheap/inexpensive|famous/well known|founded/established
|wrote/authored|built/constructed|located/situated|method/approach|methods/approaches|ways/methods
|password/passcode|email/e-mail|log in/sign in|sign up/register|register/sign up|set up/install
|salary/pay|employees/staff|workers/employees|customers/clients|trip/journey|house/home|shop/store
|near/close to|almost/nearly|several/multiple|entire/whole|allow/permit|prevent/stop|keep/retain
|example/instance|examples/instances|goal/aim|purpose/aim|rules/regulations|law/legislation
|benefits/perks|illness/disease|physician/doctor|medication/medicine|drug/medication|test/exam
|student/pupil|teacher/instructor|answer/reply|ask/request|arrive/get here|arrived/come
|delivered/shipped|delivery/shipping|order/purchase|item/product|receipt/invoice|bill/invoice
""".replace("\n", "").split("|")
_SAME_WORDS = [tuple(pair.split("/", 1)) for pair in SYNONYMS]
_NUMBERS = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
    "ten": "10",
    "twelve": "12",
    "twenty": "20",
    "thirty": "30",
    "fifty": "50",
}
_LEADING = re.compile(
    r"^(?P<main>.{12,}?) (?P<rest>(?:in|on|for|with|during|after|before|at|from) "
    r"(?:the |my |a |an )?\w+(?: \w+)?)[?.! ]*$"
)
_SMALL_WORDS = "a an the my your our is are do does i to of please can you me for it"
_SMALL = frozenset(_SMALL_WORDS.split())


def _fill(form: str, what: str) -> str:
    text = form.format(what)
    return text[0].upper() + text[1:] if form[0].isupper() or form[0] == "{" else text


def form(text: str, chance: random.Random) -> str | None:
    """Ask in another form that wants the same."""
    found = _HOW_TO.match(text)
    if found:
        return _fill(chance.choice(_HOW_FORMS), found["what"])
    found = _WHAT_IS.match(text)
    if found:
        return _fill(chance.choice(_WHAT_FORMS), found["what"])
    found = _YES_NO.match(text)
    if found:
        if found["aux"].lower() in ("should", "must") or found["what"].lower().startswith(
            ("need to ", "have to ")
        ):
            what = re.sub(r"^(?:need|have) to ", "", found["what"], flags=re.I)
            return chance.choice(_MUST_FORMS).format(what)
        if found["aux"].lower() in ("can", "could", "may"):
            return chance.choice(_CAN_FORMS).format(found["what"])
    found = _WHY.match(text)
    if found:
        what, aux = found["what"], found["aux"].lower()
        forms = [
            f"What is the reason why {aux} {what}?",
            f"How come {aux} {what}?",
            f"why {aux} {what}",
        ]
        words = what.split()
        if (
            aux in ("is", "are", "was", "were")
            and len(words) > 2
            and words[0].lower() in ("my", "the", "your")
        ):
            forms.append(f"{' '.join(words[:2])} {aux} {' '.join(words[2:])}, why?")
        return chance.choice(forms)
    found = _LONG.match(text)
    if found:
        return chance.choice(
            [
                f"How much time does it take {found['what']}?",
                f"What is the duration: {found['what']}?",
                f"how long until {found['what']}",
            ]
        )
    return None


def opened(text: str, chance: random.Random) -> str | None:
    """Put a greeting or an introduction before it."""
    first = text if text[:2].isupper() else text[0].lower() + text[1:]
    return chance.choice(_OPENINGS) + (first if chance.random() < 0.7 else text)


def closed(text: str, chance: random.Random) -> str | None:
    """Put thanks after it."""
    return text + chance.choice(_CLOSINGS)


def synonym(text: str, chance: random.Random) -> str | None:
    """Replace one or two words by synonyms."""
    known = [one for one in _SAME_WORDS if re.search(rf"\b{one[0]}\b", text, re.I)]
    if not known:
        return None
    for word, other in chance.sample(known, min(len(known), 2)):
        text = re.sub(rf"\b{word}\b", other, text, count=1, flags=re.I)
    return text


def typo(text: str, chance: random.Random) -> str | None:
    """Mistype one letter of one longer word."""
    places = [found.start() for found in re.finditer(r"\b[a-z]{6,}", text)]
    if not places:
        return None
    at = chance.choice(places) + chance.randint(1, 4)
    kind = chance.randrange(3)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + text[at + 1] + text[at] + text[at + 2 :] if at + 1 < len(text) else None
    return text[:at] + text[at] + text[at:]


def careless(text: str, chance: random.Random) -> str | None:
    """Write in small letters, without punctuation."""
    text = re.sub(r"[?.!,]+", "", text).lower()
    return text.replace("'", "") if chance.random() < 0.5 else text


def digits(text: str, chance: random.Random) -> str | None:
    """Write a number word in digits, or digits as a word."""
    del chance
    for word, digit in _NUMBERS.items():
        if re.search(rf"\b{word}\b", text, re.I):
            return re.sub(rf"\b{word}\b", digit, text, count=1, flags=re.I)
        if re.search(rf"(?<![\d.,]){digit}(?![\d.,])", text):
            return re.sub(rf"(?<![\d.,]){digit}(?![\d.,])", word, text, count=1)
    return None


def led(text: str, chance: random.Random) -> str | None:
    """Put what stands at the end in front: "in Spain, how do I ...?"."""
    del chance
    found = _LEADING.match(text)
    if not found:
        return None
    main = found["main"]
    return f"{found['rest'].capitalize()}, {main[0].lower()}{main[1:]}?"


def keywords(text: str, chance: random.Random) -> str | None:
    """Leave small words out, as in a search box."""
    del chance
    words = re.sub(r"[?.!,]", "", text).split()
    kept = [word for word in words if word.lower() not in _SMALL]
    return " ".join(kept) if 3 <= len(kept) < len(words) else None


EVERY: Sequence[Rewording] = (
    form,
    form,
    form,
    form,
    opened,
    closed,
    synonym,
    synonym,
    synonym,
    typo,
    careless,
    digits,
    led,
    led,
    keywords,
)


def reword(text: str, chance: random.Random, times: int) -> str:
    """Return the question reworded so many times; a rewording that does not fit is passed over."""
    for _ in range(times):
        text = chance.choice(EVERY)(text, chance) or text
    return text
