"""What takes long to make is kept while what it is made of stays as it was."""

import kept
import pytest


def test_it_is_made_anew_when_a_file_or_a_package_has_changed_or_it_was_cut_short(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "KEPT", tmp_path / "kept")
    source, made = tmp_path / "source.txt", []

    def make(folder):
        made.append(source.read_text("utf-8"))
        (folder / "copy.txt").write_text(str(1 / len(made[-1])), "utf-8")

    def keep(text, packages=()):
        source.write_text(text, "utf-8")
        return (kept.kept("copies", [source, tmp_path], make, packages) / "copy.txt").read_text("utf-8")

    assert keep("a") == keep("a") == "1.0" and made == ["a"]
    assert keep("bb") == "0.5" and made == ["a", "bb"]
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            keep("")
    assert keep("bb") == keep("bb") and made == ["a", "bb", "", "", "bb"]
    assert keep("bb", ["torch"]) == keep("bb", ["torch"]) and len(made) == 6
    assert len([*(tmp_path / "kept/copies").iterdir()]) == 1, "what is out of date does not stay"
