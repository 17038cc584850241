"""What of a fine-tuned model other libraries, such as transformers, don't compute."""

from albert_tf.config import AlbertConfig
from albert_tf.finetuning import TASKS, FinetuningTask

# Tasks that read labels or numbers off a whole text.
OF_WHOLE_TEXTS = ("classify", "multi_label", "score", "race")


def not_computed_elsewhere(task: str, config: AlbertConfig) -> tuple[str, str] | None:
    """Returns what their models don't compute of a task, by its key, and how to train without; None if they do all."""
    if task in OF_WHOLE_TEXTS and config.classifier_pooling != "first":
        reason = "its models read a text's label off [CLS]"
        return f"classifier_pooling={config.classifier_pooling}: {reason}", "`pooling=first`"
    if task in ("squad", "squad_v2") and config.question_alignment != "none":
        reason = "its models read a text as it is"
        return f"question_alignment={config.question_alignment}: {reason}", "run_squad.py --question_alignment=none"
    if task == "tag" and config.character_ngrams:
        return "character_ngrams=true: its models read only pieces", "run_ner.py --nocharacter_ngrams"
    return None


def told_before_training(task: FinetuningTask) -> list[str]:
    """Returns sentences on what will keep a model from being converted for transformers, or from answering alike."""
    name = next((name for name, kind in TASKS.items() if type(task) is kind), "")
    found, doc_stride = not_computed_elsewhere(name, task.config), getattr(task, "doc_stride", None)
    sentences = []
    if found is not None:
        what, how = found
        how = how.strip("`")
        sentences.append(f"transformers can't express {what}; to convert this model for it later, train with {how}")
    if name == "multi_label":
        sentences.append("transformers has no thresholds for labels; with those of an evaluation the model stays here")
    if name in OF_WHOLE_TEXTS and doc_stride is not None:
        sentences.append(f"transformers has no windows (doc_stride={doc_stride}): there only the first one is read")
    return sentences
