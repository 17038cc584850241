"""Finding the answer to a question in a text: reading, windows, spans, metrics, and the task itself."""

from albert_tf.finetuning.question_answering.task import ConditionalQuestionAnswering, QuestionAnswering

__all__ = ["ConditionalQuestionAnswering", "QuestionAnswering"]
