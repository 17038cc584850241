"""What exported models can be asked: one file a kind of question, and its line in `SIGNATURES`."""

from albert_tf.errors import InputError
from albert_tf.exports import DEFAULT
from albert_tf.finetuning import (
    Classification,
    ConditionalQuestionAnswering,
    Entities,
    MultiLabel,
    QuestionAnswering,
    Regression,
)
from albert_tf.serving.loading import TrainedModel
from albert_tf.serving.signatures.answers import AnswerSignatures
from albert_tf.serving.signatures.base import Signatures
from albert_tf.serving.signatures.entities import EntitySignatures
from albert_tf.serving.signatures.labels import LabelSetSignatures, LabelSignatures, ScoreSignatures
from albert_tf.serving.signatures.pretrained import PretrainedSignatures

# By what a model was fine-tuned for.
SIGNATURES: dict[type, type[Signatures]] = {
    Classification: LabelSignatures,
    MultiLabel: LabelSetSignatures,
    Regression: ScoreSignatures,
    QuestionAnswering: AnswerSignatures,
    ConditionalQuestionAnswering: AnswerSignatures,
    Entities: EntitySignatures,
}


def make_signatures(trained: TrainedModel) -> Signatures:
    """Returns what a model can be asked.

    Raises:
        InputError: Models for its task can't be exported.
    """
    if trained.task is None:
        return PretrainedSignatures(trained)
    if type(trained.task) not in SIGNATURES:
        raise InputError(
            f"a model fine-tuned for {type(trained.task).__name__} can't be exported; albert_tf.load(folder).predict "
            "asks it in Python"
        )
    return SIGNATURES[type(trained.task)](trained)


__all__ = ["DEFAULT", "SIGNATURES", "Signatures", "make_signatures"]
