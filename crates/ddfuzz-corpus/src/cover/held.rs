//! What only one input reaches.

use std::io;

use super::Sets;
use super::universe::Universe;
use crate::{Feature, Features};

/// What of the wanted features stands in one place only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// For each chosen input, in the order given, how many features no other chosen one reaches.
    pub private: Vec<usize>,
    /// The features that a single input of all reaches, ascending, with that input: it has to stay.
    pub sole: Vec<(Feature, usize)>,
}

/// Looks through all inputs for what is reached once only, of what is in `wanted` and not in
/// `covered`. `chosen` is ascending.
///
/// # Errors
///
/// Where what an input reaches cannot be read.
pub fn held(
    sets: &mut impl Sets,
    chosen: &[usize],
    wanted: &Features,
    covered: &Features,
) -> io::Result<Held> {
    let universe = Universe::new(wanted, covered);
    // How many reach a row (0, 1, or more as 2), and the last of them.
    let mut all = vec![(0_u8, 0_usize); universe.len()];
    let mut among = all.clone();
    let (mut features, mut rows) = (Vec::new(), Vec::new());
    let mut next = 0;
    for item in 0..sets.len() {
        sets.features(item, &mut features)?;
        universe.rows(&features, &mut rows);
        let position = (chosen.get(next) == Some(&item)).then_some(next);
        next += usize::from(position.is_some());
        for row in &rows {
            let row = *row as usize;
            all[row] = (all[row].0.saturating_add(1).min(2), item);
            if let Some(position) = position {
                among[row] = (among[row].0.saturating_add(1).min(2), position);
            }
        }
    }
    let mut private = vec![0; chosen.len()];
    for (_, position) in among.iter().filter(|(holders, _)| *holders == 1) {
        private[*position] += 1;
    }
    let sole = all.iter().enumerate();
    let sole = sole.filter(|(_, (holders, _))| *holders == 1);
    let sole = sole.map(|(row, (_, item))| (universe.feature(row), *item));
    Ok(Held {
        private,
        sole: sole.collect(),
    })
}
