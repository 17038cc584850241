"""The functions of `import albert_tf`: a model to ask, and models of one's own.

Importing this takes no time: what a function needs is imported when it is called, and of a LiteRT export no TensorFlow.
"""

import os
import tempfile

from albert_tf.base.console import DETAILS, RESULTS, WARNINGS, at_most, tell
from albert_tf.base.settings import check_whole
from albert_tf.base.shipped_files import find_or_shipped
from albert_tf.base.startup import import_tensorflow, use_onednn, without_warnings_of_tracing

SHIPPED_MODEL = "models/albert_ko_small"


def load(folder=SHIPPED_MODEL):
    """Returns a model to ask.

    Args:
        folder: A path: the `output_dir` of a command that trains, a published model, what `export_model.py` has
            written, or what `save_pretrained` of transformers has, if `convert_checkpoint.py` can convert it. By
            default the included small model.

    Returns:
        A `Model`. Of a pre-trained folder it has `fill_mask`, `score`, `choose`, `encode` and `similarity`; a causal
        one has `generate` in place of `fill_mask`, a discriminator of ELECTRA `find_replaced`. Of a fine-tuned folder
        it has `predict`, `encode` and `similarity`, of an export what it was exported with; a LiteRT export predicts
        without TensorFlow.

    Raises:
        InputError: The folder holds none of these, or a library is missing that one of them needs.
    """
    from albert_tf.asking.model import Model
    from albert_tf.serving.formats import find_export

    folder = find_or_shipped(folder)
    found = None if "://" in folder else find_export(folder)
    if found is not None and not found.format.needs_tensorflow:
        return Model(found.load())
    use_onednn()
    import_tensorflow()
    found = found or find_export(folder)
    if found is not None:
        return Model(found.load())
    from albert_tf.interchange.conversion import as_ours
    from albert_tf.serving.folder import load_folder

    with as_ours(folder) as ours:
        return Model(load_folder(ours.path, folder, ours.why_no_task))


def pretrain(
    data,
    config=None,
    output_dir=None,
    *,
    model=None,
    vocabulary=SHIPPED_MODEL,
    strategy=None,
    trackers=(),
    verbose=1,
    **settings,
):
    """Pre-trains a model on text, and returns it, to be asked or to be fine-tuned.

    A twentieth of the documents is kept to evaluate on, before the first step, on the way and after the last; of less
    than 400 texts twenty, but at most three in ten.

    Args:
        data: A list of texts, each a document with a sentence on each line; the path of files of text (a file, a folder
            or a pattern such as "corpus/*.txt"); or a folder of shards that `create_pretraining_data.py` has built.
        config: The model: the path of a JSON file such as "configs/albert_small.json", an `AlbertConfig`, or its values
            by name. By default that of `model`, or else of the included small model. Its vocab_size is the
            vocabulary's.
        output_dir: Where the model is to lie, with the shards in the folder data; by default a new folder for
            temporary files, whose name is printed. The same call goes on with what it finds there.
        model: A folder to begin from: a pre-trained model, of ours or of transformers. By default random weights.
        vocabulary: A folder with vocab.txt and tokenizer.json, or a SentencePiece model, as `build_vocab.py` writes it;
            by default that of the included small model. With `model`, or with shards, it is theirs.
        strategy: Where to compute, a tf.distribute.Strategy; by default all GPUs of this machine, or its CPU.
        trackers: As for `fit`.
        verbose: As for `fit`.
        **settings: Those of the commands `create_pretraining_data.py` and `run_pretraining.py`, with their defaults,
            such as `objective`, `max_seq_length`, `num_train_steps`, `train_batch_size` or `learning_rate`. The
            defaults of the last ones, 125,000 steps of 4,096 examples, are for a TPU.

    Returns:
        What `load` does.

    Raises:
        InputError: The data or the model can't be used; or a setting is wrong.
    """
    use_onednn()
    import_tensorflow()
    from albert_tf.interchange.conversion import kept_as_ours
    from albert_tf.runs.from_python import pretrain_folder, split_settings

    _check_verbose(verbose)
    without_warnings_of_tracing()
    with at_most(verbose):
        split_settings(settings)  # before a folder is made
        output_dir = _output_dir(output_dir)
        if model is not None:
            model = kept_as_ours(find_or_shipped(model), output_dir)
        pretrain_folder(data, config, model, find_or_shipped(vocabulary), output_dir, settings, strategy, trackers)
    return load(output_dir)


def _check_verbose(verbose):
    check_whole("verbose", int(verbose) if isinstance(verbose, bool) else verbose, WARNINGS, DETAILS)


def _output_dir(folder):
    """Returns a folder, a new temporary one where none is named."""
    if folder is None:
        folder = tempfile.mkdtemp(prefix="albert_tf_")
        tell(f"the model will be written to {folder}; choose another folder with output_dir", RESULTS)
    return os.fspath(folder)


def fit(
    texts,
    labels=None,
    model=SHIPPED_MODEL,
    output_dir=None,
    *,
    dev=None,
    kind=None,
    text_columns=("text",),
    strategy=None,
    trackers=(),
    verbose=1,
    **settings,
):
    """Fine-tunes a model on examples, and returns it, to be asked.

    A tenth of the examples is put aside, of less than 1,000 a hundred, but at most a quarter. The model is
    evaluated on them while it is trained, training ends early where it gets no better, and the best of its states
    is kept; how good that is stands in `results` of what is returned.

    Args:
        texts: Strings; tuples of two, for pairs, or for questions and the texts that answer them; or lists of words. Or
            a table: a pandas.DataFrame or a datasets.Dataset.
        labels: What is to be learnt of each: a string, whole number or truth value; a list of strings, of which there
            may be none; a number with a fraction; the tags of its words, or the (begin, end, type) of its entities in
            characters; or of a question the (begin, end) of its answer in characters of the text, an object of "text"
            and "answer_start" as in SQuAD, or None where it has none. Of a table the name of the column that holds
            them, by default "label", or a list of columns of 1 and 0, one for each of several labels. With kind
            "vectors" a number for each pair, which the cosine of their vectors is to follow, or None: of pairs that
            belong together, or of texts each of which is to differ from all others.
        model: The folder to begin from: a pre-trained or published model, of ours or of transformers. By default the
            included small model.
        output_dir: Where the model is to lie; by default a new folder for temporary files, whose name is printed. The
            same call goes on with what it finds there.
        dev: What to evaluate on in place of a share of these: a tuple of texts and labels, or a table.
        kind: "labels", "multi_label", "numbers", "vectors", "entities" or "answers"; by default what the labels look
            like, which is printed.
        text_columns: Of a table, the column of the texts, or the two of pairs.
        strategy: Where to compute, a tf.distribute.Strategy; by default all GPUs of this machine, or its CPU.
        trackers: Functions to call with the step, "train" or "held_out", and what is measured by name, for Weights &
            Biases, MLflow and the like; docs/library.md has examples.
        verbose: What is printed: 0 for warnings alone, 1 for the progress and what comes out, 2 for all that commands
            print.
        **settings: Those of the commands that fine-tune, such as `dev_fraction`, `num_train_epochs`, `learning_rate`,
            `train_batch_size`, `max_seq_length`, `doc_stride` (read long texts in windows), `teacher` or `random_seed`.

    Returns:
        What `load` does.

    Raises:
        InputError: An example can't be used, which the message names by its number; or a setting is wrong.
    """
    use_onednn()
    import_tensorflow()
    from albert_tf.base.texts import is_table
    from albert_tf.interchange.conversion import format_of, kept_as_ours
    from albert_tf.modeling.pretrained import find_checkpoint
    from albert_tf.runs.from_python import fit_folder, settings_for
    from albert_tf.runs.given_data import read_dev, read_given

    _check_verbose(verbose)
    without_warnings_of_tracing()
    with at_most(verbose):
        data = read_given(texts, labels, text_columns, kind)
        settings_for(data, settings)  # before a folder is made
        dev_data = None if dev is None else read_dev(dev, labels if is_table(texts) else None, text_columns, data)
        model = find_or_shipped(model)
        if format_of(model) is None:
            find_checkpoint(model, "`model`")
        output_dir = _output_dir(output_dir)
        model = kept_as_ours(model, output_dir)
        fit_folder(data, dev_data, model, output_dir, settings, strategy, trackers)
    return load(output_dir)
