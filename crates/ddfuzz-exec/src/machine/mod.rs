//! What this machine allows of what running targets needs: each thing is tried, not read off,
//! where it can be tried without harm.

mod capacity;
mod isolation;
mod kernel;
mod trial;

use serde::Serialize;

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum About {
    /// The machine, and what it allows its users.
    Machine,
    /// The target.
    Target,
}

/// Something that running targets profits from, whether it is so, and how it would be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, for scripts.
    pub name: &'static str,
    /// What it is about.
    pub about: About,
    /// Whether all is well.
    pub ok: bool,
    /// What was found, in one line.
    pub detail: String,
    /// What would mend it: a command or a sentence; `None` where all is well.
    pub fix: Option<String>,
}

impl Check {
    /// All is well.
    pub fn good(about: About, name: &'static str, detail: impl Into<String>) -> Check {
        Check {
            name,
            about,
            ok: true,
            detail: detail.into(),
            fix: None,
        }
    }

    /// Something is missing, and `fix` would mend it.
    pub fn bad(
        about: About,
        name: &'static str,
        detail: impl Into<String>,
        fix: impl Into<String>,
    ) -> Check {
        Check {
            name,
            about,
            ok: false,
            detail: detail.into(),
            fix: Some(fix.into()),
        }
    }
}

/// Checks the machine.
pub fn checks() -> Vec<Check> {
    let mut checks = vec![
        kernel::ptrace(),
        kernel::core_pattern(),
        kernel::addresses(),
        kernel::memory_files(),
    ];
    checks.extend([isolation::cgroup(), isolation::user()]);
    checks.extend(isolation::sandbox());
    checks.extend([
        capacity::shared_memory(),
        capacity::descriptors(),
        capacity::processes(),
        capacity::processors(),
        capacity::governor(),
    ]);
    checks
}

fn good(name: &'static str, detail: impl Into<String>) -> Check {
    Check::good(About::Machine, name, detail)
}

fn bad(name: &'static str, detail: impl Into<String>, fix: impl Into<String>) -> Check {
    Check::bad(About::Machine, name, detail, fix)
}

/// The text of a small file of the kernel's, trimmed.
fn kernel_text(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}
