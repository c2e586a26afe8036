"""``mtmetrics demo``: a page in the browser that compares systems, with all metrics or with one."""

import argparse

from mtmetrics.checks import port
from mtmetrics.cli import options


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Serves a page on this machine until Ctrl-C. Without a name it compares the "
        "translations of several systems: scores with intervals, significant differences, "
        "segments with the words at fault. With the name of a metric it offers that one alone. "
        "The page offers what works here, and asks nothing of the network."
    )
    parser.add_argument(
        "name", metavar="NAME", nargs="?", help="metric (default: the page that compares systems)"
    )
    parser.add_argument(
        "--metric",
        metavar="SPEC",
        action="append",
        default=[],
        help="offer this metric, too, such as comet:DIR, cmd:NAME or scores:FILE; repeatable",
    )
    options.add_plugin(parser)
    parser.add_argument(
        "--port", type=int, help="TCP port (default: the first free one from 7860 up)"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from mtmetrics.page.app import build_page
    from mtmetrics.page.theme import serve

    if args.port is not None:
        port("--port", args.port)
    app = build_page(args.name, args.metric)
    serve(app, args.port)
    print(app.local_url, flush=True)
    app.block_thread()
    return 0
