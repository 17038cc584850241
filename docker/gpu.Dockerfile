# albert_tf on NVIDIA GPUs. Written to be read: the project's tests don't build it.
#
#   docker build -f docker/gpu.Dockerfile -t albert_tf:gpu .
#   docker run --rm --gpus all -v "$PWD:/work" albert_tf:gpu albert-tf run-pretraining --flagfile=... --output_dir=run
#
# CUDA and cuDNN come as Python packages with tensorflow[and-cuda], of the versions that this TensorFlow was built with;
# the host needs a driver and the NVIDIA Container Toolkit, and the image no CUDA of its own.

FROM python:3.12-slim AS wheel
RUN pip install --no-cache-dir build
COPY . /source
RUN python -m build --wheel --outdir /wheel /source

FROM python:3.12-slim
COPY requirements.txt /tmp/
RUN pip install --no-cache-dir "tensorflow[and-cuda]" -c /tmp/requirements.txt \
    && pip install --no-cache-dir -r /tmp/requirements.txt
COPY --from=wheel /wheel /wheel
RUN pip install --no-cache-dir "$(ls /wheel/*.whl)[vocab,parquet,plot,metrics]" -c /tmp/requirements.txt

RUN useradd --create-home albert
USER albert
WORKDIR /work
# Says which GPUs TensorFlow sees.
CMD ["python", "-c", "import tensorflow as tf; print(tf.config.list_physical_devices('GPU'))"]
