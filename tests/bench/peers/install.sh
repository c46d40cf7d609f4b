#!/bin/sh
# Installs the loaders that lade is compared with from PyPI, each in a virtual environment of its
# own: their dependencies exclude each other.
# Usage: install.sh DIRECTORY [PEER...], by default all: torch dali tensorflow spdl opencv
# archives stores.
# Skips what is installed. Ends with status 1 if a peer cannot be installed, after trying all.
set -u
directory=${1:?usage: install.sh DIRECTORY [PEER...]}
shift
[ $# -gt 0 ] || set -- torch dali tensorflow spdl opencv archives stores
status=0

# install PEER MODULES PACKAGES...: MODULES are what the peer's program imports.
install() {
  peer=$1 modules=$2
  shift 2
  "$directory/$peer/bin/python" -c "import $modules" 2>/dev/null && return
  if ! python3 -m venv "$directory/$peer"; then
    echo "install.sh: no virtual environments here (Debian and Ubuntu: python3-venv)" >&2
    status=1
  elif ! "$directory/$peer/bin/pip" install --quiet "$@"; then
    echo "install.sh: not installed: $peer" >&2
    status=1
  fi
}

for peer; do
  case $peer in
    torch) install torch torch,torchvision torch torchvision numpy ;;
    dali) install dali nvidia.dali nvidia-dali-cuda120 numpy ;;
    tensorflow) install tensorflow tensorflow tensorflow-cpu ;;
    spdl) install spdl spdl.io,spdl.pipeline spdl spdl_io numpy ;;
    opencv) install opencv cv2 opencv-python-headless numpy ;;
    archives)
      install archives spdl.io,webdataset,soundfile,tfrecord \
        spdl_io webdataset soundfile tfrecord numpy
      ;;
    stores)
      install stores boto3,obstore,pyarrow,s3torchconnectorclient \
        boto3 obstore pyarrow s3torchconnectorclient
      ;;
    *)
      echo "install.sh: no peer '$peer'" >&2
      status=1
      ;;
  esac
done
exit $status
