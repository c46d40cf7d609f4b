#!/bin/sh
# subproject.sh COMPILER SOURCE WORK: builds a Meson project that has lade as a subproject.
set -eu
compiler=$1 source=$2 work=$3
rm -rf "$work"
mkdir -p "$work/project/subprojects"
cp "$source"/tests/consume/*.cpp "$source/tests/consume/project/meson.build" "$work/project"
ln -s "$source" "$work/project/subprojects/lade"
CXX=$compiler meson setup "$work/build" "$work/project"
meson compile -C "$work/build"
"$work/build/trainer"
