//! Reads passwords given to command-line tools: `curl -u user:pass`, `mysql -pPASS`, `sshpass -p PASS`.

use super::super::placeholder;
use super::super::text::{Text, is_blank, is_random};
use super::value;
use super::{Scene, Span};

/// How far behind the command's name its options are looked for, in bytes.
const REACH: usize = 400;

/// How an option holds its password.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// `-u user:password`.
    Pair,
    /// `-p password`.
    Apart,
    /// `-ppassword`.
    Glued,
}

/// A tool and the option that takes a password.
#[rustfmt::skip]
const OPTIONS: &[(&str, &str, Form)] = &[
    ("curl", "-u", Form::Pair), ("curl", "--user", Form::Pair), ("curl", "--proxy-user",
    Form::Pair), ("curl", "-U", Form::Pair), ("http", "-a", Form::Pair), ("https", "-a",
    Form::Pair), ("http", "--auth", Form::Pair), ("wget", "--http-password", Form::Apart), ("mysql",
    "-p", Form::Glued), ("mysqldump", "-p", Form::Glued), ("mysqladmin", "-p", Form::Glued),
    ("mariadb", "-p", Form::Glued), ("sshpass", "-p", Form::Glued), ("sshpass", "-p", Form::Apart),
    ("docker", "-p", Form::Apart), ("podman", "-p", Form::Apart), ("helm", "-p", Form::Apart),
    ("oc", "-p", Form::Apart), ("az", "-p", Form::Apart), ("redis-cli", "-a", Form::Apart),
    ("mongo", "-p", Form::Apart), ("mongosh", "-p", Form::Apart), ("mongodump", "-p", Form::Apart),
    ("sqlcmd", "-P", Form::Apart), ("bcp", "-P", Form::Apart), ("ldapsearch", "-w", Form::Apart),
    ("ldapadd", "-w", Form::Apart), ("ldapmodify", "-w", Form::Apart), ("smbclient", "-U",
    Form::Pair), ("htpasswd", "-b", Form::Apart), ("openssl", "-passin", Form::Pair), ("openssl",
    "-passout", Form::Pair), ("openssl", "-k", Form::Apart), ("keytool", "-storepass", Form::Apart),
    ("keytool", "-keypass", Form::Apart), ("rabbitmqctl", "add_user", Form::Apart), ("7z", "-p",
    Form::Glued), ("zip", "-P", Form::Apart), ("unzip", "-P", Form::Apart), ("cqlsh", "-p",
    Form::Apart), ("influx", "-password", Form::Apart), ("impacket", "-p", Form::Apart),
    ("mosquitto_pub", "-P", Form::Apart), ("mosquitto_sub", "-P", Form::Apart), ("snmpwalk", "-A",
    Form::Apart), ("ipmitool", "-P", Form::Apart), ("xfreerdp", "/p:", Form::Glued), ("net use",
    "/user:", Form::Apart), ("vncviewer", "-passwd", Form::Apart),
];

/// Reads the options of the command whose name is at `hit`.
pub(super) fn read(scene: Scene<'_>, hit: Span, found: &mut Vec<Span>) {
    let text = scene.text;
    if text.before(hit.0).is_ascii_alphanumeric() || !is_blank(text.at(hit.1)) {
        return;
    }
    let name = text.cut(hit.0, hit.1);
    let end = command_end(text, hit.1);
    let options: Vec<(&str, Form)> = OPTIONS
        .iter()
        .filter(|o| name.eq_ignore_ascii_case(o.0.as_bytes()))
        .map(|o| (o.1, o.2))
        .collect();
    let login = matches!(
        name.to_ascii_lowercase().as_slice(),
        b"docker" | b"podman" | b"helm" | b"oc" | b"az"
    );
    if login && text.find(hit.1, end, b" login").is_none() {
        return;
    }
    for at in hit.1..end {
        if !text.at(at).is_ascii_whitespace() {
            continue;
        }
        // The next call of the same tool is another hit.
        if text.has(at + 1, name) {
            return;
        }
        for &(option, form) in &options {
            if text.cut(at + 1, at + 1 + option.len()) == option.as_bytes() {
                take(scene, at + 1 + option.len(), form, found);
            }
        }
    }
}

/// The end of the command: the line, and lines that go on after a backslash.
fn command_end(text: Text<'_>, from: usize) -> usize {
    let mut end = text.line_end(from, REACH);
    while text.before(end) == b'\\' && end - from < REACH {
        end = text.line_end(end + 1, REACH);
    }
    end
}

fn take(scene: Scene<'_>, at: usize, form: Form, found: &mut Vec<Span>) {
    let text = scene.text;
    let next = text.at(at);
    let from = match form {
        Form::Glued if next.is_ascii_whitespace() || next == b'=' => return,
        Form::Glued => at,
        _ if next == b'=' => at + 1,
        _ if is_blank(next) => text.skip(at, 4, is_blank),
        // `-uuser:pass`, as curl takes it too.
        Form::Pair if next != b'-' => at,
        _ => return,
    };
    let Some(v) = value::read(text, from) else {
        return;
    };
    let bytes = text.cut(v.span.0, v.span.1);
    if bytes.starts_with(b"-") {
        return;
    }
    let (start, secret) = if form == Form::Pair {
        let Some(n) = bytes.iter().position(|&b| b == b':' || b == b'%') else {
            return;
        };
        let start = v.span.0 + n + 1;
        if bytes.starts_with(b"env:") || bytes.starts_with(b"file:") {
            return;
        }
        let user = text.cut(v.span.0, v.span.0 + n);
        if n + 1 == bytes.len() {
            // `-u sk_live_…:` has the key as its user.
            if user.len() >= 16 && is_random(user) {
                found.push((v.span.0, v.span.0 + n));
            }
            return;
        }
        (start, text.cut(start, v.span.1))
    } else {
        (v.span.0, bytes)
    };
    let port = secret.contains(&b':')
        && secret
            .iter()
            .all(|b| b.is_ascii_digit() || matches!(b, b':' | b'.'));
    let live = secret.len() >= 3
        && !scene.ids.is_all_markers(secret)
        && !placeholder::is_placeholder(secret)
        && !placeholder::is_reference(secret, true)
        // `docker run -p 8080:80` maps a port.
        && !port;
    if live {
        found.push((start, v.span.1));
    }
}
