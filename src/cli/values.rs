//! Values of options as users write them: times, sizes, addresses.

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

/// Returns the name of the first given option; `None` if none is given. `options` are pairs of an
/// option's name and whether it is given.
pub fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    let given = options.iter().find(|(_, is_given)| *is_given);
    given.map(|(name, _)| *name)
}

/// Parses a network address. A host name is resolved to its first IPv4 address; if it has none, to
/// its first address of another kind. The error says how to write an address.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().map_err(|error| {
        format!("{error}; write an address like localhost:1337 or 127.0.0.1:1337")
    })?;
    // Brokers listen at addresses of version 4 only.
    let (first, others): (Vec<_>, Vec<_>) = found.partition(SocketAddr::is_ipv4);
    let all = first.into_iter().chain(others).next();
    all.ok_or_else(|| format!("{text} has no address"))
}

/// Parses a time from the command line: a number with `ms`, `s`, `m` or `h`; a number without a
/// unit is in seconds.
pub fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    let seconds = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("write a time with ms, s, m or h, like 90s".to_owned()),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| "write a time as a number with ms, s, m or h, like 90s".to_owned())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|error| error.to_string())
}

/// Parses a size in bytes from the command line: a whole number, with `K`, `M` or `G` for powers of
/// 1024.
pub fn size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor: u64 = match unit {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" | "m" => 1 << 20,
        "G" | "g" => 1 << 30,
        _ => return Err("write a size in bytes, or with K, M or G, like 2G".to_owned()),
    };
    let number: u64 = number
        .parse()
        .map_err(|_| "write a size as a whole number, or with K, M or G, like 2G".to_owned())?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "the size is too large".to_owned())
}

/// Parses a time limit: a time of at least one millisecond.
pub fn time_limit(text: &str) -> Result<Duration, String> {
    match time(text)? {
        limit if limit < Duration::from_millis(1) => Err("the shortest limit is 1ms".to_owned()),
        limit => Ok(limit),
    }
}

/// Smallest accepted memory limit of a run, in bytes; no program starts with less.
const LEAST_MEMORY: u64 = 1 << 20;

/// Parses a memory limit: a size of at least 1 MiB.
pub fn memory_limit(text: &str) -> Result<u64, String> {
    match size(text)? {
        limit if limit < LEAST_MEMORY => Err(format!(
            "{limit} bytes are too few for any program, the minimum is 1M; write 512M or 2G for \
             megabytes or gigabytes"
        )),
        limit => Ok(limit),
    }
}

fn split(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_take_their_units() {
        assert_eq!(time("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(time("1.5m").unwrap(), Duration::from_secs(90));
        assert_eq!(time("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(size("2G").unwrap(), 2 << 30);
        assert_eq!(size("1000").unwrap(), 1000);
    }

    #[test]
    fn nonsense_is_refused_with_a_reason() {
        for text in ["", "s", "1y", "-1s", "1e9999h"] {
            assert!(time(text).is_err(), "{text}");
        }
        assert!(size("99999999999G").is_err());
        assert!(time_limit("0").is_err() && time_limit("0.1ms").is_err());
        assert!(memory_limit("0K").is_err() && memory_limit("1").is_err());
        assert_eq!(memory_limit("1M").unwrap(), 1 << 20);
    }
}
