#!/usr/bin/env bash
# gpu.sh PART: runs what `./dev gpu-programs` and `./dev gpu-video-programs` have built, on a machine
# with a GPU. It needs bash, awk, tar with xz or Python, and the driver, and no network. Each part takes
# less than ten minutes:
#
#   about      what is there: the GPU, its driver, the libraries that are loaded at run time, torch
#   test       all tests of the module cuda, on the GPU and over a replaced driver
#   memcheck   the tests of the suites Gpu* under compute-sanitizer: memory errors and leaks
#   racecheck  the same: races of threads in shared memory
#   bench      the benchmarks and a training, and whether their figures reach the gates; torchvision's
#              decoder of JPEGs beside them, where Python has one that uses the GPU
#   video      the tests of decoding videos, NVDEC's benchmark with its gate, and the loaders;
#              torchcodec's decoder beside them, where Python has one that uses the GPU
#   video-memcheck
#              these tests under compute-sanitizer
#   cores      the pipeline of images on all CPUs beside as many processes of the bare loop; uses no GPU
#
# The output begins with date, GPU, driver and commit, as docs/benchmarks.md records them. A gate is
# a line "PASS" or "FAIL" with the figure and its limit. The exit status is 1 if a test, a program or
# a gate fails.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
where=
failed=()

# use NAME COMMAND: the programs are those in build-gpu/NAME.tar.xz, which COMMAND makes. They are
# unpacked if the archive is new.
use() {
  local packed=$root/build-gpu/$1.tar.xz
  where=$root/build-gpu/$1
  if [[ $packed -nt $where/unpacked ]]; then
    rm -rf "$where"
    tar -xJf "$packed" -C "$root/build-gpu" ||
      python3 -m tarfile -e "$packed" "$root/build-gpu" || exit 1
    touch "$where/unpacked"
  fi
  if [[ ! -e $where/unpacked ]]; then
    echo "gpu.sh: build-gpu/$1.tar.xz is missing: run $2 where the compilers are" >&2
    exit 1
  fi
  export LD_LIBRARY_PATH=$where/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LADE_MEDIA_FILES=$where/files
}

heading() {
  date -u '+%Y-%m-%d %H:%M UTC'
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader ||
    echo 'no nvidia-smi'
  printf 'commit %s\n' "$(cat "$where/commit")"
}

# find_library NAME: prints its path: as the programs find it, which look beside themselves first.
find_library() {
  find "$where/lib" -name "$1*" -print -quit | grep . ||
    ldconfig -p | awk -v name="$1" 'index($1, name) == 1 {print $NF; found = 1; exit} END {exit !found}'
}

about() {
  printf 'CPUs: %s\n' "$(nproc)"
  for name in libcuda.so.1 libnvcuvid.so.1 libnvjpeg.so; do
    printf '%s: %s\n' "$name" "$(find_library "$name" || echo no)"
  done
  printf 'compute-sanitizer: %s\n' "$(find_tool compute-sanitizer || echo no)"
  printf 'nvcc: %s\n' "$("$(find_tool nvcc || echo false)" --version | grep release || echo no)"
  python3 -c 'import torch; print("torch:", torch.__version__, torch.cuda.is_available())' ||
    echo 'torch: no'
}

# find_tool NAME: prints the path of a program of the CUDA toolkit.
find_tool() { command -v "$1" || ls "/usr/local/cuda/bin/$1"; } 2> /dev/null

# note NAME STATUS: a program that exits with 77 was skipped.
note() { [[ $2 == 0 || $2 == 77 ]] || failed+=("$1"); }

# run NAME COMMAND...
run() {
  printf '=== %s\n' "$1"
  "${@:2}"
  note "$1" $?
}

# run_tests COMMAND...: all tests, with the command in front.
run_tests() {
  local program
  for program in "$where"/bin/*_test; do
    run "$(basename "$program")" "$@" "$program" "${arguments[@]}"
  done
}

# sanitize TOOL [OPTIONS...]: the tests on the GPU under the tool of compute-sanitizer.
sanitize() {
  local sanitizer
  sanitizer=$(find_tool compute-sanitizer) || { echo 'gpu.sh: no compute-sanitizer' >&2; exit 1; }
  arguments=('--gtest_filter=Gpu*:*/Gpu*')
  run_tests "$sanitizer" --tool "$@" --error-exitcode 1
}

# measure PROGRAM [OPTIONS...]: runs the program and keeps its output for the gates.
measure() {
  printf '=== %s\n' "$1"
  "$where/bin/$1" "${@:2}" | tee "$figures/$1"
  note "$1" "${PIPESTATUS[0]}"
}

# gate WHAT PROGRAM LINES BEFORE LIMIT: whether the figure behind the text BEFORE reaches LIMIT
# (">= 0.95") in each line of the program's output that has one and matches LINES. Without any such
# line the gate fails.
gate() {
  : >> "$figures/$2"
  awk -v what="$1" -v lines="$3" -v before="$4" -v limit="$5" '
    BEGIN { split(limit, of, " ") }
    $0 ~ lines && (at = index($0, before)) {
      figure = substr($0, at + length(before))
      sub(/[^0-9.].*/, "", figure)
      good = figure != "" && (of[1] == ">=" ? figure + 0 >= of[2] + 0 : figure + 0 <= of[2] + 0)
      name = match($0, /"(batch|figure|units)": "[^"]*"/) ? substr($0, RSTART, RLENGTH) : ""
      gsub(/^"[a-z]*": |"/, "", name)
      if (match($0, /^epoch [0-9]+/)) name = substr($0, RSTART, RLENGTH)
      printf "%s  %s%s: %s, gate %s\n", good ? "PASS" : "FAIL", what, name ? ", " name : "", figure, limit
      bad += !good
      ++found
    }
    END {
      if (!found) printf "FAIL  %s: no figure, gate %s\n", what, limit
      exit bad || !found
    }' "$figures/$2" || failed+=("gate: $1")
}

# The first epoch allocates what the others use.
benchmarks() {
  local program
  measure train_cuda --device 0 --epochs 5 --draws 20 --step-ratio 1.2
  for program in "$where"/bin/*_bench; do measure "$(basename "$program")"; done
  ! command -v python3 > /dev/null || run torch_jpeg python3 "$root/tests/bench/torch_jpeg.py"
  echo '=== gates'
  gate 'copies to the GPU beside a bare loop' transfer_bench 224 '"share": ' '>= 0.95'
  gate 'CPU time of to_device, us a batch' transfer_bench '' '"cpu_us_per_batch": ' '<= 20'
  gate 'leaving a run with copies in flight, ms' stop_copies_bench '' '"max_ms": ' '<= 100'
  gate 'GPU idle in a training, %' train_cuda '^epoch [1-9]' 'GPU idle ' '<= 2'
  gate 'accuracy of the training, %' train_cuda '^epoch 4' 'accuracy ' '>= 99'
  gate 'fused kernel beside a copy' kernels_bench 'u8 hwc to|crop and flip|resize 500' \
    '"share_of_copy": ' '>= 0.8'
  gate 'nvJPEG beside a bare loop' jpeg_bench '' '"ratio": ' '>= 0.95'
}

video() {
  run_tests
  measure video_loader "$where/clips" --device 0 --batch 4
  LD_LIBRARY_PATH+=:$root/build-gpu/gpu/lib  # nvJPEG, if the other programs are unpacked
  measure image_loader "$root/tests/data/photos" --device 0 --epochs 20
  measure nvdec_bench --dir "$where/clips"
  ! command -v python3 > /dev/null || run torch_video python3 "$root/tests/bench/torch_video.py" \
    --dir "$where/clips" --threads "$(figure_in sessions < "$figures/nvdec_bench")"
  echo '=== gates'
  gate 'clips of the loader that the CPU decodes' video_loader '' 'by NVDEC, ' '<= 0'
  gate 'images of the loader that the CPU decodes' image_loader '' 'by its other units, ' '<= 0'
  gate 'NVDEC beside a bare loop' nvdec_bench '' '"ratio": ' '>= 0.95'
}

# figure_in NAME: the largest figure of that name in lines of JSON.
figure_in() {
  awk -v name="\"$1\": " '
    at = index($0, name) { figure = substr($0, at + length(name)) + 0; if (figure > most) most = figure }
    END { print most + 0 }'
}

# Five rounds, of which the median counts. The slowest process counts.
cores() {
  local count round process ours theirs images=4096
  local loader=(--dir "$figures/corpus" --transform train --layout chw_f32 --images)
  count=$(nproc)
  run make_corpus "$where/bin/make_corpus" --photos "$root/tests/data/photos" --out "$figures/corpus"
  for round in {1..5}; do
    ours=$("$where/bin/loader_bench" "${loader[@]}" $((count * images)) --threads "$count" | figure_in images_per_s)
    theirs=$(for ((process = 0; process < count; ++process)); do
      "$where/bin/bare_loop" "${loader[@]}" $images --threads 1 &
    done | figure_in wall_s)
    echo "$round $ours $theirs" >&2
    awk -v ours="$ours" -v images=$((count * images)) -v wall_s="$theirs" 'BEGIN { print ours * wall_s / images }'
  done | sort -g | sed -n '3s/.*/{"program": "cores", "ratio": &}/p' | tee "$figures/cores"
  echo '=== gates'
  gate "one process on $count CPUs beside $count processes" cores '' '"ratio": ' '>= 0.85'
}

arguments=()
figures=$(mktemp -d)
trap 'rm -rf "$figures"' EXIT
part=${1:-}
case $part in
  about | test | memcheck | racecheck | bench) use gpu './dev gpu-programs' ;;
  video | video-memcheck | cores) use video './dev gpu-video-programs' ;;
  *) sed -n '2,22s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2 ;;
esac
heading
case $part in
  about) about ;;
  test) run_tests ;;
  memcheck | video-memcheck) sanitize memcheck --leak-check full ;;
  racecheck) sanitize racecheck ;;
  bench) benchmarks ;;
  video) video ;;
  cores) cores ;;
esac
if ((${#failed[@]} > 0)); then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
