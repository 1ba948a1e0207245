"""A language model as a judge of freshness and of pairs: its prompt, budget, deadline, reply."""

from stampcache.judging.budget import Budget
from stampcache.judging.equivalence import PairJudge, PairTemplate
from stampcache.judging.judge import ModelJudge, as_judge
from stampcache.judging.models import AskModel, Reply, as_model
from stampcache.judging.prompt import Template
from stampcache.judging.replies import Said, read_reply

__all__ = [
    "AskModel",
    "Budget",
    "ModelJudge",
    "PairJudge",
    "PairTemplate",
    "Reply",
    "Said",
    "Template",
    "as_judge",
    "as_model",
    "read_reply",
]
