"""A language model as the judge of freshness: its prompt, its budget and deadline, its reply."""

from stampcache.judging.budget import Budget
from stampcache.judging.judge import ModelJudge, as_judge
from stampcache.judging.models import AskModel, Reply, as_model
from stampcache.judging.prompt import Template
from stampcache.judging.replies import Said, read_reply

__all__ = [
    "AskModel",
    "Budget",
    "ModelJudge",
    "Reply",
    "Said",
    "Template",
    "as_judge",
    "as_model",
    "read_reply",
]
