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
perhaps anyway recommended process procedure step steps command order obtain vs versus
"""
STOP = frozenset(_STOP_WORDS.split())

# One of these in the place of another asks for something else; what and which go with any.
ASKING = frozenset({"who", "when", "where", "why", "how"})

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
}  # fmt: skip

# Words that may stand for each other in a question, a group a line.
SYNONYMS = """
    fix repair resolve solve troubleshoot
    remove delete erase drop discard
    create build generate construct produce
    start begin launch
    stop quit halt cease
    end finish
    buy purchase
    obtain acquire receive
    big large huge
    small little tiny
    fast quick rapid quickly fastest speedy
    smart intelligent clever
    important crucial essential
    difference differ different distinction distinguish
    cause reason
    learn study
    choose select pick
    change modify alter edit
    move relocate
    begin commence
    cost price
    movie film
    car automobile
    job career occupation
    happy joyful glad
    sad unhappy
    angry furious mad
    scared afraid frightened
    humble modest
    brave courageous
    religious spiritual
    improve enhance boost
    reduce decrease lower lessen cut
    increase raise grow
    show display
    answer reply respond
    error bug issue problem trouble
    type kind form
    job work
    doctor physician
    kid child children
    vertical vertically
    horizontal horizontally
    install setup
    handle deal manage cope
    function work operate
    company business firm
    earn gain
    maximum longest largest highest
    minimum shortest smallest lowest
    purpose goal aim
    benefit advantage pro
    drawback disadvantage con downside
    house home
    rich wealthy
    main primary principal major
    start begin
    run execute
    call invoke
    check verify examine inspect
    allow permit
    forbid prohibit ban
    safe secure
    near close
    often frequently
    example sample
    picture photo image
    rule regulation
    law legislation
    requirement prerequisite
    effect impact influence
    meaning definition define
    beautiful pretty
    hard difficult tough
    prevent avoid
    duration length long
    wash clean
    lunar moon
    terrible awful
    vocal outspoken
    thankful grateful
    increase enhance
    intern internship
    amount quantity number
    time duration
    method technique approach
    city town
    university college
    spouse partner
    mobile cellphone smartphone
"""

# Opposites, a pair each. Both sides of a pair unmatched: the questions ask for opposite things.
OPPOSITES = """
on/off enable/disable open/close open/shut increase/decrease raise/lower before/after
maximum/minimum include/exclude allow/deny allow/forbid allow/block permit/deny start/stop
encrypt/decrypt import/export buy/sell first/last more/less most/least up/down in/out add/remove
push/pull upload/download gain/lose advantage/disadvantage benefit/risk pro/con high/low
higher/lower highest/lowest fast/slow faster/slower old/new oldest/newest big/small
largest/smallest biggest/smallest long/short longest/shortest good/bad better/worse best/worst
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
morning/evening day/night today/tomorrow today/yesterday tomorrow/yesterday current/former
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
# Units: the words of a line name the same one. A difference is seen where both questions have one.
MEASURES = """
    km kilometer kilometers kilometre kilometres
    m meter meters metre metres
    cm centimeter centimeters centimetre centimetres
    mm millimeter millimeters millimetre millimetres
    mile miles
    ft foot feet
    inch inches
    yard yards
    kg kilogram kilograms kilo kilos
    g gram grams
    mg milligram milligrams
    mcg microgram micrograms
    lb lbs pound pounds
    oz ounce ounces
    ton tons tonne tonnes
    l liter liters litre litres
    ml milliliter milliliters millilitre millilitres
    gallon gallons
    ms millisecond milliseconds
    s sec secs second seconds
    min mins minute minutes
    h hr hrs hour hours
    day days
    week weeks
    month months
    year years
    kb kilobyte kilobytes
    mb megabyte megabytes
    gb gigabyte gigabytes
    tb terabyte terabytes
    mbps
    gbps
    celsius
    fahrenheit
    kelvin
    usd dollar dollars
    eur euro euros
    gbp
    yen jpy
    yuan rmb cny
    percent
"""

OPPOSING_PREFIXES = ("un", "dis", "non", "in", "im", "il", "ir", "de")

# Relations that hold both ways, and joints whose two sides may change places.
_SYMMETRIC_WORDS = """
and or vs versus nor between married engaged dating close similar related equal identical
compare compared comparable comparison differ different difference same next near acquaintance
connected linked friend sibling cousin both
"""
SYMMETRIC = frozenset(_SYMMETRIC_WORDS.split())

UNITS: Mapping[str, int] = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7,
    "eight": 8, "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen":
    14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19,
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "dozen": 12,
}  # fmt: skip
TENS: Mapping[str, int] = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70,
    "eighty": 80, "ninety": 90,
}  # fmt: skip
SCALES: Mapping[str, int] = {
    "hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip
ROMAN: Mapping[str, int] = {
    "II": 2, "III": 3, "IV": 4, "VI": 6, "VII": 7, "VIII": 8, "IX": 9, "XI": 11, "XII": 12,
    "XIII": 13, "XIV": 14,
}  # fmt: skip

HAN_DIGITS: Mapping[str, int] = {
    "零": 0, "〇": 0, "一": 1, "二": 2, "两": 2, "三": 3,
    "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9,
}  # fmt: skip
HAN_SCALES: Mapping[str, int] = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
# A lone numeral is often part of a word (一般, 统一): it counts before a measure word or after 第.
HAN_NUMBER = re.compile(
    r"(?<=第)[零〇一二两三四五六七八九十百千万亿]{1,16}"
    r"|[零〇一二两三四五六七八九十百千万亿]{1,16}"
    r"(?=[个年月日号天周次元块岁倍步种条位名层章页米升斤克度点]|小时|分钟|公里)"
    r"|[零〇一二两三四五六七八九][零〇一二三四五六七八九十百千万亿]{1,15}"
)

# An English text without any of these has no negation; looking for them is cheap.
NEGATION_HINTS = ("no", "n't", "nt ", "never", "without", "neither", "unable", "fail")

# Phrases that hold a negating word without negating the question come first and capture nothing.
NEGATION = re.compile(
    r"""\b(?:whether\ or\ not | or\ not | why\ not | yes\ or\ no | no\.?\ ?\d
        | not\ (?:only|just|to\ mention|sure|certain) | no\ (?:matter|problem|idea|worries|doubt)
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
