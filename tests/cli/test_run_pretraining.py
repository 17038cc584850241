"""run_pretraining.py from flags to checkpoints and results."""

import re
import socket

import numpy as np
import pytest
import tensorflow as tf
from runs import assert_same_variables, read_results, variables_in, write_model

from albert_tf.base.checkpoint_files import CheckpointReader
from albert_tf.modeling import AlbertForPreTraining
from albert_tf.tokenization import KoreanWordPieceTokenizer
from albert_tf.tokenization.vocabulary import Vocabulary
from albert_tf.training.progress import read_metrics

METRICS = {"loss", "masked_lm_loss", "sentence_order_loss", "masked_lm_accuracy", "sentence_order_accuracy"}


@pytest.mark.slow
@pytest.mark.usefixtures("as_users_run")
def test_run_can_be_repeated_resumed_and_evaluated(pretrain, tmp_path, contents):
    run = tmp_path / "run"
    result = pretrain().succeeded()
    assert "training from random weights\n" in result.output
    assert re.search(r"^held-out at step 0: loss [\d.]+ masked_lm_loss", result.output, re.MULTILINE)
    assert re.search(r"^step 4/4 loss [\d.]+ .* ETA 0 s$", result.output, re.MULTILINE)
    assert re.search(r"^unigram entropy of the held-out text: \d", result.output, re.MULTILINE)
    results = read_results(run)
    assert results.keys() == {"global_step", *METRICS}
    assert results["global_step"] == 4
    assert all(isinstance(value, (int, float)) for value in results.values())
    assert [(row["split"], row["step"]) for row in read_metrics(str(run))] == [
        ("held_out", 0),
        ("train", 2),
        ("held_out", 2),  # whenever it saves
        ("train", 4),
        ("held_out", 4),
    ]
    assert sorted(path.name for path in run.glob("*.index")) == ["model.ckpt-2.index", "model.ckpt-4.index"]
    assert {"loss.png", "vocab.txt", "tokenizer.json", "albert_config.json"} <= contents(run).keys()
    card = (run / "README.md").read_text()
    for metric in METRICS:
        assert f"| {metric} | {float(f'{results[metric]:.6g}')} |" in card and f'"type": "{metric}"' in card

    again = pretrain(save_checkpoints_steps=3).succeeded()
    assert f"restored {run}/model.ckpt-4" in again.output
    assert "\nalready trained to step 4 of 4; nothing to train\n" in again.output
    assert "epochs" not in again.output and "trained 0 steps" not in again.output
    assert read_results(run) == results

    (run / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-2"\n')
    for path in run.glob("model.ckpt-4.*"):
        path.rename(tmp_path / path.name)
    assert pretrain().code == 0
    assert_same_variables(run / "model.ckpt-4", tmp_path / "model.ckpt-4")
    assert read_results(run) == results
    assert (run / "README.md").read_text() == card


@pytest.mark.slow
def test_command_of_the_original_is_accepted(
    build_shards, run_script, checkpoint, config_file, tmp_path, without_training
):
    shards = build_shards(128, 20, masking="static")
    for name in ("manifest.json", "tokenizer.json", "vocab.txt"):  # the original writes none of them
        (shards / name).unlink()
    result = run_script(
        "run_pretraining.py",
        input_file=shards / "train*.tfrecord",
        output_dir=tmp_path / "run",
        init_checkpoint=checkpoint / "model.ckpt-3",
        albert_config_file=config_file,
        do_train=True,
        do_eval=True,
        train_batch_size=32,
        eval_batch_size=32,
        max_seq_length=128,
        max_predictions_per_seq=20,
        optimizer="lamb",
        learning_rate=".00176",
        num_train_steps=125000,
        num_warmup_steps=3125,
        save_checkpoints_steps=5000,
    ).succeeded()
    assert "warning: no evaluation: no held-out shards" in result.output
    unknown = f"warning: no manifest.json beside {shards}/train.tfrecord: its vocabulary can't be checked\n"
    assert unknown in result.output
    (run,) = without_training
    assert type(run.optimizer).__name__ == "Lamb"
    assert ([phase.end_step for phase in run.phases], run.settings.save_checkpoints_steps) == ([125000], 5000)
    rates = [float(run.optimizer.schedule(tf.constant(step))) for step in (0, 3124, 3125, 125000)]
    assert rates == pytest.approx([0.00176 / 3125, 0.00176, 0.00176, 0.0])
    shapes = {name: tuple(run.first_batch[name].shape) for name in ("input_ids", "masked_lm_ids")}
    assert shapes == {"input_ids": (32, 128), "masked_lm_ids": (32, 20)}
    saved = variables_in(checkpoint)
    for name, weights in run.weights.items():
        np.testing.assert_array_equal(weights, saved[f"model/{name}"])
    refused = run_script("run_pretraining.py", output_dir=tmp_path / "run", do_train=False, do_eval=True)
    assert refused.errors.startswith("error: --do_eval: no held-out shards")


@pytest.mark.slow
def test_seed_decides_the_weights(pretrain, tmp_path, without_training):
    for seed in (1, 2):
        pretrain(output_dir=tmp_path / str(seed), random_seed=seed, do_eval=False)
    first, other = (run.weights["encoder/pooler/kernel"] for run in without_training)
    assert not np.array_equal(first, other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_file": None}, "--input_file is missing; see --help"),
        ({"input_file": "nowhere/*.tfrecord"}, "--input_file: no file matches nowhere/"),
        ({"held_out_file": "nowhere.tfrecord"}, "--held_out_file: no file matches nowhere.tfrecord"),
        ({"init_checkpoint": "nowhere"}, "--init_checkpoint: no checkpoint at nowhere"),
        ({"do_train": False, "do_eval": False}, "nothing to do: pass --do_train or --do_eval"),
        ({"do_train": False}, "--output_dir=.* holds no checkpoint, and there is no --init_checkpoint"),
        ({"max_seq_length": 64}, "--max_seq_length=64 contradicts .*manifest.json, which says 32"),
        ({"train_batch_size": 3, "num_cpu_replicas": 2}, "--train_batch_size=3 must be a multiple of .* 2"),
        (
            {"num_warmup_steps": 4},
            r"--num_warmup_steps=4 must be less than the number of training steps, 4 \(--num_train_steps\)",
        ),
        (
            {"gradient_accumulation_steps": 3},
            r"--train_batch_size=4 must be a multiple of 3, the number of replicas \(1\) times --grad",
        ),
        ({"freeze": "decoder"}, "--freeze: no variable matches decoder; their names begin with encoder/"),
        ({"freeze": "pooler("}, r"--freeze: pooler\( is not a regular expression \(missing \)"),
        ({"freeze": "encoder,_"}, "--freeze=encoder,_ leaves nothing to train"),
        ({"profile_steps": "4,2"}, "--profile_steps=4,2 must be two steps, the first and the one to end before"),
        ({"do_train": False, "eval_checkpoint": "nowhere"}, "--eval_checkpoint: no checkpoint at nowhere"),
        (
            {"do_train": False, "eval_checkpoint": "best"},
            "--eval_checkpoint=best: there is no .*; a run with --do_eval",
        ),
        ({"use_tpu": True, "tpu_name": "grpc://127.0.0.1:9"}, "--use_tpu: can't reach the TPU 'grpc://127.0.0.1:9'"),
    ],
)
def test_mistake_costs_one_sentence(pretrain, assert_refused, tmp_path, changes, message):
    assert re.match(message, assert_refused(lambda: pretrain(**changes), tmp_path / "run"))
    assert not (tmp_path / "run").exists(), "the folder is still free for the corrected command"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 3999}, "vocab_size in --albert_config_file is 3999, but .*vocab.txt has 4000 pieces"),
        (
            {"max_position_embeddings": 16},
            "the shards' max_seq_length=32 is more than the model's max_position_embeddings, 16",
        ),
    ],
)
def test_model_that_does_not_fit_the_data_is_refused(
    pretrain, assert_refused, tiny_config, write_config, tmp_path, changes, message
):
    path = write_config(tiny_config.replace(**changes))
    assert re.match(message, assert_refused(lambda: pretrain(albert_config_file=path), tmp_path / "run"))


def test_folder_of_another_run_is_refused(pretrain, assert_refused, checkpoint):
    message = assert_refused(lambda: pretrain(output_dir=checkpoint), checkpoint)
    assert message.startswith(f"--output_dir={checkpoint} holds another run: --")


@pytest.mark.slow
def test_folder_of_another_model_is_refused(
    pretrain, assert_refused, tiny_config, write_config, without_training, tmp_path
):
    assert pretrain(do_eval=False).code == 0
    path = write_config(tiny_config.replace(hidden_size=32))
    message = assert_refused(lambda: pretrain(do_eval=False, albert_config_file=path), tmp_path / "run")
    assert message.startswith(
        f"--output_dir={tmp_path}/run holds another run: `hidden_size` is 32, and was 16; put it back to resume that "
        "run, or choose another folder"
    )


@pytest.fixture
def checkpoint_of_another_vocabulary(sample_tokenizer, tiny_config, tmp_path):
    """A folder with a model of 3,000 of the sample's 4,000 pieces, most with other ids."""
    pieces = sample_tokenizer.vocabulary.pieces
    tokenizer = KoreanWordPieceTokenizer(Vocabulary([*pieces[:5], *pieces[1005:]]))
    return write_model(tmp_path / "other", AlbertForPreTraining(tiny_config.replace(vocab_size=3000)), tokenizer)


def test_vocabulary_of_the_shards_is_gone_on_with(pretrain, without_training, checkpoint_of_another_vocabulary):
    other = checkpoint_of_another_vocabulary
    result = pretrain(init_checkpoint=other, albert_config_file=None, do_eval=False).finished()
    assert f"the vocabulary is not the one of {other}/tokenizer.json: of 4,000 pieces " in result.output
    (before,) = CheckpointReader(f"{other}/model.ckpt-0").read(["model/encoder/embeddings/word_embeddings"]).values()
    after = without_training[0].weights["encoder/embeddings/word_embeddings"]
    np.testing.assert_array_equal(after[:5], before[:5])
    np.testing.assert_array_equal(after[1005:], before[5:])
    assert not (after[5:1005, None] == before[None, :200]).all(axis=-1).any()


def test_run_is_not_evaluated_with_a_checkpoint_of_another_vocabulary(
    pretrain, assert_refused, tmp_path, checkpoint_of_another_vocabulary
):
    other = checkpoint_of_another_vocabulary
    message = assert_refused(lambda: pretrain(init_checkpoint=other, do_train=False), tmp_path / "run")
    assert message.startswith(f"the checkpoint beside {other}/tokenizer.json was trained with that tokenizer")


@pytest.mark.slow
def test_tpu_that_does_not_answer_is_given_up(start_process, flag_values, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"grpc://127.0.0.1:{server.getsockname()[1]}"
        flag_values.update(use_tpu=True, tpu_name=address, tpu_timeout=1)
        with start_process("run_pretraining.py", **flag_values) as process:
            printed, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert printed == (
        f"error: --use_tpu: the TPU '{address}' did not answer within --tpu_timeout=1 seconds; check --tpu_name, "
        "--tpu_zone and --gcp_project, or run without --use_tpu\n"
    )
    assert not (tmp_path / "run").exists()
