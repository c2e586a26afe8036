"""``mtmetrics serve``: a metric behind HTTP."""

import argparse
import socket

from mtmetrics.checks import port, positive
from mtmetrics.cli import options
from mtmetrics.errors import MTMetricsError, require_extra

_HOST = "127.0.0.1"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command to the parser."""
    parser.description = (
        "Scores what programs send by HTTP until Ctrl-C: POST /score with a segment or many as "
        "JSON, GET /health. With --threshold it says of each translation whether it is good "
        "enough. Listens on this machine alone, unless --host says otherwise, and answers to "
        "the names of what it listens on; it knows no passwords."
    )
    options.add_metric_options(parser)

    service = parser.add_argument_group("service")
    options.add_lang_pair(service)
    service.add_argument(
        "--threshold",
        metavar="X",
        type=float,
        help="scores from X up are accepted; a request may set another",
    )
    service.add_argument(
        "--port", metavar="N", type=int, default=8765, help="TCP port (default: %(default)s)"
    )
    service.add_argument(
        "--host",
        metavar="ADDRESS",
        default=_HOST,
        help="address to listen on (default: %(default)s)",
    )
    service.add_argument(
        "--most-segments",
        metavar="N",
        type=int,
        default=1024,
        help="segments that a request may have (default: %(default)s)",
    )
    service.add_argument(
        "--most-waiting",
        metavar="N",
        type=int,
        default=64,
        help="requests that may wait; further ones are refused (default: %(default)s)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Loads the metric, and serves."""
    port("--port", args.port)
    positive("--most-segments", args.most_segments)
    positive("--most-waiting", args.most_waiting)
    require_extra("serve", "serve")
    import uvicorn

    from mtmetrics.integrations.service import Service, host_names

    scorer = options.single_metric(args).load(options.model_pool(args), args.lp)
    listening = _listen(args.host, args.port)
    address, port_number, *_ = listening.getsockname()
    service = Service(
        scorer,
        threshold=args.threshold,
        hosts=host_names(args.host, address),
        most_segments=args.most_segments,
        most_waiting=args.most_waiting,
    )
    server = uvicorn.Server(
        uvicorn.Config(service.app(), log_level="warning", timeout_graceful_shutdown=3)
    )
    place = f"[{args.host}]" if _is_ipv6(args.host) else args.host
    print(f"http://{place}:{port_number}/score  {scorer.signature}", flush=True)
    server.run(sockets=[listening])


def _listen(host: str, port_number: int) -> socket.socket:
    """Returns a socket that takes connections already, so that whoever reads the address may ask at
    once."""
    is_ipv6 = _is_ipv6(host)
    try:
        listening = socket.create_server(
            (host, port_number),
            family=socket.AF_INET6 if is_ipv6 else socket.AF_INET,
            dualstack_ipv6=is_ipv6 and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise MTMetricsError(
            f"{host}:{port_number}: cannot be listened on ({error}); choose another --host or "
            "--port"
        ) from None
    # Connections inherit it; else the second half of each answer waits 40 ms until the first is
    # acknowledged.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def _is_ipv6(host: str) -> bool:
    return ":" in host
