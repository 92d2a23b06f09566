"""An MCP server that demands tokens, on the official SDK, in a thread of the tests."""

import socket
import threading
from typing import Any

import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.fastmcp import FastMCP
from pydantic import AnyHttpUrl
from starlette.types import Receive, Scope, Send


class GuardedServer:
    """A server with one tool. It takes tokens of one issuer that are for itself alone."""

    def __init__(self, issuer: str, keys_url: str, told_issuer: str = "") -> None:
        self._issuer = issuer
        self._keys = jwt.PyJWKClient(keys_url)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/mcp"
        # Tokens in order of their arrival, and those that are not taken any more.
        self.tokens: list[str] = []
        self.refused: set[str] = set()
        # Credentials of requests, as they came.
        self.authorizations: set[str] = set()
        self.calls: list[str] = []
        # Callers of each call, by the tokens.
        self.callers: list[str] = []
        server = FastMCP(
            "guarded",
            stateless_http=True,
            json_response=True,
            token_verifier=self,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(told_issuer or issuer),
                resource_server_url=AnyHttpUrl(self.url),
                required_scopes=["mcp"],
                validate_token_resource=True,
            ),
        )
        server.add_tool(self.echo, description="Returns a text as it is.")
        self._app = server.streamable_http_app()
        config = uvicorn.Config(self._record, interface="asgi3", log_level="error", lifespan="on")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, daemon=True
        )

    def echo(self, text: str) -> str:
        """The tool."""
        self.calls.append(text)
        token = get_access_token()
        assert token is not None
        self.callers.append(
            str(jwt.decode(token.token, options={"verify_signature": False})["sub"])
        )
        return text

    async def verify_token(self, token: str) -> AccessToken | None:
        """Takes a token of the issuer for this server."""
        if token not in self.tokens:
            self.tokens.append(token)
        if token in self.refused:
            return None
        try:
            key = self._keys.get_signing_key_from_jwt(token)
            claims: dict[str, Any] = jwt.decode(
                token, key.key, ["RS256"], audience=self.url, issuer=self._issuer
            )
        except jwt.PyJWTError:
            return None
        scopes = claims.get("scope", "").split()
        return AccessToken(
            token=token, client_id=claims["client_id"], scopes=scopes, resource=self.url
        )

    def refuse_known_tokens(self) -> None:
        """Takes none of the tokens any more that it has seen."""
        self.refused.update(self.tokens)

    async def _record(self, scope: Scope, receive: Receive, send: Send) -> None:
        for name, value in scope.get("headers", []):
            if name == b"authorization":
                self.authorizations.add(value.decode())
        await self._app(scope, receive, send)

    def __enter__(self) -> "GuardedServer":
        """Starts it."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self._server.should_exit = True
        self._thread.join(30)
        self._socket.close()
