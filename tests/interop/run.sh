#!/bin/sh
# Files there and back between Eddy and TensorFlow, Keras, NumPy and safetensors. $1 is Eddy's side
# (interop.c, built); PEERS the Python that has the others, else $EDDY_PYTHON, else whichever is
# found. Takes about five minutes, two of them for large tensors, which are left out where 8 GiB
# of disk and of memory are not free.
set -u
here=$(dirname "$0")

has_all() {
    command -v "$1" > /dev/null && "$1" -c '
import importlib.util, sys
sys.exit(any(importlib.util.find_spec(name) is None for name in ("tensorflow", "keras", "numpy", "safetensors")))' 2> /dev/null
}

python=
for candidate in ${PEERS:-${EDDY_PYTHON:-} python3}; do
    has_all "$candidate" && python=$candidate && break
done
if [ -z "$python" ]; then
    echo "interop: no Python with tensorflow, keras, numpy and safetensors${PEERS:+ is $PEERS}. Make one:" >&2
    echo "    python3 -m venv DIR && DIR/bin/pip install tensorflow safetensors && make interop PEERS=DIR/bin/python" >&2
    exit 1
fi

folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM
# Eddy's side leaves its own lists to the system; a sanitized library must not be blamed for them.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}"
# TensorFlow's oneDNN kernels divide by zero in a pool of volumes (2.21, Keras' AdaptiveMaxPooling3D).
CUDA_VISIBLE_DEVICES='' TF_ENABLE_ONEDNN_OPTS=0 TF_CPP_MIN_LOG_LEVEL=3 PYTHONDONTWRITEBYTECODE=1 "$python" "$here/interop.py" "$1" "$folder" 2> "$folder/stderr"
code=$?
# What TensorFlow says while it starts is of interest only if something failed.
[ $code -eq 0 ] || tail -n 40 "$folder/stderr" >&2
exit $code
