"""What --help shows: the flags that a person sets, in groups. --helpfull shows all of them."""

import contextlib

from absl import flags

FLAGS = flags.FLAGS

# Flags that several commands have, by the title of their group.
_GROUPS = {
    "Model": ("output_dir", "init_checkpoint"),
    "What to do": ("do_train", "do_eval", "do_predict", "dev_fraction"),
    "Training": (
        "max_seq_length",
        "num_train_epochs",
        "num_train_steps",
        "train_batch_size",
        "gradient_accumulation_steps",
        "learning_rate",
        "dropout",
        "early_stopping",
        "random_seed",
    ),
    "Several trainings, compared": ("num_trials", "trials"),
    "Device": ("use_tpu", "use_bfloat16"),
}
_TITLES = {name: title for title, names in _GROUPS.items() for name in names}

# Of create_pretraining_data.py.
_RARE = (
    "do_permutation",
    "entity_file",
    "favor_shorter_ngram",
    "pipeline_arguments",
    "random_next_sentence",
    "short_seq_prob",
)

# Those of the command that runs, and which of them only --helpfull shows.
_of_command: list[str] = []
_in_helpfull: set[str] = set()


@contextlib.contextmanager
def in_helpfull():
    """Leaves what is defined inside to --helpfull, unless one of the groups above has it; also decorates functions."""
    before = set(FLAGS)
    yield
    _in_helpfull.update(name for name in FLAGS if name not in before and name not in _TITLES)


def define(define_flags) -> None:
    """Defines the flags of a command by a function of its own."""
    before = set(FLAGS)
    _in_helpfull.clear()
    define_flags()
    _of_command[:] = [name for name in FLAGS if name not in before]


def help_text(script: str) -> str:
    """Returns what --help says of the command."""
    groups = {title: flags.FlagValues() for title in ("Flags of this command", *_GROUPS)}
    for name in _of_command:
        if name not in _in_helpfull and name not in _RARE:
            groups[_TITLES.get(name, "Flags of this command")][name] = FLAGS[name]
    shown = [
        f"{title}:\n{group.get_help('  ', include_special_flags=False)}"
        for title, group in groups.items()
        if len(group)
    ]
    return "\n\n".join([f"Usage: {script} --flag=value ...", *shown, "--helpfull shows every flag."])
