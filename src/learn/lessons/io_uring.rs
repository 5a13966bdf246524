//! The lesson about `io-uring`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "io-uring",
    why: "Two queues in memory that program and kernel share: what is to be done goes into one, what has come \
          of it comes out of the other. A single call hands in all that is new and waits for what has \
          ended, so calls per request fall below one with a crowd. Receiving is asked for once and goes on \
          (multishot), into buffers that were lent beforehand: an idle client holds none.",
    diagram: Diagram {
        groups: &[Group {
            from: &[
                ("new client", Queue::Accept),
                ("client 1", Queue::Received),
                ("client 2", Queue::Received),
                ("client 3", Queue::Received),
            ],
            through: "completions",
            waiter: "the one thread",
            sleeps_in: "io_uring_enter()",
            then: "answers, and submits sends with the next call",
        }],
    },
    calls: "Operations are no system calls. They stand in memory that is shared with the kernel, where throng \
            reads them at each io_uring_enter(): `submits` is what is handed in, `completed` what has ended and \
            waits to be read. There is no recv() when the client asks: receiving was begun when it came, and \
            goes on.",
    excerpts: &[
        Excerpt {
            source: source!("io_uring.rs"),
            function: "run(mut self",
            notes: &[
                Note {
                    at: "self.await_clients()?;",
                    says: "Asked once: the kernel accepts clients from now on by itself.",
                },
                Note {
                    at: ".wait(self.awaited",
                    says: "The one call: submits what was prepared, sleeps until something has ended.",
                },
                Note {
                    at: "while self.handle_event()?",
                    says: "Reads completions from shared memory; no call.",
                },
                Note {
                    at: "self.proceed(self.touched[place])?;",
                    says: "What is to be done next is written down, for the next call to submit.",
                },
            ],
        },
        Excerpt {
            source: source!("io_uring.rs"),
            function: "proceed(&mut self",
            notes: &[
                Note {
                    at: "conn.lend()",
                    says: "The answer belongs to the kernel until it has left: it may be read at any time.",
                },
                Note {
                    at: ".receive(&*conn, name(fd))?;",
                    says: "Once for a connection: it goes on until it is stopped.",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "How do calls per reply fall with the crowd?",
            command: "throng run --models io-uring,epoll --clients 1,10,100,1000 --repeats 2 --duration 500ms",
            look_for: "System calls per reply, and CPU time per reply beside them: do they fall alike?",
        },
        Exercise {
            question: "Is it better for a single client?",
            command: "throng compare io-uring epoll --clients 1 --duration 500ms --runs 5",
            look_for: "The response time: batches need somebody to be batched with.",
        },
        Exercise {
            question: "What does an idle client hold?",
            command: "throng compare io-uring tokio thread --clients 1000 --think 1s --duration 2s --runs 2",
            look_for: "Memory per client.",
        },
    ],
};
