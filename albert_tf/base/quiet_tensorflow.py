"""TensorFlow, imported without its messages; parts of the library that users import by themselves begin with this."""

from albert_tf.base.startup import import_tensorflow

import_tensorflow()
