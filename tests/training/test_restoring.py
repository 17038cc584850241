"""What is told of a model that a run begins with."""

import itertools
import types

import pytest

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.files import write_json
from albert_tf.training.run_folder.restoring import describe_alignment

CONFIG = AlbertConfig(100, hidden_size=16, num_attention_heads=2, intermediate_size=16)
CONFIGS = {
    "masked": CONFIG,
    "causal": CONFIG.replace(is_causal=True),
}
STATES = {
    "masked": "the state of a masked piece",
    "causal": "the state before the next piece",
}


@pytest.fixture
def describe(tmp_path):
    """Describes how a model of one kind begins with one of another."""

    def begin(then, now, complete_for=None):
        write_json(str(tmp_path / "albert_config.json"), CONFIGS[then].to_dict())
        model = types.SimpleNamespace(config=CONFIGS[now], masked_lm_head=object())
        return describe_alignment(str(tmp_path), model, [], complete_for)

    return begin


@pytest.mark.parametrize(("then", "now"), itertools.product(CONFIGS, repeat=2))
def test_head_that_reads_another_state_is_told(describe, then, now):
    expected = None
    if then != now:
        told = f"has learnt to read {STATES[then]}, and learns now to read {STATES[now]}"
        expected = f"initial checkpoint: its masked-LM head {told}"
    assert describe(then, now) == expected


def test_head_that_reads_another_state_is_not_used_as_it_is(describe, tmp_path):
    with pytest.raises(InputError) as error:
        describe("masked", "causal", "run")
    assert str(error.value) == (
        f"`output_dir=run` holds no run, and the head in `init_checkpoint={tmp_path}` reads {STATES['masked']}, where "
        f"this model reads {STATES['causal']}; check is_causal in `albert_config_file`, or pass `do_train`"
    )
