//! Which links of a chain are told: those of the program's own variables, with what they become.

use crate::chain::{Cause, Link};
use crate::experiments::Runs;
use crate::report::{LinkRecord, WriterRecord};

/// Name of the type of registers and words that no variable describes.
const RAW: &str = "machine word";

/// Leaves out what says little: buffers of the C library beside the program's own variables, registers
/// without a statement, and what was told already.
pub fn drop_uninformative(chain: &mut Vec<(usize, LinkRecord)>) {
    let is_buffer = |(_, link): &(usize, LinkRecord)| {
        link.variable.contains("_IO_") || link.variable.starts_with("libc buffer")
    };
    let is_read = |(_, link): &(usize, LinkRecord)| link.writer == Some(WriterRecord::Input);
    let buffers = chain
        .iter()
        .take_while(|link| is_buffer(link) && is_read(link))
        .count();
    if chain.get(buffers).is_some_and(is_read) {
        chain.drain(..buffers);
    }
    // Registers and words that no variable describes say little between variables, but for the
    // statement that computed one.
    let is_raw = |link: &LinkRecord| link.type_name == RAW;
    if !chain.iter().all(|(_, link)| is_raw(link)) {
        let known: Vec<_> = (chain.iter().filter(|(_, link)| !is_raw(link)))
            .map(|(_, link)| link.writer.clone())
            .collect();
        let mut said = None;
        chain.retain(|(_, link)| {
            let is_statement = link.variable.starts_with("register ")
                && matches!(link.writer, Some(WriterRecord::Statement(_)));
            let is_new = !known.contains(&link.writer) && said != link.writer;
            let is_kept = !is_raw(link) || is_statement && is_new;
            if is_kept {
                said.clone_from(&link.writer);
            }
            is_kept
        });
    }
    // One value that callers and called functions have under one name is told once, and a variable
    // that keeps its failing value, whatever it becomes in the passing run.
    chain.dedup_by(|(_, later), (_, link)| {
        later.variable == link.variable && later.failing == link.failing
    });
    // What was printed stands in a buffer, too.
    let printed = chain
        .iter()
        .rev()
        .take_while(|link| is_buffer(link))
        .count();
    if printed < chain.len() {
        chain.truncate(chain.len() - printed);
    }
}

/// Adds a link for each variable that has got other values while it carried the failure: with those
/// that it has at the last point at which it does.
pub fn with_later_values(runs: &Runs, links: Vec<Link>) -> Vec<Link> {
    let values = |point, link: &Link| {
        let delta = runs.delta(point, &link.cause.variable)?;
        Some((delta.passing, delta.failing))
    };
    let mut all = Vec::new();
    for link in links {
        let (first, last) = (values(link.cause.point, &link), values(link.last, &link));
        if first == last || last.is_none() {
            all.push(link);
            continue;
        }
        let later = Link {
            cause: Cause {
                point: link.last,
                ..link.cause.clone()
            },
            before: Some(link.cause.point),
            last: link.last,
        };
        all.push(Link {
            last: link.cause.point,
            ..link
        });
        all.push(later);
    }
    all
}
