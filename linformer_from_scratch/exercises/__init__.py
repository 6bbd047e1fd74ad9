"""Exercises, checked on the spot: check("6.2", my_function), hint, quiz, progress, yours, reset."""

from linformer_from_scratch.course.exercises import check, exam, hint, progress, quiz, reset, yours

__all__ = ["check", "exam", "hint", "progress", "quiz", "reset", "yours"]
