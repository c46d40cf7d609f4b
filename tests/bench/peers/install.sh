#!/bin/sh
# Installs the loaders that lade is compared with, as far as this machine allows:
#   - PyTorch and torchvision from the distribution's packages, for its own Python;
#   - SPDL and OpenCV from PyPI, in a virtual environment of their own (they want a newer NumPy).
# Usage: install.sh [DIRECTORY [PEER...]], standard build/peers and pytorch spdl opencv. What cannot
# be had is said and left out.
set -u
directory=${1:-build/peers}
[ $# -gt 0 ] && shift
peers=${*:-pytorch spdl opencv}
python=/usr/bin/python3

missing() { echo "not installed: $1" >&2; }
wanted() { case " $peers " in *" $1 "*) ;; *) false ;; esac }

if wanted pytorch && ! $python -c 'import torch, torchvision' 2>/dev/null; then
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
if wanted spdl; then
  "$directory/bin/pip" install --quiet spdl spdl_io numpy || missing "SPDL"
fi
if wanted opencv; then
  "$directory/bin/pip" install --quiet opencv-python-headless numpy || missing "OpenCV"
fi
