"""The demo of ESIM."""

from typing import TYPE_CHECKING

from mtmetrics.page.metric_demo import build_demo
from mtmetrics.page.theme import serve

if TYPE_CHECKING:
    import gradio

_EXAMPLES = [
    ["Das Haus ist klein.", "The house is small.", "The home is little.", "de-en"],
    ["Das Haus ist klein.", "The house is small.", "The weather was very good yesterday.", "de-en"],
    [
        "Вчера мы ходили в кино.\nФильм был скучный.",
        "We went to the cinema yesterday.\nThe film was boring.",
        "Yesterday we went to the movies.\nThe film was not boring.",
        "ru-en",
    ],
]


def build() -> "gradio.Blocks":
    """The app."""
    return build_demo("esim", examples=_EXAMPLES)


if __name__ == "__main__":
    serve(build()).block_thread()
