//! The line table: at which addresses statements begin, and which line an address belongs to.

use gimli::{Dwarf, LineProgramHeader, Reader, Unit};

use super::Bytes;

/// A row of the line table: a range of code addresses that belongs to one source line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// First address of the code, in the file.
    pub address: u64,
    /// Address after the last byte of the code, in the file.
    pub end: u64,
    /// Index of the source file in [`Lines::files`].
    pub file: usize,
    /// Number of the source line, from 1; 0 for code that belongs to no line.
    pub line: u64,
    /// Column in the source line; 0 where it is unknown. `None` if the line table has earlier rows
    /// of other lines or columns at the same address.
    pub column: Option<u64>,
    /// Whether a statement begins at the row's first address, so that a debugger may stop there.
    pub is_statement: bool,
    /// Whether a row of another source line comes before this one at the same address. The earlier
    /// line has no code of its own.
    pub follows: bool,
}

/// The line table of a program: which code belongs to which source line.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Rows of the line table, ascending by address.
    pub rows: Vec<Line>,
    /// Names of the source files.
    pub files: Vec<String>,
}

impl Lines {
    pub(super) fn read(
        &mut self,
        dwarf: &Dwarf<Bytes>,
        unit: &Unit<Bytes>,
    ) -> Result<(), gimli::Error> {
        let Some(program) = unit.line_program.clone() else {
            return Ok(());
        };
        let base = self.files.len();
        self.read_files(dwarf, unit, program.header())?;
        let mut rows = program.rows();
        let mut sequence: Vec<Line> = Vec::new();
        while let Some((_, row)) = rows.next_row()? {
            if let Some(last) = sequence.last_mut() {
                last.end = row.address();
            }
            if row.end_sequence() {
                let is_linked = sequence.first().is_some_and(|first| first.address != 0);
                let found = sequence
                    .drain(..)
                    .filter(|row| is_linked && row.address < row.end);
                self.rows.extend(found);
                continue;
            }
            let line = row.line().map_or(0, |line| line.get());
            let file = base + row.file_index() as usize;
            // Rows of one address: the last one counts, but where a statement begins, one does.
            let same = sequence
                .last()
                .copied()
                .filter(|last| last.address == row.address());
            if same.is_some() {
                sequence.pop();
            }
            let column = match row.column() {
                gimli::ColumnType::LeftEdge => 0,
                gimli::ColumnType::Column(column) => column.get(),
            };
            let is_alone = same.is_none_or(|it| (it.line, it.column) == (line, Some(column)));
            sequence.push(Line {
                address: row.address(),
                end: row.address(),
                file,
                line,
                column: Some(column).filter(|_| is_alone),
                is_statement: row.is_stmt() || same.is_some_and(|same| same.is_statement),
                follows: same.is_some_and(|same| same.follows || same.line != line),
            });
        }
        Ok(())
    }

    /// Adds the names of a compilation unit's source files, with their directories, to
    /// [`Lines::files`].
    fn read_files(
        &mut self,
        dwarf: &Dwarf<Bytes>,
        unit: &Unit<Bytes>,
        header: &LineProgramHeader<Bytes>,
    ) -> Result<(), gimli::Error> {
        let text = |value| -> Result<String, gimli::Error> {
            let text = dwarf.attr_string(unit, value)?;
            Ok(text.to_string_lossy()?.into_owned())
        };
        let directory = unit.comp_dir.as_ref();
        let directory = directory.map(|it| it.to_string_lossy().unwrap_or_default().into_owned());
        // File 0 exists from version 5 on; earlier versions count from 1.
        for index in 0..=header.file_names().len() as u64 {
            let Some(file) = header.file(index) else {
                self.files.push(String::new());
                continue;
            };
            let name = text(file.path_name())?;
            let folder = file.directory(header).map(text).transpose()?;
            let folder = match (folder, &directory) {
                _ if name.starts_with('/') => None,
                (Some(folder), Some(whole)) if !folder.starts_with('/') => {
                    Some(format!("{whole}/{folder}"))
                }
                (folder, whole) => folder.or_else(|| whole.clone()),
            };
            self.files.push(match folder {
                Some(folder) => format!("{folder}/{name}"),
                None => name,
            });
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) {
        self.rows.sort_by_key(|row| row.address);
    }

    /// Returns the row that contains `address`, an address in the file; `None` where none does.
    pub fn at(&self, address: u64) -> Option<&Line> {
        let behind = self.rows.partition_point(|row| row.address <= address);
        let row = self.rows.get(behind.checked_sub(1)?)?;
        (address < row.end).then_some(row)
    }

    /// Returns true if the code at `address`, an address in the file, only makes or removes the
    /// stack frame of its function, whose code begins at `start`. Such code is recognized by its
    /// row of the line table, which has the same line and column as the first row of the function:
    /// those of the opening brace. Where columns are unknown, only the code of the first row itself
    /// is recognized.
    pub fn is_of_frame(&self, start: u64, address: u64) -> bool {
        let place = |row: &Line| (row.file, row.line, row.column);
        let rows = self.at(start).zip(self.at(address));
        rows.is_some_and(|(first, row)| {
            let is_brace = first.address == start && first.column.is_some();
            let is_same = first.column > Some(0) && place(first) == place(row);
            is_brace && (first.address == row.address || is_same)
        })
    }

    /// Returns source file and line of a code address in the file; `None` where the code belongs to
    /// no line.
    pub fn place(&self, address: u64) -> Option<(&str, u64)> {
        let row = self.at(address).filter(|row| row.line > 0)?;
        Some((self.files.get(row.file)?, row.line))
    }
}
