//! The lesson about `poll`.

use super::source;
use crate::learn::diagram::{ALL_CLIENTS, Diagram, Group};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "poll",
    why: "As `select`, but what is waited for stands in an array of descriptors instead of a set of bits, so \
          there is no highest number, and the question is not overwritten by the answer. What stays is that \
          the program keeps the list: each call copies it into the kernel, which asks every socket in it. So \
          a call costs as much as there are clients, whether one of them has spoken or all.",
    diagram: Diagram {
        groups: &[Group {
            from: ALL_CLIENTS,
            through: "array",
            waiter: "the one thread",
            sleeps_in: "poll()",
            then: "searches the array, then recv(), send()",
        }],
    },
    calls: "The arguments of poll() show what it is about: every connection is handed over with each call. In \
            return it says how many are ready, and marks them in the array.",
    excerpts: &[
        Excerpt {
            source: source!("poll.rs"),
            function: "run(mut self",
            notes: &[
                Note {
                    at: "match poll(",
                    says: "All entries go into the kernel, and each socket is asked.",
                },
                Note {
                    at: "self.serve(ready);",
                    says: "`ready` says when the search can end, but not where to look.",
                },
            ],
        },
        Excerpt {
            source: source!("poll.rs"),
            function: "serve(&mut self",
            notes: &[
                Note {
                    at: "self.start = next_start(",
                    says: "Whoever is always served last would get fewer answers for ever.",
                },
                Note {
                    at: "if self.entries[FIRST + place].is_ready()",
                    says: "The search through all clients, in user space too.",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "How does the cost of a reply grow with clients that are idle?",
            command: "throng compare poll epoll --clients 100,1000 --think 500ms --duration 1s --runs 2",
            look_for: "CPU time per reply at 100 and at 1000 clients, of both.",
        },
        Exercise {
            question: "Does it matter when everybody is active?",
            command: "throng compare poll epoll --clients 1000 --duration 500ms --runs 3",
            look_for: "System calls per reply: one poll() finds hundreds that are ready.",
        },
        Exercise {
            question: "Is there a limit like select's?",
            command: "throng limit poll --most 3000",
            look_for: "Whether anything gave way before the end of the search.",
        },
    ],
};
