//! Process ids of a PID namespace, as they are outside of it.

use nix::unistd::Pid;

use super::proc_tree;

/// The process below `root` that has the id `inner` in the innermost of its namespaces; `None`
/// where there is none, or the system does not tell. Below one root there is one namespace.
pub(super) fn outer_pid(inner: Pid, root: Pid) -> Option<Pid> {
    let mut below = proc_tree::descendants(root).into_iter();
    below.find(|pid| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"));
        status.is_ok_and(|status| innermost(&status) == Some(inner.as_raw()))
    })
}

/// The id in the innermost namespace, of a process that is in more than one.
fn innermost(status: &str) -> Option<i32> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_whitespace().skip(1).last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_process_in_one_namespace_alone_is_no_inner_one() {
        assert_eq!(innermost("Pid:\t7\nNSpid:\t7\n"), None);
        assert_eq!(innermost("Pid:\t7\nNSpid:\t7\t2\n"), Some(2));
        assert_eq!(innermost("Pid:\t7\nNSpid:\t7\t4\t3\n"), Some(3));
        assert_eq!(innermost("Pid:\t7\n"), None);
    }
}
