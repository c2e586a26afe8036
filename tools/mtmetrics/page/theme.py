"""The look of all pages, and their server: one theme in light and dark, no font or file from
elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.errors import MTMetricsError

if TYPE_CHECKING:
    import gradio

# Bytes of one upload.
MAX_FILE = 32_000_000
_STYLE = Path(__file__).with_name("style.css")
# From light to dark.
_ACCENT = [
    "#eef6f7",
    "#e0eff1",
    "#bddde2",
    "#8fc4cd",
    "#5aa5b3",
    "#2a8ba1",
    "#0f6175",
    "#0c5163",
    "#0b4352",
    "#093643",
    "#062630",
]
# Token of gradio -> light, dark.
_COLOURS = {
    "body_background_fill": ("#f6f5f1", "#15191e"),
    "body_text_color": ("#1f2933", "#e4e7eb"),
    "body_text_color_subdued": ("#5b6875", "#9aa5b1"),
    "background_fill_primary": ("#ffffff", "#1c2128"),
    "background_fill_secondary": ("#f6f5f1", "#15191e"),
    "border_color_primary": ("#d9dcd6", "#343c46"),
    "block_background_fill": ("#ffffff", "#1c2128"),
    "block_border_color": ("#d9dcd6", "#343c46"),
    "block_label_text_color": ("#5b6875", "#9aa5b1"),
    "block_label_background_fill": ("#ffffff", "#1c2128"),
    "block_title_text_color": ("#1f2933", "#e4e7eb"),
    "block_info_text_color": ("#5b6875", "#9aa5b1"),
    "input_background_fill": ("#fbfaf8", "#161b21"),
    "input_border_color": ("#d9dcd6", "#343c46"),
    "input_border_color_focus": ("#0f6175", "#5cc0d6"),
    "checkbox_label_background_fill": ("#ffffff", "#1c2128"),
    "checkbox_label_background_fill_hover": ("#f0f5f5", "#222a32"),
    "checkbox_label_background_fill_selected": ("#e9f3f4", "#1b323a"),
    "checkbox_label_text_color_selected": ("#1f2933", "#e4e7eb"),
    "checkbox_background_color_selected": ("#0f6175", "#2a8ba1"),
    "checkbox_border_color_selected": ("#0f6175", "#2a8ba1"),
    "button_primary_background_fill": ("#0f6175", "#2a8ba1"),
    "button_primary_background_fill_hover": ("#0b4c5c", "#37a0b7"),
    "button_primary_text_color": ("#ffffff", "#0d1114"),
    "button_secondary_background_fill": ("#ffffff", "#242b33"),
    "button_secondary_background_fill_hover": ("#eef2f1", "#2d3640"),
    "button_secondary_border_color": ("#c7ccc6", "#3f4954"),
    "button_secondary_text_color": ("#1f2933", "#e4e7eb"),
    "link_text_color": ("#0f6175", "#5cc0d6"),
}


def theme() -> "gradio.Theme":
    """The theme of gradio's own parts; the style sheet beside it does the rest."""
    import gradio

    # The bold fonts that gradio brings lack most letters, so that a word would be set in two fonts.
    fonts = {"font": ("system-ui", "sans-serif"), "font_mono": ("ui-monospace", "monospace")}
    tokens = {name: light for name, (light, _) in _COLOURS.items()}
    tokens |= {f"{name}_dark": dark for name, (_, dark) in _COLOURS.items()}
    sizes = {
        "block_shadow": "none",
        "block_radius": "6px",
        "button_large_radius": "6px",
        "button_border_width": "1px",
    }
    hue = gradio.themes.Color(*_ACCENT, name="teal-grey")
    return gradio.themes.Base(primary_hue=hue, neutral_hue="slate", radius_size="sm", **fonts).set(
        **tokens, **sizes
    )


def serve(app: "gradio.Blocks", port: int | None = None) -> "gradio.Blocks":
    """Starts a server for an app and returns at once; ``block_thread()`` of the app waits for
    Ctrl-C.

    It listens on loopback, unless ``GRADIO_SERVER_NAME`` says otherwise, as it does in a Space. An
    upload has a limit, `MAX_FILE`, and no file but the uploads and the pictures is given out.

    Args:
        app: a page of this package.
        port: TCP port; None for the first free one from 7860 up.

    Raises:
        MTMetricsError: the port is taken.
    """
    try:
        # Unlike its name, `_frontend` does nothing but ask the server for the page once, and give
        # up after 3 seconds, which a machine that computes may need for it.
        app.launch(
            server_port=port,
            quiet=True,
            prevent_thread_lock=True,
            _frontend=False,
            theme=theme(),
            css_paths=_STYLE,
            footer_links=[],
            max_file_size=MAX_FILE,
            share=False,
        )
    except OSError as error:
        taken = port or "7860 and those after it"
        raise MTMetricsError(
            f"port {taken}: cannot be used ({error}); choose another one"
        ) from error
    return app
