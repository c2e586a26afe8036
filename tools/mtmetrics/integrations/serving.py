"""Finds the demo app of a metric, and serves it."""

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

from mtmetrics.errors import MTMetricsError
from mtmetrics.extras import require_extra
from mtmetrics.integrations.demo import MAX_BYTES
from mtmetrics.layout import metric_path

if TYPE_CHECKING:
    import gradio


def metric_app(name: str) -> "gradio.Blocks":
    """The app that ``metrics/NAME/app.py`` builds.

    Raises:
        InputError: an unknown metric.
        MTMetricsError: gradio is not installed.
    """
    path = Path(metric_path(name)) / "app.py"
    require_extra("app", "a demo")
    return runpy.run_path(str(path))["build"]()


def serve(app: "gradio.Blocks", port: int | None = None) -> "gradio.Blocks":
    """Starts a server for an app and returns at once; ``local_url`` of the app is its address then, ``block_thread()``
    waits for Ctrl-C.

    It listens on loopback, unless ``GRADIO_SERVER_NAME`` says otherwise, as it does in a Space. An upload has a limit,
    and no file but the uploads and the pictures is given out.

    Args:
        app: what `mtmetrics.integrations.demo.build_demo` returned.
        port: TCP port; None for the first free one from 7860 up.

    Raises:
        MTMetricsError: the port is taken.
    """
    import gradio

    # The bold fonts that gradio brings lack most letters, so that a word would be set in two fonts.
    theme = gradio.themes.Default(font=("system-ui", "sans-serif"), font_mono=("ui-monospace", "monospace"))
    try:
        app.launch(
            server_port=port, max_file_size=MAX_BYTES, theme=theme, share=False, quiet=True, prevent_thread_lock=True
        )
    except OSError as error:
        raise MTMetricsError(
            f"port {port or '7860 and those after it'}: cannot be used ({error}); choose another one"
        ) from error
    return app
