//! How often a reproducer fails when it is run again.

use crate::exec::{ExecError, Target, Way};
use crate::store::{Kind, Replayed};
use crate::triage::{Crash, Quick, Triager};

/// Runs `input` by plain `execve` with random addresses, `tries` times; where some of them do not
/// end in the group of `crash`, as often without. A hang may stand elsewhere each time.
///
/// # Errors
/// When the target cannot be started or traced.
pub(super) fn replay(
    target: &Target,
    way: Way,
    input: &[u8],
    crash: &Crash,
    tries: u32,
) -> Result<Replayed, ExecError> {
    let mut triager = Triager::of_target(target, way)?;
    let mut hits_of = |random: bool| {
        let mut hits = 0;
        for _ in 0..tries {
            let is_it = match triager.key_at(input, random)? {
                Quick::Crash { class, .. } if Kind::of_class(&class) == Kind::Hang => {
                    class == crash.class
                }
                Quick::Crash { major, .. } => major == crash.keys.major,
                Quick::Ended(_) => false,
            };
            hits += u32::from(is_it);
        }
        Ok::<u32, ExecError>(hits)
    };
    let hits = hits_of(true)?;
    let fixed_hits = match hits < tries {
        true => Some(hits_of(false)?),
        false => None,
    };
    Ok(Replayed {
        hits,
        tries,
        fixed_hits,
    })
}
