//! Two targets with different arguments whose stacks begin at the same address.

use std::ffi::OsString;

use ddfuzz_exec::Target;

/// Prefix of the names of the environment variables that are added to the target with the shorter
/// command line, so that the stacks of two targets begin at the same address.
const FILLER: &str = "DDFUZZ_FILLER";

/// Returns the two targets, which have different arguments, with environment variables added so
/// that the arguments and environments of both have equally many strings and bytes. The kernel puts
/// these on the stack first, so the stack addresses of both runs are then equal.
pub fn equally_long(mut one: Target, mut other: Target) -> (Target, Target) {
    let count = |target: &Target| target.args.len();
    let most = count(&one).max(count(&other));
    for target in [&mut one, &mut other] {
        for index in count(target)..most {
            let name = format!("{FILLER}{index}");
            target.env.push((name.into(), OsString::new()));
        }
    }
    let size = |target: &Target| {
        let args: usize = target.args.iter().map(|arg| arg.len() + 1).sum();
        let env: usize = target
            .env
            .iter()
            .map(|(name, value)| name.len() + value.len() + 2)
            .sum();
        args + env
    };
    let largest = size(&one).max(size(&other));
    for target in [&mut one, &mut other] {
        let missing = largest - size(target);
        target.env.push((FILLER.into(), "x".repeat(missing).into()));
    }
    (one, other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ddfuzz_exec::Program;

    #[test]
    fn both_have_equally_many_texts_and_bytes() {
        let target = |args: &[&str]| {
            let mut target = Target::new(Program::Path("/bin/true".into()));
            target.args = args.iter().map(Into::into).collect();
            target
        };
        let (one, other) = equally_long(target(&["11", "14"]), target(&["9", "8", "7", "6"]));
        let texts = |target: &Target| target.args.len() + target.env.len();
        let bytes = |target: &Target| {
            let args: usize = target.args.iter().map(|arg| arg.len() + 1).sum();
            args + target
                .env
                .iter()
                .map(|(name, value)| name.len() + value.len() + 2)
                .sum::<usize>()
        };
        assert_eq!(texts(&one), texts(&other));
        assert_eq!(bytes(&one), bytes(&other));
    }
}
