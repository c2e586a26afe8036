"""The demo of XMoverScore."""

from typing import TYPE_CHECKING

from mtmetrics.integrations.demo import build_demo, serve

if TYPE_CHECKING:
    import gradio

_DESCRIPTION = """
Scores translations against their sources, without a reference. Higher is better. The score adds `mover`, which is high
where the translation means what the source means, and `lm`, which is high where the translation is fluent.
"""

_EXAMPLES = [
    ["Das Haus ist klein.", "The house is small.", "de-en"],
    ["Das Haus ist klein.", "The weather was very good yesterday.", "de-en"],
    ["Вчера мы ходили в кино.\nФильм был скучный.", "Yesterday we went to the cinema.\nThe film was boring.", "ru-en"],
    ["他昨天没有去学校。", "He did not go to school yesterday.", "zh-en"],
]


def build() -> "gradio.Blocks":
    """The app."""
    return build_demo("xmoverscore", title="XMoverScore", description=_DESCRIPTION, examples=_EXAMPLES)


if __name__ == "__main__":
    serve(build()).block_thread()
