#!/usr/bin/env bash
# Measures the line coverage of path, seal, key and store by the library's own tests and the
# integration tests that go through them. Needs `rustup component add llvm-tools`.
#
#   tests/coverage.sh [--report]    with --report, only sums up what was measured before
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
work=$target/coverage
bin=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
tests=(
  path_guard commands tamper damage recovery faults rotation erasure backup retention audit golden_store
  accept_loss conditions attach trash threads syncs secrecy cli_keys cli_backup
)

mkdir -p "$work"
if [ "${1:-}" != --report ]; then
  rm -f "$work"/*.profraw
  # Only this package is instrumented, so that its dependencies need no second build.
  printf '#!/bin/sh\nexec "$@" -C instrument-coverage\n' > "$work/rustc"
  chmod +x "$work/rustc"
  export RUSTC_WORKSPACE_WRAPPER=$work/rustc
  # %m: processes of one binary add to one file.
  export LLVM_PROFILE_FILE=$work/%4m.profraw
  cargo test --locked --no-fail-fast --lib "${tests[@]/#/--test=}"
  cargo test --locked --no-run --message-format json --lib "${tests[@]/#/--test=}" 2> /dev/null |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | sort -u > "$work/binaries"
fi

"$bin/llvm-profdata" merge --sparse --failure-mode=all "$work"/*.profraw -o "$work/all.profdata"
mapfile -t binaries < "$work/binaries"
# The same source lines in several binaries count once.
"$bin/llvm-cov" export --format=lcov --instr-profile "$work/all.profdata" "${binaries[@]/#/--object=}" \
  --sources src > "$work/all.lcov"
awk -F '[:,]' -v root="$PWD/src/" '
  # Tests below src are not what is measured: whole files, and the last module of a file.
  /^SF:/ {
    source = substr($0, 4); file = source; sub(root, "", file); sub("^src/", "", file)
    is_test = file ~ /tests?\.rs$|testing\.rs$|vectors\.rs$/
    tests_at = 1e9; number = 0
    while ((getline line < source) > 0) { number++; if (line ~ /^mod tests \{/) tests_at = number }
    close(source)
  }
  /^DA:/ {
    if (is_test || $2 >= tests_at) next
    at = file ":" $2; if (!(at in hits)) { lines[file]++; hits[at] = 0 }
    if ($3 > 0 && hits[at] == 0) { hits[at] = 1; covered[file]++ }
  }
  END {
    for (file in lines) {
      module = file; sub("/.*", "", module)
      all[module] += lines[file]; hit[module] += covered[file]
      printf "%6.2f %% %5d of %5d  %s\n", 100 * covered[file] / lines[file], covered[file], lines[file], file | "sort -n"
    }
    close("sort -n")
    print "== by module"
    for (module in all) printf "%6.2f %% %5d of %5d  %s\n", 100 * hit[module] / all[module], hit[module], all[module], module | "sort -n"
  }' "$work/all.lcov"
