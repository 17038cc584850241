"""A smaller model that begins with some layers of a larger one (DistilBERT; Sanh et al. 2019, section 3)."""

import itertools
import re

import tensorflow as tf

from albert_tf.base.errors import InputError
from albert_tf.config import AlbertConfig
from albert_tf.modeling.encoder import AlbertEncoder
from albert_tf.modeling.layers import named_variables
from albert_tf.modeling.models import AlbertForPreTraining
from albert_tf.modeling.pretrained import list_parts, load_weights, read_config, read_untrained

_SUB_LAYER = re.compile(r"encoder/(attention|feed_forward)_layers/(\d+)/")


def parse_layers(text: str) -> tuple[int, ...]:
    """Returns the layers that `student_layers` names, from 0; an InputError unless they are numbers that rise."""
    try:
        layers = tuple(map(int, text.split(",")))
    except ValueError:
        layers = (-1,)
    if layers[0] < 0 or any(low > high for low, high in itertools.pairwise(layers)):
        raise InputError(f"`student_layers={text}` must be layers of the teacher, from 0, in order, such as 0,2,4")
    return layers


def check_layers(config: AlbertConfig, teacher: AlbertConfig, layers: tuple[int, ...]) -> None:
    """Checks that the teacher has these layers and the student as many."""
    _check_depth(teacher, layers)
    if (config.num_hidden_layers, config.inner_group_num) != (len(layers), teacher.inner_group_num):
        raise InputError(
            f"`student_layers` names {len(layers)} layers of {teacher.inner_group_num} blocks, and the student has "
            f"{config.num_hidden_layers} of {config.inner_group_num}; make them equal in `albert_config_file`, or "
            "leave that out"
        )


def student_config(teacher: AlbertConfig, layers: tuple[int, ...]) -> AlbertConfig:
    """Returns the config of a model of some of a teacher's layers, which share weights as they do there.

    Where equal groups of layers can't express that, each layer has its own copy.
    """
    _check_depth(teacher, layers)
    groups = [layer * teacher.num_hidden_groups // teacher.num_hidden_layers for layer in layers]
    count, numbers = len(layers), sorted(set(groups))
    shares = [numbers[number * len(numbers) // count] for number in range(count)] == groups
    return teacher.replace(num_hidden_layers=count, num_hidden_groups=len(numbers) if shares else count)


def begin_with_layers(
    model: AlbertForPreTraining, layers: tuple[int, ...], folder: str, source: str
) -> tuple[str, list[str]]:
    """Assigns a model a teacher's weights: one of `layers` for each of its own, and all weights outside layers.

    A block that is applied several times begins as the first of the teacher's blocks that it stands for. Returns a line
    on the weights taken, and the names of variables that the teacher lacks or never trained.
    """
    config = read_config(folder, source)
    check_layers(model.config, config, layers)
    teacher = AlbertForPreTraining(config)
    variables = named_variables(teacher)
    loaded, _, _ = load_weights(folder, variables, source)
    trained = set(loaded) - read_untrained(folder)
    places, at_random = _places(model.encoder, teacher.encoder, layers), []
    for name, variable in named_variables(model).items():
        there = _SUB_LAYER.sub(lambda match: f"encoder/{match[1]}_layers/{places[match[1]][int(match[2])]}/", name)
        if there not in trained:
            at_random.append(name)
        elif variables[there].shape != variable.shape:
            raise InputError(
                f"`student_layers` takes {there} of {source}, which has the shape {variables[there].shape.as_list()}, "
                f"and {name} of the student has {variable.shape.as_list()}; make the configs equal but for the number "
                "of layers"
            )
        else:
            variable.assign(tf.convert_to_tensor(variables[there]))
    rest = f"; new, from random weights: {list_parts(at_random)}" if at_random else ""
    return f"beginning with layers {', '.join(map(str, layers))} of {folder}{rest}", at_random


def _places(student: AlbertEncoder, teacher: AlbertEncoder, layers):
    """Returns, for both kinds of sub-layers, the teacher's index by the student's."""
    inner = student.config.inner_group_num
    places = {"attention": {}, "feed_forward": {}}
    for number in range(student.config.num_blocks):
        layer, position = divmod(number, inner)
        of_student = student.sub_layers_of(number)
        of_teacher = teacher.sub_layers_of(layers[layer] * inner + position)
        for kind, own, other in zip(places, of_student, of_teacher):
            places[kind].setdefault(own, other)
    return places


def _check_depth(teacher, layers):
    if max(layers) >= teacher.num_hidden_layers:
        raise InputError(
            f"`student_layers` names layer {max(layers)}, and the teacher has {teacher.num_hidden_layers}, from 0 to "
            f"{teacher.num_hidden_layers - 1}"
        )
