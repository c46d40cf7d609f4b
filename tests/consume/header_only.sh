#!/bin/sh
# header_only.sh LIBRARIES COMPILER SOURCE WORK IMPLEMENTATIONS NVCC KERNELS LINK FLAGS...: programs
# from three files and lade's headers, one for each of the libraries. Nothing of lade is built first,
# and no flag is asked for but the language. IMPLEMENTATIONS are the headers to include in one file,
# KERNELS those to include in a file for NVCC, LINK the flags for the linker.
set -eu
libraries=$1 compiler=$2 source=$3 work=$4 implementations=$5 nvcc=$6 kernels=$7 link=$8
shift 8
mkdir -p "$work"
cd "$work"

# shellcheck disable=SC2086  # the headers are words
printf '#include <%s>\n' $implementations > implementation.cpp
for file in implementation.cpp "$source/tests/consume/model.cpp"; do
  $compiler -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I "$source/include" "$@" \
    -c "$file"
done
objects=implementation.o
if [ -n "$kernels" ]; then
  # shellcheck disable=SC2086  # the headers are words
  printf '#include <%s>\n' $kernels > kernels.cu
  "$nvcc" -std=c++20 -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wshadow,-Wconversion,-Werror \
    -I "$source/include" -c kernels.cu
  objects="$objects kernels.o"
fi
for library in $libraries; do
  $compiler -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I "$source/include" "$@" \
    -c "$source/tests/consume/$library.cpp"
  # shellcheck disable=SC2086  # the objects and flags are words
  $compiler "$@" "$library.o" model.o $objects $link -o "$library"
  "./$library" "$source/tests/data/photos/cricket-1345065.jpg"
done
