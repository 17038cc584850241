"""What a pre-trained folder can be asked, and why the rest can't be."""

from albert_tf.serving.loading import TrainedModel

# What a model must have been pre-trained to do, by what it is asked.
_LEARNT = {
    "fill_mask": "fill in what is missing",
    "score": "tell how probable pieces are",
    "choose": "tell how probable pieces are",
    "generate": "continue texts, as with objective=causal",
    "find_replaced": "find replaced pieces, as with objective=electra",
}


def lacking_abilities(loaded: TrainedModel) -> set[str]:
    """Returns the names of what a pre-trained model can't be asked."""
    there = {
        "fill_mask": loaded.guesses_pieces,
        "score": loaded.scores_texts,
        "choose": loaded.scores_texts,
        "generate": loaded.goes_on,
        "find_replaced": loaded.finds_replaced,
    }
    return {ability for ability, is_there in there.items() if not is_there}


def why_lacking(loaded: TrainedModel, ability: str) -> str | None:
    """Returns why a pre-trained model can't be asked something, a sentence without its subject; None of other tasks."""
    learnt = {
        "fill_mask": loaded.fills_masks,
        "score": loaded.fills_masks or loaded.predicts_next,
        "choose": loaded.fills_masks or loaded.predicts_next,
        "generate": loaded.predicts_next,
        "find_replaced": loaded.discriminates,
    }
    if ability not in learnt:
        return None
    if not learnt[ability]:
        return f"was not pre-trained to {_LEARNT[ability]}, and so it has no {ability}"
    if ability == "find_replaced":
        return "has no replaced_token_head, which finds replaced pieces"
    return "has no masked_lm_head, which guesses missing pieces"
