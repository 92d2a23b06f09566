"""FastMCP's proxy: python fastmcp_gateway.py CONFIG PORT [--bm25 RESULTS] [--connected].

`create_proxy` opens a new connection to the servers for each request. With `--connected` it takes a
client that was connected before, whose one connection serves all requests.
"""

import argparse
import asyncio
import json
from pathlib import Path

from fastmcp import Client
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("port", type=int)
    parser.add_argument("--bm25", type=int, help="searches, with so many results")
    parser.add_argument("--connected", action="store_true")
    arguments = parser.parse_args()
    config = json.loads(arguments.config.read_text())
    if not arguments.connected:
        await serve(config, arguments)
        return
    async with Client(config) as client:
        await serve(client, arguments)


async def serve(target: object, arguments: argparse.Namespace) -> None:
    proxy = create_proxy(target)
    if arguments.bm25:
        proxy.add_transform(BM25SearchTransform(max_results=arguments.bm25))
    await proxy.run_async(
        transport="http", host="127.0.0.1", port=arguments.port, show_banner=False
    )


asyncio.run(main())
