"""Units, currencies, months and weekdays: their words, and one form for equal quantities (pure)."""

from collections.abc import Mapping

from msgspec import Struct


class Measure(Struct, frozen=True, gc=False):
    """A unit: its name, what it measures, and how much of the base unit of that it is."""

    name: str
    dimension: str
    factor: float
    alone: bool


# name dimension factor: the words for it. After ";" those that only count right after a number.
_MEASURES = """
    km m 1000: km kilometer kilometers kilometre kilometres 公里 千米
    m m 1: meter meters metre metres 米; m
    cm m 0.01: cm centimeter centimeters centimetre centimetres 厘米
    mm m 0.001: mm millimeter millimeters millimetre millimetres 毫米
    mile m 1609.344: mile miles 英里; mi
    ft m 0.3048: foot feet 英尺; ft
    inch m 0.0254: inch inches 英寸
    yard m 0.9144: yard yards
    kg g 1000: kg kgs kilogram kilograms kilo kilos 公斤 千克
    g g 1: gram grams 克; g
    mg g 0.001: mg milligram milligrams 毫克
    mcg g 0.000001: mcg microgram micrograms
    lb g 453.59237: lb lbs; pound pounds
    oz g 28.349523125: oz ounce ounces
    stone g 6350.29318:; stone
    jin g 500:; 斤
    ton g 1000000: ton tons tonne tonnes 吨
    l l 1: liter liters litre litres 升; l
    ml l 0.001: ml milliliter milliliters millilitre millilitres 毫升
    gallon l 3.785411784: gallon gallons 加仑
    cup cup 1: cup cups
    ms s 0.001: ms millisecond milliseconds 毫秒
    s s 1: sec secs seconds 秒 秒钟; s second
    min s 60: mins minute minutes 分钟; min
    h s 3600: hour hours hr hrs 小时; h
    day s 86400: day days 天; 日
    week s 604800: week weeks 周 星期 礼拜
    month mo 1: month months 个月; 月
    quarter mo 3: ; quarter quarters 个季度
    year mo 12: year years; yr yrs 年
    decade mo 120: decade decades
    century mo 1200: century centuries 世纪
    kb b 1000: kb kilobyte kilobytes
    mb b 1000000: mb megabyte megabytes
    gb b 1000000000: gb gigabyte gigabytes
    tb b 1000000000000: tb terabyte terabytes
    kbps bps 1000: kbps
    mbps bps 1000000: mbps
    gbps bps 1000000000: gbps
    w w 1: watt watts; w
    kw w 1000: kw kilowatt kilowatts 千瓦
    mph mph 1: mph
    kmh kmh 1: kmh kph
    celsius celsius 1: celsius 摄氏 摄氏度; c
    fahrenheit fahrenheit 1: fahrenheit 华氏 华氏度; f
    kelvin kelvin 1: kelvin
    percent % 1: percent; % percentage
"""
_CURRENCIES = """
    usd: usd dollar dollars bucks 美元 美金; $
    eur: eur euro euros 欧元; €
    gbp: gbp sterling 英镑; £ quid
    jpy: jpy yen 日元
    cny: cny rmb yuan renminbi 人民币 元; 块 ¥
    inr: inr rupee rupees 卢比; ₹
    cad: cad
    aud: aud
    chf: chf
    btc: btc bitcoin bitcoins 比特币
    eth: eth ethereum
"""
_MONTHS = """
    january jan | february feb | march mar | april apr | may | june jun | july jul | august aug
    | september sep sept | october oct | november nov | december dec
"""
_WEEKDAYS = """
    monday mon | tuesday tue | wednesday wed | thursday thu | friday fri | saturday sat | sunday sun
"""
# Words that are a month or day only where their place says so: "may", "march", "sun", "sat".
UNSURE = frozenset(["may", "march", "mar", "jan", "dec", "sun", "sat", "mon", "wed", "jun", "sep"])


def _measures() -> dict[str, Measure]:
    known: dict[str, Measure] = {}
    for line in _MEASURES.strip().splitlines():
        head, _, words = line.partition(":")
        name, dimension, factor = head.split()
        _learn(known, words, name, dimension, float(factor))
    for line in _CURRENCIES.strip().splitlines():
        name, _, words = line.strip().partition(":")
        _learn(known, words, name, "currency " + name, 1)
    return known


def _learn(known: dict[str, Measure], words: str, name: str, dimension: str, factor: float) -> None:
    free, _, bound = words.partition(";")
    for group, alone in ((free, True), (bound, False)):
        for word in group.split():
            known[word] = Measure(name, dimension, factor, alone)


def _calendar(groups: str, letter: str) -> dict[str, str]:
    return {
        word: f"{letter}{at}"
        for at, group in enumerate(groups.split("|"), 1)
        for word in group.split()
    }


MEASURES: Mapping[str, Measure] = _measures()
CALENDAR: Mapping[str, str] = {**_calendar(_MONTHS, "m"), **_calendar(_WEEKDAYS, "w")}
CURRENCIES = frozenset(
    [known.name for known in MEASURES.values() if known.dimension.startswith("currency")]
)
SIGNS = "$€£¥₹"


def quantity(value: str, measure: Measure) -> str:
    """Return one form for all ways to write an amount: 24 hours and 1 day are ``86400 s``."""
    try:
        amount = float(value) * measure.factor
    except ValueError:  # a range or a version, such as 3-5-7
        return f"{value} {measure.name}"
    return f"{amount:.15g} {measure.dimension}"
