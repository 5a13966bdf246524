//! What the machine did meanwhile that no server is to blame for.

use super::warning;
use crate::record::Warning;

/// Share of time from which stealing shows, in percent.
const MUCH_PERCENT: f64 = 1.0;

/// The hypervisor gave CPU time to others while servers or clients had work.
pub(in crate::measure) fn stolen(percent: Option<f64>) -> Option<Warning> {
    let percent = percent.filter(|percent| *percent > MUCH_PERCENT)?;
    Some(warning(
        "stolen-time",
        format!(
            "the hypervisor gave {percent:.1} % of this machine's CPU time to others during the run"
        ),
        "run again when the neighbours are quiet, or on a machine of your own; trust ratios within \
         one run more than rates",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_much_stolen_time_is_told() {
        assert_eq!(stolen(None), None);
        assert_eq!(stolen(Some(0.9)), None);
        let told = stolen(Some(4.26)).unwrap();
        assert!(told.message.contains("4.3 %"), "{told:?}");
    }
}
