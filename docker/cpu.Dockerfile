# albert_tf on a CPU, with the server and the demo. Written to be read: the project's tests don't build it.
#
#   docker build -f docker/cpu.Dockerfile -t albert_tf .
#   docker run --rm -v "$PWD:/work" albert_tf albert-tf demo --output_dir=demo_output
#   docker run --rm -v "$PWD:/work" -p 8501:8501 albert_tf albert-tf serve --model_dir=served/nsmc --host=0.0.0.0

FROM python:3.12-slim AS wheel
RUN pip install --no-cache-dir build
COPY . /source
RUN python -m build --wheel --outdir /wheel /source

FROM python:3.12-slim
COPY requirements.txt /tmp/
# The pinned versions first: they change seldom, so that this layer is kept.
RUN pip install --no-cache-dir -r /tmp/requirements.txt
COPY --from=wheel /wheel /wheel
RUN pip install --no-cache-dir "$(ls /wheel/*.whl)[vocab,parquet,plot,metrics,serve]" -c /tmp/requirements.txt

# Nobody else's files should belong to root.
RUN useradd --create-home albert
USER albert
WORKDIR /work
CMD ["albert-tf", "files"]
