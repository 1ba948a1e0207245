"""Recognises answers that are refusals or apologies rather than answers (pure; English and Chinese).

Only the beginning of a short text is looked at: an answer that explains what an error message means
must not be taken for one. A false alarm costs one uncached answer, a missed refusal is served until
it expires.
"""

import re

_SHORT_CHARS = 400

_REFUSAL = re.compile(
    r"""^\W*(?:
        (?:i(?:['’]?\s?a?m)?|we(?:['’]re|\ are)?)?\s*(?:very\ |so\ |really\ )?
            (?:sorry|apologi[sz]e|afraid)\b[^.!?]{0,80}
            \b(?:can(?:no|['’])?t|unable|not\ able|won['’]t|not\ allowed|something\ went\ wrong|error)
      | (?:unfortunately,?\ )?(?:i|we)(?:\ (?:can(?:no|['’])?t|won['’]t|must\ decline|have\ to\ decline)
            |(?:['’]|\ a)(?:m|re)\ (?:unable|not\ able)\ to)\b[^.!?]{0,60}
            \b(?:help|assist|comply|fulfil?l|provide|answer|discuss|support|do\ that|process|complete)
      | as\ an\ ai\b[^.!?]{0,80}\b(?:can(?:no|['’])?t|unable|not\ able)
      | (?:oops|sorry|apologies|error)\b[^.?]{0,60}
            \b(?:went\ wrong|error\ occurred|try\ again|timed\ out|unavailable)
      | (?:an?\ )?(?:internal\ |server\ |unexpected\ )+error\b
            (?!\ (?:means?|is|indicates|refers|codes?|handling|messages?|happens|occurs\ when))
      | an\ error\ (?:has\ )?occurred\b
      | (?:抱歉|对不起|很遗憾|不好意思)[，,。！!\s]*[^。！？]{0,30}
            (?:无法|不能|不可以|没办法|出错|错误|失败)
      | (?:服务|系统)(?:繁忙|出错|错误|异常)
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def looks_refused(text: str) -> bool:
    """Tell whether a short answer opens as a refusal or as an apology of the application."""
    return len(text) <= _SHORT_CHARS and _REFUSAL.match(text) is not None
