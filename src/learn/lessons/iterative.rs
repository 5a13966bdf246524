//! The lesson about `iterative`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "iterative",
    why: "Nothing is shared, nothing can be overtaken, and no call is made but the two that move the \
          bytes: a lower bound for what a request costs. The price is paid by everybody else: the second \
          client is connected, since the kernel completes its handshake, and can even send, but nobody \
          reads it before the first one has gone.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[("client 1", Queue::Receive)],
                through: "",
                waiter: "the one thread",
                sleeps_in: "recv()",
                then: "wakes to answer with send(), and sleeps again",
            },
            Group {
                from: &[("client 2", Queue::Accept), ("client 3", Queue::Accept)],
                through: "",
                waiter: "",
                sleeps_in: "",
                then: "nobody: connected, but not accepted until client 1 leaves",
            },
        ],
    },
    calls: "Two calls a request, and the thread sleeps in the first one of the next. Between clients it \
            waits in poll() instead of accept(), so that it can also be told to stop.",
    excerpts: &[Excerpt {
        source: source!("iterative.rs"),
        function: "serve_one_at_a_time(",
        notes: &[
            Note {
                at: "while wait(",
                says: "Sleeps until somebody connects, or until it is to stop.",
            },
            Note {
                at: ".next();",
                says: "Takes one client only: the accept queue is the waiting room of all others.",
            },
            Note {
                at: "conn.serve_until_stopped",
                says: "Serves it to its end with blocking calls. Until this returns, nobody else exists.",
            },
        ],
    }],
    exercises: &[
        Exercise {
            question: "What happens to the second client?",
            command: "throng run --models iterative --clients 1,2 --repeats 1 --duration 500ms",
            look_for: "How many clients were served, and what the report says about the others.",
        },
        Exercise {
            question: "Clients that come, ask once and go are another matter. How far does one at a time get then?",
            command: "throng compare iterative epoll --clients 200 --each 1 --at-once 20 --runs 3",
            look_for: "All clients are served now. What does waiting in the accept queue cost each of them?",
        },
        Exercise {
            question: "Is there a cheaper way to answer a single client?",
            command: "throng compare iterative epoll polling --clients 1 --duration 500ms --runs 5",
            look_for: "CPU time and system calls per reply: what does asking epoll first cost a lonely client?",
        },
    ],
};
