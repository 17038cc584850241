"""What is to be decided of objectives, as flags."""

from absl import flags

from albert_tf.cli.flag_groups import in_helpfull
from albert_tf.objectives import OBJECTIVES, all_settings

_DEFINE = {bool: flags.DEFINE_bool, float: flags.DEFINE_float, int: flags.DEFINE_integer, str: flags.DEFINE_string}


@in_helpfull()
def define_objective_flags() -> None:
    """Defines a flag for each setting of an objective."""
    for setting in all_settings():
        _DEFINE[type(setting.default)](setting.name, setting.default, setting.help)


def objective_flags() -> list[str]:
    """Returns the names of these flags."""
    return [setting.name for setting in all_settings()]


def model_flags(name: str | None = None) -> list[str]:
    """Returns the names of those flags that name models, of one objective or of all."""
    known = all_settings() if name is None else OBJECTIVES[name].settings if name in OBJECTIVES else ()
    return [setting.name for setting in known if setting.names_model]


def objective_settings(given, name: str) -> dict:
    """Returns the settings of an objective, and those that were given though another one has them.

    Args:
        given: What `resolved_flags` returned, perhaps with settings of a run.
        name: Of the objective.
    """
    known = {setting.name for setting in OBJECTIVES[name].settings} if name in OBJECTIVES else set()
    return {each: getattr(given, each) for each in objective_flags() if each in known or each in given.given}
