#!/bin/sh
# subproject.sh PACKAGE COMPILER SOURCE WORK: builds a Meson project that has lade as a subproject.
set -eu
package=$1 compiler=$2 source=$3 work=$4
rm -rf "$work"
mkdir -p "$work/project/subprojects"
cp "$source"/tests/consume/*.cpp "$source"/tests/consume/project/meson* "$work/project"
ln -s "$source" "$work/project/subprojects/lade"
# lade's own sources in a few files, which takes half the time.
CXX=$compiler meson setup --buildtype=plain --unity=subprojects --unity-size=8 \
  "$work/build" "$work/project" -Dpackage="$package"
meson compile -C "$work/build"
"$work/build/trainer" "$source/tests/data/photos/cricket-1345065.jpg"
