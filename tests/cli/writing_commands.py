"""Every command that writes, as small as it can be, for tests of where and how it writes."""

import collections.abc
import dataclasses
import pathlib

import varied_data as data

# What names a place to write to.
OUTPUT_FLAGS = ("output_dir", "output_file", "plot")
# The demo starts the other commands and writes nothing but their numbers; an hour of its kills would say nothing new.
# What `files` does is print.
NOT_HERE = {"demo", "files"}

# They train, compile or draw.
SLOW = (
    "vocabulary",
    "plot",
    "pre-training",
    "classifier",
    "trials",
    "questions",
    "choices",
    "entities",
    "plan",
    "onnx export",
    "texts",
)
CASE_NAMES = (
    *SLOW,
    "vocabulary into a folder",
    "unused",
    "data",
    "google model",
    "huggingface model into a folder",
    "keras_hub model",
    "model from huggingface into a folder",
    "published model",
    "saved_model export",
    "litert export",
    "predictions",
    "scores",
)


@dataclasses.dataclass(frozen=True)
class Case:
    """A command that writes.

    Attributes:
        name: What tells it from the others.
        script: Its script, or the name of its stage.
        flag: What names the place.
        flag_values: The other flags.
        file_name: What to call the output below a folder, if it is a file.
        into_folder: Whether the folder is there already, and empty.
    """

    name: str
    script: str
    flag_values: dict[str, object]
    flag: str = "output_dir"
    file_name: str = ""
    into_folder: bool = False

    def given(self, folder: pathlib.Path) -> dict[str, object]:
        """Returns all flags, for an output in a folder."""
        return {**self.flag_values, self.flag: folder / self.file_name if self.file_name else folder}


@dataclasses.dataclass(frozen=True)
class Inputs:
    """The files that the commands read.

    Attributes:
        corpus: A text of a few documents.
        shards: Training shards.
        config: A model config.
        tokenizer_dir: A folder with a vocabulary.
        checkpoint: The folder of a pre-training run.
        causal: That of a causal model.
        folder: Where to write more.
    """

    corpus: pathlib.Path
    shards: pathlib.Path
    config: pathlib.Path
    tokenizer_dir: pathlib.Path
    checkpoint: pathlib.Path
    causal: pathlib.Path
    folder: pathlib.Path


def make_cases(inputs: Inputs, run: collections.abc.Callable[[Case, pathlib.Path], None]) -> list[Case]:
    """Returns the commands.

    Args:
        inputs: What they read.
        run: Runs one of them, for those that read what it writes.
    """
    folder = inputs.folder
    training = {
        "init_checkpoint": inputs.checkpoint,
        "do_train": True,
        "do_eval": True,
        "do_predict": True,
        "train_step": 2,
        "save_checkpoints_steps": 1,
        "iterations_per_loop": 1,
        "train_batch_size": 4,
        "max_seq_length": 40,
        "learning_rate": 0.01,
    }
    classifier = {
        **training,
        "task_name": "tsv",
        "data_dir": data.write_reviews(folder / "reviews"),
        "text_column": "document",
        "label_column": "label",
    }
    questions = {
        "train_file": data.write_questions(folder / "train.json", 12),
        "predict_file": data.write_questions(folder / "dev.json", 3),
    }
    (folder / "in.txt").write_text("\n".join(map(data.text_of, range(34))) + "\n")
    corpus = {"input_file": inputs.corpus}
    vocabulary = {**corpus, "vocab_file": inputs.tokenizer_dir / "vocab.txt"}
    cases = [
        Case("vocabulary", "build_vocab.py", {**corpus, "vocab_size": 2000, "report": True}),
        Case("vocabulary into a folder", "build_vocab.py", {**corpus, "vocab_size": 2000}, into_folder=True),
        Case("unused", "build_vocab.py", {"assign_unused": "가나다라마", "vocab_file": vocabulary["vocab_file"]}),
        Case(
            "data",
            "create_pretraining_data.py",
            {**vocabulary, "resume": True, "num_shards": 2, "max_seq_length": 32, "held_out_fraction": 0.3},
            "output_file",
            "train.tfrecord",
        ),
        Case("plot", "create_pretraining_data.py", {"inspect": inputs.shards / "train.tfrecord"}, "plot", "plot.png"),
        Case(
            "pre-training",
            "run_pretraining.py",
            {
                "input_file": inputs.shards / "train.tfrecord",
                "albert_config_file": inputs.config,
                "do_eval": True,
                "train_batch_size": 4,
                "eval_batch_size": 4,
                "num_train_steps": 2,
                "num_warmup_steps": 0,
                "save_checkpoints_steps": 1,
                "iterations_per_loop": 1,
            },
        ),
        Case("classifier", "run_classifier.py", classifier),
        Case("trials", "run_classifier.py", {**classifier, "num_trials": 2, "train_step": 1, "do_predict": False}),
        Case("questions", "run_squad.py", {**training, **questions}),
        Case(
            "choices",
            "run_race.py",
            {**training, "task_name": "jsonl", "data_dir": data.write_choices(folder / "choices")},
        ),
        Case(
            "entities",
            "run_ner.py",
            {**training, "task_name": "naver_ner", "data_dir": data.write_entities(folder / "entities")},
        ),
        Case(
            "plan",
            "plan-tpu",
            {"albert_config_file": inputs.config, "max_seq_length": 16, "tpu": "v5e-1", "train_batch_size": 1},
        ),
    ]
    model = folder / "model"
    run(next(case for case in cases if case.name == "classifier"), model)
    foreign = folder / "huggingface"
    run(Case("", "convert_checkpoint.py", {"from": "albert_tf", "to": "huggingface", "input_path": model}), foreign)
    for target in ("google", "huggingface", "keras_hub"):
        values = {"from": "albert_tf", "to": target, "input_path": inputs.checkpoint}
        into_folder = target == "huggingface"
        place = " into a folder" if into_folder else ""
        cases.append(Case(f"{target} model{place}", "convert_checkpoint.py", values, into_folder=into_folder))
    values = {"from": "huggingface", "to": "albert_tf", "input_path": foreign}
    cases += [
        Case("model from huggingface into a folder", "convert_checkpoint.py", values, into_folder=True),
        Case("published model", "convert_checkpoint.py", {"input_path": model}),
    ]
    cases += [
        Case(f"{form} export", "export_model.py", {"model_dir": model, "format": form})
        for form in ("saved_model", "litert", "onnx")
    ]
    predicted = {"model_dir": model, "input_file": folder / "in.txt", "predict_batch_size": 1}
    scored = {**predicted, "model_dir": inputs.checkpoint}
    texts = {**predicted, "model_dir": inputs.causal, "max_pieces": 2}
    return [
        *cases,
        Case("predictions", "predict", predicted, "output_file", "out.jsonl"),
        Case("scores", "score-text", scored, "output_file", "out.tsv"),
        Case("texts", "generate-text", texts, "output_file", "out.jsonl"),
    ]
