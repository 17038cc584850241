"""What docs/concepts.md shows: where the parameters are, counted on real models, and the learning rate by the step."""

import pathlib

CONFIGS = pathlib.Path(__file__).resolve().parent.parent.parent / "configs"
MODELS = ("base", "large", "xlarge", "xxlarge")
# What the variables of a pre-training model belong to, by the beginnings of their names; the first that fits counts.
PARTS = {
    "embeddings, of size E": ("encoder/embeddings/",),
    "projection from E to H": ("encoder/embedding_hidden_mapping_in/",),
    "attention of the shared block": ("encoder/attention_layers/",),
    "feed-forward of the shared block": ("encoder/feed_forward_layers/",),
    "pooler and pre-training heads": ("",),
}


def parameters_by_part(model: str) -> dict[str, int]:
    """Returns how many parameters each part of a model of configs/ has, both pre-training heads included."""
    from albert_tf.config import AlbertConfig
    from albert_tf.modeling import AlbertForPreTraining
    from albert_tf.modeling.layers import named_variables

    config = AlbertConfig.from_json_file(str(CONFIGS / f"albert_{model}_v2.json"))
    counts = dict.fromkeys(PARTS, 0)
    for name, variable in named_variables(AlbertForPreTraining(config)).items():
        part = next(part for part, beginnings in PARTS.items() if name.startswith(beginnings))
        counts[part] += variable.shape.num_elements()
    return counts


def draw_parameters(path: pathlib.Path) -> None:
    """Draws, for each model, a bar of its parameters by part."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    counts = {model: parameters_by_part(model) for model in MODELS}
    left = [0.0] * len(MODELS)
    for part in PARTS:
        widths = [100 * counts[model][part] / sum(counts[model].values()) for model in MODELS]
        axes.barh(MODELS, widths, left=left, label=part, height=0.65)
        left = [begin + width for begin, width in zip(left, widths)]
    for row, model in enumerate(MODELS):
        axes.text(101, row, f"{sum(counts[model].values()):,}", va="center")
    axes.set(xlim=(0, 119), xlabel="share of the parameters, in percent (how many there are stands beside)")
    axes.set_xticks(range(0, 101, 20))
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    figure.savefig(path, dpi=110)


def draw_learning_rates(path: pathlib.Path) -> None:
    """Draws both schedules over a short run, so that the original's jump and first step can be seen."""
    import numpy as np
    from matplotlib.figure import Figure

    from albert_tf.optimization.schedule import SCHEDULE_CHOICES, LearningRateSchedule

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots()
    steps = np.arange(100)
    for kind, style in zip(SCHEDULE_CHOICES, ("-", "--")):
        schedule = LearningRateSchedule(peak=0.00176, num_train_steps=100, num_warmup_steps=20, kind=kind)
        axes.plot(steps, [float(schedule(step)) for step in steps], style, label=f"--schedule={kind}")
    axes.set(xlabel="step", ylabel="learning rate")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=110)
