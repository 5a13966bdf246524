//! One lesson a file, listed here.

mod aio;
mod epoll;
mod epoll_et;
mod fork;
mod io_uring;
mod io_uring_reactors;
mod iterative;
mod poll;
mod polling;
mod prefork;
mod reactors;
mod select;
mod thread;
mod thread_pool;
mod tokio;

use super::Lesson;

/// A file of `src/serve/models`.
macro_rules! source {
    ($file:literal) => {
        &crate::learn::excerpt::Source {
            path: concat!("src/serve/models/", $file),
            text: include_str!(concat!("../../serve/models/", $file)),
        }
    };
}
use source;

/// Every lesson there is, in the order of the models. That of a model that this system lacks is here too.
pub const LESSONS: &[Lesson] = &[
    iterative::LESSON,
    fork::LESSON,
    prefork::LESSON,
    thread::LESSON,
    thread_pool::LESSON,
    polling::LESSON,
    select::LESSON,
    poll::LESSON,
    aio::LESSON,
    epoll::LESSON,
    epoll_et::LESSON,
    reactors::LESSON,
    io_uring::LESSON,
    io_uring_reactors::LESSON,
    tokio::LESSON,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::models::MODELS;

    #[test]
    fn every_model_has_its_lesson() {
        for model in MODELS {
            let name = model.info().name;
            let lesson = Lesson::about(*model);
            let lesson = lesson.unwrap_or_else(|| panic!("{name} has no lesson: see lessons/"));
            assert!((3..=5).contains(&lesson.exercises.len()), "{name}");
            assert!(
                !lesson.excerpts.is_empty() && !lesson.diagram.groups.is_empty(),
                "{name}"
            );
        }
        assert!(LESSONS.iter().all(|lesson| {
            LESSONS
                .iter()
                .filter(|other| other.model == lesson.model)
                .count()
                == 1
        }));
    }

    #[test]
    fn every_excerpt_is_in_the_source_and_every_note_about_one_line() {
        for lesson in LESSONS {
            for excerpt in lesson.excerpts {
                let (model, function) = (lesson.model, excerpt.function);
                assert!(
                    excerpt.lines().is_some(),
                    "{model}: `{function}` is not found once"
                );
                assert_eq!(excerpt.astray(), [""; 0], "{model}: {function}");
            }
        }
    }
}
