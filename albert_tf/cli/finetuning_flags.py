"""The flags that all commands that fine-tune share."""

from absl import flags

from albert_tf.cli import training_flags
from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.cli.original_flags import define_original_flags
from albert_tf.cli.tokenizer_flags import define_sentencepiece_flags, define_tokenizer_flags
from albert_tf.cli.trial_flags import define_trial_flags


@in_helpfull()
def define_finetuning_flags(max_seq_length_help: str) -> None:
    """Defines the flags that all these commands have.

    Args:
        max_seq_length_help: What --max_seq_length is where nobody says it.
    """
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints, logs and results; a run found there is resumed.")
    flags.DEFINE_string(
        "init_checkpoint", None, "Pre-trained checkpoint or folder, also of transformers; random weights if left out."
    )
    flags.DEFINE_string("albert_config_file", None, "JSON file of the model; by default that beside --init_checkpoint.")
    flags.DEFINE_string("vocab_file", None, "Vocabulary; by default the one beside --init_checkpoint.")
    define_tokenizer_flags()
    define_sentencepiece_flags()
    flags.DEFINE_string(
        "teacher",
        None,
        "Folder of a model fine-tuned for the same task, of albert_tf or transformers, whose answers are "
        "learnt besides the labels.",
    )
    flags.DEFINE_list("unlabelled_file", [], "With --teacher: files of texts without labels to train on as well.")
    flags.DEFINE_float("teacher_weight", 0.5, "Share of the teacher's answers in the loss on labelled texts.", 0, 1)
    flags.DEFINE_float(
        "teacher_temperature", 2.0, "Temperature by which the logits of teacher and student are divided.", 0.0
    )
    flags.DEFINE_bool("do_train", False, "Train.")
    flags.DEFINE_bool("do_eval", False, "Evaluate on the dev file; writes eval_results.json.")
    flags.DEFINE_float(
        "dev_fraction",
        None,
        "Share of the training file to hold out for evaluation, if there is no dev file; the same rows each time.",
        0.0,
        1.0,
    )
    flags.DEFINE_bool("do_predict", False, "Predict the test file; writes the predictions.")
    flags.DEFINE_integer("max_seq_length", None, f"Longest input in pieces; {max_seq_length_help}", lower_bound=8)
    flags.DEFINE_integer("num_train_steps", None, "Number of training steps, instead of --num_train_epochs.", 1)
    flags.DEFINE_float(
        "num_train_epochs",
        None,
        "Epochs over the training file; by default fewer for a larger file.",
        0.0,
    )
    flags.DEFINE_integer("num_warmup_steps", None, "Steps of warm-up; by default 10% of all.", 0)
    # What the original's commands call them.
    flags.DEFINE_alias("train_step", "num_train_steps")
    flags.DEFINE_alias("warmup_step", "num_warmup_steps")
    flags.DEFINE_float(
        "dropout",
        None,
        "Dropout of hidden states and attention; by default the config's, but in small models at least 0.1, or 0.2 for "
        "few examples; for multiple choice always the config's.",
        0.0,
        1.0,
    )
    flags.DEFINE_float(
        "token_dropout",
        None,
        "Share of the pieces of training texts to hide, different ones each time; by default, in small "
        "models, 0.15 for single texts and for similarity scores, and 0.25 for paraphrases; otherwise 0.",
        0.0,
        1.0,
    )
    flags.DEFINE_float(
        "head_learning_rate", None, "Peak learning rate of the head alone; by default that of the encoder.", 0.0
    )
    flags.DEFINE_integer("predict_batch_size", 64, "Batch size of prediction, all replicas.", lower_bound=1)
    training_flags.define_training_flags(
        train_batch_size=32,
        eval_batch_size=64,
        optimizer="adamw",
        learning_rate=None,
        save_checkpoints_steps=1000,
        bias_correction=True,
        evaluates_often=False,
    )
    define_trial_flags()
    training_flags.define_distribution_flags()
    define_original_flags("albert_hub_module_handle", "export_dir", "threshold_to_export")


@in_helpfull()
def define_baselines_flag() -> None:
    """Defines whether a task that has a linear model tells its score; the other commands have no such flag."""
    flags.DEFINE_bool(
        "baselines",
        True,
        "After training, train a linear model on the same file, in seconds, and print its score, too; "
        "needs scikit-learn.",
    )
