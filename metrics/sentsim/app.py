"""The demo of SentSim."""

from typing import TYPE_CHECKING

from mtmetrics.integrations.demo import build_demo, serve

if TYPE_CHECKING:
    import gradio

_DESCRIPTION = """
Scores translations against their sources, without a reference. Higher is better, from 1 to 2.72. The score combines
`sss`, the similarity of the sentences as wholes, with `bertscore`, that of their words.
"""

_EXAMPLES = [
    ["Das Haus ist klein.\nIch habe einen Hund.", "The house is small.\nI had a cat and a bird.", "de-en"],
    ["Вчера мы ходили в кино.\nФильм был скучный.", "Yesterday we went to the cinema.\nThe film was boring.", "ru-en"],
]


def build() -> "gradio.Blocks":
    """The app."""
    return build_demo(
        "sentsim", title="SentSim", description=_DESCRIPTION, examples=_EXAMPLES, options={"setting": "src-mt"}
    )


if __name__ == "__main__":
    serve(build()).block_thread()
