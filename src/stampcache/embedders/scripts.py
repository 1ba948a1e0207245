"""Which texts an embedder can read at all (pure).

all-MiniLM-L6-v2 maps most Chinese characters and every emoji to one unknown token: two different
Chinese questions were measured at cosine 1.0. Such texts are refused instead of compared.
"""

import unicodedata

from msgspec import Struct

from stampcache.errors import WindowError

_READ_CATEGORIES = ("P", "Z", "M", "N", "Sc", "Cf")
_LATIN = ("LATIN", "GREEK", "FEMININE ORDINAL", "MASCULINE ORDINAL", "MICRO SIGN")


class Scripts(Struct, frozen=True):
    """Letters that are read, by how their Unicode names begin, and the languages as people say them."""

    letters: tuple[str, ...]
    languages: str


ENGLISH = Scripts(_LATIN, "English")
CHINESE_AND_ENGLISH = Scripts(
    (*_LATIN, "FULLWIDTH LATIN", "CJK UNIFIED", "CJK COMPATIBILITY"), "English and Chinese"
)


def check_english_script(text: str) -> None:
    """Refuse a text with a letter or a sign that an English model does not read.

    Raises:
        WindowError: it has one; the sentence says which.
    """
    check_scripts(text, ENGLISH)


def check_scripts(text: str, scripts: Scripts) -> None:
    """Refuse a text with a letter of another script, or a sign that such models do not read.

    Raises:
        WindowError: it has one; the sentence says which.
    """
    if text.isascii():
        return
    for sign in text:
        if not (sign.isascii() or _read(sign, scripts)):
            raise WindowError(
                f"The question contains {sign!r}, and this embedder reads {scripts.languages} only;"
                " pass an embedder for its language, with a calibration measured on it."
            )


def _read(sign: str, scripts: Scripts) -> bool:
    category = unicodedata.category(sign)
    if category.startswith("L"):
        return unicodedata.name(sign, "").startswith(scripts.letters)
    return category.startswith(_READ_CATEGORIES)
