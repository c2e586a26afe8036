"""The demo of BERTR."""

from typing import TYPE_CHECKING

from mtmetrics.integrations.demo import build_demo, serve

if TYPE_CHECKING:
    import gradio

_DESCRIPTION = """
Scores translations against references: for every word piece of the reference, how similar is the most similar piece of
the translation? Higher is better, 1 is the most.
"""

_EXAMPLES = [
    ["The house is small.", "The home is little.", "de-en"],
    ["The house is small.", "The weather was very good yesterday.", "de-en"],
    [
        "We went to the cinema yesterday.\nThe film was boring.",
        "Yesterday we went to the movies.\nThe film was not boring.",
        "ru-en",
    ],
]


def build() -> "gradio.Blocks":
    """The app."""
    fields = ("reference", "translation")
    return build_demo("bertr", title="BERTR", description=_DESCRIPTION, examples=_EXAMPLES, fields=fields)


if __name__ == "__main__":
    serve(build()).block_thread()
