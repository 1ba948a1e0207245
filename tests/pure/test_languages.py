"""Which language a question is in."""

import pytest

from stampcache.languages import CHINESE, ENGLISH, OTHER, language_of, looks_foreign


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("How do I reset my password?", ENGLISH),
        ("opening hours", ENGLISH),
        ("What does a café in Łódź charge for 5 µg?", ENGLISH),
        ("What is the wie of it?", ENGLISH),
        ("", ENGLISH),
        ("3 + 4 = ?", ENGLISH),
        ("如何重置密码？", CHINESE),
        ("如何安装 Python 3.11？", CHINESE),
        ("ＡＢＣ 的价格", CHINESE),
        ("wie kann ich das Passwort ändern", OTHER),
        ("¿Cómo puedo cambiar mi contraseña?", OTHER),
        ("パスワードを忘れた", OTHER),
        ("東京はどこですか", OTHER),
        ("Как сменить пароль?", OTHER),
        ("如何安装 Яндекс？", OTHER),
    ],
)
def test_letters_and_small_words_tell_the_language(text: str, language: str) -> None:
    assert language_of(text) == language


def test_words_are_foreign_where_english_ones_are_no_more() -> None:
    assert looks_foreign(["wie", "how"])
    assert not looks_foreign(["wie", "how", "do"])
    assert not looks_foreign(["pizza", "menu"])
