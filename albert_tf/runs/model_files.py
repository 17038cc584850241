"""Finding what goes with a model that is fine-tuned: what flags name, or what lies beside the model."""

import contextlib
import os
import tempfile

import tensorflow as tf

from albert_tf.base.checkpoint_files import find_beside_checkpoint, refuse_trials, resolve_checkpoint
from albert_tf.base.errors import InputError
from albert_tf.base.files import read_json, write_json
from albert_tf.base.shipped_files import did_you_mean
from albert_tf.config import AlbertConfig
from albert_tf.interchange import huggingface
from albert_tf.interchange.conversion import CONVERTED_FOLDER, format_of, kept_as_ours
from albert_tf.interchange.huggingface import is_published, read_published_config
from albert_tf.modeling.pretrained import CONFIG_FILE
from albert_tf.modeling.student import parse_layers, student_config
from albert_tf.objectives.objective import refuse_entities
from albert_tf.runs.known_run import KnownRun
from albert_tf.tokenization import SentencePieceTokenizer, Tokenizer
from albert_tf.tokenization.sentencepiece.tokenizer import MODEL_FILE
from albert_tf.tokenization.tokenizer import TOKENIZER_FILE, VOCABULARY_FILE, kind_of_tokenizer
from albert_tf.training.devices import names_several_machines


def with_our_init_checkpoint(settings):
    """Returns settings in which `init_checkpoint` is a folder of ours, converted where it is another library's."""
    return _with_ours(settings, "init_checkpoint", CONVERTED_FOLDER)


def with_our_teacher(settings, is_to_answer=False):
    """Returns settings in which `teacher` is a folder of ours, converted where it is another library's."""
    # A run knows its teacher as the checkpoint that was best in a folder. If another one is by now, the run is refused.
    # Only the teacher of a task is to answer, and so must have been fine-tuned.
    teacher = settings.teacher
    if teacher and tf.io.gfile.exists(f"{teacher}.index"):
        folder = os.path.dirname(teacher) or "."
        best = resolve_checkpoint(folder)
        if "teacher" in settings.given and best and os.path.basename(best) != os.path.basename(teacher):
            raise InputError(
                f"`teacher={teacher}`: the teacher would be {best}, the best or newest checkpoint of that folder; name "
                "the folder, or put this checkpoint into a folder of its own"
            )
        settings = settings.changed(teacher=folder)
    return _with_ours(settings, "teacher", "converted_teacher", is_to_answer)


def _with_ours(settings, name, kept, is_to_answer=False):
    folder = getattr(settings, name)
    source = format_of(folder) if folder else None
    if source is None:
        return settings
    if names_several_machines():
        raise InputError(
            f"`{name}={folder}` is a model of {source}, which several machines can't convert at once; convert "
            f"it first, with convert_checkpoint.py --from={source} --to=albert_tf"
        )
    return settings.changed(**{name: kept_as_ours(folder, settings.output_dir, kept, is_to_answer)})


@contextlib.contextmanager
def with_planned_teacher(settings):
    """Gives settings in which `teacher` is a folder with a config of ours, and perhaps nothing else."""
    if not settings.teacher or find_beside_checkpoint(settings.teacher, CONFIG_FILE):
        yield settings
        return
    config = read_config_of(settings.teacher, "teacher")
    with tempfile.TemporaryDirectory(prefix="albert_tf_") as folder:
        write_json(os.path.join(folder, CONFIG_FILE), config.to_dict())
        yield settings.changed(teacher=folder)


def find_student_config(settings) -> AlbertConfig | None:
    """Returns the config that follows from `teacher` and `student_layers`; None where one is not given."""
    if not settings.teacher or not settings.student_layers:
        return None
    teacher = read_config_of(settings.teacher, "teacher")
    refuse_entities(teacher, "distil", f"`teacher={settings.teacher}`")
    return student_config(teacher, parse_layers(settings.student_layers))


def read_planned_config(settings) -> AlbertConfig:
    """Returns the config that `albert_config_file` names, or that of `init_checkpoint`, of ours or transformers'."""
    # Where neither is named, it is what `student_layers` makes of that of `teacher`. Weights need not be there.
    path, folder = settings.albert_config_file, settings.init_checkpoint
    if path is None and folder is None and (config := find_student_config(settings)):
        return config
    if path is None and folder is None:
        raise InputError("`albert_config_file` is missing; name it, or the folder of a model with `init_checkpoint`")
    if path is None:
        return read_config_of(folder, "init_checkpoint", ", or its config with `albert_config_file`")
    return _read_any_config(path)


def read_config_of(folder: str, flag: str, otherwise: str = "") -> AlbertConfig:
    """Returns the config of the model in a folder, of ours or transformers', whose weights are not looked at."""
    # `flag` names the folder, and `otherwise` says in errors what else may be named.
    if format_of(folder) == "keras_hub":
        raise InputError(
            f"`{flag}={folder}` is a model of keras_hub; convert it with convert_checkpoint.py --from=keras_hub "
            "--to=albert_tf, and name the folder that this writes"
        )
    found = (find_beside_checkpoint(folder, name) for name in (CONFIG_FILE, huggingface.CONFIG_FILE))
    path = next(filter(None, found), None)
    if path is None:
        raise InputError(
            f"`{flag}={folder}`: there is no {CONFIG_FILE} and no {huggingface.CONFIG_FILE}; name the folder of a model"
            f"{otherwise}"
        )
    return _read_any_config(path)


def _read_any_config(path):
    if is_published(read_json(path, "the model config")):
        return read_published_config(path)
    return AlbertConfig.from_json_file(path)


def find_model_file(settings, flag: str, name: str, run: KnownRun | None) -> str:
    """Returns a setting's path, or the file of that name in the folder of the run or beside `init_checkpoint`."""
    init_checkpoint = settings.init_checkpoint
    found = getattr(settings, flag) or _find_beside_model(settings, name, run)
    if not found:
        refuse_trials(init_checkpoint or settings.output_dir)
    if not found and init_checkpoint is None:
        raise InputError(
            f"`{flag}` is missing; name it, or a model to start from with `init_checkpoint`, such as "
            "models/albert_ko_small, which is included"
        )
    if not found and not any(tf.io.gfile.exists(init_checkpoint + ending) for ending in ("", ".index")):
        hint = did_you_mean(init_checkpoint)
        raise InputError(f"`init_checkpoint={init_checkpoint}`: there is no such folder or checkpoint{hint}")
    if not found:
        raise InputError(f"`{flag}` is missing, and there is no {name} beside `init_checkpoint={init_checkpoint}`")
    return found


def _find_beside_model(settings, name, run):
    """Returns the file of that name in the folder of the run or beside `init_checkpoint`, None if there is none."""
    found = run and run.find(name)
    found = found or find_beside_checkpoint(settings.init_checkpoint, name)
    return found or find_beside_checkpoint(settings.output_dir, name)


def load_model_tokenizer(settings, run: KnownRun | None) -> Tokenizer:
    """Returns the tokenizer that the settings name, or the one of the run or of `init_checkpoint`."""
    vocab_file, model_file = settings.vocab_file, settings.spm_model_file
    if vocab_file or model_file:
        return settings.load_tokenizer(vocab_file, model_file)
    settings_file = _find_beside_model(settings, TOKENIZER_FILE, run)
    if settings_file and kind_of_tokenizer(settings_file) is SentencePieceTokenizer:
        return settings.load_tokenizer(None, os.path.join(os.path.dirname(settings_file), MODEL_FILE))
    # A conversion that could not read the tokenizer leaves a SentencePiece model without settings.
    if not settings_file and not _find_beside_model(settings, VOCABULARY_FILE, run):
        model_file = _find_beside_model(settings, MODEL_FILE, run)
    if model_file:
        return settings.load_tokenizer(None, model_file)
    return settings.load_tokenizer(find_model_file(settings, "vocab_file", VOCABULARY_FILE, run), None)
