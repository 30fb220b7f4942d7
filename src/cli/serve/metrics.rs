//! Counts what the server does, and writes it as Prometheus text.
//!
//! Labels are commands, outcomes, statuses and ids of redaction rules: no tenant, no path.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use strongroom::{Answer, ClockState, Error, Vault};

/// Upper ends of the histogram's buckets, in seconds.
const BUCKETS: [f64; 12] = [
    0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

#[derive(Default)]
pub struct Metrics(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    operations: BTreeMap<(&'static str, &'static str), u64>,
    seconds: BTreeMap<&'static str, Histogram>,
    redactions: BTreeMap<String, u64>,
    responses: BTreeMap<u16, u64>,
}

#[derive(Default)]
struct Histogram {
    /// For each bucket, and one more for all others.
    counts: [u64; BUCKETS.len() + 1],
    sum: f64,
}

impl Metrics {
    /// Counts one command that the store was asked for.
    pub fn operation(&self, answer: &Answer, took: Duration) {
        let command = answer.command.unwrap_or("malformed");
        let outcome = match (&answer.failure, answer.reply.is_error) {
            (Some(_), _) => "failed",
            (None, true) => "refused",
            (None, false) => "ok",
        };
        let mut counts = self.counts();
        *counts.operations.entry((command, outcome)).or_default() += 1;
        counts.seconds.entry(command).or_default().add(took);
        for (rule, count) in &answer.rules {
            *counts.redactions.entry(rule.clone()).or_default() += count;
        }
    }

    /// Counts one answer to an HTTP request.
    pub fn response(&self, status: u16) {
        *self.counts().responses.entry(status).or_default() += 1;
    }

    /// All figures, those of the store included.
    pub fn text(&self, vault: &Vault, connections: usize) -> Result<String, Error> {
        let stats = vault.stats()?;
        let mut out = Text::default();
        self.counts().write(&mut out);
        let number = |out: &mut Text, name: &str, kind: &str, help: &str, value: u64| {
            out.family(name, kind, help);
            out.sample(name, "", &value.to_string());
        };
        let gauge = |out: &mut Text, name: &str, help: &str, value: u64| {
            number(out, name, "gauge", help, value);
        };
        gauge(
            &mut out,
            "strongroom_http_connections",
            "Connections that are open.",
            connections as u64,
        );
        gauge(
            &mut out,
            "strongroom_tenants",
            "Tenants that have a memory.",
            stats.tenants.len() as u64,
        );
        gauge(
            &mut out,
            "strongroom_tenants_unreadable",
            "Tenants whose keys are missing or damaged.",
            stats.unreadable.len() as u64,
        );
        gauge(
            &mut out,
            "strongroom_files",
            "Files in all tenants' memories, expired ones that are not removed yet included.",
            stats.tenants.iter().map(|tenant| tenant.files).sum(),
        );
        gauge(
            &mut out,
            "strongroom_content_bytes",
            "Bytes of their contents.",
            stats.tenants.iter().map(|tenant| tenant.bytes).sum(),
        );
        number(
            &mut out,
            "strongroom_commits_total",
            "counter",
            "Commits since the store was made.",
            stats.commits,
        );
        gauge(
            &mut out,
            "strongroom_pending_removals",
            "Removals that are not finished yet.",
            stats.pending_removals,
        );
        gauge(
            &mut out,
            "strongroom_writable",
            "1 while the store takes writes.",
            u64::from(vault.check_writable().is_ok()),
        );
        gauge(
            &mut out,
            "strongroom_clock_believed",
            "1 while the clock is believed; otherwise nothing expires.",
            u64::from(stats.clock == ClockState::Trusted),
        );
        for (name, help, at) in [
            (
                "strongroom_expiry_due_seconds",
                "No file expires before this moment, in seconds since 1970. Left out where none ever does.",
                stats.due_after,
            ),
            (
                "strongroom_oldest_access_seconds",
                "No file was last accessed before this moment, in seconds since 1970.",
                stats.oldest_access,
            ),
        ] {
            if let Some(at) = at {
                gauge(&mut out, name, help, at / 1_000);
            }
        }
        Ok(out.0)
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn write(&self, out: &mut Text) {
        let name = "strongroom_operations_total";
        out.family(
            name,
            "counter",
            "Commands, by outcome: ok, refused, failed.",
        );
        for ((command, outcome), count) in &self.operations {
            let labels = format!("command=\"{command}\",outcome=\"{outcome}\"");
            out.sample(name, &labels, &count.to_string());
        }
        let name = "strongroom_operation_seconds";
        out.family(name, "histogram", "Time that the store took for a command.");
        for (command, histogram) in &self.seconds {
            histogram.write(out, name, command);
        }
        let name = "strongroom_redactions_total";
        out.family(name, "counter", "Values that were removed, by rule.");
        for (rule, count) in &self.redactions {
            out.sample(
                name,
                &format!("rule=\"{}\"", escaped(rule)),
                &count.to_string(),
            );
        }
        let name = "strongroom_http_responses_total";
        out.family(name, "counter", "Answers to HTTP requests, by status.");
        for (status, count) in &self.responses {
            out.sample(name, &format!("status=\"{status}\""), &count.to_string());
        }
    }
}

impl Histogram {
    fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.sum += seconds;
        let at = BUCKETS.iter().position(|end| seconds <= *end);
        if let Some(count) = self.counts.get_mut(at.unwrap_or(BUCKETS.len())) {
            *count += 1;
        }
    }

    fn write(&self, out: &mut Text, name: &str, command: &str) {
        let mut below = 0;
        let ends = BUCKETS.iter().map(ToString::to_string);
        for (end, count) in ends.chain(["+Inf".to_owned()]).zip(self.counts) {
            below += count;
            let labels = format!("command=\"{command}\",le=\"{end}\"");
            out.sample(&format!("{name}_bucket"), &labels, &below.to_string());
        }
        let labels = format!("command=\"{command}\"");
        out.sample(&format!("{name}_sum"), &labels, &self.sum.to_string());
        out.sample(&format!("{name}_count"), &labels, &below.to_string());
    }
}

/// Prometheus text, version 0.0.4.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _written = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &str, value: &str) {
        let _written = if labels.is_empty() {
            writeln!(self.0, "{name} {value}")
        } else {
            writeln!(self.0, "{name}{{{labels}}} {value}")
        };
    }
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_add_up_and_what_is_counted_is_written() {
        let vault = Vault::builder().in_memory().open().unwrap();
        let tenant = vault.tenant("a").unwrap();
        let metrics = Metrics::default();
        let inputs = [
            r#"{"command":"create","path":"/memories/a","file_text":"password: hunter2hunter2"}"#,
            r#"{"command":"create","path":"/memories/a","file_text":"x"}"#,
            "{}",
        ];
        for (input, millis) in inputs.iter().zip([1, 3, 20_000]) {
            metrics.operation(&tenant.execute(input), Duration::from_millis(millis));
        }
        metrics.response(401);
        let text = metrics.text(&vault, 7).unwrap();
        for line in [
            r#"strongroom_operations_total{command="create",outcome="ok"} 1"#,
            r#"strongroom_operations_total{command="create",outcome="refused"} 1"#,
            r#"strongroom_operations_total{command="malformed",outcome="refused"} 1"#,
            r#"strongroom_operation_seconds_bucket{command="create",le="0.001"} 1"#,
            r#"strongroom_operation_seconds_bucket{command="create",le="0.005"} 2"#,
            r#"strongroom_operation_seconds_bucket{command="malformed",le="10"} 0"#,
            r#"strongroom_operation_seconds_bucket{command="malformed",le="+Inf"} 1"#,
            r#"strongroom_operation_seconds_count{command="create"} 2"#,
            r#"strongroom_redactions_total{rule="password"} 1"#,
            r#"strongroom_http_responses_total{status="401"} 1"#,
            "strongroom_http_connections 7",
            "strongroom_files 1",
            "strongroom_tenants 1",
            "strongroom_writable 1",
            "strongroom_clock_believed 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
