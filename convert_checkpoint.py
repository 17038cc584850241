"""Writes a model for others: of ours a small folder to start from, or Google's, Hugging Face's or KerasHub's format.

python convert_checkpoint.py --input_path=run --output_dir=my_model
python convert_checkpoint.py --from=huggingface --to=albert_tf --input_path=downloaded --output_dir=my_model
"""

from albert_tf.cli.convert import convert_checkpoint

if __name__ == "__main__":
    convert_checkpoint()
