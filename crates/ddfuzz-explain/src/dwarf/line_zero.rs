//! Code without a line in the line table (line 0), such as code that the compiler has moved or
//! shared. It gets the line of the code in front of it, if that is always executed right before.

use std::collections::HashSet;
use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Object, ObjectSection};

use super::Lines;

/// Completes the line table for code to which the compiler gave no line (line 0), in the functions
/// with the address ranges `functions`. A row of line 0 gets the line of the row before it if it is
/// only reached from that row: execution runs on from there, and no jump of the function leads into
/// the row of line 0.
pub(super) fn inherit<'a>(
    lines: &mut Lines,
    file: &object::File<'_>,
    functions: impl Iterator<Item = &'a Range<u64>>,
) {
    for range in functions {
        let from = (lines.rows).partition_point(|row| row.address < range.start);
        let to = (lines.rows).partition_point(|row| row.address < range.end);
        if lines.rows[from..to].iter().all(|row| row.line > 0) {
            continue;
        }
        let sections = file.sections();
        let mut found = sections.filter_map(|it| {
            it.data_range(range.start, range.end - range.start)
                .ok()
                .flatten()
        });
        if let Some(code) = found.next() {
            inherit_in(lines, from..to, code, range.start);
        }
    }
}

/// Gives rows of line 0 in one function the line of the row before them, if execution runs on from
/// that row and no jump of the function leads into the row of line 0. `rows` are the indices of the
/// function's rows in `lines`; its machine code is `code`, which begins at the address `start`.
fn inherit_in(lines: &mut Lines, rows: Range<usize>, code: &[u8], start: u64) {
    let all: Vec<Instruction> = Decoder::with_ip(64, code, start, DecoderOptions::NONE)
        .into_iter()
        .collect();
    let goes_on = |it: &&Instruction| {
        use FlowControl::{Call, ConditionalBranch, IndirectCall, Next};
        matches!(
            it.flow_control(),
            Next | ConditionalBranch | Call | IndirectCall
        )
    };
    let after: HashSet<u64> = all
        .iter()
        .filter(goes_on)
        .map(Instruction::next_ip)
        .collect();
    let is_jump = |it: &&Instruction| {
        use FlowControl::{ConditionalBranch, UnconditionalBranch};
        matches!(it.flow_control(), ConditionalBranch | UnconditionalBranch)
    };
    let jumps = all.iter().filter(is_jump);
    let mut targets: Vec<u64> = jumps.map(Instruction::near_branch_target).collect();
    targets.sort_unstable();
    for index in rows.skip(1) {
        let (before, row) = (lines.rows[index - 1], lines.rows[index]);
        let next = targets.partition_point(|it| *it < row.address);
        let is_target = targets.get(next).is_some_and(|it| *it < row.end);
        let runs_on = before.end == row.address && after.contains(&row.address);
        if row.line == 0 && before.line > 0 && runs_on && !is_target {
            let row = &mut lines.rows[index];
            (row.file, row.line, row.is_statement) = (before.file, before.line, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Line;
    use super::*;

    /// Returns the lines that three rows of the line table have after [`inherit_in`]. Each row has
    /// two bytes of `code`; their lines are 7, 0 (none) and 9 before.
    fn lines_of(code: [u8; 6]) -> Vec<u64> {
        let row = |(index, line): (u64, u64)| Line {
            column: Some(0),
            address: 0x100 + 2 * index,
            end: 0x102 + 2 * index,
            file: 0,
            line,
            is_statement: true,
            follows: false,
        };
        let mut lines = Lines {
            rows: (0..).zip([7, 0, 9]).map(row).collect(),
            files: vec!["a.c".to_owned()],
        };
        inherit_in(&mut lines, 0..3, &code, 0x100);
        lines.rows.iter().map(|it| it.line).collect()
    }

    #[test]
    fn code_without_a_line_has_that_of_the_code_from_which_it_is_always_reached() {
        // mov eax, ebx; mov ecx, edx; mov esi, edi
        assert_eq!(lines_of([0x89, 0xd8, 0x89, 0xd1, 0x89, 0xfe]), [7, 7, 9]);
        // After a jump: jmp +2.
        assert_eq!(lines_of([0xeb, 2, 0x89, 0xd1, 0x89, 0xfe]), [7, 0, 9]);
        // Where a jump leads: je -4.
        assert_eq!(lines_of([0x89, 0xd8, 0x89, 0xd1, 0x74, 0xfc]), [7, 0, 9]);
    }
}
