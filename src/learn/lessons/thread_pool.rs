//! The lesson about `thread-pool`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "thread-pool",
    why: "Threads are made once and used for one client after the other. The queue between the thread that \
          accepts and those that serve is the server's own, a lock and a condition variable, so a new \
          client costs a hand-over instead of a new thread. It fits short conversations: who stays, even \
          idle, keeps a whole thread from the others.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[("new client", Queue::Accept)],
                through: "",
                waiter: "main thread",
                sleeps_in: "poll()",
                then: "wakes to accept() and to put it into the pool's queue",
            },
            Group {
                from: &[("client 1", Queue::Receive)],
                through: "",
                waiter: "worker-0, busy",
                sleeps_in: "recv()",
                then: "wakes to send(); takes the next when its client leaves",
            },
            Group {
                from: &[("pool's queue", Queue::Inside)],
                through: "",
                waiter: "worker-1, idle",
                sleeps_in: "futex()",
                then: "the condition variable; wakes when a client is put in",
            },
        ],
    },
    calls: "Traced with two threads. The arrival shows the hand-over: a futex call of the main thread wakes \
            one that sleeps in another. The requests then cost what they cost `thread`.",
    excerpts: &[
        Excerpt {
            source: source!("thread_pool.rs"),
            function: "run(&self",
            notes: &[
                Note {
                    at: "for number in 0..server.workers",
                    says: "All threads there will be.",
                },
                Note {
                    at: "queue.put(",
                    says: "The hand-over; with nobody idle, the client waits here, accepted and unserved.",
                },
            ],
        },
        Excerpt {
            source: source!("thread_pool.rs"),
            function: "work(",
            notes: &[
                Note {
                    at: "queue.take()",
                    says: "Sleeps in futex() while there is nobody to serve.",
                },
                Note {
                    at: "conn.serve(",
                    says: "Serves this client until it leaves. The pool is one thread smaller meanwhile.",
                },
            ],
        },
        Excerpt {
            source: source!("thread_pool.rs"),
            function: "take(",
            notes: &[
                Note {
                    at: "loop {",
                    says: "Being woken is no promise: somebody else may have been quicker.",
                },
                Note {
                    at: ".wait(state)",
                    says: "Gives the lock up and sleeps, in one step, so that no news is missed.",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "How many threads are enough for 100 clients that stay?",
            command: "throng compare 'thread-pool --workers 50' 'thread-pool --workers 100' --clients 100 --duration 500ms --runs 2",
            look_for: "Who was served, and how long the others waited.",
        },
        Exercise {
            question: "And for clients that come, ask once and go?",
            command: "throng compare 'thread-pool --workers 4' thread --clients 2000 --each 1 --at-once 50 --runs 3",
            look_for: "Four threads serve everybody. What does it save against a thread for each?",
        },
        Exercise {
            question: "What is handed over, and by which call?",
            command: "throng explain thread-pool",
            look_for: "The futex calls when a client comes, and which thread each of them is in.",
        },
    ],
};
