//! Child processes, and how all of them end with a run.

pub mod all;
pub(crate) mod claim;
pub(crate) mod control_group;
pub mod ending;
pub(crate) mod known_messages;
pub(crate) mod lines;
pub mod orphans;
pub mod own_group;
pub(crate) mod process;
pub(crate) mod queue;
pub(crate) mod sleeping;
pub mod watchdog;
