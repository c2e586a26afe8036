"""A small demo of XMoverScore: score one translation against its source."""

from typing import TYPE_CHECKING

from mtmetrics.artifacts.presets import preset_names
from mtmetrics.errors import MTMetricsError
from mtmetrics.scorers.load import ModelPool, load_scorer

if TYPE_CHECKING:
    import gradio

_METRIC = "xmoverscore"
_EXAMPLES = [
    ["Das Haus ist klein.", "The house is small.", "de-en"],
    ["Das Haus ist klein.", "The weather was very good yesterday.", "de-en"],
]


def build() -> "gradio.Blocks":
    """The app; models are loaded at the first request and kept."""
    import gradio

    pool = ModelPool()

    def score(source: str, translation: str, lang_pair: str, preset: str) -> tuple[float, dict[str, float], str]:
        """Score, parts and signature of one translation."""
        try:
            result = load_scorer(_METRIC, preset=preset, lang_pair=lang_pair.strip(), pool=pool).score([source], [translation])
        except MTMetricsError as error:
            raise gradio.Error(str(error), print_exception=False) from None
        return result.system, {name: float(values[0]) for name, values in result.parts.items()}, result.signature

    with gradio.Blocks(title="XMoverScore") as app:
        gradio.Markdown("# XMoverScore\nScores a translation against its source, without a reference. Higher is better.")
        source = gradio.Textbox(label="Source", lines=3)
        translation = gradio.Textbox(label="Translation", lines=3)
        lang_pair = gradio.Textbox(label="Language pair", value="de-en")
        preset = gradio.Dropdown(label="Preset", choices=preset_names(_METRIC), value="mini")
        button = gradio.Button("Score", variant="primary")
        value = gradio.Number(label="Score")
        parts = gradio.JSON(label="Parts")
        signature = gradio.Textbox(label="Signature")
        button.click(score, [source, translation, lang_pair, preset], [value, parts, signature], api_name="score")
        gradio.Examples(_EXAMPLES, [source, translation, lang_pair])
    return app


if __name__ == "__main__":
    build().launch()
