//! The lesson about `prefork`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "prefork",
    why: "The forks are paid before anybody waits for them, and their number is a promise about what the \
          server can use at most. All children wait on the same listening socket: a new client wakes \
          several, one of them gets it, the others find nothing and sleep again (the thundering herd). A \
          client that stays keeps its child, so those beyond the number of children wait in the accept \
          queue however idle the others are.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[("client 1", Queue::Receive)],
                through: "",
                waiter: "child 1, busy",
                sleeps_in: "recv()",
                then: "wakes to send(); takes the next when its client leaves",
            },
            Group {
                from: &[("new client", Queue::Accept)],
                through: "",
                waiter: "children 2 and 3",
                sleeps_in: "poll()",
                then: "both wake; one accept() brings a client, the other EAGAIN",
            },
            Group {
                from: &[("child ends", Queue::Inside)],
                through: "",
                waiter: "parent",
                sleeps_in: "poll()",
                then: "wakes by SIGCHLD to fork() another",
            },
        ],
    },
    calls: "Traced with two children. See who wakes when the client comes: the one that loses has paid for \
            nothing. The request then costs what it costs `fork`.",
    excerpts: &[
        Excerpt {
            source: source!("prefork.rs"),
            function: "run(&self",
            notes: &[
                Note {
                    at: "for number in 0..server.workers",
                    says: "All forks are made before the first client comes.",
                },
                Note {
                    at: "while wait(server.stop, &[news.fd()])?",
                    says: "The parent does not wait for clients at all, only for children that end.",
                },
            ],
        },
        Excerpt {
            source: source!("iterative.rs"),
            function: "serve_one_at_a_time(",
            notes: &[
                Note {
                    at: "while wait(",
                    says: "Each child is an iterative server. All idle ones sleep here, on one socket.",
                },
                Note {
                    at: ".next();",
                    says: "The socket does not block, so who comes too late goes back to waiting.",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "What becomes of the ninth client of eight children?",
            command: "throng compare 'prefork --workers 8' 'prefork --workers 9' --clients 9 --duration 500ms --runs 2",
            look_for: "How many were served, and the fairness: one client waits for all of the trial.",
        },
        Exercise {
            question: "What is saved by forking before?",
            command: "throng compare fork 'prefork --workers 50' --clients 2000 --each 1 --at-once 50 --runs 3",
            look_for: "CPU time per reply, and how long a client takes from connecting to its answer.",
        },
        Exercise {
            question: "Who is woken for nothing?",
            command: "throng explain prefork",
            look_for: "The calls of a client that comes: which child's accept4() brings EAGAIN?",
        },
    ],
};
