"""`crag serve`: the endpoint for chat programs and for programs of your own."""

import argparse
import logging
import sys
from collections.abc import Sequence

from crag.cli.shell import Parser, attempt, finish

DESCRIPTION = """\
Answer over HTTP: OpenAI's API (POST /v1/chat/completions, each graph a model), POST /ask with the JSON of
crag ask, /healthz, /readyz, /metrics and /docs. Only this machine is served unless --host says otherwise,
which needs CRAG_SERVE_KEY.
"""

EXAMPLES = """\
examples:
  crag serve
  CRAG_SERVE_KEY=secret crag serve --host 0.0.0.0 --port 8000
  CRAG_SERVE_KEY=one:tenant=acme,two:tenant=globex crag serve    a key sees only what its filter lets through
"""


def parser() -> argparse.ArgumentParser:
    """The command line, without importing anything heavy."""
    p = Parser("crag serve", DESCRIPTION, EXAMPLES)
    p.add_argument("--host", default="127.0.0.1", metavar="HOST", help="address (default 127.0.0.1)")
    p.add_argument("--port", type=int, default=8000, metavar="N", help="port (default 8000)")
    p.add_argument("--kb", metavar="DIR", help="folder of the knowledge base (default .crag/kb)")
    p.add_argument("--concurrency", type=int, default=8, metavar="N", help="questions at once (default 8)")
    p.add_argument("--queue", type=int, default=64, metavar="N", help="questions that wait (default 64)")
    p.add_argument("--time", type=float, default=300, metavar="S", help="seconds of a question (default 300)")
    return p


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    return attempt(parser(), arguments, _run)


def _run(args: argparse.Namespace) -> int:
    import uvicorn

    from crag.serving.app import create_app
    from crag.serving.limits import Limits
    from crag.settings.settings import Settings

    settings = Settings(**({"kb": args.kb} if args.kb is not None else {}))
    limits = Limits(concurrency=args.concurrency, queue=args.queue, seconds=args.time)
    app = create_app(settings, limits=limits, host=args.host)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    uvicorn.run(app, host=args.host, port=args.port, access_log=False, timeout_graceful_shutdown=30)
    return 0


if __name__ == "__main__":
    finish(main)
