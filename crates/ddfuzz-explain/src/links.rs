//! Selects the links of a cause–effect chain that reports show: those of the program's own
//! variables. Links whose variables get other values later are shown twice.

use crate::chain::{Cause, Link};
use crate::engine::EngineError;
use crate::experiments::Runs;
use crate::graph::Place;
use crate::report::{LinkRecord, WriterRecord};
use crate::unfold::LIBRARY_BUFFER;

/// Name of the type of registers and memory words that no variable describes.
const RAW: &str = "machine word";

/// Returns true if the variable of a chain's link is in a buffer of a library.
pub fn is_in_buffer(link: &LinkRecord) -> bool {
    link.variable.contains("_IO_") || link.variable.starts_with(LIBRARY_BUFFER)
}

/// Merges successive links of `chain` that show the same word of memory under several names, with
/// the same values and written by the same statement. The last of them stays, because its type is
/// known best. Each element of `chain` has the index of its link in `links`.
pub fn merge_places(chain: &mut Vec<(usize, LinkRecord)>, links: &[Link]) {
    let place = |index: usize| links[index].cause.variable.place;
    chain.dedup_by(|later, link| {
        let says = |it: &LinkRecord| (it.writer.clone(), it.failing.clone(), it.passing.clone());
        let is_in_memory = matches!(place(later.0), Place::Memory(_));
        let is_same =
            is_in_memory && place(later.0) == place(link.0) && says(&later.1) == says(&link.1);
        let is_written = matches!(later.1.writer, Some(WriterRecord::Statement(_)));
        if is_same && is_written {
            std::mem::swap(later, link);
        }
        is_same && is_written
    });
}

/// Removes the links of a chain that say little: buffers of the C library at its beginning and end
/// if the program's own variables are in the chain, registers and words that no variable describes
/// unless they name a new statement, and repetitions of a variable with the same failing value.
pub fn drop_uninformative(chain: &mut Vec<(usize, LinkRecord)>) {
    let is_buffer = |(_, link): &(usize, LinkRecord)| is_in_buffer(link);
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
    let is_raw = |link: &LinkRecord| link.type_name.trim_end_matches(" *") == RAW;
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
        let is_same_input = later.input_offset.is_some() && later.input_offset == link.input_offset;
        (later.variable == link.variable
            || is_same_input && is_in_buffer(later) && is_in_buffer(link))
            && later.failing == link.failing
    });
    merge_kept(chain);
    // What was printed stands in a buffer, too.
    let printed = chain
        .iter()
        .rev()
        .take_while(|link| is_buffer(link))
        .count();
    if printed < chain.len() {
        // The statement that wrote it may be new.
        let rest = chain.len() - printed;
        let is_said = |link: &(usize, LinkRecord)| {
            let writers = chain[..rest].iter().map(|(_, link)| &link.writer);
            !matches!(
                link.1.writer,
                Some(WriterRecord::Statement(_) | WriterRecord::Missed(_))
            ) || writers.into_iter().any(|it| *it == link.1.writer)
        };
        let is_new = chain.get(rest).is_some_and(|link| !is_said(link));
        chain.truncate(rest + usize::from(is_new));
    }
}

/// Merges pairs of links of one variable, with the same values in both runs, that are about the
/// same missing write. The earlier link names this write, which only the passing run makes. The
/// later link names the last write of the failing run before it, whose value stays. The merged link
/// is the earlier one, at the point and with the confidence of the later one.
fn merge_kept(chain: &mut Vec<(usize, LinkRecord)>) {
    let mut index = 0;
    while index < chain.len() {
        let later = &chain[index].1;
        let is_kept = |(_, it): &(usize, LinkRecord)| {
            let is_same = (&it.variable, &it.failing, &it.passing)
                == (&later.variable, &later.failing, &later.passing);
            let kept = it.kept.clone().map(WriterRecord::Statement);
            is_same && kept.is_some() && kept == later.writer
        };
        match chain[..index].iter().position(is_kept) {
            Some(earlier) => {
                let (_, told) = chain.remove(earlier);
                let (_, link) = &mut chain[index - 1];
                *link = LinkRecord {
                    confidence: link.confidence,
                    point: link.point.clone(),
                    ..told
                };
            }
            None => index += 1,
        }
    }
}

/// Returns the links of the chain, with each link split in two whose variable changes its values
/// while it carries the failure. The first of the two keeps the earlier values. The second has the
/// values at a later point: the last one in the link at which the variable, set to its failing
/// value, was seen to make the passing run fail alone, or else the last point of the link.
///
/// # Errors
/// When the experiments cannot be made.
pub fn with_later_values(runs: &mut Runs, links: Vec<Link>) -> Result<Vec<Link>, EngineError> {
    let values = |runs: &Runs, point, link: &Link| {
        let delta = runs.delta(point, &link.cause.variable)?;
        Some(delta.values().map(String::clone))
    };
    let mut all = Vec::new();
    for link in links {
        let last = match runs.engine.check_time() {
            Ok(()) => runs.alone(&link)?.unwrap_or(link.last),
            Err(_) => link.last,
        };
        let first = values(runs, link.cause.point, &link);
        let later = values(runs, last, &link);
        if first == later || later.is_none() {
            all.push(Link { last, ..link });
            continue;
        }
        let later = Link {
            cause: Cause {
                point: last,
                ..link.cause.clone()
            },
            before: Some(link.cause.point),
            last,
        };
        all.push(Link {
            last: link.cause.point,
            ..link
        });
        all.push(later);
    }
    Ok(all)
}
