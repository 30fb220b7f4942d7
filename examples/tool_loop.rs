//! An agent's tool loop in Rust: asks the Messages API, carries out the memory tool's calls,
//! and goes on until the model is done.
//!
//! ```text
//! export ANTHROPIC_API_KEY=...
//! cargo run --release --example tool_loop -- ada "What do you remember of me?"
//! ```
//!
//! With `--compact` in front the API puts a summary in the place of old turns once there is much
//! context; otherwise it clears old tool results (`clear_tool_uses_20250919`). What the model
//! wrote into its memory stays either way. Requests go through `curl`, which this needs.

use std::env;
use std::error::Error;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use strongroom::attach::{Memory, Options};
use strongroom::key::KeySource;

/// Requests of one run. A model that asks for more is stuck.
const TURNS_MAX: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = env::args().skip(1).collect();
    let is_compacting = words.first().is_some_and(|word| word == "--compact");
    if is_compacting {
        words.remove(0);
    }
    let [user, prompt] = words.as_slice() else {
        return Err("usage: tool_loop [--compact] USER PROMPT".into());
    };
    let store = Options::new("memory")
        .key(KeySource::KeyFile("memory.key".into()))
        .create(true)
        .open()?;
    // The tenant comes from who is logged in, never from what the model or the user wrote.
    let memory = store.tenant(&format!("clinic/{user}"), Some("tool_loop"), None)?;
    for text in run(&memory, prompt, is_compacting)? {
        writeln!(std::io::stdout(), "{text}")?;
    }
    Ok(store.close()?)
}

/// Returns what the model says at the end.
fn run(memory: &Memory, prompt: &str, is_compacting: bool) -> Result<Vec<String>, Box<dyn Error>> {
    let (beta, edit) = if is_compacting {
        let trigger = json!({"type": "input_tokens", "value": 100_000});
        let edit = json!({"type": "compact_20260112", "trigger": trigger});
        ("compact-2026-01-12", edit)
    } else {
        let edit = json!({
            "type": "clear_tool_uses_20250919",
            "trigger": {"type": "input_tokens", "value": 50_000},
            "keep": {"type": "tool_uses", "value": 5},
        });
        ("context-management-2025-06-27", edit)
    };
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    for _ in 0..TURNS_MAX {
        let reply = ask(
            beta,
            &json!({
                "model": "claude-sonnet-5-5",
                "max_tokens": 4096,
                "tools": [serde_json::from_str::<Value>(strongroom::MEMORY_TOOL)?],
                "context_management": {"edits": [edit]},
                "messages": messages,
            }),
        )?;
        let blocks = reply.get("content").and_then(Value::as_array);
        let blocks = blocks.ok_or("no content")?.clone();
        // One result for each call, all of them in the next message.
        let mut results = Vec::new();
        for block in &blocks {
            if text(block, "type") != Some("tool_use") {
                continue;
            }
            let answer = memory.execute(&block.to_string());
            if let Some(failure) = &answer.failure {
                writeln!(std::io::stderr(), "{failure}")?;
            }
            results.push(serde_json::from_str::<Value>(&answer.to_json())?);
        }
        if results.is_empty() {
            let said = blocks.iter().filter_map(|block| text(block, "text"));
            return Ok(said.map(str::to_owned).collect());
        }
        messages.push(json!({"role": "assistant", "content": blocks}));
        messages.push(json!({"role": "user", "content": results}));
    }
    Err("the model asks for ever more".into())
}

fn text<'a>(block: &'a Value, field: &str) -> Option<&'a str> {
    block.get(field)?.as_str()
}

fn ask(beta: &str, request: &Value) -> Result<Value, Box<dyn Error>> {
    let base = env::var("ANTHROPIC_BASE_URL");
    let base = base.as_deref().unwrap_or("https://api.anthropic.com");
    let key = env::var("ANTHROPIC_API_KEY").map_err(|_| "set ANTHROPIC_API_KEY")?;
    let mut body = tempfile::NamedTempFile::new()?;
    body.write_all(request.to_string().as_bytes())?;
    // The key goes in through stdin: a command line can be read by every process.
    let config = format!(
        "url = \"{base}/v1/messages?beta=true\"\n\
         header = \"x-api-key: {key}\"\n\
         header = \"anthropic-version: 2023-06-01\"\n\
         header = \"anthropic-beta: {beta}\"\n\
         header = \"content-type: application/json\"\n\
         data-binary = \"@{}\"\n",
        body.path().display()
    );
    let mut curl = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--fail-with-body",
            "--config",
            "-",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    curl.stdin
        .take()
        .ok_or("no stdin")?
        .write_all(config.as_bytes())?;
    let done = curl.wait_with_output()?;
    if !done.status.success() {
        return Err(format!("the API refused: {}", String::from_utf8_lossy(&done.stdout)).into());
    }
    Ok(serde_json::from_slice(&done.stdout)?)
}
