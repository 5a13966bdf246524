//! Part 4: what there is to learn about each model.
//!
//! A [`Lesson`] adds to a model's [`Card`](crate::serve::Card) what a teacher would draw and say: who
//! waits where, the heart of its source with notes, and exercises. Together with the system calls of one
//! request, traced, and figures of a reference run it becomes a page, for a terminal or for the book.
//!
//! To add one: a file in `lessons/` and its line in [`lessons::LESSONS`].

pub mod book;
pub mod diagram;
pub mod excerpt;
pub mod figures;
pub mod lessons;
pub mod page;
mod reference;
pub mod traced;
mod words;

use crate::serve::Model;
use diagram::Diagram;
use excerpt::Excerpt;
pub use reference::{figures, traced};

/// What a model's card leaves to be said.
#[derive(Debug, Clone, Copy)]
pub struct Lesson {
    /// The model's name.
    pub model: &'static str,
    /// What follows from the idea, in a paragraph.
    pub why: &'static str,
    /// Who waits where.
    pub diagram: Diagram,
    /// How to read the list of system calls.
    pub calls: &'static str,
    /// The parts of the source that matter most, in the order in which they are best read.
    pub excerpts: &'static [Excerpt],
    /// What to try.
    pub exercises: &'static [Exercise],
}

/// A question that a command answers.
#[derive(Debug, Clone, Copy)]
pub struct Exercise {
    /// What to find out.
    pub question: &'static str,
    /// What to run.
    pub command: &'static str,
    /// What to look for in what it prints.
    pub look_for: &'static str,
}

impl Lesson {
    /// The lesson about a model; none where nobody has written it.
    pub fn about(model: &dyn Model) -> Option<&'static Self> {
        let name = model.info().name;
        lessons::LESSONS.iter().find(|lesson| lesson.model == name)
    }
}

/// Options with which a model is traced: of those that start a number of workers, two are enough to see
/// who does what.
pub fn traced_options(model: &dyn Model) -> Vec<String> {
    match model.crew() {
        crate::serve::Crew::AsNeeded => Vec::new(),
        _ => vec!["--workers".to_owned(), "2".to_owned()],
    }
}
