"""A quiz to click: radio buttons, and an explanation for every choice."""

import html

import ipywidgets as widgets

from linformer_from_scratch.exercises.questions import Question, as_html, on_paper


class QuizView(widgets.VBox):
    """Questions one below the other; without a kernel it shows as folded HTML, on paper as text."""

    def __init__(self, questions: tuple[Question, ...]):
        self.questions = questions
        super().__init__([_question(number, question) for number, question in enumerate(questions, 1)])

    def _repr_mimebundle_(self, **kwargs):
        fallbacks = {"text/plain": on_paper(self.questions), "text/html": as_html(self.questions)}
        return super()._repr_mimebundle_(**kwargs) | fallbacks


def _question(number: int, question: Question) -> widgets.VBox:
    options = question.shuffled()
    title = widgets.HTML(f"<b>{number}. {html.escape(question.text)}</b>")
    buttons = widgets.RadioButtons(
        options=[(option.text, option) for option in options],
        value=None,
        layout=widgets.Layout(width="max-content"),
    )
    answer = widgets.HTML()

    def explain(change):
        answer.value = html.escape(change.new.verdict())

    buttons.observe(explain, "value")
    return widgets.VBox([title, buttons, answer])
