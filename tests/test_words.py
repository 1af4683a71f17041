"""The check of the vocabulary finds the words of its list, and allows phrases that are right."""

import pytest
from tools import words


@pytest.mark.parametrize(
    "text", ["The cheaper model", "a promise", "on the tuning part", "members say spam", "Spent."]
)
def test_a_word_is_found_with_its_line(text):
    [(line, word, instead)] = words.find_words(f"First line.\n{text}\n")
    assert line == 2
    assert word.lower() in text.lower()
    assert instead


@pytest.mark.parametrize(
    "text",
    ["new Promise((done) => ...)", "told apart", "executed", "compromise", "cut-in"],
)
def test_allowed_phrases_and_other_words_are_not_found(text):
    assert list(words.find_words(text)) == []


def test_files_of_the_repository_are_found_without_vendored_ones():
    names = {path.relative_to(words.ROOT).as_posix() for path in words.repository_files()}
    assert {
        "README.md",
        "src/margrave/__init__.py",
        "src/margrave/studio/static/matrix.js",
    } <= names
    assert not any("/vendor/" in name for name in names)


def test_the_exit_code_tells_whether_a_word_was_found(tmp_path, capsys):
    good, bad = tmp_path / "good.md", tmp_path / "bad.md"
    good.write_text("A threshold.", encoding="utf-8")
    bad.write_text("A cut.", encoding="utf-8")
    assert words.main([good]) == 0
    assert capsys.readouterr().out == ""
    assert words.main([good, bad]) == 1
    assert "bad.md:1" in capsys.readouterr().out
