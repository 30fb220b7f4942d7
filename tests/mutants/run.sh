#!/usr/bin/env bash
# Shows that the proof tests catch wrong builds: takes one line of the code away at a time
# and runs the test that must then fail.
#
#   tests/mutants/run.sh          all of them
#   tests/mutants/run.sh NAME...  some
#
# One line a mutant. Exits with 1 if a mutant survives, no longer applies or no longer builds.
# Built files are kept between runs in $STRONGROOM_MUTANTS_DIR (default: target/mutants).
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${STRONGROOM_MUTANTS_DIR:-$root/target/mutants}
tree=$work/tree
export CARGO_TARGET_DIR=$work/target RUST_BACKTRACE=0
export STRONGROOM_KILL_ROUNDS=5 STRONGROOM_POWER_SEEDS=15
wanted=" $* "
failed=0
log=$work/log
mkdir -p "$work"

fresh_tree() {
  rm -rf "$tree"
  mkdir -p "$tree"
  (cd "$root" && git ls-files -z --cached --others --exclude-standard \
    | while IFS= read -r -d '' file; do [ -e "$file" ] && printf '%s\0' "$file"; done \
    | tar --null --create --no-recursion --files-from=-) | tar --extract --touch --directory "$tree"
}

cargo_test() { (cd "$tree" && cargo test --quiet --locked --no-default-features "$@") > "$log" 2>&1; }

names=() files=() changes=() tests=() cases=()

# mutant NAME FILE PERL TEST CASE: PERL changes FILE, then CASE of tests/TEST.rs must fail.
mutant() {
  case "$wanted" in *" $1 "* | "  ") ;; *) return 0 ;; esac
  names+=("$1") files+=("$2") changes+=("$3") tests+=("$4") cases+=("$5")
}

# The tests pass on the right build. A skipped one proves nothing.
declare -A skipped=()
check_right_build() {
  local at
  for at in "${!names[@]}"; do
    if ! cargo_test --test "${tests[at]}" "${cases[at]}" -- --nocapture; then
      echo "${tests[at]}::${cases[at]} fails on the right build"; tail -20 "$log"; exit 1
    fi
    if grep -q '^skipped: ' "$log"; then skipped[$at]=1; fi
  done
}

check_mutant() {
  local name=${names[$1]} file=${files[$1]} change=${changes[$1]} test=${tests[$1]} case=${cases[$1]}
  if [ -n "${skipped[$1]:-}" ]; then
    echo "$name: skipped, as $test::$case is on this machine"; return 0
  fi
  perl -0pi -e "$change" "$tree/$file"
  if cmp -s "$root/$file" "$tree/$file"; then
    echo "$name: no longer applies to $file"; failed=1
  elif ! cargo_test --test "$test" --no-run; then
    echo "$name: does not build"; tail -20 "$log"; failed=1
  elif cargo_test --test "$test" "$case"; then
    echo "$name: SURVIVED $test::$case"; failed=1
  else
    echo "$name: caught by $test::$case"
  fi
  cat "$root/$file" > "$tree/$file"
}

# What is acknowledged lies in sled's buffers only.
mutant no-flush src/backend/sled_engine.rs \
  's/self\.guarded\(\|db\| db\.flush\(\)\)\?;\n\s*self\.file\n\s*\.sync_data\(\)\n\s*\.map_err\(\|error\| BackendError::from_io\(&error\)\)\?;\n\s*self\.syncs/self.syncs/' \
  kill what_was_acknowledged_survives_sigkill
mutant no-flush-power src/backend/sled_engine.rs \
  's/self\.guarded\(\|db\| db\.flush\(\)\)\?;\n\s*self\.file\n\s*\.sync_data\(\)\n\s*\.map_err\(\|error\| BackendError::from_io\(&error\)\)\?;\n\s*self\.syncs/self.syncs/' \
  power_loss a_power_cut_in_the_engines_files
# It lies in the page cache only: no kill shows that, the system calls do.
mutant no-fdatasync src/backend/sled_engine.rs \
  's/(self\.guarded\(\|db\| db\.flush\(\)\)\?;\n)\s*self\.file\n\s*\.sync_data\(\)\n\s*\.map_err\(\|error\| BackendError::from_io\(&error\)\)\?;\n/$1/' \
  syncs the_kernel_is_asked
# STATE is never held against the root.
mutant no-state-check src/store/open.rs \
  's/if top\.root\.seq < state\.seq \{/if false {/; s/if top\.root\.seq == state\.seq && digest\(&top\.sealed\) != state\.root_digest \{/if false {/' \
  tamper an_older_engine_directory_is_a_rollback
# STATE is written once the caller has been answered, or never.
mutant no-state-write src/store/core.rs \
  's/self\.backend\.wait_durable\(applied\.batch\)\?;\n\s*self\.write_state\(/self.backend.wait_durable(applied.batch)?;\n            if true { return Ok(()); }\n            self.write_state(/' \
  syncs every_acknowledged_write
# A write is acknowledged once it is applied.
mutant no-wait src/store/change/write.rs \
  's/self\.wait_durable\(tenant\.live\(\)\.map_or\(0, \|live\| live\.seq\)\)\?;\n\s*done/done/' \
  power_loss a_power_cut_loses_nothing
# A handle goes on after a write whose outcome it does not know.
mutant no-poison src/store/core.rs \
  's/_ => \{\n\s*self\.fail\(\);\n\s*return StoreError::OutcomeUnknown;/_ => {\n                return StoreError::OutcomeUnknown;/' \
  faults every_backend_operation_may_fail
# A record opens in any place.
mutant no-associated-data src/seal/mod.rs \
  's/(fn associated_data\(&self\) -> Vec<u8> \{\n).*?\n    \}/$1        Vec::new()\n    }/s' \
  tamper any_two_swapped_records_are_refused
# The keys of a tenant become durable after its first commit refers to them.
mutant no-key-file src/store/tenant_keys.rs \
  's/Ok\(self\.keys\.write\(Item::Tenant\(tag\.0\), Copy::A, &bytes\)\?\)/let _ = bytes; Ok(())/' \
  syncs every_acknowledged_write

fresh_tree
check_right_build
for at in "${!names[@]}"; do check_mutant "$at"; done
exit "$failed"
