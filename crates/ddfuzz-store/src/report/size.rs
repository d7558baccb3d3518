//! Formatting of sizes, counts and durations for people.

use std::time::Duration;

/// Units of sizes: the names of the powers of 1024 bytes.
const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// Size in bytes from which on sizes are rounded to KiB, MiB and so on; smaller sizes are shown
/// exactly, because each byte of a small reproducer counts.
const EXACT: u64 = 10_000;

/// Formats a size in bytes: `0 bytes`, `1 byte`, `2,121 bytes`, `40.0 KiB`, `2.1 GiB`.
pub fn bytes(size: u64) -> String {
    if size < EXACT {
        return counted(size, "byte");
    }
    let mut value = size as f64 / 1024.0;
    let mut unit = 0;
    // A value that would be rounded to 1024.0 is shown in the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// Formats a limit in bytes exactly as it was set: `10 bytes`, `100,000 bytes`, `64 KiB`.
pub fn limit(size: u64) -> String {
    let (mut value, mut unit) = (size, None);
    while value >= 1024 && value.is_multiple_of(1024) && unit < Some(UNITS.len() - 1) {
        value /= 1024;
        unit = Some(unit.map_or(0, |unit| unit + 1));
    }
    match unit {
        Some(unit) => format!("{} {}", grouped(value), UNITS[unit]),
        None => counted(size, "byte"),
    }
}

/// Formats a reduction in bytes: `40 → 6 bytes`, `1.0 MiB → 6 bytes`; where nothing was reduced,
/// the size alone: `40 bytes`.
pub fn reduction(before: u64, after: u64) -> String {
    match before == after {
        true => bytes(after),
        false => change(before, after),
    }
}

/// Formats two sizes in bytes, of which the second need not be smaller: `40 → 6 bytes`, `6 → 6
/// bytes`.
pub fn change(before: u64, after: u64) -> String {
    if before < EXACT && after < EXACT {
        format!("{} → {}", grouped(before), bytes(after))
    } else {
        format!("{} → {}", bytes(before), bytes(after))
    }
}

/// Formats a reduction in a unit other than bytes, whose singular is given: `12 → 3 units`; where
/// nothing was reduced, the count alone: `12 units`.
pub fn reduction_in(before: u64, after: u64, unit: &str) -> String {
    match before == after {
        true => counted(after, unit),
        false => format!("{} → {}", grouped(before), counted(after, unit)),
    }
}

/// Formats a count with its unit in singular or plural: `0 tests`, `1 test`, `12,345 tests`.
pub fn counted(count: u64, unit: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {unit}{plural}", grouped(count))
}

/// Formats a number with commas between groups of three digits: `12,345`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a duration in its two largest units: `0 ms`, `850 ms`, `12.3 s`, `4 m 05 s`, `2 h 03 m`.
pub fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{millis} ms"),
        1..60 => format!("{}.{} s", seconds, millis % 1000 / 100),
        60..3600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} m", seconds / 3600, seconds / 60 % 60),
    }
}
