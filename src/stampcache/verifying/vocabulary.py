"""The words that `stampcache.verifying.reading` knows by heart: phrases, synonyms, closed classes (pure).

Each line of ``CONCEPTS`` names one thing in several words; its first word stands for all of them.
Whether a pair that agrees only by such words is the same question is for the trees to weigh.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

_PHRASES = """
    how can i=how do i|how could i=how do i|how can we=how do we|how can you=how do you
    sign up=register|signing up=register|signed up=register|sign in=login|log in=login
    logging in=login|signing in=login|logged in=login|log on=login|sign out=logout|log out=logout
    set up=install|setting up=install|get rid of=remove|getting rid of=remove|take off=remove
    turn on=enable|switch on=enable|turning on=enable|turn off=disable|switch off=disable
    turning off=disable|shut down=stop|shut off=disable|find out=learn|figure out=learn
    give up=quit|carry out=perform|look for=find|looking for=find|look up=find|pick up=collect
    hook up=connect|back up=backup|fill out=complete|fill in=complete|put off=postpone
    throw away=discard|get back=recover|money back=refund|sent back=return|send back=return
    sending back=return|bring back=return|give back=return|run out=expire|ran out=expire
    runs out=expire|at least=minimum|at most=maximum|no more than=maximum|up to=maximum
    upper limit=maximum|lower limit=minimum|as well as=and|in order to=to|due to=because
    because of=because|a lot of=many|lots of=many|plenty of=many|a couple of=2|right now=now
    at the moment=now|these days=now|at present=now|free of charge=free|no cost=free|for free=free
    at no charge=free|cell phone=phone|mobile phone=phone|e mail=email|wi fi=wifi|web site=website
    zip code=postcode|postal code=postcode|phone number=phone|user name=username|pass word=password
    check out=checkout|time off=leave|days off=leave|paid leave=leave|get in touch=contact
    reach out=contact|speak to=contact|talk to=contact|speak with=contact|talk with=contact
    put together=assemble|make up=comprise|come from=originate|stands for=mean|stand for=mean
    for instance=example|such as=example|take place=happen|took place=happen|takes place=happen
    passed away=die|pass away=die|each year=annual|per year=annual|every year=annual|a year=annual
    every day=daily|each day=daily|per day=daily|a day=daily|per week=weekly|a week=weekly
    every week=weekly|each week=weekly|per month=monthly|a month=monthly|every month=monthly
    each month=monthly|every hour=hourly|per hour=hourly|an hour=hourly
"""

_CONCEPTS = """
    cost price fee charge rate pricing expense tariff pay payment expensive afford
    cancel terminate unsubscribe discontinue
    remove delete erase wipe discard eliminate uninstall clear
    change alter modify edit update amend adjust switch replace
    create make build generate construct produce
    start begin launch commence initiate
    stop quit halt cease
    finish end complete conclude
    buy purchase acquire
    get obtain receive gain
    fix repair mend resolve solve troubleshoot
    find locate discover search
    show display view see list
    use utilize employ utilise
    help assist support aid assistance
    keep retain preserve maintain
    store save storage
    allow permit let enable able possible permission
    forbid prohibit ban disallow
    need require must necessary requirement mandatory required compulsory obligatory
    big large huge size
    small little tiny
    fast quick rapid speed speedy
    error problem issue trouble fault bug failure
    broken damage faulty defective
    way method approach technique procedure process step
    reason cause why
    difference differ distinguish distinction distinguishing
    type kind sort category
    job work occupation profession
    worker employee staff personnel
    company firm business corporation organisation organization
    customer client
    doctor physician
    medicine medication drug
    child kid
    car vehicle automobile
    house home
    holiday vacation
    film movie
    author writer write
    inventor invent
    leader head boss chief
    begin_date founded establish found
    ship deliver shipping delivery shipment
    order purchase_order
    return refund reimburse reimbursement
    contact call reach phone
    email mail
    password passcode
    login signin
    account profile
    register enroll enrol join signup registration enrolment enrollment subscribe
    photo picture image
    laptop computer pc
    app application program software
    document file paper
    recommend suggest advise advice
    explain describe clarify
    meaning mean define definition
    correct right proper
    best optimal ideal recommended
    main primary principal
    average mean_value typical
    maximum max limit cap highest most
    minimum min lowest least
    safe secure
    dangerous risky unsafe hazardous harmful
    illness disease sickness
    symptom sign
    apply application_form
    deadline due cutoff
    date day_of
    duration long last
    happen occur
    move transfer relocate
    send submit
    increase raise grow boost
    decrease reduce lower cut
    improve enhance better
    check verify confirm
    connect link attach
    choose select pick
    open opening
    close shut closing
    live reside
    die death dead
    born birth
    capital_city capital
    country nation
    city town
    population inhabitant people
    tall height high
    heavy weight weigh
    deep depth
    wide width
    far distance
    old age
    hot temperature warm
    prevent avoid
    protect guard
    test exam
    student pupil
    teacher instructor
    university college
    salary wage earn
    tax taxation
    rule policy regulation
    legal lawful allowed
    fee_late penalty fine
    rent lease
    flat apartment
    rubbish trash garbage
    shop retailer
    eat consume
    drink beverage
    cook prepare
    train_by exercise workout
    clean wash
    quiet silent
    purpose goal aim function
    benefit advantage
    drawback disadvantage downside
    component part ingredient
    example instance
    current present latest recent newest now
    previous former prior
    expire expiry expiration
    receipt invoice bill
    discount reduction rebate
    eligible qualify entitled
    guarantee warranty
    copy duplicate
    convert translate transform
    configure customize customise setting
    install setup installation
    download fetch
    reset restore
    upgrade newer
    link url
    function_code method_code
    folder directory
    bug_report ticket
    monthly month
    annual yearly year
    daily day
    weekly week
"""

# Words that carry the form of a question and not its matter.
_FUNCTION_WORDS = """
a an the and or but if of to in on at by for from with as is are was were be been being am do
does did done doing has have had having can could will would shall should may might must i me
my mine we us our ours you your yours he him his she her hers it its they them their theirs
this that these those there here what which who whom whose when where why how so too very just
also please tell know want like about into out up down than then s t re ve ll d m im id not no
nor any some such own same other get got go going need give ask asking question wondering
wonder hi hello hey thanks thank kindly someone somebody anyone one thing something anything
exactly really actually way because
"""
FUNCTION = frozenset(_FUNCTION_WORDS.split())

# Closed classes: words of one class that only one side has are counted, class by class.
_NEGATING = """
not no never without none nothing nobody neither nor cannot unable except unless avoid stop
"""
_SCOPE = """
all every each any some only just both either most many few several first last next previous
maximum minimum always sometimes usually often entire whole least more less main another other
same single multiple per
"""
_TIME = """
before after during until since while when yesterday today tomorrow now still yet ago already
later earlier ever once current future past
"""
_PLACE = """
from to into onto out off on up down over under above below between through toward with by in at
for
"""
_MODAL = """
can could may might must should shall will would need have used did was were had
"""
_PERSON = """
i me my we our you your he his she her they their it its someone who whose this that
"""
CLOSED: tuple[tuple[str, ...], ...] = tuple(
    tuple(words.split()) for words in (_NEGATING, _SCOPE, _TIME, _PLACE, _MODAL, _PERSON)
)

KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "cost",
        (
            r"how much (?:\w+ ){0,4}(?:cost|pay|charge|be|is|are)\b",
            r"(?:cost|price|fee|charge)s? (?:of|for|to)\b",
            r"how expensive",
            r"what(?: \w+){1,3} cost\b",
        ),
    ),
    ("many", (r"\bhow many\b", r"\bnumber of\b", r"\bhow much\b")),
    ("long", (r"\bhow long\b", r"\bhow soon\b", r"\bduration\b")),
    ("often", (r"\bhow often\b", r"\bhow frequent\w*", r"\bfrequency\b")),
    (
        "degree",
        (
            r"\bhow (?:far|old|big|large|tall|high|deep|fast|hot|cold|heavy|wide|strong|safe|good)\b",
            r"\bhow (?:bad|hard|difficult|likely)\b",
        ),
    ),
    (
        "when",
        (
            r"\bwhen\b",
            r"\bwhat (?:time|date|day|year|month)\b",
            r"\bdeadline\b",
            r"\bwhich (?:day|year|month|date)\b",
        ),
    ),
    (
        "where",
        (r"\bwhere\b", r"\b(?:what|which) (?:place|city|country|location|page|section|menu)\b"),
    ),
    ("who", (r"\bwho(?:m|se)?\b", r"\b(?:what|which) (?:person|author|people)\b")),
    (
        "why",
        (
            r"\bwhy\b",
            r"\bhow come\b",
            r"\bwhat (?:causes|caused|makes|made)\b",
            r"\breasons? (?:for|that|why|behind)\b",
            r"\bthe (?:reason|cause)\b",
        ),
    ),
    (
        "howto",
        (
            r"\bhow\b",
            r"\b(?:way|ways|steps?|procedure|process|method|instructions|guide) (?:to|for|of)\b",
            r"\bshow me\b",
            r"\bhelp me\b",
        ),
    ),
    (
        "yesno",
        (
            r"^(?:so |and |but |hi |hello |hey )?(?:is|are|was|were|do|does|did|can|could|will)\b",
            r"^(?:so |and |but |hi |hello |hey )?(?:would|should|may|am|has|have|had|must|shall)\b",
            r"\b(?:is|are) (?:it|there)\b",
            r"\bwhether\b",
            r"\b(?:can|do|am) i\b",
        ),
    ),
    ("which", (r"\bwhich\b",)),
    ("difference", (r"\bdiffer\w*", r"\bversus\b", r"\bcompare\w*")),
    (
        "define",
        (
            r"\bwhat (?:is|are|was|were|does)\b",
            r"\b(?:define|definition|meaning|explain|describe)\b",
            r"\btell me\b",
        ),
    ),
    ("what", (r"\bwhat\b",)),
)
"""Kinds of questions, the first that is found; the place in this tuple plus one is its number."""

CONTRACTED: Mapping[str, str] = MappingProxyType(
    {
        "dont": "do not", "doesnt": "does not", "didnt": "did not", "cant": "can not",
        "cannot": "can not", "wont": "will not", "isnt": "is not", "arent": "are not",
        "wasnt": "was not", "couldnt": "could not", "shouldnt": "should not", "havent": "have not",
        "hasnt": "has not", "wouldnt": "would not", "whats": "what is", "hows": "how is",
        "wheres": "where is", "whens": "when is", "whos": "who is", "thats": "that is",
        "im": "i am", "ive": "i have", "u": "you", "ur": "your", "pls": "please", "plz": "please",
        "gonna": "going to", "wanna": "want to", "whys": "why is", "vs": "versus",
    }
)  # fmt: skip

PHRASES: Mapping[str, str] = MappingProxyType(
    dict(
        one.split("=")
        for line in _PHRASES.split("\n")
        if line.strip()
        for one in line.strip().split("|")
    )
)
PHRASE = re.compile(r"\b(?:" + "|".join(sorted(PHRASES, key=len, reverse=True)) + r")\b")
CONCEPT_LINES: tuple[tuple[str, ...], ...] = tuple(
    tuple(line.split()) for line in _CONCEPTS.splitlines() if line.strip()
)

_NUMBERS = """
zero=0 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 twelve=12
thirteen=13 fourteen=14 fifteen=15 sixteen=16 seventeen=17 eighteen=18 nineteen=19 twenty=20
thirty=30 forty=40 fifty=50 sixty=60 seventy=70 eighty=80 ninety=90 hundred=100 thousand=1000
million=1000000
"""
NUMBERS: Mapping[str, str] = MappingProxyType(dict(one.split("=") for one in _NUMBERS.split()))
