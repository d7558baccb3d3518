//! The list of bundled targets.

use serde::Serialize;

use crate::cli::Output;
use crate::exec::bundled;

#[derive(Serialize)]
struct Listed {
    targets: Vec<ListedTarget>,
}

#[derive(Serialize)]
struct ListedTarget {
    name: &'static str,
    summary: &'static str,
}

/// Lists them.
pub(super) fn list_targets(output: &Output) {
    let targets: Vec<ListedTarget> = bundled::list()
        .into_iter()
        .map(|bundled| ListedTarget {
            name: bundled.name,
            summary: bundled.summary,
        })
        .collect();
    let mut text =
        "Targets that come with ddfuzz, for --target NAME (or give any program after `--`):\n"
            .to_owned();
    for target in &targets {
        text.push_str(&format!("  {:<15} {}\n", target.name, target.summary));
    }
    output.result(&text, &Listed { targets });
}
