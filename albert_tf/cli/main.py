"""The command `albert-tf`: asks a model, lists the other commands, and runs them; so it starts without TensorFlow."""

import argparse
import difflib
import inspect
import sys

import albert_tf
from albert_tf.api import SHIPPED_MODEL
from albert_tf.asking.model import Model
from albert_tf.base.errors import InputError
from albert_tf.base.files import to_json
from albert_tf.base.shipped_files import shipped_path
from albert_tf.base.startup import end_in_one_line_if_interrupted, warn_in_one_line
from albert_tf.base.texts import MASK, OPTIONS
from albert_tf.cli.commands import COMMANDS, find_command

# The purpose of each stands before it, for Hangul is not of one width everywhere.
_EXAMPLES = f"""
  guess what is missing   albert-tf "배우들의 연기가 정말 {MASK}."
  use your own model      albert-tf --model=run/my_classifier "정말 좋다"
"""
_USAGE = """albert-tf [--model=FOLDER] [--top_k=5] [--json] TEXT [TEXT ...]
       albert-tf STAGE --flags"""


def overview() -> str:
    """Returns the help of `albert-tf`, with a line for each command."""
    width = max(len(stage) for stage, *_ in COMMANDS)
    lines = [f"  albert-tf {stage:{width}}  {what}" for stage, _, what in COMMANDS]
    return "\n".join(
        [
            "albert_tf: ALBERT for Korean. Try a model:",
            _EXAMPLES,
            "The stages of making one, in order (albert-tf STAGE --help shows the flags of a stage):",
            "",
            *lines,
            "",
            "In Python: import albert_tf; help(albert_tf). Documents: docs/index.md.",
        ]
    )


def run() -> None:
    arguments = sys.argv[1:]
    stage = arguments[0].replace("_", "-").removesuffix(".py") if arguments else None
    if stage in [each for each, *_ in COMMANDS]:
        sys.argv = [f"albert-tf {stage}", *arguments[1:]]
        command = find_command(stage)
        sys.modules["__main__"].__doc__ = inspect.getdoc(command)  # --helpfull begins with it
        command()
        return
    end_in_one_line_if_interrupted()
    warn_in_one_line()
    try:
        if arguments:
            _check_is_no_stage(*arguments)
        options = _parser().parse_args()
        if not options.texts:
            print(overview())
            return
        if options.model == SHIPPED_MODEL:
            _check_is_for_pretrained(options.texts)  # before it is loaded
        model = albert_tf.load(options.model)
        print(*answers(model, options.texts, options.top_k, options.json), sep="\n")
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def files() -> None:
    """Prints where the included files lie, at once, so without TensorFlow and absl's flags."""
    parser = argparse.ArgumentParser(description="Prints the path of a file that albert_tf includes.")
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        help="such as models/albert_ko_small or configs/recipes/ko_small.cfg; without it, the folder that holds all",
    )
    try:
        print(shipped_path(parser.parse_args().name))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _parser():
    parser = argparse.ArgumentParser(
        prog="albert-tf",
        description=overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=_USAGE,
        allow_abbrev=False,
    )
    parser.add_argument("texts", nargs="*", metavar="TEXT", help=f"text with {MASK}, or what the model reads")
    parser.add_argument("--model", default=SHIPPED_MODEL, help="any folder with a model; by default the small one")
    parser.add_argument("--top_k", type=int, help=f"number of guesses for each {MASK}; by default 5")
    parser.add_argument("--version", action="version", version=f"albert_tf {albert_tf.__version__}")
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each answer")
    return parser


def _check_is_no_stage(first, *rest):
    alike = difflib.get_close_matches(first.replace("_", "-"), [stage for stage, *_ in COMMANDS], 1, cutoff=0.8)
    if alike and all(argument.startswith("--") for argument in rest[:1]):
        raise InputError(f"there is no stage {first}; did you mean {alike[0]}?")


def _check_is_for_pretrained(texts):
    masked = [MASK in text for text in texts]
    if any(masked) and not all(masked):
        raise InputError(f'a text with spaces needs quotation marks around it: albert-tf "{" ".join(texts)}"')
    if not any(masked) and len(texts) != 2:
        raise InputError(
            f"write {MASK} where a piece of the text is missing, give two texts to compare, or name a "
            "fine-tuned model with --model"
        )


def answers(model: Model, texts: list[str], top_k: int | None = None, as_json: bool = False) -> list[str]:
    """Returns a model's answers for texts, as lines to print."""
    fills_masks = "fill_mask" in model.abilities and any(MASK in text for text in texts)
    if not fills_masks and top_k is not None:
        raise InputError(f"--top_k={top_k} works only where {MASK} is filled in; leave it out")
    if "predict" in model.abilities:
        return _predictions(model, texts, as_json)
    if "generate" in model.abilities and len(texts) == 1:
        (answer,) = model.generate(texts)
        return [to_json({"input": texts[0], **answer}) if as_json else answer["text"]]
    if "find_replaced" in model.abilities and len(texts) == 1 and MASK not in texts[0]:
        (pieces,) = model.find_replaced(texts)
        if as_json:
            return [to_json({"text": texts[0], "pieces": pieces})]
        return [texts[0], *(f"  {_percent(piece['probability'])}  {piece['text']}" for piece in pieces)]
    if all(MASK in text for text in texts):
        guesses = model.fill_mask(texts, **({} if top_k is None else {"top_k": top_k}))
        if as_json:
            return [to_json({"text": text, "guesses": found}) for text, found in zip(texts, guesses)]
        return [line for text, found in zip(texts, guesses) for line in _show_guesses(text, found)]
    _check_is_for_pretrained(texts)
    similarity = float(model.similarity([tuple(texts)])[0])
    if as_json:
        return [to_json({"texts": texts, "similarity": similarity})]
    return [f"{similarity:.2f}  cosine of the two vectors, 1 for equal texts"]


def _show_guesses(text, found):
    lines = [text]
    for number, guesses in enumerate(found, start=1):
        if len(found) > 1:
            lines.append(f"  {MASK} number {number}:")
        lines += [f"  {_percent(guess['probability'])}  {guess['text']}" for guess in guesses]
    return lines


def _predictions(model, texts, as_json):
    fields = model.task.input_fields
    if len(fields) == 1:
        inputs = texts
    elif fields[-1] == OPTIONS and len(texts) > len(fields):
        inputs = [(*texts[: len(fields) - 1], texts[len(fields) - 1 :])]
    elif len(texts) == len(fields):
        inputs = [tuple(texts)]
    else:
        raise InputError(f"this model reads {' and '.join(fields)}; give each as a separate text")
    predictions = model.predict(inputs)
    if as_json:
        return [to_json({"input": asked, **prediction}) for asked, prediction in zip(inputs, predictions)]
    return [line for asked, prediction in zip(inputs, predictions) for line in _show_prediction(asked, prediction)]


def _show_prediction(asked, prediction):
    """Returns lines for one input: its answer, or the labels, the most probable first."""
    lines = [asked if isinstance(asked, str) else " / ".join(map(str, asked))]
    if "probabilities" in prediction:
        shares = sorted(prediction["probabilities"].items(), key=lambda each: -each[1])
        return lines + [f"  {_percent(share)}  {label}" for label, share in shares]
    if "entities" in prediction:
        found = [f"  {each['type']}  {each['text']} ({each['begin']}-{each['end']})" for each in prediction["entities"]]
        return lines + (found or ["  no entity"])
    if "score" in prediction and "text" not in prediction:
        return [*lines, f"  {prediction['score']:.4g}"]
    return [*lines, f"  {prediction['text'] or 'no answer'}"]


def _percent(share):
    return f"{share:6.1%}"
