//! The lesson about `io-uring-reactors`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "io-uring-reactors",
    why: "What `reactors` is to `epoll-et`, this is to `io-uring`: a loop, a ring and buffers for each CPU, \
          clients dealt out by SO_REUSEPORT. A ring that only one thread uses needs no lock on either side, \
          and its work is done when that thread asks for it. It is made for many requests on several \
          CPUs, and shares the weakness of every fixed dealing: nobody helps a loop that has too much.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[
                    ("new client", Queue::Accept),
                    ("client 1", Queue::Received),
                    ("client 4", Queue::Received),
                ],
                through: "completions 1",
                waiter: "reactor-0, CPU 0",
                sleeps_in: "io_uring_enter()",
                then: "an io-uring loop",
            },
            Group {
                from: &[
                    ("new client", Queue::Accept),
                    ("client 2", Queue::Received),
                    ("client 3", Queue::Received),
                ],
                through: "completions 2",
                waiter: "reactor-1, CPU 1",
                sleeps_in: "io_uring_enter()",
                then: "another one",
            },
        ],
    },
    calls: "Traced with two loops, of which one got the client. It accepts by itself here: several loops share \
            one table of descriptors, and the kernel could take one that another loop keeps in reserve.",
    excerpts: &[
        Excerpt {
            source: source!("io_uring_reactors.rs"),
            function: "run(&self",
            notes: &[Note {
                at: "run_on_each_cpu(",
                says: "The threads and sockets of `reactors`, around the loop of `io-uring`.",
            }],
        },
        Excerpt {
            source: source!("io_uring.rs"),
            function: "await_clients(",
            notes: &[
                Note {
                    at: "self.ring.accept(",
                    says: "A single loop lets the kernel accept.",
                },
                Note {
                    at: "self.watch_listener()",
                    says: "One of several is only told that somebody is there.",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "Does a ring beat an epoll on each CPU?",
            command: "throng compare reactors io-uring-reactors --clients 200 --duration 500ms --runs 3",
            look_for: "CPU time and system calls per reply.",
        },
        Exercise {
            question: "What changes with a descriptor table for each loop?",
            command: "throng compare io-uring-reactors 'io-uring-reactors --own-descriptors' --clients 1000 --each 1 --at-once 100 --runs 3",
            look_for: "CPU time per reply when every request is a new client.",
        },
        Exercise {
            question: "What is shared between the loops?",
            command: "throng explain io-uring-reactors",
            look_for: "Which threads appear in the list of calls.",
        },
    ],
};
