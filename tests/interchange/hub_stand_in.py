"""A small stand-in for the Hugging Face hub: makes models and takes commits, as far as huggingface_hub asks for it."""

import base64
import contextlib
import http.server
import json
import threading


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self._answer({"id": "someone/model"}, 404 if self.server.hub.refuses else 200)

    do_HEAD = do_GET

    def do_POST(self):
        hub, body = self.server.hub, self.rfile.read(int(self.headers["Content-Length"]))
        hub.tokens.append(self.headers.get("Authorization"))
        if hub.refuses:
            self._answer({"error": "no"}, 403)
        elif self.path == "/api/repos/create":
            asked = json.loads(body)
            hub.made.append(asked)
            self._answer({"url": f"{hub.endpoint}/{asked.get('organization')}/{asked['name']}"})
        elif "/preupload/" in self.path:
            files = [{"path": each["path"], "uploadMode": "regular"} for each in json.loads(body)["files"]]
            self._answer({"files": [{**file, "shouldIgnore": False} for file in files]})
        elif "/commit/" in self.path:
            for line in map(json.loads, body.splitlines()):
                if line["key"] == "file":
                    hub.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
            self._answer({"commitUrl": f"{hub.endpoint}/someone/model/commit/1", "commitOid": "1", "success": True})
        else:
            self._answer({"errors": [], "warnings": []})

    def _answer(self, values, status=200):
        content = json.dumps(values).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


class HubStandIn:
    """What was asked of it: `made` models, `files` by path, and the `tokens` that came along."""

    def __init__(self):
        self.made, self.files, self.tokens, self.refuses = [], {}, [], False


@contextlib.contextmanager
def running_hub():
    """Gives a `HubStandIn` that answers at its `endpoint`."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.hub = hub = HubStandIn()
    hub.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
