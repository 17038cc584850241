"""Other values of all flags that go together, in one run of a command that fine-tunes and one of pre-training.

What other commands that fine-tune have beside these, their own tests try. A flag of which nobody says where it is tried
fails the test.
"""

import json
import pathlib
import shutil

import pytest
import varied_data as data
from flag_matrix import other_value, registered_flags

from albert_tf.cli.command import _DEFAULT_ONLY, _WITHOUT_EFFECT
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.metrics import LABEL_METRICS
from albert_tf.runs.settings.classifier import ClassifierSettings

HERE = pathlib.Path(__file__).resolve().parent
# What does not go together with the rest, by the file that tries it.
ELSEWHERE = {
    "conftest.py": "init_checkpoint",
    "test_changed_json.py": "use_float16",
    "test_dev_fraction.py": "dev_fraction",
    "test_fit_vectors.py": "vectors",
    "test_every_flag.py": "use_tpu tpu_name tpu_zone gcp_project one_language_per_batch",
    "test_recipes.py": "num_train_steps num_warmup_steps",
    "test_run_classifier.py": "regression",
    "test_run_classifier_again.py": "multi_label label_separator num_train_epochs text_column text_pair_column",
    "test_run_pretraining_distil.py": "distillation student_layers",
    "test_run_pretraining_electra.py": "share_generator",
    "test_run_pretraining_entities.py": "entity_vectors",
    "test_run_pretraining_languages.py": "language_exponent",
    "test_run_pretraining_options.py": "do_train phase2_input_file phase2_held_out_file phase2_start_step "
    "phase2_gradient_accumulation_steps",
    "test_run_pretraining_resume.py": "held_out_file",
    "test_run_pretraining_workers.py": "max_seq_length max_predictions_per_seq",
    "test_run_teachers.py": "teacher teacher_temperature teacher_weight unlabelled_file",
    "test_sentencepiece_runs.py": "spm_model_file split_number_commas",
    "test_trial_flags.py": "num_trials trials",
    "../finetuning/tasks/test_long_texts.py": "doc_stride",
    "../objectives/test_distillation.py": "masked_lm_weight relation_heads teacher_layer",
    "../tokenization/test_build_vocab.py": "wordpiece_scheme",
}
SHARED = {
    "attention": "plain",
    "do_eval": True,
    "early_stopping": 2,
    "eval_batch_size": 2,
    "eval_checkpoint": "best",
    "eval_every_steps": 1,
    "freeze": "encoder/embeddings,bias$",
    "jit_compile": "false",
    "license": "apache-2.0",
    "profile_steps": "1,2",
    "save_checkpoints_steps": 1,
    "trackers": "builtins:print",
    "train_batch_size": 4,
}


def classifier_flags(folder, config_file, sample_tokenizer_dir):
    return SHARED | {
        "albert_config_file": config_file,
        "class_weights": "1,2",
        "data_dir": data.write_reviews(folder / "reviews"),
        "do_predict": True,
        "do_train": True,
        "label_column": "label",
        "labels": "1,0",
        "max_seq_length": 120,
        "metrics": ",".join(reversed(LABEL_METRICS)),
        "pooling": "mean",
        "task_name": "tsv",
        "text_fields": "other,document",
        "train_step": 2,
        "vocab_file": shutil.copy(f"{sample_tokenizer_dir}/vocab.txt", folder),  # without its settings beside it
        "warmup_step": 1,
    }


def pretraining_flags(config_file, shards):
    return SHARED | {
        "albert_config_file": config_file,
        "generator_size": 0.5,
        "input_file": shards / "train.tfrecord",
        "num_train_steps": 2,
        "num_warmup_steps": 1,
        "objective": "electra",
    }


def together(command, given):
    """Returns flags with values other than the default, those that are given and all others that go together."""
    tried, line = set(" ".join(ELSEWHERE.values()).split()) | {*_DEFAULT_ONLY, "output_dir"}, dict(given)
    for name, flag in registered_flags(command).items():
        if name not in tried | given.keys():
            line[name] = other_value(flag)
            if line[name] is None and name in _WITHOUT_EFFECT:
                line[name] = "text"
            assert line[name] is not None, f"say which value of {name} makes sense, or what tries it"
    return line


def test_flags_are_tried_where_it_says():
    for place, names in ELSEWHERE.items():
        text = (HERE / place).read_text(encoding="utf-8")
        assert not [name for name in names.split() if name not in text], place


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run_classifier", "run_pretraining"])
def test_flags_that_go_together_are_taken(command, run_script, config_file, sample_tokenizer_dir, shards, tmp_path):
    if command == "run_classifier":
        given = classifier_flags(tmp_path, config_file, sample_tokenizer_dir)
    else:
        given = pretraining_flags(config_file, shards)
    run_script(f"{command}.py", **together(command, given), output_dir=tmp_path / "run").succeeded()
    results = json.loads((tmp_path / "run" / "eval_results.json").read_text(), parse_constant=pytest.fail)
    assert results["global_step"] in (1, 2), "the best one"


@pytest.mark.parametrize(
    ("command", "changes", "sentence"),
    [
        ("run_classifier", {"use_tpu": True}, "--use_tpu: "),
        *(
            ("run_classifier", {name: "text"}, f"--{name}=text without --use_tpu would train on this machine's own")
            for name in ("tpu_name", "tpu_zone", "gcp_project")
        ),
        ("run_classifier", {"use_bfloat16": True, "use_float16": True}, "--use_bfloat16 and --use_float16 exclude one"),
        ("run_classifier", {"attention": "flash"}, "--attention=flash needs hidden_size=16 to be a multiple of 128"),
        ("run_classifier", {"unlabelled_file": "a.tsv"}, "--unlabelled_file has an effect only with a teacher; name"),
        *(
            ("run_classifier", {name: 2}, f"--{name}=2 is not supported: ")
            for name in ("albert_hub_module_handle", "export_dir")
        ),
        ("run_pretraining", {"start_warmup_step": 2}, "--start_warmup_step=2 is not supported: "),
        ("run_pretraining", {"objective": "bert"}, "--objective=bert needs examples packed as next"),
        *(
            ("run_pretraining", {name: value}, f"--{name}: the data don't declare more than one language; leave")
            for name, value in (("language_exponent", 0.3), ("one_language_per_batch", True))
        ),
    ],
)
def test_flag_that_can_not_be_obeyed_is_refused(
    classify, pretrain, assert_refused, tmp_path, command, changes, sentence
):
    run = {"run_classifier": lambda **flags: classify(do_train=True, **flags), "run_pretraining": pretrain}[command]
    assert assert_refused(lambda: run(**changes), tmp_path / "run").startswith(sentence)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_is_read_as_it_is_published(name, tiny_config, tmp_path):
    settings = ClassifierSettings(task_name=name, data_dir=str(data.write_data_set(tmp_path / name, name)))
    task = settings.completed(tiny_config, is_known=False).make_task(tiny_config)
    for part in ("train", "dev"):
        (path,) = settings.find_paths(part)
        examples = task.read(path)
        assert [example.text for example in examples] == list(map(data.text_of, range(len(examples))))
        pairs = [data.text_of(number + 3) for number in range(len(examples))]
        assert [example.text_pair for example in examples] in (pairs, [None] * len(examples))
        assert len({example.label for example in examples}) > 1
