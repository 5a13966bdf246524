pub struct Trend {
    pub correlation: f64,
    pub change: f64,
}
impl Trend {
    pub fn is_unsteady(&self) -> bool {
        false
    }
}
pub fn trend(_: &[u64]) -> Option<Trend> {
    None
}
