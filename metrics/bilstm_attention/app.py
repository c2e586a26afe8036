"""The demo of BiLSTM + attention."""

from typing import TYPE_CHECKING

from mtmetrics.integrations.demo import build_demo, serve

if TYPE_CHECKING:
    import gradio

_DESCRIPTION = """
Predicts from references how people would judge translations. Higher is better; 0 is about the mean of the judgements
that the network was trained on.
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
    return build_demo(
        "bilstm_attention",
        title="BiLSTM + attention",
        description=_DESCRIPTION,
        examples=_EXAMPLES,
        fields=("reference", "translation"),
        preset="bilstm-attention-minilm",
    )


if __name__ == "__main__":
    serve(build()).block_thread()
