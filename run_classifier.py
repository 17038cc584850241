"""Fine-tunes a pre-trained model to label texts, evaluates it, and predicts.

python run_classifier.py --task_name=nsmc --data_dir=nsmc --init_checkpoint=run --output_dir=run/nsmc \\
    --do_train --do_eval --do_predict --max_seq_length=128 --num_train_epochs=3
"""

from albert_tf.cli.training import run_classifier

if __name__ == "__main__":
    run_classifier()
