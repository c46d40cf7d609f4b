#!/usr/bin/env bash
# nvjpeg_declarations.sh SOURCE TOOLKIT TEST COMPILER...: lade's declarations of nvJPEG agree with
# its header, and its library has all functions that lade loads. Both are in the package
# nvidia-nvjpeg of Python.
set -euo pipefail
source=$1 toolkit=$2 test=$3
shift 3
[[ -n ${LADE_PACKAGES_PYTHON:-} ]] || { echo 'LADE_PACKAGES_PYTHON is not set'; exit 77; }
packages=$("$LADE_PACKAGES_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
header=$(find "$packages/nvidia" -name nvjpeg.h -print -quit 2> /dev/null) || true
[[ -n $header ]] || { echo 'there is no package nvidia-nvjpeg'; exit 77; }
"$@" -std=c++20 -fsyntax-only -isystem "$(dirname "$header")" -isystem "$toolkit/include" "$source"
library=$(dirname "$(dirname "$header")")/lib
printed=$(LD_LIBRARY_PATH=$library "$test" '--gtest_filter=Nvjpeg.*')
grep -q 'nvJPEG is loaded' <<< "$printed" || { printf '%s\n' "$printed"; exit 1; }
