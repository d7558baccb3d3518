//! What other tools would keep, so that no more is kept here.

use std::io;

use super::gather::{Reader, Survey};
use super::sets::Sets;
use crate::Amount;

/// The fewest files and the fewest bytes that either way of the peers keeps of the same inputs,
/// each for itself:
///
/// - libFuzzer's `-merge=1`, and with it `cargo fuzz cmin`: by size, each input that brings
///   something new.
/// - `afl-cmin`: feature by feature, those with the fewest inputs first, the smallest of its inputs,
///   if none of those kept has it.
pub(super) fn least(reader: &mut Reader<'_, impl Sets>, survey: &Survey) -> io::Result<Amount> {
    let rarest = rarest_first(reader, survey)?;
    Ok(Amount {
        files: rarest.files.min(survey.by_size.files),
        bytes: rarest.bytes.min(survey.by_size.bytes),
    })
}

fn rarest_first(reader: &mut Reader<'_, impl Sets>, survey: &Survey) -> io::Result<Amount> {
    let holders = &survey.holders;
    let mut order: Vec<usize> = (0..holders.len()).filter(|row| holders[*row] > 0).collect();
    order.sort_by_key(|row| (holders[*row], *row));
    let mut covered = vec![false; holders.len()];
    let (mut kept, mut rows) = (Amount::default(), Vec::new());
    for row in order {
        if covered[row] {
            continue;
        }
        let item = survey.first[row];
        reader.read(item as usize, &mut rows)?;
        rows.iter().for_each(|row| covered[*row as usize] = true);
        kept.add(reader.sets.bytes(item as usize));
    }
    Ok(kept)
}
