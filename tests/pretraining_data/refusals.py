"""What tests of shards that don't go together expect."""

import pytest

from albert_tf.base.errors import InputError


def refuses(message, call, *arguments, **options):
    """Checks that a call ends in an InputError of one sentence that says `message`."""
    with pytest.raises(InputError, match=message) as failure:
        call(*arguments, **options)
    assert "\n" not in str(failure.value)
    assert not str(failure.value).endswith(".")
