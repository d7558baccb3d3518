//! Why a file was kept, or left out.

use std::path::Path;

use super::journal::Look;
use super::measure::{NotRead, read_input};
use super::{CleanError, ContentId, Features, Place};
use crate::files::OsText;
use crate::minimize::log::ContentHash;
use crate::report::clean::{CleanResult, Kept};
use crate::store::{Reader, hash_of};

/// What became of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fate {
    /// Whether it was kept, or something made of it.
    pub kept: bool,
    /// Why.
    pub why: String,
}

/// So many kept files are named that reach what another one does.
const NAMED: usize = 3;

/// What became of `file` in the cleanup whose result this is, and whose output directory has these
/// places. Only the file, the result and the journal are read.
///
/// # Errors
/// When the journal or the groups cannot be read.
pub fn explain(place: &Place, result: &CleanResult, file: &Path) -> Result<Fate, CleanError> {
    let out = |why: String| Ok(Fate { kept: false, why });
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let path = OsText::from(&absolute);
    let mut bytes = Vec::new();
    match read_input(file, result.max_len, &mut bytes) {
        Ok(()) => {}
        Err(why @ NotRead::Oversized { .. }) => return out(why.to_string()),
        Err(why) => return out(format!("it cannot be read: {why}")),
    }
    let id = ContentId::of(&bytes);
    let content = id.to_string();
    if let Some(kept) = result.kept.iter().find(|kept| kept.content == content) {
        let same = kept.from == path;
        return match same {
            true => Ok(Fate {
                kept: true,
                why: said(kept),
            }),
            false => out(format!(
                "it holds the same as {}, which is kept",
                shown(&kept.from)
            )),
        };
    }
    if let Some(kept) = result.kept.iter().find(|kept| kept.file == path) {
        return Ok(Fate {
            kept: true,
            why: format!("it was made of {}: {}", shown(&kept.from), kept.why),
        });
    }
    if let Some(group) = group_of(place, &bytes)? {
        return out(group);
    }
    let fresh = Look::into(&place.fresh_journal())?;
    let look = match fresh {
        Some(look) if look.seen(&id)?.is_some() => Some(look),
        _ => Look::into(&place.journal())?,
    };
    let Some(look) = look else {
        return out("there is no journal of the cleanup any more".to_owned());
    };
    out(match look.seen(&id)? {
        None => "the cleanup has not run it: it was not in the corpus".to_owned(),
        Some(seen) if seen.suspicious => format!("it ended by {}", seen.ended),
        Some(seen) => match seen.features {
            None => "a smaller input is treated alike by the target".to_owned(),
            Some(features) => covered(&look, result, &features)?,
        },
    })
}

fn said(kept: &Kept) -> String {
    let trimmed = match kept.size < kept.size_before {
        true => format!("; {} of its {} bytes are left", kept.size, kept.size_before),
        false => String::new(),
    };
    format!("{}{trimmed}", kept.why)
}

/// Who reaches what this one does.
fn covered(look: &Look, result: &CleanResult, features: &Features) -> Result<String, CleanError> {
    let mut left = features.clone();
    let mut others = Vec::new();
    for kept in &result.kept {
        let Some(id) = ContentId::parse(kept.size_before, &kept.content) else {
            continue;
        };
        let reached = look.seen(&id)?.and_then(|seen| seen.features);
        others.push((kept, reached.unwrap_or_default()));
    }
    let mut named = Vec::new();
    // The ones that reach the most of what is left, one after the other.
    while !left.is_empty() {
        let best = others
            .iter()
            .map(|(kept, reached)| (left.and(reached), kept));
        let Some((both, kept)) = best.reduce(|a, b| if b.0.len() > a.0.len() { b } else { a })
        else {
            break;
        };
        if both.is_empty() {
            break;
        }
        named.push(format!("{} ({})", shown(&kept.from), both.len()));
        left = left.less(&both);
    }
    let all = features.len();
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    let mut by = named.join(", ");
    if more > 0 {
        by += &format!(" and {more} more");
    }
    let rest = match left.len() {
        0 => String::new(),
        count => format!("; {count} did not come each time, and did not count"),
    };
    Ok(format!(
        "all {all} pairs of edge and count that it reaches are reached by {by}{rest}"
    ))
}

/// In which group its crash is.
fn group_of(place: &Place, bytes: &[u8]) -> Result<Option<String>, CleanError> {
    let hash = hash_of(bytes);
    let reader = Reader::open(place.root())?;
    let found = reader.originals()?.into_iter().find(|id| id.hash() == hash);
    if let Some(id) = found {
        let (folder, major, minor) = (id.kind().folder(), id.major(), id.minor());
        let why = format!("it does not end well: {folder}/{major}/{minor}/{hash}");
        return Ok(Some(why));
    }
    // Of inputs that fail alike one is filed.
    let content = ContentHash::of(bytes);
    let lines = reader.triaged()?.into_iter().rev();
    let crash = (lines.filter(|line| line.input == content)).find_map(|line| line.crash);
    Ok(crash.map(|crash| {
        let (folder, major) = (crash.kind.folder(), crash.major.short());
        format!("it does not end well, as others in {folder}/{major}")
    }))
}

fn shown(path: &OsText) -> String {
    path.0.to_string_lossy().into_owned()
}
