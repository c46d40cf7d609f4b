#!/bin/sh
# installed.sh PACKAGE COMPILER SOURCE WORK BUILD: installs lade under WORK, then builds a program
# against it, by pkg-config and by CMake. The place differs from the configured prefix: packages
# can be moved.
set -eu
package=$1 compiler=$2 source=$3 work=$4 build=$5
photo=$source/tests/data/photos/cricket-1345065.jpg
rm -rf "$work"
mkdir -p "$work"
meson install -C "$build" --no-rebuild --quiet --destdir "$work/root"
prefix=$(dirname "$(find "$work/root" -type d -name include)")
libraries=$(dirname "$(find "$prefix" -name 'liblade.*' | head -n 1)")

export PKG_CONFIG_PATH="$libraries/pkgconfig"
case $(pkg-config --cflags "$package") in
  *-std=*) echo "$package.pc sets the language" >&2 && exit 1 ;;
esac
# shellcheck disable=SC2046  # the flags are words
$compiler -std=c++20 "$source/tests/consume/$package.cpp" "$source/tests/consume/model.cpp" \
  $(pkg-config --cflags --libs "$package") -o "$work/trainer"
LD_LIBRARY_PATH=$libraries "$work/trainer" "$photo"

unset PKG_CONFIG_PATH
CXX=$compiler cmake -G Ninja -S "$source/tests/consume/project" -B "$work/cmake" \
  -D packages="$package" -D CMAKE_PREFIX_PATH="$prefix"
cmake --build "$work/cmake"
"$work/cmake/$package-trainer" "$photo"
