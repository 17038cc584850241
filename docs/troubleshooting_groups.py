"""What the sentences of docs/troubleshooting.md have in common, by the part of the library that says them."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Group:
    """Sentences that go together.

    Attributes:
        title: The heading.
        files: Beginnings of paths below albert_tf/; the longest that fits decides.
        meaning: What such a sentence means, and what to do.
    """

    title: str
    files: tuple[str, ...]
    meaning: str


INTRODUCTION = """# Troubleshooting

<!-- Written by docs/generate_troubleshooting.py from the code; change the code, or docs/troubleshooting_groups.py. -->

A command that can't go on says one sentence, `error: ...`, and exits with code 1. It names the file, flag or value, and mostly
says what to do. **Search this page for a few words of yours**; what changes from case to case (names, numbers) is `…` here.

| exit code | |
|---|---|
| 0 | done; also after SIGTERM or the first Ctrl-C, which save first: the same command goes on |
| 1 | a sentence of this page |
| 130 | a second Ctrl-C, or one where there was nothing to save |
| anything else, or a traceback | a mistake of ours: please open an issue with the command and the last lines |

## It runs, but not well
| what you see | why, and what to do |
|---|---|
| the masked-LM loss stays at the unigram entropy of the manifest | the model has found which pieces are frequent, and nothing more. Short runs need `--bias_correction`; small models learn sooner from `"position_initializer": "sinusoidal"` ([why](korean_small_model.md)) |
| the loss jumps up, or steps are skipped | the learning rate is too high for the batch: 0.00176 belongs to 4,096 examples. `--scale_learning_rate=sqrt`, or a longer warm-up |
| the held-out loss rises while the training loss falls | a small text is learnt by heart. The best checkpoint is kept; `--early_stopping=2` saves the time |
| sentence order accuracy of 100%, or of 50% for ever | 100%: the data tell the label; make them with this version. 50%: documents of a sentence or two have no order; try `--sentence_pair=halves` |
| many unknown words | `build_vocab.py --report` says how many. A larger `--limit_alphabet`, or `--alphabet=all`; and the `tokenizer.json` that belongs to the vocabulary must lie beside it |
| a classifier that always says the same | too few steps, or too high a rate from random weights. Give it `--init_checkpoint`; `--num_trials=3` shows whether it is chance |
| out of memory on a TPU or GPU | a smaller part of the batch: `--gradient_accumulation_steps`; or `--remat=block`. `plan_tpu.py` says what fits ([more](tpu.md#what-fits-before-anything-is-rented)) |
| the first step takes a minute | it is compiled; the others don't |
| steps are slow on a CPU | `--use_bfloat16` where the processor has it; from Python, `TF_CPU_ALLOCATOR_USE_BFC=true` before TensorFlow is imported ([why](performance.md#on-a-cpu)) |
| TensorFlow sees no GPU or TPU | the run warns of it. On a TPU VM plain tensorflow must not be installed beside tensorflow-tpu ([how](tpu.md#install)) |
"""

END = """## Not in the list
Warnings (`warning: ...`) don't end a command; they say what it does instead. Messages of TensorFlow itself are kept away from the
terminal; with `TF_CPP_MIN_LOG_LEVEL=0` in the environment they come back.
"""

GROUPS = (
    Group(
        "Flags",
        ("cli/", "files.py"),
        """
A flag is missing, misspelt, contradicts another one, or names a file that can't be read or written. `--help` lists the flags
of a command with their defaults. Of google-research/albert's flags all are known; some have an effect no more
([which](coming-from-google-albert.md#flag-by-flag)).""",
    ),
    Group(
        "Reading a corpus",
        ("corpus/",),
        """
Text that is to become a vocabulary or training data can't be read. The sentence names the file, and of a bad line its number.
`--on_bad_text=skip` or `replace` goes on where single lines are bad; a file that mostly is has another encoding or another
form than its name says. Korean files of older Windows programs are CP949: `iconv -f CP949 -t UTF-8 old.txt > new.txt`
([forms of input](pretraining_data.md#input)).""",
    ),
    Group(
        "Vocabularies and tokenizers",
        ("tokenization/", "cli/build_vocab.py", "cli/tokenizer_flags.py"),
        """
A vocabulary, a `tokenizer.json` or a SentencePiece model is broken, is of another kind than the flags say, or contradicts what lies
beside it. A tokenizer belongs to its data and its model: don't change switches afterwards, but build a vocabulary with them
([switches](tokenizer.md#what-happens-to-a-text)). From Python, arguments that contradict each other.""",
    ),
    Group(
        "Making training data",
        ("pretraining_data/build/", "cli/create_pretraining_data.py"),
        """
The shards can't be made, or not where they should go. What was there before is as it was. After anything but a bad line of text the
same command with `--resume` goes on where it was ([more](pretraining_data.md#output)).""",
    ),
    Group(
        "Reading training data",
        ("pretraining_data/",),
        """
Shards and manifest don't go together, are damaged, unfinished or of a version whose labels were told by lengths, or don't fit the model
or the flags. Make them anew in one go; `--on_damaged_shard=skip` trains without damaged ones
([more](pretraining.md#the-order-of-examples)).""",
    ),
    Group(
        "Model and configuration",
        ("config.py", "modeling/", "objectives/"),
        """
`albert_config.json` has a key or a value that no model can have, the inputs of a model are not what it takes, or weights are of another
shape ([keys and inputs](model.md)).""",
    ),
    Group(
        "Training: settings and optimizer",
        (
            "optimization/",
            "training/settings.py",
            "training/devices/",
            "cli/training_flags.py",
            "cli/run_pretraining.py",
            "pretraining/",
        ),
        """
Numbers of steps, batch sizes, rates or devices don't go together. Batch sizes are over all devices, and each is divided by the number of
replicas and of `--gradient_accumulation_steps` ([batches](pretraining.md#batches)). A TPU that can't be reached is mostly one that
another process holds, or an installation with two TensorFlows ([traps](tpu.md#known-traps-and-what-guards-against-each)).""",
    ),
    Group(
        "Training: folder and checkpoints",
        ("training/", "checkpoint_files.py", "cli/run_flags.py", "cli/model_files.py"),
        """
`--output_dir` holds another run, or one that was told something else; a checkpoint is damaged, missing or of another model; or another
process is training there. Leave out the flag that is named, and the run's own value is taken; for other values take another folder, and
begin from this one with `--init_checkpoint` ([stopping and going on](pretraining.md#stopping-and-going-on)). Where steps were not finite
the batches lie in the folder ([more](pretraining.md#when-something-goes-wrong)).""",
    ),
    Group(
        "Fine-tuning: files and tasks",
        (
            "finetuning/",
            "cli/finetuning_command.py",
            "cli/run_classifier.py",
            "cli/run_ner.py",
            "cli/run_race.py",
            "cli/run_squad.py",
        ),
        """
A labelled file is not what the task reads, by file and line; labels are wrong or too few; or lengths leave no room. `--on_bad_row=skip`
leaves bad rows out and counts them. What each task reads: [labels and scores](classification.md#data),
[answers](question_answering.md#data), [entities](entities.md), [multiple choice](multiple_choice.md#data).""",
    ),
    Group(
        "Other libraries' checkpoints",
        ("interchange/", "cli/convert_checkpoint.py", "cli/publish_model.py"),
        """
A checkpoint can't be read, asks for something that our models don't compute, or can't be said in the other format. Nothing was
written ([what can](checkpoints.md)).""",
    ),
    Group(
        "Asking a model",
        ("serving/", "cli/predict.py", "cli/serve.py", "cli/playground.py", "cli/export_model.py"),
        """
The folder was never fine-tuned or exported, a line can't be answered, or a library that is needed is missing. What `serve.py` answers with
codes 400, 404, 408, 413 and 503 is among these sentences ([more](serving.md)).""",
    ),
    Group(
        "Planning a TPU",
        ("tpu/", "cli/plan_tpu.py"),
        """
The TPU's compiler is not installed, refuses the step, or says that it doesn't fit ([more](tpu.md#what-fits-before-anything-is-rented)).""",
    ),
    Group("The demo", ("cli/demo.py",), "`make demo` keeps what is in its folder unless it made it itself."),
)
