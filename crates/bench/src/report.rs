//! Prints what was measured as tables, and keeps it for the JSON file.

use serde_json::{Value, json};

/// The latencies of one contender on one workload, in nanoseconds.
pub struct Series {
    pub contender: String,
    pub nanos: Vec<u64>,
}

/// All that was measured so far.
#[derive(Default)]
pub struct Report {
    entries: Vec<Value>,
}

impl Report {
    /// Rows of one workload: rates, quantiles, and each contender's time against the first one's.
    pub fn series(&mut self, workload: &str, all: &[Series]) {
        println!("\n{workload}");
        println!(
            "  {:<34} {:>10} {:>11} {:>11} {:>8}",
            "", "ops/s", "p50 us", "p99 us", "ratio"
        );
        let first = all
            .first()
            .map_or(1.0, |series| quantile(&series.nanos, 0.5));
        for series in all {
            let (p50, p99) = (quantile(&series.nanos, 0.5), quantile(&series.nanos, 0.99));
            let rate = rate(&series.nanos);
            println!(
                "  {:<34} {rate:>10.0} {:>11.1} {:>11.1} {:>8.2}",
                series.contender,
                p50 / 1e3,
                p99 / 1e3,
                p50 / first
            );
            self.entries.push(json!({
                "workload": workload, "contender": series.contender, "ops": series.nanos.len(),
                "ops_per_second": rate, "p50_us": p50 / 1e3, "p99_us": p99 / 1e3,
                "p50_to_first": p50 / first,
            }));
        }
    }

    /// One figure, and what it should be.
    pub fn figure(&mut self, name: &str, value: f64, unit: &str, target: &str) {
        let aim = if target.is_empty() {
            String::new()
        } else {
            format!("   (aim: {target})")
        };
        println!("  {name:<58} {value:>12.2} {unit}{aim}");
        self.entries
            .push(json!({ "figure": name, "value": value, "unit": unit, "aim": target }));
    }

    /// A heading, in print only.
    pub fn heading(&self, text: &str) {
        println!("\n{text}");
    }

    /// Everything as JSON.
    pub fn to_json(&self, about: Value) -> Value {
        json!({ "about": about, "entries": self.entries })
    }
}

/// Operations a second, from the sum of their times.
pub fn rate(nanos: &[u64]) -> f64 {
    let sum: u64 = nanos.iter().sum();
    nanos.len() as f64 * 1e9 / sum.max(1) as f64
}

/// A quantile by rank.
pub fn quantile(nanos: &[u64], share: f64) -> f64 {
    let mut sorted = nanos.to_vec();
    sorted.sort_unstable();
    let rank = ((sorted.len() as f64 * share) as usize).min(sorted.len().saturating_sub(1));
    sorted.get(rank).copied().unwrap_or(0) as f64
}

/// The middle one.
pub fn median(nanos: &[u64]) -> f64 {
    quantile(nanos, 0.5)
}
