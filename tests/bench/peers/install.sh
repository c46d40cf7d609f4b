#!/bin/sh
# Installs the loaders that lade is compared with from PyPI, each in a virtual environment of its
# own: their dependencies exclude each other.
# Usage: install.sh DIRECTORY [PEER...], by default all: torch dali tensorflow spdl opencv
# archives stores video.
# Skips what is installed. Ends with status 1 if a peer cannot be installed, after trying all.
set -u
directory=${1:?usage: install.sh DIRECTORY [PEER...]}
shift
[ $# -gt 0 ] || set -- torch dali tensorflow spdl opencv archives stores video
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
    video)
      install video torchcodec,av,decord,spdl.io,spdl.pipeline,soundfile \
        torch==2.15.0 torchcodec==0.17.0 av==18.1.0 eva-decord==0.6.1 spdl_io==0.8.0 \
        spdl_core==0.8.0 soundfile==0.14.0 numpy==2.4.6
      ;;
    *)
      echo "install.sh: no peer '$peer'" >&2
      status=1
      ;;
  esac
done
exit $status
