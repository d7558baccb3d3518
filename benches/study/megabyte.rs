//! From a crash on a megabyte to its proven reproducer.

use std::process::Command;
use std::time::Instant;

use ddfuzz::campaign::generator::InputName;

/// A megabyte on which the bundled target crashes (ISSTA's sixteenth kind), and one on which
/// `boxes` of Debian 12 does.
const INPUT: &str = "all+nul+lines:0000000000000001:1000000";

/// Measures `ddfuzz min`, which runs the input first, and prints what it took.
pub fn measure() {
    let Ok(folder) = tempfile::tempdir() else {
        return;
    };
    let file = folder.path().join("input");
    let mut bytes = Vec::new();
    if let Ok(name) = INPUT.parse::<InputName>() {
        name.write_into(&mut bytes);
    }
    if std::fs::write(&file, &bytes).is_err() {
        return;
    }
    println!(
        "\na crash on {} bytes, confirmed and minimized (promised: less than 10 s)",
        bytes.len()
    );
    for target in [&["--target", "nroff"][..], &["--sandbox", "--", "boxes"]] {
        let began = Instant::now();
        let output = Command::new(env!("CARGO_BIN_EXE_ddfuzz"))
            .args(["min", "--json", "--no-config", "--force"])
            .arg(&file)
            .args(target)
            .output();
        let took = began.elapsed().as_secs_f64();
        let said = output.map(|output| output.stdout).unwrap_or_default();
        let result = serde_json::from_slice::<serde_json::Value>(&said).unwrap_or_default();
        let (claim, size) = (&result["claim"], &result["size_after"]);
        println!("{:16} {took:6.2} s  {claim} {size} bytes", target.join(" "));
    }
}
