//! Who runs the workload: this store in the process itself, others through small workers.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use strongroom::Tenant;

use crate::Res;

/// Takes tool inputs and says how long each took, in nanoseconds. A failed one is an error.
pub trait Contender {
    fn name(&self) -> &str;
    fn run(&mut self, inputs: &[Value]) -> Res<Vec<u64>>;
}

/// This store, called as a Rust program calls it.
pub struct Own {
    pub name: String,
    pub tenant: Tenant,
}

impl Contender for Own {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, inputs: &[Value]) -> Res<Vec<u64>> {
        run_on(&self.tenant, inputs)
    }
}

/// Runs inputs on a tenant.
pub fn run_on(tenant: &Tenant, inputs: &[Value]) -> Res<Vec<u64>> {
    let mut nanos = Vec::with_capacity(inputs.len());
    for input in inputs {
        let request = strongroom::wire::parse(input.to_string().as_bytes());
        let command = request.command.map_err(|_| "an input that is none")?;
        let start = Instant::now();
        let reply = tenant.run(&command)?;
        nanos.push(start.elapsed().as_nanos() as u64);
        if reply.is_error {
            return Err(reply.as_text().unwrap_or("refused").into());
        }
    }
    Ok(nanos)
}

/// Another memory tool, in a process of its own that times itself.
pub struct Peer {
    name: String,
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// The peers that `setup` has installed below `peers`, each on a directory of its own in `home`.
/// Those that are missing are named.
pub fn peers(peers: Option<&Path>, home: &Path) -> (Vec<Peer>, Vec<&'static str>) {
    const ALL: [(&str, &str, &[&str]); 3] = [
        ("Python SDK", "python/bin/python", &["python/worker.py"]),
        ("TypeScript SDK", "node", &["node/worker.mjs"]),
        (
            "heptagent (redb)",
            "heptagent/bin/strongroom-bench-heptagent",
            &[],
        ),
    ];
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (name, program, args) in ALL {
        let peer = peers.and_then(|peers| {
            let local = peers.join(program);
            let program = if name.starts_with("Type") {
                program.into()
            } else {
                local
            };
            let args: Vec<_> = args.iter().map(|arg| peers.join(arg)).collect();
            Peer::start(name, &program, &args, &home.join(name.replace(' ', "-"))).ok()
        });
        match peer {
            Some(peer) => found.push(peer),
            None => missing.push(name),
        }
    }
    (found, missing)
}

impl Peer {
    fn start(name: &str, program: &Path, args: &[std::path::PathBuf], home: &Path) -> Res<Self> {
        let mut child = Command::new(program)
            .args(args)
            .arg(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let to = child.stdin.take().ok_or("no stdin")?;
        let mut from = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        let mut line = String::new();
        from.read_line(&mut line)?;
        let hello: Value = serde_json::from_str(&line)?;
        let version = hello.get("version").and_then(Value::as_str).unwrap_or("?");
        let name = format!("{name} {version}");
        Ok(Self {
            name,
            child,
            to,
            from,
        })
    }
}

impl Contender for Peer {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&mut self, inputs: &[Value]) -> Res<Vec<u64>> {
        writeln!(self.to, "{}", json!({ "inputs": inputs }))?;
        self.to.flush()?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        let answer: Value = serde_json::from_str(&line)?;
        if answer.get("failed").and_then(Value::as_u64) != Some(0) {
            return Err(format!("{} failed", self.name).into());
        }
        let nanos = answer
            .get("nanos")
            .and_then(Value::as_array)
            .ok_or("no times")?;
        Ok(nanos.iter().filter_map(Value::as_u64).collect())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends with its input; one that does not must not outlive the bench.
        let _killed = self.child.kill();
        let _reaped = self.child.wait();
    }
}
