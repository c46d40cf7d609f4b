#!/bin/sh
# subdirectory.sh LIBRARIES COMPILER SOURCE WORK VERSION: builds a CMake project that has lade as a
# subdirectory, with a program for each of the libraries. Before, it configures lade with options that
# are wrong, and without packages. Then it builds the program for the last library in a project that
# fetches lade.
set -eu
libraries=$1 compiler=$2 source=$3 work=$4 version=$5
rm -rf "$work"
mkdir -p "$work/core" "$work/nothing"
for package in liburing fmt; do
  cp "$(pkg-config --variable=pcfiledir $package)/$package.pc" "$work/core"
done

# configure NAME SOURCE OPTIONS...: makes the build directory NAME.
configure() {
  name=$1 tree=$2 status=0
  shift 2
  CXX=$compiler cmake -G Ninja -S "$tree" -B "$work/$name" "$@" > "$work/output" 2>&1 || status=$?
  cat "$work/output"
  return $status
}

# said TEXT: CMake has printed it, on any number of lines.
said() {
  tr -s '\n ' ' ' < "$work/output" | grep -qF "$1" || { echo "CMake does not say: $1" && exit 1; }
}

# refused NAME TEXT OPTIONS...: CMake does not accept the options. The error has the text.
refused() {
  name=$1 text=$2
  shift 2
  if configure "$name" "$source" "$@"; then echo "$name: CMake has accepted $*" && exit 1; fi
  said "$text"
}

refused value "LADE_HTTP is 'on'; it must be auto, enabled or disabled" -D LADE_HTTP=on
refused module 'cannot build the module av, missing: the module media' \
  -D LADE_MEDIA=disabled -D LADE_AV=enabled
(
  unset PKG_CONFIG_PATH
  export PKG_CONFIG_LIBDIR="$work/nothing"
  refused core 'cannot build the module core, missing: liburing, fmt>=9.1'
  export PKG_CONFIG_LIBDIR="$work/core"
  refused formats 'cannot build the module formats, missing: zlib, libzstd, libdeflate' \
    -D LADE_FORMATS=enabled
  configure auto "$source"
  said 'skips the module formats, missing: zlib, libzstd, libdeflate'
  if ! grep -x "CMAKE_PROJECT_VERSION:STATIC=$version" "$work/auto/CMakeCache.txt"; then
    echo "CMake has another version than Meson, $version" && exit 1
  fi
)

# consume NAME OPTIONS...: configures the project with the programs. All sources of a library are
# compiled at once, which takes less than half the time.
consume() {
  name=$1
  shift
  configure "$name" "$source/tests/consume/project" -D CMAKE_UNITY_BUILD=ON \
    -D CMAKE_UNITY_BUILD_BATCH_SIZE=0 -D packages="$(echo "$libraries" | tr ' ' ';')" "$@"
}

photo="$source/tests/data/photos/cricket-1345065.jpg"
consume build -D lade_source="$source"
cmake --build "$work/build"
for library in $libraries; do
  "$work/build/$library-trainer" "$photo"
done

tar -C "$source" --exclude-vcs --exclude='./build*' -czf "$work/lade.tar.gz" .
consume fetched -D lade_fetched="$work/lade.tar.gz"
test -f "$work/fetched/_deps/lade-src/include/lade/lade.hpp"
last=${libraries##* }
cmake --build "$work/fetched" --target "$last-trainer"
"$work/fetched/$last-trainer" "$photo"
