//! Keeps what is in this process's memory, keys and contents, off disks and from other processes.

use std::fs;
use std::sync::OnceLock;

use rustix::process::{Resource, getrlimit, setrlimit};

use super::output::say;

/// Whether the system agreed to keep this process's pages out of swap.
static LOCKED: OnceLock<bool> = OnceLock::new();

const WARNING: &str = "warning: the system does not let this process lock its memory, so that keys may come into swap\nAllow it (LimitMEMLOCK=infinity in a service of systemd, `ulimit -l unlimited`, --cap-add IPC_LOCK for a container), or use encrypted swap or none.";

/// To be called once, before anything is read. What the system refuses is left as it is: the
/// command still does its work. Not for a library, whose embedder decides about its process.
pub fn keep_private() {
    write_no_core();
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        // Nor does a handler of cores get one, nor may other processes of the same user look in.
        let _refused = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    let _is_first = LOCKED.set(lock());
}

/// Says on stderr that keys may come into swap, if so: for commands that hold a store for long.
pub fn warn_of_swap() {
    if let Some(warning) = swap_warning() {
        say(warning);
    }
}

/// Why keys may come into swap and what helps; `None` where they cannot.
pub fn swap_warning() -> Option<&'static str> {
    // Where the system does not say that there is none, there may be some.
    let swaps = fs::read_to_string("/proc/swaps").ok();
    warning(LOCKED.get().copied(), swaps.as_deref())
}

fn warning(locked: Option<bool>, swaps: Option<&str>) -> Option<&'static str> {
    // The first line is a heading.
    let has_swap = swaps.is_none_or(|text| text.lines().count() > 1);
    (locked == Some(false) && has_swap).then_some(WARNING)
}

/// A core dump would hold keys and contents.
fn write_no_core() {
    let mut limit = getrlimit(Resource::Core);
    limit.current = Some(0);
    // Lowering a limit is always allowed.
    let _lowered = setrlimit(Resource::Core, limit);
}

/// Locks every page, those of later allocations too, once it is touched.
///
/// All or nothing: to lock the pages of keys alone takes `mlock`, which is unsafe code.
#[cfg(target_os = "linux")]
fn lock() -> bool {
    use rustix::mm::{MlockAllFlags, mlockall};

    let limit = getrlimit(Resource::Memlock);
    // Under a limit, allocations would fail once it is reached. So it is raised as far as it goes,
    // and where that is not to unlimited, lowered to nothing for the question: then only a process
    // that is above limits (CAP_IPC_LOCK) is not refused.
    let mut asking = limit;
    asking.current = if limit.maximum.is_none() {
        None
    } else {
        Some(0)
    };
    if setrlimit(Resource::Memlock, asking).is_err() {
        return false;
    }
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    let locked = mlockall(flags).is_ok();
    if !locked || limit.maximum.is_some() {
        let _as_it_was = setrlimit(Resource::Memlock, limit);
    }
    locked
}

#[cfg(not(target_os = "linux"))]
fn lock() -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::warning;

    #[test]
    fn it_warns_where_memory_is_not_locked_and_there_is_swap_or_may_be() {
        let none = "Filename\tType\tSize\tUsed\tPriority\n";
        let some = &format!("{none}/dev/vda2 partition 1 0 -2\n");
        for (locked, swaps, warns) in [
            (Some(true), Some(some.as_str()), false),
            (Some(true), None, false),
            (Some(false), Some(none), false),
            (Some(false), Some(some), true),
            (Some(false), None, true),
            // Not our process: whoever embeds the library decides.
            (None, None, false),
        ] {
            assert_eq!(
                warning(locked, swaps).is_some(),
                warns,
                "{locked:?} {swaps:?}"
            );
        }
    }
}
