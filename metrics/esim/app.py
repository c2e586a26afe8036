"""The demo of ESIM."""

from typing import TYPE_CHECKING

from mtmetrics.integrations.demo import MAX_BYTES, build_demo

if TYPE_CHECKING:
    import gradio

_DESCRIPTION = """
Predicts how people would judge translations from their sources, without a reference: the preset `mini`, and networks that you train so.
Higher is better; 0 is about the mean of the judgements that the network was trained on.
"""

_EXAMPLES = [
    ["Das Haus ist klein.", "The house is small.", "de-en"],
    ["Das Haus ist klein.", "The weather was very good yesterday.", "de-en"],
    ["Вчера мы ходили в кино.\nФильм был скучный.", "Yesterday we went to the cinema.\nThe film was boring.", "ru-en"],
]


def build() -> "gradio.Blocks":
    """The app."""
    return build_demo("esim", title="ESIM", description=_DESCRIPTION, examples=_EXAMPLES, options={"against": "source"})


if __name__ == "__main__":
    build().launch(max_file_size=MAX_BYTES)
