//! stub
pub mod summary {
    use crate::record::*;
    #[derive(serde::Serialize)]
    pub struct Summary {
        trials: Vec<Trial>,
    }
    impl Summary {
        pub fn of(_: &Run, t: &[Trial]) -> Self {
            Summary { trials: t.to_vec() }
        }
    }
}
pub mod terminal {
    pub fn table(_: &super::summary::Summary, _: usize, _: bool) -> String {
        String::new()
    }
}
pub mod exporters {
    use crate::registry::*;
    pub trait X: Entry {}
    pub const EXPORTERS: &[&dyn X] = &[];
}
pub mod figures {
    use crate::registry::*;
    pub trait X: Entry {}
    pub const FIGURES: &[&dyn X] = &[];
}
pub fn write_all(_: &std::path::Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    Ok(vec![])
}
