"""Which texts an English embedder can read at all (pure).

all-MiniLM-L6-v2 maps most Chinese characters and every emoji to one unknown token: two different
Chinese questions were measured at cosine 1.0. Such texts are refused instead of compared.
"""

import unicodedata

from stampcache.errors import WindowError

_READ_CATEGORIES = ("P", "Z", "M", "N", "Sc", "Cf")
_READ_SCRIPTS = ("LATIN", "GREEK", "FEMININE ORDINAL", "MASCULINE ORDINAL", "MICRO SIGN")


def check_english_script(text: str) -> None:
    """Refuse a text with a letter or a sign that such a model does not read.

    Raises:
        WindowError: it has one; the sentence says which.
    """
    if text.isascii():
        return
    for sign in text:
        if not (sign.isascii() or _read(sign)):
            raise WindowError(
                f"The question contains {sign!r}, and this embedder reads English only; pass an "
                "embedder for its language, with a calibration measured on it."
            )


def _read(sign: str) -> bool:
    category = unicodedata.category(sign)
    if category.startswith("L"):
        return unicodedata.name(sign, "").startswith(_READ_SCRIPTS)
    return category.startswith(_READ_CATEGORIES)
