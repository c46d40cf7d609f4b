#!/bin/sh
# Installs the loaders that lade is compared with, as far as this machine allows:
#   - PyTorch and torchvision from the distribution's packages, for its own Python;
#   - SPDL and OpenCV from PyPI, in a virtual environment of their own (they want a newer NumPy).
# Usage: install.sh [DIRECTORY], standard build/peers. What cannot be had is said and left out.
set -u
directory=${1:-build/peers}
python=/usr/bin/python3

missing() { echo "not installed: $1" >&2; }

if ! $python -c 'import torch, torchvision' 2>/dev/null; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get install -y --no-install-recommends python3-torch python3-torchvision
  fi
  $python -c 'import torch, torchvision' 2>/dev/null ||
    missing "PyTorch (Debian and Ubuntu: apt-get install python3-torch python3-torchvision)"
fi

if ! $python -m venv "$directory"; then
  missing "SPDL, OpenCV (Debian and Ubuntu: apt-get install python3-venv)"
  exit 0
fi
"$directory/bin/pip" install --quiet spdl spdl_io numpy || missing "SPDL"
"$directory/bin/pip" install --quiet opencv-python-headless numpy || missing "OpenCV"
