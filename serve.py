"""Serves an exported model over HTTP, as TensorFlow Serving does: raw Korean strings in, answers out.

python serve.py --model_dir=served/nsmc --port=8501
"""

from albert_tf.cli.serve import run

if __name__ == "__main__":
    run()
