"""Turns a Chinese question into one that is near to it and has another answer."""

import random
import re
from collections.abc import Callable, Mapping, Sequence

from stampcache.verifying.chinese.vocabulary import CONCEPTS, FUNCTION
from training.verifier.rewording import Rewording

_OPPOSITES = """
开启/关闭|打开/关闭|启用/停用|增加/减少|添加/删除|绑定/解绑|安装/卸载|升级/降级|上传/下载|导入/导出|买/卖|购买/出售
|充值/提现|存款/取款|借款/还款|入职/离职|上班/下班|登录/退出登录|之前/之后|以前/以后|最多/最少|最大/最小|最高/最低
|最早/最晚|最贵/最便宜|上限/下限|国内/国外|境内/境外|线上/线下|室内/室外|公司/个人|收入/支出|发送/接收|发货/收货
|寄件/收件|进口/出口|优点/缺点|好处/坏处|热/冷|新/旧|长/短|快/慢|公开/私密|白天/晚上|早上/晚上|上午/下午|工作日/周末
|夏天/冬天|成人/儿童|男/女|员工/经理|客户/商家|买家/卖家|老师/学生|房东/租客|甲方/乙方|允许/禁止|可以/不能|能/不能
|需要/不需要|支持/不支持|有/没有|已经/还没|接受/拒绝|通过/驳回|开始/结束|成功/失败|合法/违法|有效/失效|正式/临时
|全部/部分|所有/部分|免费/收费|含/不含|自动/手动|左/右|内/外|上/下|前/后|高/低|多/少|每月/每年|每年/每月|每天/每周
|第一次/第二次|第一/最后|提前/延后|提高/降低|上涨/下降|加入/退出|创建/注销|锁定/解锁|隐藏/显示|置顶/取消置顶|申请/取消
|修改/查看|查看/修改|删除/恢复|预订/退订|开门/关门|营业/打烊|出发/到达|正面/背面|素食/荤菜|单人/多人|单程/往返|单次/多次
|信用卡/储蓄卡|现金/刷卡|电子/纸质|苹果/安卓|手机/电脑|网页版/手机版|基础版/专业版|专业版/企业版|普通/高级|试用期/转正后
|年假/病假|病假/事假|产假/陪产假|电费/水费|身份证/护照|父亲/母亲|丈夫/妻子|白/黑|生/熟|干/湿|浅/深|吃/喝
""".replace("\n", "").split("|")
_FLIPS = [(a, b) for one in _OPPOSITES for a, b in [one.split("/"), one.split("/")[::-1]]]
_PLACES = """
北京|上海|广州|深圳|杭州|成都|武汉|西安|南京|重庆|天津|苏州|青岛|长沙|日本|韩国|美国|英国|法国|德国|泰国|新加坡|澳大利亚
|加拿大|云南|四川|广东|海南|新疆|西藏|香港|台湾
""".replace("\n", "").split("|")
_NAMES = """
张伟|李娜|王芳|刘洋|陈静|华为|小米|苹果|三星|联想|微信|支付宝|淘宝|京东|抖音|顺丰|中通|工商银行|招商银行|建设银行|Python
|Java|MySQL|Redis|Linux|Windows|macOS|Excel|Word|Docker|Kafka|Nginx
""".replace("\n", "").split("|")
_LIMITS = """
周末|节假日|晚上|没有发票时|没有身份证时|用手机时|用电脑时|在国外|学生|老人|孩子|孕妇|新员工|实习生|外籍员工|第一次使用时
|第二次|过期以后|断网时|团购的时候|企业用户|未成年人|试用期内|会员|非会员|海外订单|二手商品|冬天|下雨天
""".replace("\n", "").split("|")
_SCOPES = "所有 只有 部分 每个 任何 大多数"
_SCOPE_WORDS = _SCOPES.split()
_TIMED = "去年 今年 明年 上个月 下个月 昨天 明天 上周 下周 以前 2019年 2023年"
_TIME_WORDS = _TIMED.split()
_MONTHS = "一月 二月 三月 四月 五月 六月 七月 八月 九月 十月 十一月 十二月"
_MONTH_WORDS = _MONTHS.split()
_DAYS = "周一 周二 周三 周四 周五 周六 周日 星期一 星期三 星期五"
_DAY_WORDS = _DAYS.split()
_UNITS = "天|个月|年|周|小时|分钟|次|个|元|块|米|公里|斤|公斤|度|岁|页|人|台|份"
_NUMERALS = "一二三四五六七八九十"
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NUMERAL = re.compile(rf"(?<![{_NUMERALS}第星期周])([{_NUMERALS}两])(?=(?:{_UNITS}))(?!下)")
_HOW = re.compile(
    r"^(?P<before>.{0,10}?)(?:怎么|如何|怎样|咋)(?!办|回事|样)"
    r"(?P<what>[^，,？?]{2,20})[？?]?$"
)
_OTHERS_HOW = """
{b}{w}要多少钱？|{b}{w}需要多长时间？|为什么{b}要{w}？|{b}什么时候可以{w}？|{b}在哪里{w}？|谁可以{b}{w}？|{b}能不能不{w}？|{b}怎么避免{w}？
|{b}{w}有什么风险？|{b}{w}失败了怎么办？|{b}{w}以后怎么撤销？|{b}{w}需要什么材料？|{b}不{w}会怎么样？|{b}{w}可以免费吗？|{b}多久{w}一次？
""".replace("\n", "").split("|")
_WHAT = re.compile(
    r"^(?P<what>[^，,？?]{2,14}?)(?:是什么意思|是什么|指什么)[？?]?$"
    r"|^什么是(?P<more>[^，,？?]{2,14}?)[？?]?$"
)
_OTHERS_WHAT = """
{w}是谁提出的？|{w}有什么用？|{w}是什么时候出现的？|{w}和别的有什么区别？|{w}怎么用？|{w}有什么缺点？|{w}要多少钱？|{w}在哪里？|{w}为什么重要？
""".replace("\n", "").split("|")
_ASKING = (
    ("多少钱", ("在哪里买", "什么时候付", "由谁付", "怎么付")),
    ("什么时候", ("在哪里", "为什么", "怎么", "由谁")),
    ("在哪里", ("什么时候", "怎么", "为什么")),
    ("为什么", ("什么时候", "怎么", "在哪里")),
    ("多久", ("几次", "多少钱", "哪天")),
    ("谁", ("什么时候", "哪个部门", "几个人")),
    ("几天", ("几次", "几个月", "几小时")),
    ("怎么办", ("要紧吗", "是什么原因", "会扣钱吗", "是谁的责任")),
    ("是什么原因", ("怎么办", "有什么后果")),
    ("可以", ("为什么可以", "不可以", "一定要")),
    ("吗", ("几次", "的原因是什么", "要多久")),
)
_ROUTE = re.compile(
    r"从(?P<a>[^从到，]{1,8})(?P<m>到|去|转到|转成|升级到|换成|搬到|传到)(?P<b>[一-鿿A-Za-z]{2,6}?)"
    r"(?=要|怎|如|的|多|坐|需|有|大概|哪|是|能|可|以|为|[，？? ]|$)"
)
_NEGATABLE = re.compile(r"(可以|能|会|需要|支持|允许|应该|要)")
_SPANS = re.compile(r"(?P<n>\d+|[一二两三四五六七八九十半])(?P<u>天|个月|年|周|小时|分钟|个工作日)")


def _first(text: str, chance: random.Random, changes: Sequence[tuple[str, str]]) -> str | None:
    known = [one for one in changes if one[0] in text]
    if not known:
        return None
    longest = max(len(one[0]) for one in known)
    word, other = chance.choice([one for one in known if len(one[0]) >= min(2, longest)])
    return text.replace(word, other, 1)


def opposite(text: str, chance: random.Random) -> str | None:
    """Put the opposite of a word, or its counterpart, in its place."""
    return _first(text, chance, _FLIPS)


def number(text: str, chance: random.Random) -> str | None:
    """Change a number, in digits or as a word."""
    found = [*_NUMBER.finditer(text)] or [*_NUMERAL.finditer(text)]
    if not found:
        return None
    one = chance.choice(found)
    if one[0][0].isdigit():
        value = float(one[0])
        other = chance.choice([value + 1, value * 2, value * 10, max(value - 1, 0), value + 5])
        shown = f"{other:g}" if other != value else f"{value + 1:g}"
    else:
        shown = chance.choice([sign for sign in _NUMERALS if sign != one[0]])
    return text[: one.start()] + shown + text[one.end() :]


def unit(text: str, chance: random.Random) -> str | None:
    """Change the unit of a span of time."""
    found = _SPANS.search(text)
    if not found:
        return None
    other = chance.choice([one for one in ("天", "个月", "年", "小时", "周") if one != found["u"]])
    return text[: found.start("u")] + other + text[found.end("u") :]


def dated(text: str, chance: random.Random) -> str | None:
    """Change a month, a day of the week or a time, or add one."""
    for names in (_MONTH_WORDS, _DAY_WORDS, _TIME_WORDS):
        for name in sorted(names, key=len, reverse=True):
            if name in text:
                return text.replace(name, chance.choice([one for one in names if one != name]), 1)
    return chance.choice(_TIME_WORDS) + text if chance.random() < 0.4 else None


def place(text: str, chance: random.Random) -> str | None:
    """Change a place, or put the question about one."""
    known = [one for one in _PLACES if one in text]
    if known:
        other = chance.choice([one for one in _PLACES if one not in text])
        return text.replace(known[0], other, 1)
    return f"在{chance.choice(_PLACES)}，{text}" if chance.random() < 0.4 else None


def named(text: str, chance: random.Random) -> str | None:
    """Put another name in the place of one."""
    known = [one for one in _NAMES if one.lower() in text.lower()]
    if not known:
        return None
    other = chance.choice([one for one in _NAMES if one not in known])
    return re.sub(re.escape(known[0]), other, text, count=1, flags=re.IGNORECASE)


def limited(text: str, chance: random.Random) -> str | None:
    """Add a condition."""
    limit = chance.choice(_LIMITS)
    return None if limit in text else f"{limit}{text}"


def scope(text: str, chance: random.Random) -> str | None:
    """Ask about all, only some or the like."""
    known = [one for one in _SCOPE_WORDS if one in text]
    other = chance.choice([one for one in _SCOPE_WORDS if one not in known])
    return text.replace(known[0], other, 1) if known else other + text


def negated(text: str, chance: random.Random) -> str | None:
    """Negate a verb, or take a negation away."""
    if "能不能" in text or "可不可以" in text or "是不是" in text:
        return None
    for word in ("不能", "不会", "没有", "无法", "不"):
        if word in text:
            plain = {"不能": "能", "不会": "会", "没有": "有", "无法": "能", "不": ""}[word]
            return text.replace(word, plain, 1)
    found = [*_NEGATABLE.finditer(text)]
    if not found:
        return None
    at = chance.choice(found).start()
    return text[:at] + "不" + text[at:]


def asked(text: str, chance: random.Random) -> str | None:
    """Ask for something else of the same thing."""
    found = _HOW.match(text)
    if found and chance.random() < 0.7:
        return chance.choice(_OTHERS_HOW).format(b=found["before"], w=found["what"])
    found = _WHAT.match(text)
    if found:
        return chance.choice(_OTHERS_WHAT).format(w=found["what"] or found["more"])
    known = [one for one in _ASKING if one[0] in text]
    if not known:
        return None
    word, others = chance.choice(known)
    return text.replace(word, chance.choice(others), 1)


def turned(text: str, chance: random.Random) -> str | None:
    """Exchange both ends of a way."""
    del chance
    found = _ROUTE.search(text)
    if found is None:
        return None
    return f"{text[: found.start()]}从{found['b']}{found['m']}{found['a']}{text[found.end() :]}"


class Substituting:
    """Puts other words in the place of words: near ones in meaning, such as a table knows them."""

    def __init__(
        self, cut: Callable[[str], Sequence[str]], related: Mapping[str, Sequence[str]]
    ) -> None:
        self._cut = cut
        self._related = related

    def word(self, text: str, chance: random.Random) -> str | None:
        """Replace a word of content by one that is near to it and means something else."""
        known = self._known(text)
        if not known:
            return None
        word = chance.choice(known)
        thing = CONCEPTS.get(word)
        others = [
            one
            for one in self._related[word]
            if one not in FUNCTION and (thing is None or CONCEPTS.get(one) != thing)
        ]
        return text.replace(word, chance.choice(others), 1) if others else None

    def dropped(self, text: str, chance: random.Random) -> str | None:
        """Leave a word of content out."""
        known = self._known(text)
        return text.replace(chance.choice(known), "", 1) if len(known) > 2 else None

    def _known(self, text: str) -> list[str]:
        cut = self._cut(text)
        return [one for one in cut if one in self._related and one in text and one not in FUNCTION]


EVERY: Sequence[Rewording] = (
    opposite, opposite, opposite, number, number, unit, dated, place, named, limited, scope,
    negated, negated, asked, asked, asked, turned,
)  # fmt: skip
