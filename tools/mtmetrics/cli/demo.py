"""``mtmetrics demo``: a page in the browser that scores what is typed or uploaded."""

import argparse
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Adds the command to the parser."""
    parser = subparsers.add_parser(
        "demo",
        help="serve the demo page of a metric",
        description="Serves a page on this machine that scores text or a file and draws what was matched, until "
        "Ctrl-C. The page loads nothing from elsewhere, and offers all presets of the metric.",
    )
    parser.add_argument("name", metavar="NAME", help="metric")
    parser.add_argument("--port", type=int, help="TCP port (default: the first free one from 7860 up)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Prints the address, and serves."""
    from mtmetrics.integrations.demo import metric_app, serve

    app = serve(metric_app(args.name), args.port)
    print(app.local_url, flush=True)
    app.block_thread()
    return 0
