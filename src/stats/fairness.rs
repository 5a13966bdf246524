pub struct Fairness {
    pub mean: f64,
    pub min: u64,
    pub max: u64,
    pub jain: f64,
    pub slowest_decile_share: f64,
    pub starved: usize,
}
pub fn fairness(_c: &[u64]) -> Option<Fairness> {
    None
}
