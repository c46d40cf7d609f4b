#!/bin/sh
# installed.sh COMPILER SOURCE WORK BUILD: installs lade under WORK, then builds a program against
# it, by pkg-config and by CMake. The place differs from the configured prefix: packages move.
set -eu
compiler=$1 source=$2 work=$3 build=$4
rm -rf "$work"
mkdir -p "$work"
meson install -C "$build" --no-rebuild --quiet --destdir "$work/root"

PKG_CONFIG_PATH=$(dirname "$(find "$work/root" -name lade.pc)")
export PKG_CONFIG_PATH
case $(pkg-config --cflags lade) in *-std=*) echo "lade.pc sets the language" >&2 && exit 1 ;; esac
# shellcheck disable=SC2046  # the flags are words
$compiler -std=c++20 "$source/tests/consume/trainer.cpp" "$source/tests/consume/model.cpp" \
  $(pkg-config --cflags --libs lade) -o "$work/trainer"
LD_LIBRARY_PATH=$PKG_CONFIG_PATH/.. "$work/trainer"

unset PKG_CONFIG_PATH
CXX=$compiler cmake -G Ninja -S "$source/tests/consume/project" -B "$work/cmake" \
  -D CMAKE_PREFIX_PATH="$(dirname "$(find "$work/root" -type d -name include)")"
cmake --build "$work/cmake"
"$work/cmake/trainer"
