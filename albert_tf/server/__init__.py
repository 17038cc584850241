"""A server of exported models that speaks TensorFlow Serving's REST protocol, and needs no TensorFlow itself."""
