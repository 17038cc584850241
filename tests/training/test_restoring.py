"""What is told of a model that a run begins with."""

import itertools
import types

import pytest
from tiny_config import tiny_config

from albert_tf.base.errors import InputError
from albert_tf.base.files import write_json
from albert_tf.training.run_folder.restoring import describe_alignment

STATES = {False: "the state of a masked piece", True: "the state before the next piece"}


def describe(folder, was_causal, is_causal, complete_for=None):
    """Describes how a model begins with another one."""
    write_json(str(folder / "albert_config.json"), tiny_config(is_causal=was_causal).to_dict())
    model = types.SimpleNamespace(config=tiny_config(is_causal=is_causal), masked_lm_head=object())
    return describe_alignment(str(folder), model, [], complete_for)


@pytest.mark.parametrize(("then", "now"), itertools.product(STATES, repeat=2))
def test_head_that_reads_another_state_is_told(tmp_path, then, now):
    told = f"has learnt to read {STATES[then]}, and learns now to read {STATES[now]}"
    expected = f"initial checkpoint: its masked-LM head {told}" if then != now else None
    assert describe(tmp_path, then, now) == expected


def test_head_that_reads_another_state_is_not_used_as_it_is(tmp_path):
    with pytest.raises(InputError) as error:
        describe(tmp_path, False, True, "run")
    assert str(error.value) == (
        f"`output_dir=run` holds no run, and the head in `init_checkpoint={tmp_path}` reads {STATES[False]}, where "
        f"this model reads {STATES[True]}; check is_causal in `albert_config_file`, or pass `do_train`"
    )
