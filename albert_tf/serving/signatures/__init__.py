"""The questions that exported models answer: a class for each form of answer, and its line in `SIGNATURES`."""

from albert_tf.asking.answers import DEFAULT, Answer, EntitiesAnswer, LabelAnswer, LabelsAnswer, ScoreAnswer, SpanAnswer
from albert_tf.base.errors import InputError
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures.base import Signatures
from albert_tf.serving.signatures.labels import LabelSignatures, LabelsSignatures, ScoreSignatures
from albert_tf.serving.signatures.pretrained import NUM_GUESSES, PretrainedSignatures
from albert_tf.serving.signatures.spans import AnswerSignatures
from albert_tf.serving.signatures.tags import EntitySignatures

# By how a task's answers are spelt.
SIGNATURES: dict[type[Answer], type[Signatures]] = {
    LabelAnswer: LabelSignatures,
    LabelsAnswer: LabelsSignatures,
    ScoreAnswer: ScoreSignatures,
    SpanAnswer: AnswerSignatures,
    EntitiesAnswer: EntitySignatures,
}


def make_signatures(trained: TrainedModel, num_guesses: int = NUM_GUESSES) -> Signatures:
    """Returns the signatures of a model, `num_guesses` for a mask; InputError if its task can't be exported."""
    if trained.task is None:
        return PretrainedSignatures(trained, num_guesses)
    if trained.task.kind.answer not in SIGNATURES:
        raise InputError(
            f"a model fine-tuned for {type(trained.task).__name__} can't be exported; ask it by albert_tf.load(folder)"
        )
    return SIGNATURES[trained.task.kind.answer](trained)


__all__ = ["DEFAULT", "SIGNATURES", "Signatures", "make_signatures"]
