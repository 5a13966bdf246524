//! The lesson about `fork`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "fork",
    why: "The kernel's scheduler does all the dividing: each child knows one client and may simply wait for \
          it. What one child breaks, no other feels. A client's arrival is dear, since fork() copies the \
          page tables of the parent and each page that is written to is copied after it; and so is each \
          reply, since another process has to be switched to.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[("new client", Queue::Accept)],
                through: "",
                waiter: "parent",
                sleeps_in: "poll()",
                then: "wakes to accept() and fork(), or to reap a child",
            },
            Group {
                from: &[("client 1", Queue::Receive)],
                through: "",
                waiter: "child 1",
                sleeps_in: "recv()",
                then: "wakes to send(); exits when its client leaves",
            },
            Group {
                from: &[("client 2", Queue::Receive)],
                through: "",
                waiter: "child 2",
                sleeps_in: "recv()",
                then: "",
            },
        ],
    },
    calls: "A request costs its child two calls and the parent none. The arrival is the dear part: look at \
            who makes which call after the fork. When the client leaves, the child's end wakes the parent \
            with SIGCHLD; the signal handler writes into a pipe, so that poll() wakes for it.",
    excerpts: &[
        Excerpt {
            source: source!("fork.rs"),
            function: "run(&self",
            notes: &[
                Note {
                    at: "SingleThreaded::check",
                    says: "fork() copies only the thread that calls it: there must be no other.",
                },
                Note {
                    at: "match wait(",
                    says: "The parent sleeps in poll(): for children that end, clients that come, the end.",
                },
                Note {
                    at: "family.reap(&server);",
                    says: "Without wait4() a child that has ended would stay as a zombie, with its number.",
                },
                Note {
                    at: "single.fork(",
                    says: "From here on two processes run. In the child the closure serves the client.",
                },
                Note {
                    at: "Refusal::Processes",
                    says: "At the limit of processes the client is turned away, and those inside stay.",
                },
            ],
        },
        Excerpt {
            source: source!("fork.rs"),
            function: "serve_in_child(",
            notes: &[
                Note {
                    at: "renew_in_child",
                    says: "A pipe of its own to be told to stop by; the parent's would wake them all.",
                },
                Note {
                    at: "conn.serve_until_stopped",
                    says: "Blocking calls, one client: the program that one would write for a single user.",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "What does an arrival cost, against a thread and against nothing but an entry in a table?",
            command: "throng compare fork thread epoll --clients 2000 --each 1 --at-once 50 --runs 3",
            look_for: "CPU time per reply when each client asks only once: nearly all of it is the arrival.",
        },
        Exercise {
            question: "And what does a reply cost once the clients are there?",
            command: "throng compare fork thread epoll --clients 100 --duration 500ms --runs 3",
            look_for: "The gap is much smaller now. Which part of it are context switches?",
        },
        Exercise {
            question: "How many clients are too many, and what gives way first?",
            command: "throng limit fork --most 3000",
            look_for: "How far it comes, and whether anything gave way before the end.",
        },
    ],
};
