"""The objectives of pre-training by name, and the packings that each takes."""

import collections.abc
import types
import typing

from albert_tf.base.errors import InputError
from albert_tf.base.settings import Setting, Settings, settings_of
from albert_tf.config import AlbertConfig
from albert_tf.objectives.objective import Objective, check_languages
from albert_tf.pretraining_data import PACKINGS
from albert_tf.pretraining_data.entities import KnownEntities
from albert_tf.pretraining_data.masking import MaskingOptions
from albert_tf.pretraining_data.packing import Packing

# Makes an objective of a model's config and, by name, what else `make_objective` knows.
MakeObjective = collections.abc.Callable[..., Objective]


class Registered(typing.NamedTuple):
    make: MakeObjective
    packings: tuple[str, ...]  # The names of those that it takes; the first is that of data which are made for it.
    settings: type[Settings] = Settings


OBJECTIVES: dict[str, Registered] = {}
# The objective where nothing says otherwise.
DEFAULT_OBJECTIVE = "albert"
_WITHOUT_POOLER, _CAUSAL = "roberta", "causal"


def register(name: str, make: MakeObjective, packings: list[str], settings: type[Settings] = Settings) -> None:
    """Gives an objective a name, by which every command knows it from then on.

    Args:
        name: The name.
        make: Returns the objective, given the model's config, and `settings`, `packing`, `masking`, `languages` and
            `entities` by name, as `make_objective` takes them: `def make(config, settings, **others)` suffices.
        packings: The names of the packings that it takes, the usual one first.
        settings: Its own settings: a frozen dataclass of `setting`s, which become flags.
    """
    OBJECTIVES[name] = Registered(make, tuple(packings), settings)


def settings_of_objectives() -> tuple[type[Settings], ...]:
    """Returns the settings of objectives, a class for each that has some."""
    return tuple(dict.fromkeys(known.settings for known in OBJECTIVES.values() if settings_of(known.settings)))


def own_settings(name: str | None) -> collections.abc.Mapping[str, Setting]:
    """Returns an objective's own settings by name; none for an unknown one."""
    return settings_of(OBJECTIVES[name].settings) if name in OBJECTIVES else {}


def what_was_learnt(settings: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Returns the settings of a run that tell its objective: the name, and the objective's own settings.

    Folders of models are left out, for they only matter in training. Nothing is returned for an unknown name.
    """
    name = settings.get("objective")
    if name not in OBJECTIVES:
        return {}
    own = [each for each, known in own_settings(name).items() if not known.names_model]
    return {each: settings[each] for each in ("objective", *own) if each in settings}


def default_objective(packing: Packing) -> str:
    """Returns the objective of a packing where none is chosen: the one that names it earliest among its packings."""
    takes_it = [name for name, known in OBJECTIVES.items() if packing.name in known.packings]
    return min(takes_it, key=lambda name: OBJECTIVES[name].packings.index(packing.name))


def usual_objective(config: AlbertConfig) -> str:
    """Returns the likely objective of a model that doesn't say its own: by `is_causal` and `pooler`."""
    if config.is_causal:
        return _CAUSAL
    return DEFAULT_OBJECTIVE if config.pooler else _WITHOUT_POOLER


def check_packing(name: str, packing: Packing) -> None:
    """Raises InputError if an objective does not take a packing."""
    if packing.name not in OBJECTIVES[name].packings:
        takes_it = [other for other, known in OBJECTIVES.items() if packing.name in known.packings]
        raise InputError(
            f"`objective={name}` needs examples packed as {' or '.join(OBJECTIVES[name].packings)}, but these "
            f"are packed as {packing.name}, for {' and '.join(takes_it)}; choose another objective"
        )


def make_objective(
    name: str | None,
    config: AlbertConfig,
    packing: Packing | None = None,
    settings: collections.abc.Mapping[str, typing.Any] = types.MappingProxyType({}),
    masking: MaskingOptions | None = None,
    languages: tuple[str, ...] | None = None,
    entities: KnownEntities | None = None,
) -> Objective:
    """Returns an objective by name.

    Args:
        name: Its name; None for the default of the packing.
        config: Hyper-parameters of the model.
        packing: Of the data; None for the objective's usual one.
        settings: Values of the objective's own settings, by name; the others have their defaults.
        masking: How records are masked; None where there are none, as for a plan.
        languages: Those of the data, in the order of their numbers; empty where the data don't say them, and None where
            there are no data.
        entities: Those that the model is to know; None where there are none, or no data.

    Raises:
        InputError: There is no such objective, it doesn't take the packing or a setting, or model and data don't have
            as many languages.
    """
    if name is None:
        name = default_objective(packing)
    if name not in OBJECTIVES:
        raise InputError(f"`objective={name}` is not known; use one of {', '.join(OBJECTIVES)}")
    packing = packing or PACKINGS[OBJECTIVES[name].packings[0]]
    check_packing(name, packing)
    if languages is not None:
        check_languages(config, languages)
    unknown = [each for each in settings if each not in own_settings(name)]
    if unknown:
        raise InputError(f"`{unknown[0]}` has no meaning for `objective={name}`; leave it out")
    objective = OBJECTIVES[name].make(
        config,
        settings=OBJECTIVES[name].settings(**settings),
        packing=packing,
        masking=masking or MaskingOptions(),
        languages=languages,
        entities=entities,
    )
    objective.name = name
    return objective
