"""Every flag of every command that trains, with other values than by default, through batches of several lengths.

The flags are those that the commands register. What is said here is only what a name and a type can't tell: which texts
make sense, and which flags go together. A flag of which nobody says that fails the test.
"""

import json
import shutil

import pytest
import varied_data as data
from flag_matrix import ANY_TEXT, Case, cases_of, pack, registered_flags

from albert_tf.finetuning.batches import Examples
from albert_tf.finetuning.datasets import DATASETS
from albert_tf.finetuning.metrics import LABEL_METRICS
from albert_tf.finetuning.ner.tagged_text import METRICS as ENTITY_METRICS
from albert_tf.runs.settings.classifier import ClassifierSettings
from albert_tf.training.train_loop import TrainResult

pytestmark = pytest.mark.slow

OUT = None  # as the value of a flag: it is left out
EVALUATES, PREDICTS = {"do_eval": True}, {"do_eval": True, "do_predict": True}
TPU_FLAGS = {
    "use_tpu": "--use_tpu: ",
    "tpu_name": "--tpu_name=text without --use_tpu would train on this machine's own",
    "tpu_zone": "--tpu_zone=text without --use_tpu would train on this machine's own",
    "gcp_project": "--gcp_project=text without --use_tpu would train on this machine's own",
}


@pytest.fixture(scope="session")
def models(
    checkpoint, write_config, tiny_config, sample_tokenizer_dir, english_model_file, english_tokenizer, tmp_path_factory
):
    """Flags of models to begin with: one that was pre-trained, and others with random weights."""
    folder = tmp_path_factory.mktemp("vocabularies")
    vocabulary = shutil.copy(f"{sample_tokenizer_dir}/vocab.txt", folder)
    pieces = [piece.removeprefix("##") for piece in (folder / "vocab.txt").read_text().splitlines()]
    ended = list(dict.fromkeys(piece if piece.startswith("[") else f"{piece}_" for piece in pieces))
    (folder / "ended.txt").write_text("\n".join(ended) + "\n")

    def at_random(size, **flag_values):
        config_file = write_config(tiny_config.replace(vocab_size=size))
        return {"init_checkpoint": OUT, "albert_config_file": config_file, **flag_values}

    return {
        "pre-trained": {"init_checkpoint": checkpoint},
        "random": at_random(tiny_config.vocab_size, vocab_file=vocabulary),
        "end_of_word": at_random(len(ended), vocab_file=folder / "ended.txt"),
        "sentencepiece": at_random(len(english_tokenizer), vocab_file=OUT, spm_model_file=english_model_file),
    }


def shared_cases(models):
    """Returns what holds for all commands, by flag."""
    searches = {**EVALUATES, "num_trials": 2, "trials": "weight_decay:0.01..0.1"}
    cases = {
        "output_dir": [Case("output_dir", OUT)],  # each run has one
        "init_checkpoint": [Case("init_checkpoint", models["pre-trained"]["init_checkpoint"])],
        "albert_config_file": [Case("albert_config_file", models["random"]["albert_config_file"])],
        "license": [Case("license", "apache-2.0")],
        "freeze": [Case("freeze", "encoder/embeddings,bias$")],
        "profile_steps": [Case("profile_steps", "1,2")],
        "trackers": [Case("trackers", "builtins:print")],
        "do_eval": [Case("do_eval", True)],
        "eval_batch_size": [Case("eval_batch_size", 2, EVALUATES)],
        "eval_checkpoint": [Case("eval_checkpoint", "best", EVALUATES), Case("eval_checkpoint", "latest")],
        "eval_every_steps": [Case("eval_every_steps", 1, EVALUATES)],
        "early_stopping": [Case("early_stopping", 2, EVALUATES)],
        # Everything takes twice as long to trace for two replicas.
        "num_cpu_replicas": [Case("num_cpu_replicas", 2, dict.fromkeys(PREDICTS, OUT))],
        "save_checkpoints_steps": [Case("save_checkpoints_steps", 1)],
        "use_float16": [
            Case("use_float16", True, {"use_bfloat16": OUT}),
            Case("use_float16", True, {"use_bfloat16": True}, refused="--use_bfloat16 and --use_float16 exclude one"),
        ],
        # Training is tried elsewhere: compiling a step takes longer than all else here.
        "jit_compile": [
            Case("jit_compile", "true", {"num_cpu_replicas": OUT}, is_alone=True),
            Case("jit_compile", "false"),
        ],
        "attention": [
            Case("attention", "plain"),
            Case("attention", "flash", refused="--attention=flash needs hidden_size=16 to be a multiple of 128"),
        ],
        "train_batch_size": [Case("train_batch_size", 4)],
        "num_trials": [Case("num_trials", 2, searches, is_alone=True)],
        "trials": [Case("trials", searches["trials"], searches, is_alone=True)],
    }
    for flag, sentence in TPU_FLAGS.items():
        cases[flag] = [Case(flag, True if flag == "use_tpu" else ANY_TEXT, refused=sentence)]
    return cases


def finetuning_cases(models, without_dev):
    """Returns what holds for all commands that fine-tune, by flag.

    Args:
        models: The fixture.
        without_dev: Flags of data without a file to evaluate on.
    """
    at_random, sentencepiece = models["random"], models["sentencepiece"]
    epochs = {"num_train_steps": OUT, "num_warmup_steps": OUT}
    originals = {"train_step": {"num_train_steps": OUT}, "warmup_step": {"num_warmup_steps": OUT}}
    without_teacher = {"unlabelled_file": "texts.tsv", "teacher_weight": 0.25, "teacher_temperature": 1.5}
    folder = models["pre-trained"]["init_checkpoint"]
    cases = {
        **shared_cases(models),
        "teacher": [
            Case("teacher", folder, refused=f"{folder} holds a run of run_pretraining, not a fine-tuned model")
        ],
        **{
            name: [Case(name, value, refused=f"--{name} has an effect only with a teacher; name one with --teacher")]
            for name, value in without_teacher.items()
        },
        "num_train_steps": [Case("num_train_steps", 2)],
        "num_warmup_steps": [Case("num_warmup_steps", 1)],
        **{name: [Case(name, 1, others)] for name, others in originals.items()},
        "max_seq_length": [Case("max_seq_length", 120)],
        "num_train_epochs": [Case("num_train_epochs", 0.6, epochs)],
        "dev_fraction": [Case("dev_fraction", 0.2, {**EVALUATES, **without_dev}, is_alone=True)],
        "do_predict": [Case("do_predict", True, PREDICTS)],
        "predict_batch_size": [Case("predict_batch_size", 2, PREDICTS)],
        "vocab_file": [Case("vocab_file", at_random["vocab_file"], at_random)],
        "wordpiece_scheme": [Case("wordpiece_scheme", "end_of_word", models["end_of_word"])],
        "spm_model_file": [Case("spm_model_file", sentencepiece["spm_model_file"], sentencepiece)],
        "split_number_commas": [Case("split_number_commas", False, sentencepiece)],
    }
    for flag in ("squeeze_repeats", "full_width_to_ascii", "split_digits", "split_emoji", "strip_accents"):
        cases[flag] = [Case(flag, True, at_random)]
    for flag in ("do_lower_case", "keep_emoji", "split_punctuation"):
        cases[flag] = [Case(flag, False, at_random)]
    return cases


FINETUNING = {
    "do_train": True,
    "num_train_steps": 2,
    "num_warmup_steps": 0,
    "train_batch_size": 4,
    "eval_batch_size": 4,
    "predict_batch_size": 4,
    "learning_rate": 0.01,
}


def classifier(folder, models, **_):
    """Returns the flags of a small run, and what is to be known of the command's flags."""
    reviews = {"data_dir": data.write_reviews(folder / "reviews")}
    labels = {**reviews, "label_column": OUT, "regression": OUT}
    numbers = {**reviews, "label_column": "score", "regression": True, "class_weights": OUT}
    several = {**labels, "class_weights": OUT, "labels": OUT, "metrics": OUT}
    without_dev = {"data_dir": data.write_reviews(folder / "without_dev", {"train": 12, "test": 3})}
    published = {"task_name": "qnli", "data_dir": data.write_data_set(folder / "qnli", "qnli")}
    special = {
        **finetuning_cases(models, without_dev),
        "task_name": [Case("task_name", "qnli", published)],
        "data_dir": [Case("data_dir", reviews["data_dir"])],
        "text_column": [Case("text_column", "other", {**reviews, "text_pair_column": "document"})],
        "text_fields": [
            Case("text_fields", "other,document", {**reviews, "text_column": OUT, "text_pair_column": OUT})
        ],
        "text_pair_column": [Case("text_pair_column", "document", {**reviews, "text_column": "other"})],
        "label_column": [Case("label_column", "score", numbers)],
        "regression": [Case("regression", True, numbers)],
        "labels": [Case("labels", "1,0", labels)],
        "multi_label": [Case("multi_label", True, several)],
        "label_separator": [Case("label_separator", "|", {**several, "multi_label": True})],
        "doc_stride": [Case("doc_stride", 8, {**reviews, "text_column": OUT, "text_pair_column": OUT})],
        "metrics": [
            Case("metrics", ",".join(reversed(LABEL_METRICS)), labels),
            Case("metrics", "f1_at_3,spearman", numbers),
        ],
        "class_weights": [Case("class_weights", value, labels) for value in ("balanced", "1,2")],
        "pooling": [
            Case("pooling", "aligned", {**reviews, "text_pair_column": "document", "text_column": "other"}),
            Case("pooling", "mean"),
            Case("pooling", "first"),
        ],
    }
    return {**FINETUNING, **models["pre-trained"], **reviews, "task_name": "tsv"}, special


def squad(folder, models, **_):
    """Returns the same for run_squad.py."""
    files = {
        "train_file": data.write_questions(folder / "train.json", 12),
        "predict_file": data.write_questions(folder / "dev.json", 3),
    }
    unanswerable = {
        "version_2_with_negative": True,
        "train_file": data.write_questions(folder / "train2.json", 12, has_impossible=True),
        "predict_file": data.write_questions(folder / "dev2.json", 4, has_impossible=True),
    }
    special = {
        "train_file": [Case("train_file", files["train_file"])],
        "predict_file": [Case("predict_file", files["predict_file"])],
        "version_2_with_negative": [Case("version_2_with_negative", True, unanswerable)],
        "null_score_diff_threshold": [Case("null_score_diff_threshold", -0.5, unanswerable)],
        **{
            name: [Case(name, 2, PREDICTS)] for name in ("n_best_size", "max_answer_length", "start_n_top", "end_n_top")
        },
        "metrics": [Case("metrics", name, PREDICTS if name == "klue" else {}) for name in ("klue", "squad", "korquad")],
        "doc_stride": [Case("doc_stride", 8)],
        "max_query_length": [Case("max_query_length", 3)],
    }
    return {**FINETUNING, **models["pre-trained"], **files, "max_seq_length": 40}, special


def race(folder, models, **_):
    """Returns the same for run_race.py."""
    lines = {"task_name": "jsonl", "data_dir": data.write_choices(folder / "lines")}
    published = {"task_name": "race", "data_dir": data.write_race(folder / "RACE"), "num_choices": OUT}
    special = {
        "task_name": [Case("task_name", "jsonl", lines)],
        "data_dir": [Case("data_dir", published["data_dir"], published)],
        "middle_only": [Case("middle_only", True, {**published, "high_only": False})],
        "high_only": [Case("high_only", True, {**published, "middle_only": False})],
        "num_choices": [Case("num_choices", 3, lines)],
        "max_qa_length": [Case("max_qa_length", 5)],
    }
    return {**FINETUNING, **models["pre-trained"], **published, "max_seq_length": 40}, special


def ner(folder, models, **_):
    """Returns the same for run_ner.py."""
    folders = {name: {"task_name": name, "data_dir": data.write_entities(folder / name, name)} for name in data.FORMS}
    words = folders["naver_ner"]
    special = {
        "task_name": [Case("task_name", name, given) for name, given in folders.items()],
        "data_dir": [Case("data_dir", words["data_dir"], words)],
        "types": [Case("types", "PS,LC")],
        "metrics": [Case("metrics", ",".join(reversed(ENTITY_METRICS)))],
    }
    return {**FINETUNING, **models["pre-trained"], **words}, special


def pretraining(folder, models, shards, longer_shards):
    """Returns the same for run_pretraining.py."""
    base = {
        "input_file": shards / "train.tfrecord",
        "albert_config_file": models["random"]["albert_config_file"],
        "train_batch_size": 4,
        "eval_batch_size": 4,
        "num_train_steps": 2,
        "num_warmup_steps": 0,
    }
    second = {"phase2_input_file": longer_shards / "train.tfrecord", "phase2_start_step": 1}
    distil = {"objective": "distil", "teacher": models["pre-trained"]["init_checkpoint"]}
    taught = {"teacher": distil["teacher"], "relation_heads": 4, "teacher_layer": 0, "masked_lm_weight": 0.5}
    of_relations = {"relation_heads": OUT, "teacher_layer": OUT}
    held_out = {"held_out_file": shards / "held_out.tfrecord", "phase2_input_file": OUT}
    entity_vectors = data.write_entity_vectors(folder / "entity_vectors")
    special = {
        **shared_cases(models),
        # Nothing is trained, and so the warm-up may be longer than the training.
        "do_train": [
            Case("do_train", False, {**models["pre-trained"], **EVALUATES, "num_warmup_steps": OUT}, is_alone=True)
        ],
        "max_eval_steps": [Case("max_eval_steps", 1, EVALUATES)],
        "input_file": [Case("input_file", base["input_file"])],
        "held_out_file": [Case("held_out_file", held_out["held_out_file"], held_out)],
        "phase2_input_file": [Case("phase2_input_file", second["phase2_input_file"], second)],
        "phase2_held_out_file": [Case("phase2_held_out_file", longer_shards / "held_out.tfrecord", second)],
        "phase2_start_step": [Case("phase2_start_step", 1, second)],
        "phase2_gradient_accumulation_steps": [Case("phase2_gradient_accumulation_steps", 1, second)],
        "objective": [
            Case("objective", "roberta"),
            Case("objective", "bert", refused="--objective=bert needs examples packed as next"),
        ],
        "generator_size": [Case("generator_size", 0.5, {"objective": "electra"})],
        "replaced_token_weight": [Case("replaced_token_weight", 2.0, {"objective": "electra"})],
        "share_generator": [
            Case("share_generator", True, {"objective": "electra", "generator_size": OUT}, is_alone=True)
        ],
        **{name: [Case(name, value, distil)] for name, value in taught.items()},
        "distillation": [Case("distillation", "logits", {**distil, **of_relations})],
        "student_layers": [Case("student_layers", "0", {**distil, "init_checkpoint": OUT, "word_embeddings": OUT})],
        "entity_vectors": [
            Case("entity_vectors", entity_vectors, {"objective": "entities", "init_checkpoint": OUT}, is_alone=True)
        ],
        "disentangled_embeddings": [Case("disentangled_embeddings", True, {"objective": "electra"})],
        "max_seq_length": [Case("max_seq_length", 32)],
        "max_predictions_per_seq": [Case("max_predictions_per_seq", 5)],
        "num_train_steps": [Case("num_train_steps", 2)],
        "num_warmup_steps": [Case("num_warmup_steps", 1, {"phase2_input_file": OUT})],
        **{
            name: [Case(name, value, refused=f"--{name}: the data don't declare more than one language; leave")]
            for name, value in (("language_exponent", 0.3), ("one_language_per_batch", True))
        },
        "word_embeddings": [Case("word_embeddings", "cooccurrence", {"init_checkpoint": OUT})],
    }
    return base, special


COMMANDS = {
    "run_classifier": classifier,
    "run_squad": squad,
    "run_race": race,
    "run_ner": ner,
    "run_pretraining": pretraining,
}


def generation(folder, causal_checkpoint):
    """Returns the same for generate-text, which trains nothing."""
    texts = [data.text_of(number)[:40] for number in range(5)]
    rows = [{"text": text, "other": text[::-1]} for text in texts]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    of_files = dict.fromkeys(("input_file", "input_fields", "output_file", "on_bad_row", "overwrite"), OUT)
    base = {"model_dir": causal_checkpoint, "input_file": folder / "texts.jsonl", "max_pieces": 3}
    special = {
        "model_dir": [Case("model_dir", causal_checkpoint)],
        "output_file": [Case("output_file", folder / "named.jsonl", is_alone=True)],
        "input_file": [Case("input_file", folder / "texts.txt", {"input_fields": OUT})],
        "input_fields": [Case("input_fields", "other")],
        "text": [Case("text", "오늘은", of_files)],
        "top_k": [Case("top_k", 3)],
        "top_p": [
            Case("top_p", 0.5),
            Case("top_p", 1.5, refused="--top_p must be a number greater than 0 and at most 1. Received: 1.5"),
        ],
        "repetition_penalty": [Case("repetition_penalty", 1.5)],
    }
    return base, special


@pytest.fixture
def lengths_of_batches(monkeypatch):
    """Returns the lengths of the first two batches of each training on texts, as they come."""
    found, make = [], Examples.train_dataset

    def train_dataset(*arguments, **options):
        dataset = make(*arguments, **options)
        found.append({batch["input_ids"].shape[-1] for batch in dataset.take(2)})
        return dataset

    monkeypatch.setattr(Examples, "train_dataset", train_dataset)
    return found


def read_two_batches(state, phases, settings, *others):
    """Stands in for the loop: takes no step."""
    *_, claim = others
    for phase in phases:
        dataset = phase.make_dataset(0, 0, 1)
        phase.check_batches(dataset)
        assert len(list(dataset.take(2))) == 2
    claim()
    return TrainResult(is_finished=True)


def all_cases(command, special):
    """Returns the cases of every flag of a command, but for those that it has like run_classifier.py."""
    flags = registered_flags(command)
    assert special.keys() <= flags.keys(), "there is no such flag any more"
    alike = registered_flags("run_classifier") if command in ("run_squad", "run_race", "run_ner") else {}
    cases = {
        name: cases_of(flag, special)
        for name, flag in flags.items()
        if name in special or name not in alike or flag.help != alike[name].help
    }
    unknown = [name for name, values in cases.items() if not values]
    assert not unknown, "say in this file which values make sense"
    return [case for values in cases.values() for case in values]


@pytest.fixture
def run_line(run_script, tmp_path):
    """Runs a command with some flags of a line in place of others; one in a folder of its own, which it returns too."""
    folders = (tmp_path / f"run{number}" for number in range(100))

    def run(command, base, line):
        flag_values = {name: value for name, value in {**base, **line}.items() if value is not OUT}
        folder = next(folders)
        return run_script(f"{command}.py", **{**flag_values, "output_dir": folder}), folder

    return run


@pytest.mark.parametrize("command", COMMANDS)
def test_every_flag_is_taken_or_refused_in_one_sentence(
    command, models, shards, build_shards, run_line, lengths_of_batches, monkeypatch, tmp_path
):
    more = {"shards": shards, "longer_shards": build_shards(64, 8)} if command == "run_pretraining" else {}
    base, special = COMMANDS[command](tmp_path, models, **more)
    cases = all_cases(command, special)
    for number, line in enumerate(pack([case for case in cases if not case.refused])):
        if number == 1:  # the longest line is trained with
            # What is left are further values of a few flags, most of which say where and how texts are read.
            monkeypatch.setattr("albert_tf.training.run.train", read_two_batches)
        result, folder = run_line(command, base, line)
        assert (result.code, result.errors) == (0, ""), f"{result.output}\n{line}"
        if line.get("do_eval"):
            results = json.loads((folder / "eval_results.json").read_text(), parse_constant=pytest.fail)
            assert results
    is_of_one_length = all(len(lengths) == 1 for lengths in lengths_of_batches)
    assert command == "run_pretraining" or not is_of_one_length, lengths_of_batches

    for case in cases:
        if case.refused:
            result, folder = run_line(command, base, case.given)
            assert result.code == 1 and result.errors.startswith(f"error: {case.refused}"), (case, result)
            assert not folder.exists()


@pytest.mark.parametrize("name", DATASETS)
def test_every_data_set_is_read_as_it_is_published(name, tiny_config, tmp_path):
    settings = ClassifierSettings(task_name=name, data_dir=str(data.write_data_set(tmp_path / name, name)))
    task = settings.make_task(tiny_config)
    for part in ("train", "dev"):
        (path,) = settings.find_paths(part)
        examples = task.read(path)
        assert [example.text for example in examples] == list(map(data.text_of, range(len(examples))))
        pairs = [data.text_of(number + 3) for number in range(len(examples))]
        assert [example.text_pair for example in examples] in (pairs, [None] * len(examples))
        assert len({example.label for example in examples}) > 1


def test_every_flag_of_what_writes_texts_is_taken_or_refused_in_one_sentence(causal_checkpoint, run_script, tmp_path):
    base, special = generation(tmp_path, causal_checkpoint)
    cases = all_cases("generate_text", special)
    lines = pack([case for case in cases if not case.refused])
    for number, line in enumerate([*lines, *(case.given for case in cases if case.refused)]):
        output = tmp_path / f"{number}.jsonl"
        given = {**base, "output_file": output, **line}
        result = run_script("generate-text", **{name: value for name, value in given.items() if value is not OUT})
        refused = next((case.refused for case in cases if case.refused and case.given == line), None)
        assert result.code == (1 if refused else 0), result
        assert result.errors.startswith(f"error: {refused}" if refused else "") and (refused or not result.errors)
        if given["output_file"] is not OUT:
            assert given["output_file"].exists() == (not refused)
