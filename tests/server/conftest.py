import logging

import pytest


@pytest.fixture
def start(caplog):
    """Starts servers with some options, and stops them; it fails where they have logged something.

    See `fake_server.Running`.
    """
    from fake_server import FakeModel, Running  # it skips where uvicorn is not there

    servers = []

    def start_one(**options):
        servers.append(Running(**options))
        return servers[-1]

    caplog.set_level(logging.WARNING)
    yield start_one
    for server in servers:
        if isinstance(server.model, FakeModel):
            server.model.may_answer.set()
        server.stop()
    assert not [record.getMessage() for record in caplog.get_records("call")]
