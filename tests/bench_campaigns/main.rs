//! What campaigns are measured on: each planted bug happens on its witness, and on nothing that is
//! not meant for it.

#[path = "../compiled/mod.rs"]
mod compiled;
#[path = "../needs/mod.rs"]
mod needs;
#[path = "../../benches/campaigns/planted.rs"]
#[allow(dead_code, reason = "the benches use more of it")]
mod planted;
#[path = "../stream/mod.rs"]
mod stream;
mod witnesses;
