//! Reads tables of records: a header `RC1\n`, then records of a tag, a length and a payload.
//!
//! | tag | payload |
//! |---|---|
//! | `C` | the names of columns, separated by commas |
//! | `V` | the number of a column as a digit, a value |
//! | `N` | how many values there are to be at the end, in decimal digits |
//! | `#` | a comment |
//!
//! Two bugs are planted: the number of a column is not checked, and a count that is no number is
//! not expected. The feature `fixed` takes both out.

/// What a table holds.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of its columns.
    pub columns: Vec<String>,
    /// The last value of each column.
    pub values: Vec<Vec<u8>>,
    /// How many values it says that it has.
    pub announced: Option<u32>,
    /// Records that were skipped.
    pub comments: usize,
}

/// Why a text is no table.
#[derive(Debug, PartialEq, Eq)]
pub enum Error {
    /// It does not begin with the header.
    Header,
    /// It ends inside a record.
    Short,
    /// A record has a tag that is not known.
    Tag(u8),
    /// A value has no column before it.
    Value,
    /// A count is not a number.
    Count,
    /// A value is for a column that does not exist.
    Column,
}

/// Reads a table.
pub fn parse(data: &[u8]) -> Result<Table, Error> {
    let mut rest = data.strip_prefix(b"RC1\n").ok_or(Error::Header)?;
    let mut table = Table::default();
    while let Some((&tag, behind)) = rest.split_first() {
        let (&length, behind) = behind.split_first().ok_or(Error::Short)?;
        let (payload, behind) = behind
            .split_at_checked(usize::from(length))
            .ok_or(Error::Short)?;
        match tag {
            b'C' => name_columns(&mut table, payload),
            b'V' => set_value(&mut table, payload)?,
            b'N' => table.announced = Some(count(payload)?),
            b'#' => table.comments += 1,
            other => return Err(Error::Tag(other)),
        }
        rest = behind;
    }
    Ok(table)
}

fn name_columns(table: &mut Table, payload: &[u8]) {
    for name in payload.split(|&byte| byte == b',') {
        table
            .columns
            .push(String::from_utf8_lossy(name).into_owned());
        table.values.push(Vec::new());
    }
}

fn set_value(table: &mut Table, payload: &[u8]) -> Result<(), Error> {
    match payload {
        [digit @ b'0'..=b'9', value @ ..] => store(table, usize::from(digit - b'0'), value),
        _ => Err(Error::Value),
    }
}

#[cfg(not(feature = "fixed"))]
fn count(digits: &[u8]) -> Result<u32, Error> {
    let text = std::str::from_utf8(digits).map_err(|_| Error::Count)?;
    Ok(text.parse().expect("a count is a number"))
}

#[cfg(feature = "fixed")]
fn count(digits: &[u8]) -> Result<u32, Error> {
    let text = std::str::from_utf8(digits).map_err(|_| Error::Count)?;
    text.parse().map_err(|_| Error::Count)
}

#[cfg(not(feature = "fixed"))]
fn store(table: &mut Table, column: usize, value: &[u8]) -> Result<(), Error> {
    table.values[column] = value.to_vec();
    Ok(())
}

#[cfg(feature = "fixed")]
fn store(table: &mut Table, column: usize, value: &[u8]) -> Result<(), Error> {
    let place = table.values.get_mut(column).ok_or(Error::Column)?;
    *place = value.to_vec();
    Ok(())
}
