"""The demo of DistilScore."""

from typing import TYPE_CHECKING

from mtmetrics.integrations.demo import build_demo, serve

if TYPE_CHECKING:
    import gradio

_DESCRIPTION = """
Scores translations against their sources, without a reference: the cosine of two sentence vectors. Higher is better, 1
is the most.
"""

_EXAMPLES = [
    ["Das Haus ist klein.", "The house is small.", "de-en"],
    ["Das Haus ist klein.", "The weather was very good yesterday.", "de-en"],
    ["Вчера мы ходили в кино.\nФильм был скучный.", "Yesterday we went to the cinema.\nThe film was boring.", "ru-en"],
]


def build() -> "gradio.Blocks":
    """The app."""
    options = {"against": "source"}
    return build_demo("distilscore", title="DistilScore", description=_DESCRIPTION, examples=_EXAMPLES, options=options)


if __name__ == "__main__":
    serve(build()).block_thread()
