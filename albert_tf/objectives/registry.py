"""The objectives of pre-training by name, and the packings that each takes."""

import typing

from albert_tf.config import AlbertConfig
from albert_tf.errors import InputError
from albert_tf.objectives.objective import Objective
from albert_tf.objectives.pretraining_loss import DataOptions, MakeObjective
from albert_tf.pretraining_data.packing import PACKINGS, Packing


class Registered(typing.NamedTuple):
    """An objective that a name stands for.

    Attributes:
        make: Makes it.
        packings: The names of the packings that it takes; the first is that of data which are made for it.
    """

    make: MakeObjective
    packings: tuple[str, ...]


OBJECTIVES: dict[str, Registered] = {}
# What is learnt where nothing says otherwise, and what the planner called it first.
DEFAULT_OBJECTIVE = "albert"
_WITHOUT_POOLER = "roberta"
EARLIER_NAMES = {"pretrain": DEFAULT_OBJECTIVE}


def register(name: str, make: MakeObjective, packings: list[str]) -> None:
    """Gives an objective a name, by which every command knows it from then on.

    Args:
        name: The name.
        make: Given the model's config and the `DataOptions`, returns the objective.
        packings: The names of the packings that it takes, the usual one first.
    """
    OBJECTIVES[name] = Registered(make, tuple(packings))


def default_objective(packing: Packing) -> str:
    """Returns what is learnt from a packing where nobody says otherwise: what has it among its first packings."""
    takes_it = [name for name, known in OBJECTIVES.items() if packing.name in known.packings]
    return min(takes_it, key=lambda name: OBJECTIVES[name].packings.index(packing.name))


def usual_objective(config: AlbertConfig) -> str:
    """Returns what a model that doesn't say it was pre-trained for, by whether it has what a second loss reads."""
    return DEFAULT_OBJECTIVE if config.pooler else _WITHOUT_POOLER


def check_packing(name: str, packing: Packing) -> None:
    """Raises InputError if an objective does not take a packing."""
    if packing.name not in OBJECTIVES[name].packings:
        takes_it = [other for other, known in OBJECTIVES.items() if packing.name in known.packings]
        raise InputError(
            f"`objective={name}` takes examples that are packed as {' or '.join(OBJECTIVES[name].packings)}, and not "
            f"as {packing.name}, which {' and '.join(takes_it)} take; choose another"
        )


def make_objective(
    name: str | None, config: AlbertConfig, packing: Packing | None = None, options: DataOptions | None = None
) -> Objective:
    """Returns an objective by name.

    Args:
        name: Its name; None for the default of the packing.
        config: Hyper-parameters of the model.
        packing: Of the data; None for the objective's usual one.
        options: Of the data.

    Raises:
        InputError: There is no such objective, or it doesn't take the packing.
    """
    if name is None:
        name = default_objective(packing)
    name = EARLIER_NAMES.get(name, name)
    if name not in OBJECTIVES:
        raise InputError(f"`objective={name}` is not known; take one of {', '.join(OBJECTIVES)}")
    packing = packing or PACKINGS[OBJECTIVES[name].packings[0]]
    check_packing(name, packing)
    objective = OBJECTIVES[name].make(config, options or DataOptions())
    objective.name = name
    if name == default_objective(packing):
        objective.former_name = _NAMES_IN_0_2.get(packing.name)
    return objective


# What runs of version 0.2 wrote down, by the packing of their data: the names of classes that are gone.
_NAMES_IN_0_2 = {**dict.fromkeys(PACKINGS, "AlbertPretraining"), "halves": "MatchingHalves"}
