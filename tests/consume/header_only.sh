#!/bin/sh
# header_only.sh PACKAGE COMPILER SOURCE WORK FLAGS...: a program from three files and lade's
# headers. Nothing of lade is built first, and no flag is asked for but the language.
set -eu
package=$1 compiler=$2 source=$3 work=$4
shift 4
mkdir -p "$work"
cd "$work"

for file in "$package" model "$package-implementation"; do
  $compiler -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -I "$source/include" "$@" \
    -c "$source/tests/consume/$file.cpp" -o "$file.o"
done
libraries=-luring
[ "$package" = lade ] || libraries="$libraries -ljpeg -ltiff -lwebp -lwebpdemux -lavif -lz \
  -lavcodec -lavutil"
# shellcheck disable=SC2086  # the libraries are words
$compiler "$@" "$package.o" model.o "$package-implementation.o" $libraries -o trainer
./trainer "$source/tests/data/photos/cricket-1345065.jpg"
