#!/bin/sh
# header_only.sh LIBRARIES COMPILER SOURCE WORK LINK FLAGS OBJECTS...: programs from three files and
# lade's headers, one for each of the libraries. OBJECTS are what is compiled of lade's
# implementations, LINK the flags for the linker.
set -eu
libraries=$1 compiler=$2 source=$3 work=$4 link=$5 flags=$6
shift 6
mkdir -p "$work"

# compile NAME: an object of a file beside this script.
compile() {
  # shellcheck disable=SC2086  # the flags are words
  $compiler -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I "$source/include" $flags \
    -c "$source/tests/consume/$1.cpp" -o "$work/$1.o"
}

compile model
for library in $libraries; do
  compile "$library"
  # shellcheck disable=SC2086  # the flags are words
  $compiler $flags "$work/$library.o" "$work/model.o" "$@" $link -o "$work/$library"
  "$work/$library" "$source/tests/data/photos/cricket-1345065.jpg"
done
