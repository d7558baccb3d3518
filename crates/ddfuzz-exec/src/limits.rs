//! What one run may use.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on one run. Hangs are judged by CPU time; the wall limit behind it only catches
/// sleepers, because wall clocks lie on a busy machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// CPU time of the run's process tree.
    #[serde(rename = "cpu_ms", with = "millis")]
    #[schemars(with = "u64")]
    pub cpu: Duration,
    /// Wall time.
    #[serde(rename = "wall_ms", with = "millis")]
    #[schemars(with = "u64")]
    pub wall: Duration,
    /// Resident memory, in bytes.
    pub memory: u64,
    /// Largest file that may be written, in bytes.
    pub file_size: u64,
    /// Processes and threads at one time.
    pub processes: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::with_cpu(Duration::from_secs(1))
    }
}

impl Limits {
    /// The default limits with this CPU time, and the wall limit that belongs behind it:
    /// twice as long, at least 2 s.
    pub fn with_cpu(cpu: Duration) -> Limits {
        Limits {
            cpu,
            wall: cpu.saturating_mul(2).max(Duration::from_secs(2)),
            memory: 1 << 30,
            file_size: 64 << 20,
            processes: 64,
        }
    }
}

/// Durations as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.as_millis().try_into().unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }
}
