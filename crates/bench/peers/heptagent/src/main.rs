//! Runs tool inputs on `heptagent-memory-tool-backend` and times each call.
//!
//! One request a line: `{"inputs": [...]}`; one answer a line: `{"nanos": [...], "failed": n}`.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use heptagent_memory_tool_backend::{
    MemoryCommand, MemoryDispatcher, QuestRateLimiter, RedbMemoryBackend,
};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = std::env::args().nth(1).ok_or("which directory?")?;
    std::fs::create_dir_all(&home)?;
    let backend = RedbMemoryBackend::new(&Path::new(&home).join("memory.redb"))?;
    let dispatcher = MemoryDispatcher::new(backend, QuestRateLimiter::new(u32::MAX));
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", json!({ "version": "0.1.0" }))?;
    for line in std::io::stdin().lock().lines() {
        let mut request: Value = serde_json::from_str(&line?)?;
        let (mut nanos, mut failed) = (Vec::new(), 0);
        for input in request["inputs"].as_array_mut().ok_or("no inputs")? {
            // Its paths are relative.
            for field in ["path", "old_path", "new_path"] {
                if let Some(path) = input.get(field).and_then(Value::as_str) {
                    input[field] = path.trim_start_matches("/memories/").into();
                }
            }
            let command: MemoryCommand = serde_json::from_value(input.take())?;
            let start = Instant::now();
            let result = runtime.block_on(dispatcher.dispatch(command));
            nanos.push(start.elapsed().as_nanos() as u64);
            if result.is_error {
                failed += 1;
                eprintln!("{}", result.content);
            }
        }
        writeln!(out, "{}", json!({ "nanos": nanos, "failed": failed }))?;
        out.flush()?;
    }
    Ok(())
}
