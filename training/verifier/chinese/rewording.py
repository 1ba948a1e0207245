"""Rewords a Chinese question lightly, so that its answer stays the same."""

import random
import re
from collections.abc import Sequence

from training.verifier.rewording import Rewording

_SETS = """
怎么 如何 怎样
能不能 可不可以 是否可以 能否 可否
为什么 为何 为啥
什么时候 何时 啥时候
哪里 哪儿 什么地方
多少钱 什么价格 什么价钱
多久 多长时间
什么 啥
谁 哪位 什么人
怎么办 怎么处理 如何处理 咋办
需要 要 得
可以 能 能够
修改 更改 变更
删除 删掉 移除
购买 买 选购
取消 撤销
查看 查询
使用 用
账号 账户 帐号
登录 登陆 登入
密码 登录口令
手机 移动电话
电脑 计算机
费用 花费 开销
方法 办法
原因 缘由
区别 不同 差别
员工 职员 雇员
公司 单位 企业
孩子 小孩 宝宝
医生 大夫
汽车 车
开通 启用 激活
关闭 关掉
开启 打开
申请 申办
提交 递交
上限 最高限额
最多 至多 顶多
最少 至少
每月 每个月
每年 每一年
每天 每日
星期 周
之前 以前
之后 以后
现在 目前 当前
必须 务必 一定要
如果 要是 假如
没有 没
修复 修好
丢失 弄丢
忘记 忘了
推荐 建议
工资 薪水 薪资
酒店 宾馆
餐厅 饭馆
快递 包裹
退款 退钱
付款 支付
优惠券 折扣券
发票 收据
""".strip()
_SYNONYMS = [
    (word, [other for other in one.split() if other != word])
    for one in _SETS.splitlines()
    for word in one.split()
]
_OPENINGS = """
请问|请问一下，|你好，|您好，请问|想问一下，|我想知道|麻烦问下，|想了解一下|问一下|帮我看看|请教一下，
|不好意思，问一下
""".replace("\n", "").split("|")
_ENDINGS = "谢谢 ，谢谢！ ，急 ，求解答 ，有人知道吗 ？在线等 ，请告知 ，请帮忙看看"
_CLOSINGS = _ENDINGS.split()
_NUMERALS = "一二三四五六七八九十"
_DIGITS = {**{sign: str(at) for at, sign in enumerate(_NUMERALS, 1)}, "两": "2"}
_UNITS = "天|个|年|周|小时|分钟|次|元|块|米|公里|斤|公斤|度|岁|页|人|台|份"
_ACTS = (
    "取消|修改|删除|申请|开启|关闭|查看|设置|购买|使用|安装|绑定|更换|恢复|开通|打开|办理|清洗|保存|注销"
    "|升级|导出|上传|下载|重置"
)
_HOW = "怎么|如何|怎样"
_COUNTED = re.compile(rf"(?<![第星期周{_NUMERALS}两])([{_NUMERALS}两])(?=(?:{_UNITS}))(?!一?下)")
_COUNTS = re.compile(rf"(?<![\d.])(\d|10)(?=(?:{_UNITS}))")
_SMALL = re.compile(rf"请问|{_HOW}|的|了|吗|呢|啊|我|想|要|是否|可以|能不能|一下|[，。？！?!]")
_LEADING = re.compile(rf"^(?:{_HOW})(?P<act>{_ACTS})(?P<what>[^，？?]{{2,14}})[？?]?$")
_BACK = re.compile(rf"^(?P<what>[^，？?怎如]{{2,12}})(?:{_HOW})(?P<act>{_ACTS})[？?]?$")
_CAN = re.compile(r"^(?P<a>[^，？?]{0,12}?)(?:可以|能)(?P<b>[^，？?不]{1,14})吗[？?]?$")
_CANNOT = re.compile(
    r"^(?P<a>[^，？?]{0,12}?)(?:能不能|可不可以|是否可以|能否)(?P<b>[^，？?]{1,14})[？?]?$"
)
_WHY = re.compile(r"^为什么(?P<what>[^，？?]{3,20})[？?]?$")
_TYPOS = (
    ("账", "帐"), ("登录", "登陆"), ("的", "得"), ("在", "再"), ("做", "作"), ("哪", "那"), ("须", "需"),
)  # fmt: skip
_ENDS = "吗呢啊呀吧"


def form(text: str, chance: random.Random) -> str | None:
    """Ask in another form: what stands last in front, a question with "can" in its other shapes."""
    found = _LEADING.match(text)
    if found:
        return chance.choice(
            [
                f"{found['what']}怎么{found['act']}",
                f"我想{found['act']}{found['what']}，怎么操作",
                f"{found['what']} {found['act']}方法",
                f"{found['act']}{found['what']}的步骤",
            ]
        )
    found = _BACK.match(text)
    if found:
        return f"{chance.choice(['怎么', '如何'])}{found['act']}{found['what']}？"
    found = _CAN.match(text) or _CANNOT.match(text)
    if found:
        return chance.choice(
            [
                f"{found['a']}能不能{found['b']}？",
                f"{found['a']}是否可以{found['b']}",
                f"{found['a']}可以{found['b']}吗",
                f"{found['a']}允许{found['b']}吗？",
            ]
        )
    found = _WHY.match(text)
    if found:
        return chance.choice(
            [
                f"{found['what']}的原因是什么？",
                f"{found['what']}是怎么回事",
                f"{found['what']}，什么原因",
            ]
        )
    return None


def opened(text: str, chance: random.Random) -> str | None:
    """Put a greeting or an introduction before it."""
    return chance.choice(_OPENINGS) + text


def closed(text: str, chance: random.Random) -> str | None:
    """Put thanks after it."""
    return text.rstrip("？?") + chance.choice(_CLOSINGS)


def particle(text: str, chance: random.Random) -> str | None:
    """Add or leave away a small word at the end, or the question mark."""
    bare = text.rstrip("？?。！")
    if bare[-1:] in _ENDS and bare[-1:] != "吗":
        return bare[:-1]
    if bare[-1:] == "吗":
        return bare
    return bare + chance.choice(["", "呢", "啊", "呀", "呢？", "？？"])


def synonym(text: str, chance: random.Random) -> str | None:
    """Replace one or two words by synonyms."""
    known = [
        one for one in _SYNONYMS if one[0] in text and (len(one[0]) > 1 or chance.random() < 0.2)
    ]
    if not known:
        return None
    for word, others in chance.sample(known, min(len(known), 2)):
        if word in text and not any(other in text for other in others):
            text = text.replace(word, chance.choice(others), 1)
    return text


def typo(text: str, chance: random.Random) -> str | None:
    """Put one character for another that sounds alike."""
    known = [one for one in _TYPOS if one[0] in text]
    if not known:
        return None
    return text.replace(*chance.choice(known), 1)


def careless(text: str, chance: random.Random) -> str | None:
    """Write without punctuation, or with spaces for it."""
    return re.sub(r"[？?。！，,、]+", chance.choice(["", " "]), text).strip()


def digits(text: str, chance: random.Random) -> str | None:
    """Write a counted numeral in digits, or digits as a numeral."""
    del chance
    found = _COUNTED.search(text)
    if found:
        return text[: found.start()] + _DIGITS[found[1]] + text[found.end() :]
    found = _COUNTS.search(text)
    if found:
        words = {digit: word for word, digit in _DIGITS.items()}
        return text[: found.start()] + words[found[1]] + text[found.end() :]
    return None


def keywords(text: str, chance: random.Random) -> str | None:
    """Leave small words out, as in a search box."""
    kept = _SMALL.sub(chance.choice(["", " "]), text)
    kept = re.sub(r" +", " ", kept).strip()
    if "不" in text or "没" in text or "多" in text or "谁" in text or "什么" in text:
        return None
    return (
        kept + chance.choice(["", " 方法", "怎么弄"]) if len(kept) >= 4 and _howto(text) else None
    )


def _howto(text: str) -> bool:
    return any(word in text for word in ("怎么", "如何", "怎样")) and "怎么办" not in text


def possessive(text: str, chance: random.Random) -> str | None:
    """Leave away a small word of belonging."""
    del chance
    return text.replace("的", "", 1) if 2 < text.find("的") < len(text) - 2 else None


EVERY: Sequence[Rewording] = (
    form, form, form, opened, closed, particle, particle, synonym, synonym, synonym, typo,
    careless, digits, keywords, possessive,
)  # fmt: skip


def reword(text: str, chance: random.Random, times: int) -> str:
    """Return the question reworded so many times; a rewording that does not fit is passed over."""
    for _ in range(times):
        text = chance.choice(EVERY)(text, chance) or text
    return text
