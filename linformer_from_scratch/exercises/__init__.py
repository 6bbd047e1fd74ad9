"""Exercises, checked on the spot: check("6.2", my_function), hint, quiz, bet, progress, yours, reset."""

from linformer_from_scratch.course.exercises import bet as bet
from linformer_from_scratch.course.exercises import bets as bets
from linformer_from_scratch.course.exercises import check as check
from linformer_from_scratch.course.exercises import exam as exam
from linformer_from_scratch.course.exercises import hint as hint
from linformer_from_scratch.course.exercises import progress as progress
from linformer_from_scratch.course.exercises import quiz as quiz
from linformer_from_scratch.course.exercises import reset as reset
from linformer_from_scratch.course.exercises import yours as yours
