"""Words and phrases that say how a question is meant: scope, time, tense, form, language (pure).

Each cue has a family and a meaning, as in ``extent.all``. Two questions conflict where they give one
family different meanings. A meaning with ``!`` changes the answer even where the other question says
nothing of the family. A meaning of ``-`` is no cue: an idiom that holds the words of one.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from stampcache.guards.tokens import fold

_PERIODS = "day week month quarter year decade century summer winter spring autumn night season"

_SCOPE = """
    set.only!: only | solely | exclusively | nothing but | no one but | just the | 只 | 仅 | 唯一
    set.except!: except | except for | excluding | other than | apart from | aside from | besides
        | with the exception of | all but | everything but | 除了 | 除去 | 以外
    -: not only | if only | read only | first of all | after all | at all | all right | above all
        | once and for all | of all time | over all | all in all | most of | at once | 不仅 | 不只
    extent.all: all | every | entire | whole | complete list | 所有 | 全部 | 每个 | 每一 | 一切
    extent.some: some of | several | a few | part of | partially | some | 部分 | 一些 | 有些
    end.last: last | final | 最后 | 最终
    end.next: next | upcoming | 下一
    measure.max: maximum | max | upper limit | 最多
    measure.min: minimum | min | lower limit | least | 最少
    size.max: largest | biggest | greatest | 最大
    size.min: smallest | 最小
    height.max: highest | 最高
    height.min: lowest | 最低
    length.max: longest | 最长
    length.min: shortest | 最短
    measure.average: average | avg | median | on average | 平均
    measure.total: total | in total | altogether | sum of | 总共 | 总计 | 一共 | 合计
    rate.day: per day | daily | a day | each day | every day | 每天 | 每日
    rate.week: per week | weekly | a week | each week | every week | 每周
    rate.month: per month | monthly | a month | each month | every month | 每月 | 每个月
    rate.year: per year | yearly | annually | annual | a year | each year | every year | 每年
    rate.hour: per hour | hourly | an hour | each hour | every hour | 每小时
    rate.person: per person | per capita | per head | each person | 每人 | 人均
    rate.user: per user | each user | for each user | 每个用户
    join.or: or
    join.both: both | simultaneously | at the same time | 同时
    -: whether or not | or not | or otherwise | a day ago | a week ago | a month ago | a year ago
    standard.default: default | by default | 默认
    standard.own: custom | customized | 自定义
"""
_COMPARATIVE = """
    bound.more: more than | greater than | larger than | higher than | longer than | older than
        | bigger than | later than | exceeding | 超过 | 大于 | 多于 | 高于 | 以上
    bound.less: less than | fewer than | smaller than | lower than | shorter than | younger than
        | earlier than | cheaper than | 少于 | 小于 | 低于 | 不到 | 以下
    bound.least: at least | no less than | not less than | a minimum of | minimum of | 至少 | 不少于
    bound.most: at most | no more than | not more than | up to | a maximum of | maximum of | 至多
        | 最多 | 不超过
    bound.exact: exactly | precisely | 正好 | 恰好
"""
_DATE = """
    when.this day: today | tonight | this day | 今天 | 今日
    when.yesterday: yesterday | 昨天 | 昨日
    when.tomorrow: tomorrow | 明天 | 明日
    when.before yesterday: the day before yesterday | 前天
    when.after tomorrow: the day after tomorrow | 后天
    when.now: current | currently | now | right now | nowadays | at the moment | as of now
        | at present | 目前 | 现在 | 当前 | 如今
    when.last week: 上周 | 上个星期 | 上星期
    when.last month: 上个月 | 上月
    when.last year: 去年
    when.this week: 本周 | 这周
    when.this month: 本月 | 这个月
    when.this year: 今年
    when.next week: 下周 | 下个星期
    when.next month: 下个月 | 下月
    when.next year: 明年
    -: right now how | by now | until now | from now on | in the day
"""
_TENSE = """
    tense.past: was | were | did | wasn't | weren't | didn't | had
    tense.present: is | are | am | do | does | isn't | aren't | don't | doesn't | what's | who's
        | where's | how's | has | have
    tense.future: will | won't | shall | is going to be | are going to be | 将会 | 将要
    change.formerly!: used to be | use to be | formerly | previously | once was | 曾经 | 以前是
    change.becoming!: becoming | about to become | turning into | going to become | 正在成为
    -: i was wondering | i was | i am | i'm | i have | i do | i had | i did | it was | get used
        to | are used to | be used to | do you know | do you think | did you know
        | could you | have you
"""
_QUESTION = """
    asks.who: who | whom | which person | what person | whose | 谁
    asks.when: when | what time | what date | what day | which day | which year | what year
        | 什么时候 | 何时 | 几点 | 哪天 | 哪年 | 哪一年
    asks.where: where | which place | what place | in which city | in what city
        | 哪里 | 哪儿 | 在哪 | 何处 | 什么地方
    asks.why: why | how come | what is the reason | what are the reasons | what makes | what causes
        | what's the reason | reasons why | 为什么 | 为何 | 什么原因
    asks.how: how | what is the best way to | what is the way to | what's the best way to
        | what are the steps | what is the process | ways to | 怎么 | 如何 | 怎样
    asks.how much: how many | how much | number of | amount of | 多少 | 几个
    asks.how long: how long | what is the duration | how much time | 多久 | 多长时间
    asks.how often: how often | how frequently | 多久一次
    asks.how old: how old | what age | 多大年纪 | 几岁
    asks.how far: how far | 多远
    asks.what: what | which | 什么 | 哪个 | 哪些
    asks.whether: 是否 | 是不是 | 能不能 | 可不可以 | 有没有
    -: when i | when you | when we | when the | when a | where i | where the | who is who | how about
        | in which | for which | to which | what if
"""
_AUDIENCE = """
    reader.child!: for kids | for children | for a child | for a kid | to a child | to a kid
        | to kids | to children | to a five year old | to a 5 year old | like i'm five
        | like i'm 5 | like i am five | eli5 | for a five year old | for a 5 year old
        | 给孩子 | 给小孩 | 给小学生
    reader.beginner!: for beginners | for a beginner | to a beginner | for dummies | to beginners
        | for newbies | for novices | for a layman | to a layman | in layman's terms | in simple terms
        | in plain english | for the layperson | 给初学者 | 给新手 | 通俗地
    reader.expert!: for experts | for an expert | to an expert | for professionals
        | for advanced users | at an expert level | in technical terms | 给专家 | 给专业人士
    reader.student!: for students | for a student | for high school students | 给学生
    reader.senior!: for seniors | for the elderly | for old people | 给老人
    reader.manager!: for executives | for managers | to my boss | for my boss | 给老板
    reader.developer!: for developers | for programmers | for engineers | 给开发者
"""
_FORM = """
    form.poem: poem | poetry | 诗
    form.haiku: haiku | 俳句
    form.sonnet: sonnet | 十四行诗
    form.limerick: limerick
    form.essay: essay | 作文
    form.story: story | 故事
    form.email: email | 邮件
    form.letter: letter
    form.code: code example | code sample | code snippet | example code | source code | 代码
    form.theory: theory | theory behind | 理论
    form.timeline: timeline | 时间线
    form.table!: as a table | in a table | in table form | in tabular form | 用表格
    form.json!: as json | in json | in json format | json format
    form.xml!: as xml | in xml
    form.yaml!: as yaml | in yaml
    form.csv!: as csv | in csv | in csv format
    form.markdown!: as markdown | in markdown
    form.bullets!: as bullet points | bullet points | in bullet points | as a list | bulleted list
        | 用列表 | 要点
    form.diagram: diagram
    form.chart: chart | 图表
    length.sentence!: in one sentence | in a sentence | one sentence | one-sentence | one line
        | in one line | a single sentence | 一句话
    length.word!: in one word | one word | 一个词
    length.paragraph!: in one paragraph | in a paragraph | one paragraph | 一段话
    length.brief: brief | briefly | short | shortly | concise | in short | in brief | summary
        | summarize | summarise | overview | 简短 | 简要 | 概述
    length.long: detailed | in detail | in depth | in-depth | thorough | comprehensive | long
        | at length | 详细
"""
# A language: its words, and the Chinese ones.
_LANGUAGES = """
    english 英语 英文 | french 法语 法文 | german 德语 德文 | spanish 西班牙语 西班牙文 | chinese mandarin
    中文 汉语 | japanese 日语 日文 | korean 韩语 韩文 | italian 意大利语 | portuguese 葡萄牙语 | russian
    俄语 俄文 | arabic 阿拉伯语 | hindi 印地语 | dutch 荷兰语 | turkish 土耳其语 | polish 波兰语 | latin
    拉丁语 | greek 希腊语 | swedish 瑞典语 | hebrew 希伯来语 | vietnamese 越南语 | thai 泰语
"""
# Places as Chinese writes them, each with its English name.
_PLACES = """
    beijing 北京 | shanghai 上海 | guangzhou 广州 | shenzhen 深圳 | hangzhou 杭州 | nanjing 南京
    | chengdu     成都 | chongqing 重庆 | wuhan 武汉 | xian 西安 | tianjin 天津 | suzhou 苏州
    | qingdao 青岛 | xiamen 厦门 | hongkong 香港 | macau 澳门 | taipei 台北 | taiwan 台湾
    | china 中国 | japan 日本 | us 美国 | britain 英国 | france 法国 | germany 德国 | italy 意大利
    | spain 西班牙 | russia 俄罗斯 | india 印度 | korea 韩国 | canada     加拿大
    | australia 澳大利亚 | brazil 巴西 | singapore 新加坡 | thailand 泰国 | vietnam 越南
    | paris 巴黎 | london 伦敦 | tokyo 东京 | york 纽约 | rome 罗马 | berlin 柏林 | moscow 莫斯科
    | seoul 首尔 | sydney 悉尼
"""


class Cue(Struct, frozen=True, gc=False):
    """A phrase of the table: its further words, the guard that reads it, and what it means."""

    rest: tuple[str, ...]
    guard: str
    meaning: str


def _lines(table: str) -> Iterator[tuple[str, Sequence[str]]]:
    joined = re.sub(r"\n\s{8}", " ", table)
    for line in joined.strip().splitlines():
        meaning, _, phrases = line.strip().partition(": ")
        yield meaning, [phrase.strip() for phrase in phrases.split("|")]


def _groups(table: str) -> Iterator[Sequence[str]]:
    return (group.split() for group in table.split("|"))


def _phrases() -> Iterator[tuple[str, str, str]]:
    """Yield every guard, meaning and phrase of the tables."""
    for guard, table in (
        ("scope", _SCOPE), ("comparative", _COMPARATIVE), ("date", _DATE), ("tense", _TENSE),
        ("question", _QUESTION), ("audience", _AUDIENCE), ("form", _FORM),
    ):  # fmt: skip
        for meaning, phrases in _lines(table):
            yield from ((guard, meaning, phrase) for phrase in phrases)
    for period in _PERIODS.split():
        for words, at in (("last previous", "last"), ("this current", "this"), ("next", "next")):
            yield from (
                ("date", f"when.{at} {period}", f"{word} {period}") for word in words.split()
            )
    for group in _groups(_LANGUAGES):
        for word in group:
            shown = ("in {}", "into {}", "to {}", "{} version", "{} translation")
            forms = shown if word.isascii() else ("{}",)
            yield from (("language", f"told.{group[0]}!", form.format(word)) for form in forms)
    for english, chinese in _groups(_PLACES):
        yield "name", fold(english), chinese


def _by_first_word() -> dict[str, list[Cue]]:
    known: dict[str, list[Cue]] = {}
    for guard, meaning, phrase in _phrases():
        first, *rest = phrase.split()
        if phrase.isascii():
            known.setdefault(first, []).append(Cue(tuple(rest), guard, meaning))
    for cues in known.values():
        cues.sort(key=lambda cue: -len(cue.rest))
    return known


CUES: Mapping[str, Sequence[Cue]] = _by_first_word()
HAN_CUES: Mapping[str, Cue] = {
    phrase: Cue((), guard, meaning) for guard, meaning, phrase in _phrases() if not phrase.isascii()
}
HAN_CUE = re.compile("|".join(sorted(HAN_CUES, key=lambda phrase: -len(phrase))))
FOLDED: Mapping[str, str] = {
    word: fold(word) for first, cues in CUES.items() for cue in cues for word in (first, *cue.rest)
}
"""The folded form of each word of the English cues, as folding takes its time."""
NO_CUE = "-"
_LEADING_WORDS = """
is are was were do does did can could will would should shall may has have had am isn't aren't
doesn't don't didn't can't won't
"""
_LEADING = frozenset(_LEADING_WORDS.split())
_FIRST_ONLY = ("question", "tense")

Read = dict[str, dict[str, str]]


def read(lows: Sequence[str], opens_with: str) -> tuple[Read, frozenset[int]]:
    """Return what cues a text in small letters has, by guard, and the places of names in them."""
    found: Read = {}
    taken: list[int] = []
    at, count = 0, len(lows)
    while at < count:
        width = 1
        after = lows[at + 1] if at + 1 < count else ""
        for cue in CUES.get(lows[at], ()):
            rest = cue.rest
            if rest and (rest[0] != after or tuple(lows[at + 1 : at + 1 + len(rest)]) != rest):
                continue
            width += len(rest)
            if cue.meaning != NO_CUE:
                _note(found, cue, " ".join(lows[at : at + width]))
            if cue.guard == "language":
                taken.extend(range(at, at + width))
            break
        at += width
    if "question" not in found and opens_with in _LEADING:
        found["question"] = {"asks.whether": opens_with}
    return found, frozenset(taken)


def read_han(plain: str, found: Read) -> None:
    """Add the cues of a Chinese text to those found in it before."""
    for match in HAN_CUE.finditer(plain):
        cue = HAN_CUES[match.group()]
        if cue.meaning != NO_CUE:
            _note(found, cue, match.group())
    if "question" not in found and "吗" in plain:
        found["question"] = {"asks.whether": "吗"}


def _note(found: Read, cue: Cue, shown: str) -> None:
    meanings = found.setdefault(cue.guard, {})
    if cue.guard in _FIRST_ONLY and meanings and not cue.meaning.endswith("!"):
        return
    meanings.setdefault(cue.meaning, shown)
