"""What the page's own browser asks for, and nothing else that Gradio would answer."""

import urllib.parse

from starlette.responses import PlainTextResponse

_PATHS = {
    "GET": (
        "/static/",
        "/assets/",
        "/theme.css",
        "/gradio_api/heartbeat/",
        "/gradio_api/queue/data",
        "/gradio_api/startup-events",  # Gradio's own, when it starts
    ),
    "POST": ("/gradio_api/queue/join", "/gradio_api/run/predict"),
}
_MAX_BYTES = 131_072


class PageRequestsOnly:
    """ASGI middleware that refuses uploads, Gradio's other routes, long bodies, and other sites' requests.

    Args:
        app: What answers the rest.
        is_local: Whether only browsers of this machine are meant, which call it by a name of its own: another site's
            name that leads here (DNS rebinding) is refused then.
    """

    def __init__(self, app, is_local: bool):
        self._app, self._is_local = app, is_local

    async def __call__(self, scope, receive, send):
        """Answers a request; see https://asgi.readthedocs.io."""
        refusal = self._refusal(scope) if scope["type"] == "http" else None
        if refusal is not None:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, send)
        elif scope["type"] != "websocket":
            await self._app(scope, receive, send)

    def _refusal(self, scope):
        """Returns the status and sentence that a request is refused with; None for the page's own."""
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get("host", "")
        if self._is_local and urllib.parse.urlsplit(f"//{host}").hostname not in ("127.0.0.1", "localhost", "::1"):
            return 403, "this page is for browsers on this machine"
        if headers.get("origin", "").partition("//")[2] not in ("", host):
            return 403, "this page does not answer other sites"
        if scope["path"] != "/" and not scope["path"].startswith(_PATHS.get(scope["method"], ())):
            return 404, "there is nothing here but the page"
        length = headers.get("content-length", "" if scope["method"] == "POST" else "0")
        if not length.isdecimal() or int(length) > _MAX_BYTES:
            return 413, f"a request may have {_MAX_BYTES:,} bytes, and must say how many it has"
        return None
