"""Forty pairs of questions, written for this benchmark: half are the same, half differ in one thing."""

from collections.abc import Sequence
from typing import TypeAlias

Pair: TypeAlias = tuple[str, str]

SAME: Sequence[Pair] = (
    ("How many days of annual leave do I get?", "What is my yearly leave entitlement in days?"),
    ("How do I get my money back?", "What is the procedure for a refund?"),
    ("Who signs contracts above 10,000 euros?", "Whose signature needs a contract over 10000 EUR?"),
    ("Can I work from home on Fridays?", "Is home office allowed on Fridays?"),
    ("How long is a session kept open?", "After what time does a session end by itself?"),
    ("Which ports does the broker listen on?", "On what ports is the broker reachable?"),
    ("What does the premium plan cost a month?", "Monthly price of the premium plan?"),
    ("Where do I find the emergency exits?", "Could you tell me where the emergency exits are?"),
    ("Why does the import fail without a header?", "What makes an import with no header fail?"),
    ("When was the warehouse in Lyon opened?", "In what year did the Lyon warehouse open?"),
    ("Is a helmet required in hall 4?", "Do I have to wear a helmet in hall 4?"),
    ("How do I cancel my order?", "What must I do to withdraw an order of mine?"),
    ("Who is the head of procurement?", "Who leads the procurement department?"),
    ("What is the limit for uploads in 24 hours?", "How much may I upload in one day?"),
    ("请问年假有多少天？", "我每年可以休几天年假？"),
    ("怎么申请退款？", "退款的流程是什么？"),
    ("报销单要交给谁？", "报销单应该提交给哪个人？"),
    ("高级套餐每月多少钱？", "高级套餐的月费是多少？"),
    ("周五可以在家办公吗？", "星期五允许居家工作吗？"),
    ("会议室怎么预订？", "预订会议室要怎么做？"),
)
DIFFERENT: Sequence[Pair] = (
    ("How do I reset my password?", "How do I keep my password from being reset?"),
    ("What did the premium plan cost in 2023?", "What did the premium plan cost in 2024?"),
    ("Flights from Berlin to Madrid?", "Flights from Madrid to Berlin?"),
    ("Who pays for shipping of returns?", "Who pays for shipping of orders?"),
    ("Which employees have a company car?", "Which employees have no company car?"),
    ("Is the service free for schools?", "Is the service free for all schools?"),
    ("How do I upgrade to version 3.1?", "How do I upgrade from version 3.1?"),
    ("What is the highest fee?", "What is the lowest fee?"),
    ("How does the pump work?", "Why does the pump not work?"),
    ("May I carry leave over to March?", "May I carry leave over to May?"),
    ("When does the shop in Graz open?", "When did the shop in Graz open for the first time?"),
    ("Explain the tax rule.", "Explain the tax rule in one sentence for children."),
    ("Who did the auditor report?", "Who reported the auditor?"),
    ("How many litres does tank 12 hold?", "How many litres does tank 21 hold?"),
    ("年假有多少天？", "病假有多少天？"),
    ("怎么申请退款？", "怎么取消退款申请？"),
    ("从上海到北京的火车几点开？", "从北京到上海的火车几点开？"),
    ("2023年的销售额是多少？", "2024年的销售额是多少？"),
    ("所有员工都有车位吗？", "哪些员工没有车位？"),
    ("请用中文解释这条规定。", "请用英文解释这条规定。"),
)


def shown(count: int) -> Sequence[tuple[Pair, bool]]:
    """Return so many pairs with whether they are the same, both kinds in turn, both languages."""
    both = [one for at in range(len(SAME)) for one in ((SAME[at], True), (DIFFERENT[at], False))]
    return both[:: max(1, len(both) // count)][:count] if count < len(both) else both
