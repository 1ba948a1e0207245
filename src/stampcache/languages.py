"""Which language a question is in, as far as a threshold or a verifier must know (pure).

What was measured on English or Chinese says nothing about other languages. Letters tell Chinese, and
small words tell English from other languages in Latin letters: a text without any of them, such as
two names, passes as English.
"""

import re
import unicodedata
from collections.abc import Sequence

LATIN = ("LATIN", "GREEK", "FEMININE ORDINAL", "MASCULINE ORDINAL", "MICRO SIGN", "MODIFIER")
"""How the Unicode names of letters begin that English texts hold now and then."""
_WIDE = "FULLWIDTH LATIN"  # as Chinese keyboards write Latin letters
_HAN = ("CJK UNIFIED", "CJK COMPATIBILITY")
_WORD = re.compile(r"\w+")

# Without accents, which are left away before words are looked up.
_FOREIGN_WORDS = """
der die das und ist nicht ein eine ich wie kann mit auf den dem von zu wird sind wo warum
le la les des est une et pour dans que qui comment je vous avec sur pas quel quelle ou pourquoi
el los las una es por para como con del que como donde cual puedo mi su cuando
il lo gli che di per come sono non dove quando perche posso della
o os um uma e nao como onde quando posso meu minha voce qual
het een van hoe ik niet waar wat kan mijn voor zijn waarom
jak nie jest czy gdzie hur och jag det inte var kan hvordan er ikke og jeg nasil bir ve mi
"""
_FOREIGN = frozenset(_FOREIGN_WORDS.split())
_ENGLISH_WORDS = """
the and is are was were do does did can could will would should how what when where who why
which my your his her our their i you he she we they it of to in on at for from with by not
have has had be been this that there a an or if me please
"""
ENGLISH_WORDS = frozenset(_ENGLISH_WORDS.split())
# These are words of English as well, so alone they say nothing.
_AMBIGUOUS_WORDS = "die a an in on at is was no me do as per so i he come dove van wat kan la le"
_AMBIGUOUS = frozenset(_AMBIGUOUS_WORDS.split())

FOREIGN_WORDS = _FOREIGN - _AMBIGUOUS - ENGLISH_WORDS

ENGLISH = "English"
CHINESE = "Chinese"
OTHER = "another language"


def language_of(text: str) -> str:
    """Return ``ENGLISH``, ``CHINESE`` or ``OTHER``.

    Any Chinese character makes a text Chinese, since Chinese questions name things in Latin letters;
    any letter of a third script, such as Japanese kana, makes it another language.
    """
    chinese = False
    for sign in "" if text.isascii() else text:
        if unicodedata.category(sign).startswith("L"):
            name = unicodedata.name(sign, "")
            if name.startswith(_HAN):
                chinese = True
            elif not name.startswith((*LATIN, _WIDE)):
                return OTHER
    if chinese:
        return CHINESE
    return OTHER if looks_foreign(_WORD.findall(without_accents(text).lower())) else ENGLISH


def looks_foreign(words: Sequence[str]) -> bool:
    """Tell whether words in Latin letters have as many small words of other languages as of English."""
    if FOREIGN_WORDS.isdisjoint(words):
        return False
    foreign = sum(word in FOREIGN_WORDS for word in words)
    return foreign >= sum(word in ENGLISH_WORDS for word in words)


def without_accents(text: str) -> str:
    """Return the text with accents left away, as the small words are looked up."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join([sign for sign in decomposed if not unicodedata.combining(sign)])
