"""Word tables of the guards: closed lists, written for questions in English and basic Chinese.

Words are written plainly, in lower case; they are folded where folded words are compared.
"""

import re
from collections.abc import Mapping

# Words that frame a question rather than say what it is about.
_STOP_WORDS = """
a an the this that these those my your his her its our their mine yours i you he she it we they
me him us them im ive id ill u r ur whats hows wheres whos thats myself yourself oneself one
someone somebody anyone anybody everyone people person am is are was were be been being do does
did doing done dose have has had having can could will would shall should may might must ought
cannot dont doesnt didnt isnt arent cant wont wouldnt shouldnt not no never nor neither none
without nothing nobody what which whose whom if whether while as so than then too very much many
more most less least any some all each every both either such other else own same there here now
just only also even still ever already of in on at by for with to from into onto about over
under through between among within via per up down out off per against during before after and
or but because since please kindly thanks thank hi hello hey sorry dear good morning quick
question tell explain describe say know wonder wondering mind ask understand clarify elaborate
show help give walk let want need like love wish try get got make made use used go going come
take see find think mean work possible able way ways method best proper right correct easy
easiest simple simplest really actually truly indeed literally basically simply honestly exactly
fact currently etc e g ok okay well lot kind sort thing things stuff something possibly maybe
perhaps anyway recommended somehow apparently supposedly definitely certainly surely truthfully probably
quite rather pretty process procedure step steps command order obtain vs versus
"""
STOP = frozenset(_STOP_WORDS.split())

# One of these in the place of another asks for something else; what and which go with any.
ASKING = frozenset({"who", "when", "where", "why", "how"})
FRAMING = STOP | ASKING

# Words of a language that are also plain English: code where a noun such as "loop" follows.
_KEYWORDS_WORDS = """
and as assert async await break case catch class const continue def default del do elif else
except finally for foreach from global goto if import in is lambda let match new nonlocal not or
pass raise return select static super switch this throw try until var void while with yield
"""
KEYWORDS = frozenset(_KEYWORDS_WORDS.split())
KEYWORD_HEADS = frozenset(
    {"statement", "loop", "keyword", "block", "clause", "operator", "expression"}
)

# Other spellings of a name, in lower case.
ALIASES: Mapping[str, str] = {
    "usa": "us", "america": "us", "uk": "britain", "nyc": "york", "js": "javascript", "ts":
    "typescript", "py": "python", "golang": "go", "k8s": "kubernetes", "postgresql":
    "postgres", "mongo": "mongodb", "nodejs": "node", "reactjs": "react", "vuejs": "vue",
    "osx": "macos", "mac": "macos", "win": "windows", "v": "version", "f": "fahrenheit", "c":
    "celsius", "db": "database", "repo": "repository", "app": "application", "config":
    "configuration", "docs": "documentation", "env": "environment", "info": "information",
    "tv": "television", "phone": "telephone", "mins": "minute", "min": "minimum", "max":
    "maximum", "colour": "color", "favourite": "favorite", "centre": "center", "tyre": "tire",
    "grey": "gray", "aluminium": "aluminum", "mum": "mother", "mom": "mother", "dad":
    "father", "covid": "coronavirus",
    "covid-19": "coronavirus", "stole": "steal", "stolen": "steal", "took": "take",
    "taken": "take", "ate": "eat", "eaten": "eat", "saw": "see", "seen": "see", "wrote": "write",
    "written": "write", "broke": "break", "broken": "break", "chose": "choose", "chosen":
    "choose", "gave": "give", "given": "give", "drove": "drive", "driven": "drive", "hid":
    "hide", "hidden": "hide", "beat": "beat", "beaten": "beat", "bought": "buy", "sold": "sell",
    "told": "tell", "caught": "catch", "taught": "teach", "found": "find", "held": "hold",
    "kept": "keep", "left": "leave", "lost": "lose", "made": "make", "met": "meet", "paid":
    "pay", "sent": "send", "built": "build", "won": "win", "threw": "throw", "thrown": "throw",
    "drew": "draw", "drawn": "draw", "grew": "grow", "grown": "grow", "knew": "know", "known":
    "know", "spoke": "speak", "spoken": "speak", "sang": "sing", "sung": "sing", "drank":
    "drink", "drunk": "drink", "rode": "ride", "ridden": "ride", "forgot": "forget",
    "forgotten": "forget", "bitten": "bite", "fed": "feed", "fought": "fight", "heard": "hear",
    "hung": "hang", "led": "lead", "lent": "lend", "shot": "shoot", "shown": "show", "stuck":
    "stick", "struck": "strike", "sworn": "swear", "torn": "tear", "wore": "wear", "worn":
    "wear", "understood": "understand", "thought": "think", "brought": "bring", "began":
    "begin", "begun": "begin", "ran": "run", "went": "go", "gone": "go", "came": "come",
    "children": "child", "women": "woman", "men": "man", "feet": "foot", "mice": "mouse",
}  # fmt: skip

# Opposites, a pair each. Both sides of a pair unmatched: the questions ask for opposite things.
OPPOSITES = """
on/off enable/disable open/close open/shut increase/decrease raise/lower before/after
include/exclude allow/deny allow/forbid allow/block permit/deny start/stop
encrypt/decrypt import/export buy/sell first/last more/less most/least up/down in/out add/remove
push/pull upload/download gain/lose advantage/disadvantage benefit/risk pro/con high/low
higher/lower fast/slow faster/slower old/new oldest/newest big/small
long/short good/bad better/worse best/worst
early/late earliest/latest hot/cold true/false accept/reject accept/decline approve/reject
grant/revoke attach/detach mount/unmount read/write input/output encode/decode
compress/decompress compress/extract zip/unzip lock/unlock show/hide expand/collapse
ascending/descending asc/desc inner/outer public/private static/dynamic internal/external
above/below over/under inside/outside left/right top/bottom front/back forward/backward
next/previous arrive/depart arrival/departure enter/exit enter/leave join/leave login/logout
send/receive give/take lend/borrow win/lose pass/fail success/failure succeed/fail love/hate
like/dislike strong/weak rich/poor hard/soft hard/easy difficult/easy light/dark light/heavy
wet/dry full/empty deposit/withdraw credit/debit profit/loss income/expense gross/net
employer/employee landlord/tenant buyer/seller lender/borrower husband/wife man/woman
male/female mother/father boy/girl he/she him/her his/her create/delete create/destroy
create/drop insert/delete connect/disconnect freeze/thaw boil/freeze wake/sleep sunrise/sunset
morning/evening day/night current/former
current/previous past/future always/never everything/nothing positive/negative increase/reduce
gain/reduce strict/lenient expensive/cheap safe/dangerous healthy/unhealthy legal/illegal
upgrade/downgrade upvote/downvote activate/deactivate serialize/deserialize stretch/shrink
polite/rude brave/cautious offensive/defensive passive/active stupid/smart
optimistic/pessimistic introverted/extroverted humble/arrogant generous/selfish lazy/hardworking
happy/sad calm/anxious progressive/conservative fat/thin courageous/fearful
humble/proud kind/cruel
"""
# Degrees: "less rude" is "more polite", so they undo an opposite as a negation does.
DEGREES = frozenset({"more", "less", "most", "least"})
OPPOSING_PREFIXES = ("un", "dis", "non", "in", "im", "il", "ir", "de")

# Relations that hold both ways, and joints whose two sides may change places.
_SYMMETRIC_WORDS = """
and or vs versus nor between married engaged dating close similar related equal identical
compare compared comparable comparison differ different difference same next near acquaintance
connected linked friend sibling cousin both
"""
SYMMETRIC = frozenset(_SYMMETRIC_WORDS.split())
ARTICLES = frozenset({"a", "an", "the"})
# Words that come and go when a sentence is turned from active to passive.
_VOICE_WORDS = """
a an the is are was were been being be get got do does did has have had by it that
"""
VOICE = frozenset(_VOICE_WORDS.split())
# Words of which more or less is compared: a change of them is one of the comparison.
_COMPARED_WORDS = """
more less most least better worse best worst higher lower highest lowest faster slower fewer
greater bigger smaller larger longer shorter older newer earlier later
"""
COMPARED = frozenset(_COMPARED_WORDS.split())

# An English text without any of these has no negation; looking for them is cheap.
NEGATION_HINTS = ("no", "n't", "nt ", "never", "without", "neither", "unable", "fail")

# Phrases that hold a negating word without negating the question come first and capture nothing.
NEGATION = re.compile(
    r"""\A\W*no,
    | \b(?:whether\ or\ not | or\ not | why\ not | yes\ or\ no | no\.?\ ?\d
        | not\ (?:only|just|to\ mention|sure|certain|understanding)
        | no\ (?:matter|problem|idea|worries|doubt)
        | (?:do(?:es)?n'?t|do\ not|can'?t|cannot|couldn'?t|could\ not|didn'?t|did\ not)
            \ (?:really\ |quite\ |fully\ |seem\ to\ )?
            (?:know|understand|remember|recall|figure|work\ out|mind|get\ (?:how|why|what))
        | don'?t\ you\ (?:think|agree) )\b
    | (?:\A|,)\W*(?:is|are|was|were|does|did|has|have|could|would|should|can|wo)n?'?t
        \ (?=(?:i|you|we|he|she|it|they|there|this|that|the|an?|my|your)\b)
    | \b(?P<en> not | cannot | \w+n't | never | without | no | none | nothing | nobody | nowhere
        | (?:do|does|did|is|are|was|were|ca|wo|has|have|had|would|could|should|must)'?nt
        | neither | unable | fail(?:s|ed|ing)?\ to | non(?=-) )\b
    | (?:(?P<one>.)[不没](?P=one) | (?P<two>..)不(?P=two) | (?P<far>..?)还是不(?P=far)
        | 不[过仅但管论同断错久妨止光只如料惜] | 不好意思 | 不得不 | 差不多 | 对不起 | 了不起
        | 要不然? | 不知道 | 不明白 | 不清楚 | 不会吧 | 没关系 | 没问题 | 无[论线锡聊数非]
        | 别[人的墅名处致扭] | [特分区级类性个告识辨差鉴派国组科]别
        | 非[常洲得要] | [除莫南是]非 | 未[来必知])
    | (?P<zh>不 | 没 | 无 | 别 | 未 | 非 | 勿 | 莫)""",
    re.VERBOSE,
)
