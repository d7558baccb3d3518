//! Reports on a study of many utilities (`ddfuzz revisit`): one file per format, all made of the
//! same [`Row`]s.
//!
//! Only [`study_groups`] reads files. Names of utilities, packages, hosts and functions are
//! untrusted text; each format escapes them.

mod compare;
mod html;
mod json;
mod markdown;
mod rates;
mod rows;
mod table;

pub use compare::{
    Change, ComparedGroup, ComparedUtility, Comparison, DirectoryResult, NamedStudy, RateTest,
    UtilityInStudy, compare, comparison_text,
};
pub use html::html;
pub(super) use html::{link, rates_section, utilities_section};
pub use json::{StudyResult, UtilityResult};
pub use markdown::markdown;
pub use rates::{PUBLISHED, Published, Rate, RateLine, by_channel, by_kind, fisher, mcnemar};
pub use rows::{FailureKinds, Row, RowGroup, StudyGroup, Summary, rows, study_groups, summaries};
pub use table::{CSV_HEADER, csv, table};
