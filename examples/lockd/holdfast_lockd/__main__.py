"""`python -m holdfast_lockd [--host HOST] [--port PORT]`: run the server; it prints the URL of its engine."""

from __future__ import annotations

import argparse
import asyncio

from .server import serve

parser = argparse.ArgumentParser(prog="holdfast_lockd", description="A lock server for holdfast.")
parser.add_argument("--host", default="127.0.0.1", help="where to listen (%(default)s)")
parser.add_argument("--port", default=7777, type=int, help="0 for any that is free (%(default)s)")
options = parser.parse_args()
try:
    asyncio.run(serve(options.host, options.port, lambda port: print(f"lockd://{options.host}:{port}", flush=True)))
except KeyboardInterrupt:
    pass
