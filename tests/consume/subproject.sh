#!/bin/sh
# subproject.sh LIBRARIES COMPILER SOURCE WORK OPTIONS: builds a Meson project that has lade as a
# subproject, with a program for each of the libraries. OPTIONS are the project's for lade.
set -eu
libraries=$1 compiler=$2 source=$3 work=$4 options=$5
rm -rf "$work"
mkdir -p "$work/project/subprojects"
cp "$source"/tests/consume/*.cpp "$source"/tests/consume/project/meson* "$work/project"
ln -s "$source" "$work/project/subprojects/lade"
# lade's own sources in a few files, which takes half the time.
CXX=$compiler meson setup --buildtype=plain --unity=subprojects --unity-size=8 \
  "$work/build" "$work/project" -Dlibraries="$(echo "$libraries" | tr ' ' ,)" -Dlade="$options"
meson compile -C "$work/build"
for library in $libraries; do
  "$work/build/$library" "$source/tests/data/photos/cricket-1345065.jpg"
done
