//! Reads and makes the small files that hold a key or a passphrase.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::{KeyError, Random, SecretKey, line};

/// Most bytes of a key or passphrase file.
const FILE_BYTES_MAX: usize = 4096;

/// Makes a file with a new random key line: mode 0600 whatever the umask, on
/// disk (file and directory synced) when this returns.
///
/// # Errors
/// [`KeyError::FileExists`] (nothing is ever overwritten, symbolic links
/// included), [`KeyError::FileInsideStore`], [`KeyError::Random`],
/// [`KeyError::File`]. After an error there is no new file.
pub fn generate_key_file(
    path: &Path,
    store_dir: Option<&Path>,
    random: &dyn Random,
) -> Result<(), KeyError> {
    refuse_inside_store(path, store_dir)?;
    let key = SecretKey::random(random)?;
    let mut text = line::write(&key);
    text.reserve_exact(1);
    text.push('\n');

    let failed = |action, source: io::Error| file_error(action, path, source);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(|source| {
        if source.kind() == io::ErrorKind::AlreadyExists {
            KeyError::FileExists { path: path.into() }
        } else {
            failed("create", source)
        }
    })?;
    let written = restrict(&file)
        .and_then(|()| file.write_all(text.as_bytes()))
        .map_err(|source| failed("write", source))
        .and_then(|()| {
            file.sync_all()
                .and_then(|()| sync_directory(path))
                .map_err(|source| failed("sync", source))
        });
    if written.is_err() {
        // The file is ours (create_new) and holds no key anyone relies on yet.
        let _ = fs::remove_file(path);
    }
    written
}

/// The bytes of a key or passphrase file that passes every check.
///
/// Symbolic links are followed (container platforms mount secrets as links);
/// the checks are made on the file they lead to, through its open handle.
pub(super) fn read_secret(
    path: &Path,
    store_dir: Option<&Path>,
) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    refuse_inside_store(path, store_dir)?;
    let failed = |action, source| file_error(action, path, source);
    let mut options = OpenOptions::new();
    options.read(true);
    // Without this, opening a named pipe would wait for a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let mut file = options
        .open(path)
        .map_err(|source| failed("open", source))?;
    let metadata = file.metadata().map_err(|source| failed("read", source))?;
    if !metadata.is_file() {
        return Err(KeyError::FileNotRegular { path: path.into() });
    }
    refuse_exposed(path, &metadata)?;

    // One byte more than allowed shows a file that is too large or grows.
    let mut bytes = Zeroizing::new(vec![0; FILE_BYTES_MAX + 1]);
    let length = read_up_to(&mut file, &mut bytes).map_err(|source| failed("read", source))?;
    if length > FILE_BYTES_MAX {
        return Err(KeyError::FileTooLarge { path: path.into() });
    }
    if length == 0 {
        return Err(KeyError::FileEmpty { path: path.into() });
    }
    bytes.truncate(length);
    Ok(bytes)
}

fn file_error(action: &'static str, path: &Path, source: io::Error) -> KeyError {
    KeyError::File {
        action,
        path: path.into(),
        source,
    }
}

fn read_up_to(file: &mut File, out: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while let Some(free) = out.get_mut(length..).filter(|free| !free.is_empty()) {
        match file.read(free) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
}

/// Refuses a path that lies in `store_dir` once both are resolved. Neither
/// has to exist: what does not is judged by its nearest existing ancestor.
fn refuse_inside_store(path: &Path, store_dir: Option<&Path>) -> Result<(), KeyError> {
    let Some(store_dir) = store_dir else {
        return Ok(());
    };
    let resolve = |path: &Path| resolved(path).map_err(|source| file_error("open", path, source));
    let (file, store) = (resolve(path)?, resolve(store_dir)?);
    let inside = file.starts_with(&store)
        || file
            .ancestors()
            .any(|ancestor| same_directory(ancestor, &store));
    if inside {
        return Err(KeyError::FileInsideStore { path: path.into() });
    }
    Ok(())
}

/// The path without links and `..`, as far as it exists, and the rest as it is.
fn resolved(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    for ancestor in absolute.ancestors() {
        if let Ok(mut real) = ancestor.canonicalize() {
            // Invariant: an ancestor is a prefix of what it is an ancestor of.
            if let Ok(rest) = absolute.strip_prefix(ancestor) {
                real.extend(rest);
            }
            return Ok(real);
        }
    }
    Ok(absolute)
}

/// The same directory under two names (bind mounts, case-folding file systems).
#[cfg(unix)]
fn same_directory(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.dev() == b.dev() && a.ino() == b.ino(),
        _ => false,
    }
}

#[cfg(not(unix))]
fn same_directory(a: &Path, b: &Path) -> bool {
    a == b
}

#[cfg(unix)]
fn refuse_exposed(path: &Path, metadata: &fs::Metadata) -> Result<(), KeyError> {
    use std::os::unix::fs::PermissionsExt;
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 != 0 {
        return Err(KeyError::FileExposed {
            path: path.into(),
            mode,
        });
    }
    Ok(())
}

#[cfg(not(unix))]
fn refuse_exposed(_path: &Path, _metadata: &fs::Metadata) -> Result<(), KeyError> {
    Ok(())
}

#[cfg(unix)]
fn restrict(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o600))
}

#[cfg(not(unix))]
fn restrict(_file: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(parent)?.sync_all()
}

#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;
    use crate::key::testing::FailingRandom;
    use crate::key::{KeySource, OsRandom, SlotKind};

    fn write(path: &Path, bytes: &[u8], mode: u32) {
        fs::write(path, bytes).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn read_error(path: &Path, store_dir: Option<&Path>) -> KeyError {
        read_secret(path, store_dir).err().unwrap()
    }

    #[test]
    fn a_generated_key_file_is_private_and_opens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        generate_key_file(&path, None, &OsRandom).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("strongroom-key-1 ") && text.ends_with('\n'));
        let credential = KeySource::KeyFile(path.clone()).resolve(None).ok().unwrap();
        assert_eq!(credential.kind(), SlotKind::KeyFile);

        let other = dir.path().join("other");
        generate_key_file(&other, None, &OsRandom).unwrap();
        assert_ne!(text, fs::read_to_string(&other).unwrap());
    }

    #[test]
    fn a_key_file_is_never_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write(&path, b"precious", 0o600);
        let link = dir.path().join("link");
        symlink(dir.path().join("nowhere"), &link).unwrap();
        for path in [&path, &link] {
            assert!(matches!(
                generate_key_file(path, None, &OsRandom),
                Err(KeyError::FileExists { .. })
            ));
        }
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        assert!(!dir.path().join("nowhere").exists());
    }

    #[test]
    fn a_failing_random_source_leaves_no_key_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        assert!(matches!(
            generate_key_file(&path, None, &FailingRandom),
            Err(KeyError::Random)
        ));
        assert!(!path.exists());
    }

    #[test]
    fn a_file_that_others_may_touch_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for mode in [0o640, 0o620, 0o610, 0o604, 0o602, 0o601, 0o644] {
            write(&path, b"x", mode);
            let error = read_error(&path, None);
            assert!(matches!(error, KeyError::FileExposed { mode: found, .. } if found == mode));
        }
        for mode in [0o600, 0o400] {
            write(&path, b"x", 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read_secret(&path, None).unwrap().as_slice(), b"x");
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_file_inside_the_store_is_refused_by_every_name() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        fs::create_dir_all(store.join("deep")).unwrap();
        let inside = store.join("deep/key");
        write(&inside, b"x", 0o600);
        let file_link = dir.path().join("file-link");
        symlink(&inside, &file_link).unwrap();
        let dir_link = dir.path().join("dir-link");
        symlink(&store, &dir_link).unwrap();
        let dotted = store.join("../store/./deep/../deep/key");
        for path in [&inside, &file_link, &dir_link.join("deep/key"), &dotted] {
            for store in [&store, &dir_link] {
                let error = read_error(path, Some(store));
                assert!(matches!(error, KeyError::FileInsideStore { .. }), "{error}");
            }
        }
        assert!(matches!(
            generate_key_file(&store.join("new"), Some(&store), &OsRandom),
            Err(KeyError::FileInsideStore { .. })
        ));
        // A store that is yet to be made counts as well.
        let future = dir.path().join("future");
        assert!(matches!(
            generate_key_file(&future.join("key"), Some(&future), &OsRandom),
            Err(KeyError::FileInsideStore { .. })
        ));
        // A sibling whose name only starts the same is outside.
        let sibling = dir.path().join("store-key");
        generate_key_file(&sibling, Some(&store), &OsRandom).unwrap();
        assert!(read_secret(&sibling, Some(&store)).is_ok());
    }

    #[test]
    fn a_link_is_judged_by_the_file_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("target");
        let link = dir.path().join("link");
        symlink(&target, &link).unwrap();
        assert!(matches!(read_error(&link, None), KeyError::File { .. }));
        write(&target, b"x", 0o600);
        assert!(read_secret(&link, None).is_ok());
        write(&target, b"x", 0o644);
        assert!(matches!(
            read_error(&link, None),
            KeyError::FileExposed { .. }
        ));
    }

    #[test]
    fn only_a_regular_file_of_1_to_4096_bytes_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        write(&path, &[b'x'; 4096], 0o600);
        assert_eq!(read_secret(&path, None).unwrap().len(), 4096);
        write(&path, &[b'x'; 4097], 0o600);
        assert!(matches!(
            read_error(&path, None),
            KeyError::FileTooLarge { .. }
        ));
        write(&path, b"", 0o600);
        assert!(matches!(
            read_error(&path, None),
            KeyError::FileEmpty { .. }
        ));
        assert!(matches!(
            read_error(dir.path(), None),
            KeyError::FileNotRegular { .. }
        ));
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert!(matches!(
            read_error(&pipe, None),
            KeyError::FileNotRegular { .. }
        ));
        assert!(matches!(
            read_error(&dir.path().join("missing"), None),
            KeyError::File { action: "open", .. }
        ));
    }

    #[test]
    fn a_passphrase_file_gives_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("passphrase");
        let resolve = |bytes: &[u8]| {
            write(&path, bytes, 0o600);
            KeySource::PassphraseFile(path.clone()).resolve(None)
        };
        for bytes in [
            &b" two words "[..],
            b" two words \n",
            b" two words \r\n",
            b" two words \nsecond\n",
        ] {
            let credential = resolve(bytes).ok().unwrap();
            assert_eq!(credential.kind(), SlotKind::Passphrase);
            assert_eq!(credential.passphrase(), Some(" two words "));
        }
        for bytes in [&b"\n"[..], b"\r\n", b"\nsecond"] {
            let error = resolve(bytes).err().unwrap();
            assert!(matches!(error, KeyError::EmptyPassphrase));
        }
        assert!(matches!(
            resolve(b"caf\xe9\n").err().unwrap(),
            KeyError::PassphraseNotUtf8
        ));
    }

    #[test]
    fn errors_about_a_file_never_quote_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for text in [
            "hunter2",
            "strongroom-key-1 hunter2",
            "strongroom-key-2 hunter2",
        ] {
            write(&path, text.as_bytes(), 0o600);
            let error = KeySource::KeyFile(path.clone())
                .resolve(None)
                .err()
                .unwrap();
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }
}
