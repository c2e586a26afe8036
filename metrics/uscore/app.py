"""The demo of UScore."""

from typing import TYPE_CHECKING

from mtmetrics.integrations.demo import build_demo, serve

if TYPE_CHECKING:
    import gradio

_DESCRIPTION = """
Scores translations against their sources, without a reference. Higher is better. The score combines `wrd`, the word
level (`wmd` between source and translation, `pseudo` between a machine translation of the source and the translation,
`lm` for fluency), with `snt`, the similarity of the sentences as wholes.
"""

_EXAMPLES = [
    ["Das Haus ist klein.", "The house is small.", "de-en"],
    ["Das Haus ist klein.", "The weather was very good yesterday.", "de-en"],
]


def build() -> "gradio.Blocks":
    """The app."""
    return build_demo("uscore", title="UScore", description=_DESCRIPTION, examples=_EXAMPLES)


if __name__ == "__main__":
    serve(build()).block_thread()
