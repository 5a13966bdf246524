//! Panels that take their samples at the same time.

use super::{Moment, Panel};
use crate::processes::all::{Brief, all};

impl Panel {
    /// Takes a sample with each of these panels. Before and after the load, it first lists all processes of the
    /// machine, once for all panels.
    pub fn sample_all(panels: &mut [Self], moment: Moment) {
        if matches!(moment, Moment::Before | Moment::After) {
            let processes: Vec<Brief> = all().collect();
            for target in panels.iter_mut().filter_map(|panel| panel.target.as_mut()) {
                target.tree.find_in(&processes);
            }
        }
        for panel in panels {
            panel.sample(moment);
        }
    }
}
