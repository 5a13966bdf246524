//! The lesson about `aio`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "aio",
    why: "The one POSIX model in which the program does not ask whether it can read, but has the reading \
          done and is told when it is over. In Linux the C library does it, with hidden threads that block: \
          so it is thread per client with detours. A word has to come back for every operation, as a signal \
          here, and who waits for it must not run out of threads.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[("client 1", Queue::Receive)],
                through: "",
                waiter: "hidden thread 1",
                sleeps_in: "read()",
                then: "carries out aio_read(); then tells the main thread",
            },
            Group {
                from: &[("client 2", Queue::Receive)],
                through: "",
                waiter: "hidden thread 2",
                sleeps_in: "read()",
                then: "",
            },
            Group {
                from: &[
                    ("new client", Queue::Accept),
                    ("signal's pipe", Queue::Inside),
                ],
                through: "",
                waiter: "main thread",
                sleeps_in: "poll()",
                then: "wakes by a signal; begins the next operation",
            },
        ],
    },
    calls: "Compare it with the two calls of `thread`. Hidden threads first try pread64() and pwrite64(), since \
            aio is made for files; a socket has no offset, so that is in vain. Each operation that ends sends \
            a signal, whose handler writes into a pipe; and each that begins is handed over by futex().",
    excerpts: &[
        Excerpt {
            source: source!("aio.rs"),
            function: "serve(&mut self",
            notes: &[
                Note {
                    at: "self.bell.hear(|fd| {",
                    says: "Reads from the pipe which operations have ended, as the signal handler wrote it.",
                },
                Note {
                    at: "let turn = client.turn();",
                    says: "Answers what was read, and begins the next read or write of this client.",
                },
            ],
        },
        Excerpt {
            source: source!("aio/client.rs"),
            function: "turn(&mut self",
            notes: &[
                Note {
                    at: "self.operation.ended()",
                    says: "aio_error() and aio_return(): no system call, a look into memory under a lock.",
                },
                Note {
                    at: "self.take_in(ended);",
                    says: "The bytes have been read already: completion, not readiness.",
                },
                Note {
                    at: "self.begin_next()",
                    says: "aio_write() of the answer, or aio_read() of what comes next.",
                },
            ],
        },
        Excerpt {
            source: source!("aio.rs"),
            function: "accept(&mut self",
            notes: &[Note {
                at: "self.open >= server.tuning.aio_threads",
                says: "A read that waits keeps a hidden thread: with glibc's 20, the 21st idle client would never be read.",
            }],
        },
    ],
    exercises: &[
        Exercise {
            question: "What does a detour through hidden threads cost?",
            command: "throng compare aio thread --clients 100 --duration 500ms --runs 3",
            look_for: "System calls and context switches per reply.",
        },
        Exercise {
            question: "Which way to learn that an operation has ended is cheapest?",
            command: "throng compare aio 'aio --aio-completion thread' 'aio --aio-completion busy' --clients 50 --duration 500ms --runs 2",
            look_for: "CPU time per reply; a callback starts a thread each time.",
        },
        Exercise {
            question: "What if the C library may start few threads?",
            command: "throng limit aio 'aio --aio-threads 20' --most 200",
            look_for: "The limit of the second one, and who refused the next client.",
        },
    ],
};
