#!/bin/sh
# header_only.sh COMPILER SOURCE WORK FLAGS...: a program from three files and lade's headers.
# Nothing of lade is built first, and no flag is asked for but the language.
set -eu
compiler=$1 source=$2 work=$3
shift 3
mkdir -p "$work"
cd "$work"

for file in trainer model implementation; do
  $compiler -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror "$@" \
    -c "$source/tests/consume/$file.cpp" -o $file.o
done
$compiler "$@" trainer.o model.o implementation.o -luring -pthread -o trainer
./trainer
