//! The lesson about `epoll-et`.

use super::source;
use crate::learn::diagram::{ALL_CLIENTS, Diagram, Group};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "epoll-et",
    why: "The same set in the kernel, but a socket is named only when something new happens to it. So it can be \
          watched for reading and writing at once, for good, and epoll_ctl() is never needed again. The \
          contract is stricter: what was not read is not told again, so a loop that stops early for fairness \
          must keep its own list of unfinished connections. Forgetting one means a client that waits for ever.",
    diagram: Diagram {
        groups: &[Group {
            from: ALL_CLIENTS,
            through: "news, once",
            waiter: "the one thread",
            sleeps_in: "epoll_wait()",
            then: "reads until empty, or remembers that it did not",
        }],
    },
    calls: "The same three as `epoll`. Textbooks read until EAGAIN; a read that did not fill its buffer has \
            emptied the socket already, so that further call is saved here.",
    excerpts: &[
        Excerpt {
            source: source!("epoll_et.rs"),
            function: "run(mut self",
            notes: &[
                Note {
                    at: "let limit = if self.unfinished.is_empty()",
                    says: "With unfinished connections it must not sleep: nobody will wake it for them.",
                },
                Note {
                    at: "for (fd, last) in unfinished",
                    says: "What level-triggering would have named again, the program keeps itself.",
                },
            ],
        },
        Excerpt {
            source: source!("epoll_et.rs"),
            function: "accept(&mut self",
            notes: &[Note {
                at: "EDGES",
                says: "For reading and writing, once and for good.",
            }],
        },
        Excerpt {
            source: source!("epoll_et.rs"),
            function: "turn(&mut self",
            notes: &[Note {
                at: "Wants::MoreRead",
                says: "Its turn ended before its bytes did: the kernel will not say so again.",
            }],
        },
    ],
    exercises: &[
        Exercise {
            question: "Do edges save anything when all goes well?",
            command: "throng compare epoll epoll-et --clients 100 --duration 500ms --runs 5",
            look_for: "Whether the two can be told apart at all.",
        },
        Exercise {
            question: "And when answers are too large to leave at once?",
            command: "throng compare epoll epoll-et --clients 20 --size 4000000 --duration 1s --runs 3",
            look_for: "System calls: how many epoll_ctl() does each of them make?",
        },
        Exercise {
            question: "Where is the difference in the code?",
            command: "throng explain epoll-et",
            look_for: "The list `unfinished`. What would happen without it, and to whom?",
        },
    ],
};
