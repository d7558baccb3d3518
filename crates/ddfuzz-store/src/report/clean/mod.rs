//! What a corpus cleanup came to.

mod amount;
mod distribution;
mod page;
mod result;
mod table;

pub use amount::Amount;
pub use page::clean_html;
pub use result::{
    CleanGroup, CleanResult, Counted, Cover, Gained, Kept, Missing, OwnCount, Spread, Step,
    StepName, Unread,
};
pub use table::clean_table;
