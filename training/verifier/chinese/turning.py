"""Makes Chinese questions about two things whose places are part of what is asked.

Such questions are few in any text, and a score that looks at words alone takes one for the other.
"""

import random
from collections.abc import Iterator

from training.verifier.sources import Pair

_KINDS = {
    "place": "合肥 郑州 济南 厦门 昆明 大连 宁波 南宁 贵阳 兰州 太原 长春 东京 首尔 曼谷 伦敦",
    "person": "小陈 小林 老周 老赵 王经理 刘会计 孙老师 何医生 甲方 乙方 房东 租客 买家 卖家",
    "money": "人民币 美元 欧元 日元 英镑 港币 韩元 泰铢",
    "format": "PDF Word Excel 图片 视频 音频 文本 CSV JSON 网页",
    "system": "旧系统 新系统 总仓 分仓 主账号 子账号 云盘 硬盘 手机 电脑 测试库 正式库",
    "thing": "铜 铝 木头 石头 油 水 冰 铁 棉 麻 金 银",
}
# The ways to say one thing, all with the same two things in it, a and b.
_ASKED = """
place 从{a}到{b}的火车票多少钱？|{a}到{b}的火车票价格是多少|坐火车从{a}去{b}要花多少钱
place 从{a}飞{b}要多长时间？|{a}飞到{b}得多久|从{a}坐飞机去{b}大概几个小时
place {a}的包裹寄到{b}要几天？|从{a}寄快递到{b}多久能到|包裹从{a}寄往{b}，几天送达
place {a}比{b}早几个小时？|{a}时间比{b}快几小时|{a}比{b}的时间早多少
place 怎么把户口从{a}迁到{b}？|户口由{a}迁往{b}如何办理|{a}户口转到{b} 办理流程
person {a}欠{b}的钱怎么算利息？|{a}借了{b}的钱，利息怎么计算|{a}向{b}借款 利息算法
person {a}给{b}转账要手续费吗？|{a}转钱给{b}收不收手续费|{a}打款给{b}，有手续费吗
person {a}是{b}的上级吗？|{b}的领导是{a}吗|{a}是不是{b}的主管
person {a}可以替{b}签字吗？|{b}不在，能由{a}代签吗|{a}能不能代{b}签名
person {a}投诉{b}后怎么处理？|{a}举报了{b}，后面怎么办|{b}被{a}投诉，之后如何处理
person {a}要赔{b}多少钱？|{a}应该赔偿{b}多少|{b}能从{a}那里得到多少赔偿
money {a}换{b}的汇率是多少？|{a}兑{b}汇率|用{a}兑换{b}，汇率多少
money 在哪里可以把{a}换成{b}？|{a}兑换{b}去哪儿办|想拿{a}换{b}，什么地方能换
format 怎么把{a}转成{b}？|{a}转{b}的方法|如何将{a}转换为{b}
format {a}转{b}要收费吗？|把{a}转成{b}需要付钱吗|{a}转换成{b}是不是免费
system 怎么把数据从{a}迁移到{b}？|数据从{a}搬到{b}如何操作|{a}的数据迁到{b}的步骤
system 从{a}同步到{b}为什么很慢？|{a}往{b}同步慢是什么原因|{a}同步到{b}速度慢的原因
system {a}能访问{b}吗？|从{a}可以访问{b}吗|{a}有没有权限访问{b}
thing {a}比{b}重吗？|{a}是不是比{b}重|{a}的重量比{b}大吗
thing {a}为什么比{b}贵？|{a}比{b}贵的原因是什么|为啥{a}的价格高过{b}
thing {a}比{b}硬多少？|{a}的硬度比{b}高多少|和{b}比，{a}硬多少
"""
_TIMES = 8
_SOURCE = "turned"


def pairs(seed: int) -> Iterator[Pair]:
    """Yield pairs that are the same in other words, and pairs with both things exchanged."""
    for line in _ASKED.split("\n"):
        kind, _, forms = line.partition(" ")
        chance = random.Random(f"{seed}:{line}")
        for _ in range(_TIMES if forms else 0):
            a, b, c = chance.sample(_KINDS[kind].split(), 3)
            one, other = chance.sample(forms.split("|"), 2)
            said = one.format(a=a, b=b)
            yield Pair(said, other.format(a=a, b=b), True, _SOURCE, "reworded by rule", 0.5, line)
            for how, form, first, second in (
                ("exchanged", one, b, a),
                ("exchanged, reworded", other, b, a),
                ("another thing", other, *chance.choice(((a, c), (c, b)))),
            ):
                yield Pair(said, form.format(a=first, b=second), False, _SOURCE, how, 0.5, line)
