"""Writes a model as a SavedModel that takes raw Korean strings, in the layout of TensorFlow Serving.

python export_model.py --model_dir=run/nsmc --output_dir=served/nsmc
"""

from albert_tf.cli.convert import export_model

if __name__ == "__main__":
    export_model()
