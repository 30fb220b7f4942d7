//! Runs the key command: no shell, a time limit, little output, no leaks.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use super::KeyError;

/// Most bytes a key command may print.
const OUTPUT_BYTES_MAX: usize = 4096;
/// How often an ended child is looked for while its output stays open.
const POLL: Duration = Duration::from_millis(10);
/// How long output is awaited after the child has ended: a grandchild may
/// keep the pipe open for ever, and what the child wrote is there at once.
const GRACE: Duration = Duration::from_millis(250);

/// What the command printed on stdout.
///
/// Its stdin is empty, its stderr goes nowhere (it may hold secrets), and it
/// runs in a process group of its own, all of which is ended at the time
/// limit; so it cannot ask at the terminal.
pub(super) fn run(argv: &[String], timeout: Duration) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let (program, arguments) = argv.split_first().ok_or(KeyError::CommandEmpty)?;
    if program.is_empty() {
        return Err(KeyError::CommandEmpty);
    }
    let started = Instant::now();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command
        .spawn()
        .map_err(|source| KeyError::CommandStart { source })?;

    let ended = attend(&mut child, started, timeout);
    if ended.is_err() {
        end(&mut child);
    }
    let (status, output) = ended?;
    judge(status, output)
}

/// Waits for the child and its output, whichever way they end.
fn attend(
    child: &mut Child,
    started: Instant,
    timeout: Duration,
) -> Result<(ExitStatus, Zeroizing<Vec<u8>>), KeyError> {
    let failed = |source| KeyError::CommandStart { source };
    let pieces = read_in_background(child).map_err(failed)?;
    // Room for all of it, so that growing leaves no copy behind.
    let mut output = Zeroizing::new(Vec::with_capacity(2 * OUTPUT_BYTES_MAX));
    let mut open = true;
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        if ended.is_none() {
            ended = child
                .try_wait()
                .map_err(failed)?
                .map(|status| (status, Instant::now()));
        }
        if let Some((status, since)) = ended
            && (!open || since.elapsed() >= GRACE)
        {
            return Ok((status, output));
        }
        if ended.is_none() && started.elapsed() >= timeout {
            return Err(KeyError::CommandTimeout {
                seconds: timeout
                    .as_millis()
                    .div_ceil(1000)
                    .try_into()
                    .unwrap_or(u64::MAX),
            });
        }
        if !open {
            thread::sleep(POLL);
            continue;
        }
        match pieces.recv_timeout(POLL) {
            Ok(piece) => {
                output.extend_from_slice(&piece);
                if output.len() > OUTPUT_BYTES_MAX {
                    return Err(KeyError::CommandOutputTooLong);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => open = false,
        }
    }
}

/// Reads stdout on a thread, since a read cannot be given a time limit. The
/// thread ends with the pipe, or with the first piece nobody takes.
fn read_in_background(child: &mut Child) -> std::io::Result<Receiver<Zeroizing<Vec<u8>>>> {
    let (sender, pieces) = mpsc::sync_channel(1);
    let Some(mut stdout) = child.stdout.take() else {
        return Ok(pieces);
    };
    thread::Builder::new()
        .name("key-command".to_owned())
        .spawn(move || {
            loop {
                let mut piece = Zeroizing::new(vec![0; OUTPUT_BYTES_MAX]);
                match stdout.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => {
                        piece.truncate(count);
                        if sender.send(piece).is_err() {
                            break;
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
        })?;
    Ok(pieces)
}

fn judge(status: ExitStatus, output: Zeroizing<Vec<u8>>) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    match status.code() {
        Some(0) if output.trim_ascii().is_empty() => Err(KeyError::CommandNoOutput),
        Some(0) => Ok(output),
        Some(code) => Err(KeyError::CommandExit { code }),
        None => Err(KeyError::CommandKilled),
    }
}

/// Kills the child's whole group, then takes its exit so no zombie stays.
fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id())
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        && matches!(child.try_wait(), Ok(None))
    {
        // The child is not reaped yet, so its id (the group's) is still its own.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::{KEY_COMMAND_TIMEOUT, KeySource, SlotKind};

    fn sh(script: &str, timeout: Duration) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        run(&["sh", "-c", script].map(str::to_owned), timeout)
    }

    fn error(script: &str) -> KeyError {
        sh(script, KEY_COMMAND_TIMEOUT).err().unwrap()
    }

    #[test]
    fn a_printed_key_line_is_the_credential() {
        let line = "strongroom-key-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9Eia7N";
        let source = KeySource::Command {
            argv: ["printf", "%s\\n", line].map(str::to_owned).to_vec(),
            timeout: KEY_COMMAND_TIMEOUT,
        };
        let credential = source.resolve(None).ok().unwrap();
        assert_eq!(credential.kind(), SlotKind::Command);
        assert_eq!(credential.raw_key().unwrap().expose()[31], 31);
    }

    #[test]
    fn arguments_reach_the_program_without_a_shell() {
        let output = run(
            &["printf", "%s", "$HOME; `id` | *"].map(str::to_owned),
            KEY_COMMAND_TIMEOUT,
        );
        assert_eq!(output.unwrap().as_slice(), b"$HOME; `id` | *");
    }

    #[test]
    fn stdin_is_empty() {
        let output = sh("cat; echo end", KEY_COMMAND_TIMEOUT).unwrap();
        assert_eq!(output.as_slice(), b"end\n");
    }

    #[test]
    fn a_failing_command_gives_its_code_and_nothing_it_said() {
        let error = error("echo hunter2; echo hunter2 >&2; exit 3");
        assert!(matches!(error, KeyError::CommandExit { code: 3 }));
        assert!(!format!("{error} {error:?}").contains("hunter2"));
        assert!(matches!(
            super::tests::error("kill -9 $$"),
            KeyError::CommandKilled
        ));
    }

    #[test]
    fn printing_nothing_is_an_error() {
        assert!(matches!(error("true"), KeyError::CommandNoOutput));
        assert!(matches!(error("echo"), KeyError::CommandNoOutput));
    }

    #[test]
    fn printing_too_much_is_an_error_and_ends_the_command() {
        let exact = sh("head -c 4096 /dev/zero | tr '\\0' x", KEY_COMMAND_TIMEOUT);
        assert_eq!(exact.unwrap().len(), 4096);
        let more = error("head -c 4097 /dev/zero | tr '\\0' x");
        assert!(matches!(more, KeyError::CommandOutputTooLong));
        assert!(matches!(error("yes"), KeyError::CommandOutputTooLong));
    }

    #[test]
    fn a_slow_command_is_ended_with_its_children() {
        let dir = tempfile::tempdir().unwrap();
        let started = Instant::now();
        // The grandchild would keep the pipe open and write later on.
        let script = format!(
            "(sleep 2; touch {}) & sleep 60",
            dir.path().join("late").display()
        );
        let error = sh(&script, Duration::from_millis(200)).err().unwrap();
        assert!(matches!(error, KeyError::CommandTimeout { seconds: 1 }));
        assert!(started.elapsed() < Duration::from_secs(10));
        // Nothing of the group is left that could still write.
        let probe = sh(
            &format!("sleep 2.5; ls {}; echo end", dir.path().display()),
            KEY_COMMAND_TIMEOUT,
        );
        assert_eq!(probe.unwrap().as_slice(), b"end\n");
    }

    #[test]
    fn a_grandchild_that_keeps_the_pipe_open_does_not_hold_us() {
        let started = Instant::now();
        let output = sh("sleep 20 & echo line", KEY_COMMAND_TIMEOUT).unwrap();
        assert_eq!(output.as_slice(), b"line\n");
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_command_that_cannot_start_says_so() {
        assert!(matches!(
            run(&[], KEY_COMMAND_TIMEOUT),
            Err(KeyError::CommandEmpty)
        ));
        assert!(matches!(
            run(&[String::new()], KEY_COMMAND_TIMEOUT),
            Err(KeyError::CommandEmpty)
        ));
        assert!(matches!(
            run(&["/nonexistent/program".to_owned()], KEY_COMMAND_TIMEOUT),
            Err(KeyError::CommandStart { .. })
        ));
    }
}
