"""Converts checkpoints from and to Google's TF1 format, Hugging Face's safetensors and KerasHub's presets.

python convert_checkpoint.py --from=huggingface --to=albert_tf --input_path=downloaded --output_dir=my_model
"""

from albert_tf.cli.convert_checkpoint import run

if __name__ == "__main__":
    run()
