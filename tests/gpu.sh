#!/usr/bin/env bash
# gpu.sh PART: runs what `./dev gpu-programs` has built, on a machine with a GPU. It needs bash and
# the driver, and no network. Each part takes less than ten minutes:
#
#   about      what is there: the GPU, its driver, the libraries that are loaded at run time, torch
#   test       all tests of the module cuda, on the GPU and over a replaced driver
#   memcheck   the tests of the suites Gpu* under compute-sanitizer: memory errors and leaks
#   racecheck  the same: races of threads in shared memory
#   bench      the benchmarks, and how long the GPU is idle in a training
#
# The output begins with date, GPU, driver and commit, as docs/benchmarks.md records them.
set -uo pipefail
where=$(cd "$(dirname "${BASH_SOURCE[0]}")/../build-gpu/gpu" 2> /dev/null && pwd) || {
  echo 'gpu.sh: build-gpu/gpu is missing: run ./dev gpu-programs where the compilers are' >&2
  exit 1
}
export LD_LIBRARY_PATH=$where/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
failed=()

has_library() { ldconfig -p | grep -q "$1" && echo yes || echo no; }

heading() {
  date -u '+%Y-%m-%d %H:%M UTC'
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader ||
    echo 'no nvidia-smi'
  printf 'commit %s\n' "$(cat "$where/commit")"
}

about() {
  nproc
  for name in libcuda.so.1 libnvcuvid.so.1 libnvjpeg.so; do
    printf '%s: %s\n' "$name" "$(has_library "$name")"
  done
  printf 'compute-sanitizer: %s\n' "$(sanitizer || echo no)"
  python3 -c 'import torch; print("torch", torch.__version__, torch.cuda.is_available())' ||
    echo 'no torch'
}

sanitizer() { command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer; }

# run_each COMMAND...: runs the tests with the command in front.
run_each() {
  local program
  for program in "$where"/bin/*_test; do
    printf '=== %s\n' "$(basename "$program")"
    "$@" "$program" "${arguments[@]}" || [[ $? == 77 ]] || failed+=("$(basename "$program")")
  done
}

benchmarks() {
  local program
  "$where/bin/train_cuda" --device 0 --epochs 5 || failed+=(train_cuda)
  for program in "$where"/bin/*_bench; do
    printf '=== %s\n' "$(basename "$program")"
    "$program" || [[ $? == 77 ]] || failed+=("$(basename "$program")")
  done
}

arguments=()
heading
case ${1:-} in
  about) about ;;
  test) run_each ;;
  memcheck | racecheck)
    tool=$(sanitizer) || { echo 'gpu.sh: no compute-sanitizer' >&2; exit 1; }
    arguments=('--gtest_filter=Gpu*:*/Gpu*')
    run_each "$tool" --tool "$1" --error-exitcode 1 ;;
  bench) benchmarks ;;
  *) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
if ((${#failed[@]} > 0)); then
  echo "failed: ${failed[*]}"
  exit 1
fi
