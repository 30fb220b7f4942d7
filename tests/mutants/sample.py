"""Samples mutants by a seed, builds them all at once, and runs the tests against each."""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from operators import Source, instrumented, mutants_of

ROOT, WORK = Path(sys.argv[1]), Path(sys.argv[2])
SEED, COUNT = int(sys.argv[3]), int(sys.argv[4])
ONLY_SURVIVORS = "--survivors" in sys.argv[5:]
TREE, RESULTS, UNVIABLE = WORK / "tree", WORK / "results.json", WORK / "unviable.json"

# What is mutated: guard, policy, seal, records, and of the store what makes, reads and checks
# the tree (so not: keys over years, backups, and the engine's files).
PARTS = ["src/path", "src/policy", "src/seal", "src/record", "src/store"]
LEFT_OUT = {"tests", "backup", "rekey", "rekey_files", "compact", "safety_copy", "growth", "rotate", "erase",
            "keyring", "tenant_keys", "tokens", "raw"}
# With what each runs. The first one that fails ends it: for all mutants the quick ones, after the
# library's own tests, then for those that are left the slow ones, and last the slowest. A mutant that only a test not named
# here would catch counts as alive. A test with a limit of time would catch a busy machine.
LIB = ["--skip", "hostile_search_texts", "--skip", "key::command"]
QUICK = {"path_guard": [], "policy": [], "trash": [], "golden_store": [], "model": ["in_memory"]}
SLOW = {
    "policy_at_work": [], "audit": [], "syncs": [], "retention": [], "accept_loss": [], "transfer": [],
    "erasure": [], "faults": ["large_first"],
}
# Another user may not be let in where this runs.
SLOWEST = {"rotation": [], "tamper": [], "conditions": ["--skip", "another_user"]}
TESTS = {**QUICK, **SLOW, **SLOWEST}
CAUGHT_MIN = 0.9
SPARE = 1.4  # Some do not compile; the next ones of the sample take their places.
MEMORY_MAX = 6 << 30
JOBS = int(os.environ.get("STRONGROOM_MUTANTS_JOBS", "2"))
# A random test draws the same for each mutant, and remembers nothing: or what it once found by
# chance would count as caught for all that come after.
ENV = {**os.environ, "PROPTEST_RNG_SEED": "7", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "true", "RUST_BACKTRACE": "0", "STRONGROOM_MODEL_SEQUENCES": "25", "RUST_MIN_STACK": str(16 << 20),
       "CARGO_TARGET_DIR": os.environ.get("STRONGROOM_MUTANTS_TARGET", str(WORK / "target"))}
MODULE = """//! Which mutant is on: 0 is none.
static ON: std::sync::LazyLock<u32> = std::sync::LazyLock::new(|| {
    std::env::var("STRONGROOM_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
});
pub fn on() -> u32 { *ON }
"""


def sources():
    for part in PARTS:
        for path in sorted((ROOT / part).rglob("*.rs")):
            name = path.relative_to(ROOT)
            if LEFT_OUT.isdisjoint(name.with_suffix("").parts[2:]):
                yield Source(str(name), path.read_bytes())


def fresh_tree():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, check=True, capture_output=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        source, target = ROOT / name, TREE / name
        # What has not changed keeps its time, so that it is not built anew.
        if source.is_file() and not (target.is_file() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
            target.chmod(source.stat().st_mode)
    shutil.rmtree(TREE / "proptest-regressions", ignore_errors=True)


def write_mutants(all_sources, chosen):
    for source in all_sources:
        of_this = [mutant for mutant in chosen if mutant.path == source.path]
        text = instrumented(source, of_this) if of_this else source.text.decode()
        if (TREE / source.path).read_text() != text:
            (TREE / source.path).write_text(text)
    (TREE / "src/mutant.rs").write_text(MODULE)
    lib = TREE / "src/lib.rs"
    if "mod mutant;" not in lib.read_text():
        # Unit tests of numbers in the code may not hold for it.
        lib.write_text(lib.read_text().replace("\nmod hex;\n", "\nmod hex;\nmod mutant;\n"))


def cargo(*arguments):
    command = ["cargo", *arguments, "--no-default-features", "--message-format=json"]
    ran = subprocess.run(command, cwd=TREE, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    messages = [json.loads(line) for line in ran.stdout.decode().splitlines() if line.startswith("{")]
    return ran, messages


def that_do_not_compile(messages, chosen):
    """The mutants within the errors' places; those nearest before it where there is none within."""
    found, errors = set(), 0
    for message in messages:
        error = message.get("message", {})
        if message.get("reason") != "compiler-message" or error.get("level") != "error":
            continue
        places = list(error["spans"])
        errors += bool(places)
        for child in error["children"]:
            places += child["spans"]
        within, near = set(), set()
        for place in places:
            if not (TREE / place["file_name"]).is_file():
                continue
            text = (TREE / place["file_name"]).read_bytes()
            for mutant in chosen:
                start = text.find(f"/*<{mutant.number}*/".encode())
                end = text.find(f"/*{mutant.number}>*/".encode())
                if mutant.path != place["file_name"] or start < 0:
                    continue
                if start <= place["byte_end"] and place["byte_start"] <= end:
                    within.add(mutant.number)
                elif abs(start - place["byte_start"]) < 400:
                    near.add(mutant.number)
        found |= within or near
        if places and not (within or near):
            print(error["rendered"], file=sys.stderr)
    return found, errors


def build(all_sources, chosen):
    # Known from a run before: then nothing has to be built twice.
    known = json.loads(UNVIABLE.read_text()) if UNVIABLE.exists() else []
    chosen = [mutant for mutant in chosen if mutant.name not in known]
    tests = ["test", "--no-run", "--lib", *(word for name in TESTS for word in ("--test", name))]
    # Some errors show only when code is made of it.
    for command in (["check", "--lib"], tests):
        while True:
            write_mutants(all_sources, chosen)
            ran, messages = cargo(*command)
            if ran.returncode == 0:
                break
            bad, errors = that_do_not_compile(messages, chosen)
            if not bad:
                sys.exit(f"the mutants do not compile, and none is the reason:\n{ran.stderr.decode()[-3000:]}")
            print(f"{errors} errors: {len(bad)} mutants do not compile", file=sys.stderr)
            unviable = [mutant.name for mutant in chosen if mutant.number in bad]
            known = json.loads(UNVIABLE.read_text()) if UNVIABLE.exists() else []
            UNVIABLE.write_text(json.dumps(sorted({*known, *unviable}), indent=1))
            chosen = [mutant for mutant in chosen if mutant.number not in bad]
    made = {message["target"]["name"]: message["executable"] for message in messages
            if message.get("reason") == "compiler-artifact" and message.get("executable")}
    binaries = [("lib", made["strongroom"]), *((name, made[name]) for name in TESTS)]
    return chosen, binaries


def limits():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))


def run(binary, filters, number, seconds):
    """What went wrong in one run of a test binary: nothing, a test's name, or what else."""
    with tempfile.TemporaryFile() as output:
        ran = subprocess.Popen([binary, "--test-threads=2", *filters], cwd=TREE, env={**ENV, "STRONGROOM_MUTANT": str(number)},
                               stdout=output, stderr=subprocess.STDOUT, preexec_fn=limits)
        # Its seconds are counted here, one by one: none passes while this process is stopped too.
        for _ in range(int(seconds)):
            try:
                ran.wait(1)
                break
            except subprocess.TimeoutExpired:
                continue
        else:
            ran.kill()
            ran.wait()
            return "no end"
        output.seek(0)
        printed = output.read()
    if ran.returncode == 0:
        return None
    lines = printed.decode(errors="replace").splitlines()
    failed = [line.split()[1] for line in lines if line.startswith("test ") and line.endswith("FAILED")]
    return failed[0] if failed else f"ends with {ran.returncode}"


def judge(mutant, binaries, longest):
    for name, binary in binaries:
        # The tests beside the code first: mostly they suffice.
        module = mutant.path.split("/")[1] + "::"
        for filters in [[module, *LIB], LIB] if name == "lib" else [TESTS[name]]:
            if wrong := run(binary, filters, mutant.number, 120 + 8 * longest.get(name, 60)):
                return f"{name}::{wrong}"
    return None


def judge_all(mutants, binaries, longest, results):
    """Runs these tests against all of the mutants that nothing has caught yet."""
    left = [mutant for mutant in mutants if results.get(mutant.name) is None]
    with ThreadPoolExecutor(JOBS) as pool:
        waiting = {pool.submit(judge, mutant, binaries, longest): mutant for mutant in left}
        for at, done in enumerate(as_completed(waiting), 1):
            mutant, caught = waiting[done], done.result()
            results[mutant.name] = caught
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True))
            print(f"{at}/{len(left)} {mutant.name}: {'caught by ' + caught if caught else 'alive'}", flush=True)


def main():
    random.seed(SEED)
    fresh_tree()
    all_sources = list(sources())
    candidates = [mutant for source in all_sources for mutant in mutants_of(source)]
    drawn = random.sample(candidates, min(len(candidates), int(COUNT * SPARE)))
    for number, mutant in enumerate(drawn, 1):
        mutant.number = number
    print(f"{len(candidates)} possible mutants in {len(all_sources)} files; seed {SEED}", flush=True)
    before = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept, binaries = build(all_sources, drawn)
    unviable = len(drawn) - len(kept)
    kept = kept[:COUNT]
    longest = {}
    # A second look at survivors knows already that the right build passes.
    for name, binary in [] if ONLY_SURVIVORS else binaries:
        start = time.monotonic()
        if wrong := run(binary, TESTS.get(name, LIB), 0, 1_800):
            sys.exit(f"{name}::{wrong} fails on the right build")
        longest[name] = time.monotonic() - start
        print(f"{name}: {longest[name]:.1f} s on the right build", flush=True)
    known = before if ONLY_SURVIVORS else {}
    results = {mutant.name: known[mutant.name] for mutant in kept if known.get(mutant.name)}
    for names in (["lib", *QUICK], SLOW, SLOWEST):
        print(f"{len(kept) - len(results)} mutants, against {', '.join(names)}", flush=True)
        judge_all(kept, [binary for binary in binaries if binary[0] in names], longest, results)
        results = {name: caught for name, caught in results.items() if caught}
    results |= {mutant.name: None for mutant in kept if mutant.name not in results}
    report(results, unviable)


def report(results, unviable):
    by_part = {}
    for name, caught in results.items():
        part = by_part.setdefault(name.split("/")[1], [0, 0])
        part[0] += 1
        part[1] += caught is not None
    print(f"\n| part | sampled | caught |\n| --- | --- | --- |")
    for part, (sampled, caught) in sorted(by_part.items()):
        print(f"| {part} | {sampled} | {caught} |")
    caught = sum(caught is not None for caught in results.values())
    print(f"\nseed {SEED}: {caught} of {len(results)} caught; {unviable} more do not compile")
    for name, caught_by in results.items():
        if caught_by is None:
            print(f"survived: {name}")
    sys.exit(0 if caught >= CAUGHT_MIN * len(results) else 1)


main()
