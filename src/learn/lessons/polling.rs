//! The lesson about `polling`.

use super::source;
use crate::learn::diagram::{ALL_CLIENTS, Diagram, Group};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "polling",
    why: "The simplest way for one thread to serve many: never wait for any of them. A call on a \
          non-blocking socket returns at once, with bytes or with EAGAIN, so the loop goes round and round. \
          Nobody has to be woken, which makes it quick as long as nearly every question finds something; \
          every other question is a system call for nothing, and the CPU is full with an idle crowd as well.",
    diagram: Diagram {
        groups: &[Group {
            from: ALL_CLIENTS,
            through: "",
            waiter: "the one thread",
            sleeps_in: "",
            then: "asks each in turn: accept(), recv(), recv(), recv(), and again",
        }],
    },
    calls: "Most of what is listed came to nothing: while the client thinks, the loop asks again and again \
            whether somebody is there to accept and whether the client has said something. The number behind \
            a call says how often in a row, and would go on until the client speaks.",
    excerpts: &[Excerpt {
        source: source!("polling.rs"),
        function: "run(&self",
        notes: &[
            Note {
                at: "&& wait(",
                says: "The one exception: with no client at all it sleeps in poll().",
            },
            Note {
                at: "server.listener.arrivals(",
                says: "accept4() each round, in vain nearly always.",
            },
            Note {
                at: "conn.turn(&mut scratch, false)",
                says: "recv() on each connection each round; EAGAIN from all that have said nothing.",
            },
        ],
    }],
    exercises: &[
        Exercise {
            question: "What does an idle crowd cost?",
            command: "throng compare polling epoll --clients 100 --think 100ms --duration 1s --runs 2",
            look_for: "CPU time per reply. The rate is set by the clients, so all of the difference is waste.",
        },
        Exercise {
            question: "When is asking again and again a good idea?",
            command: "throng compare polling epoll iterative --clients 1 --duration 500ms --runs 5",
            look_for: "The response time with a single client that always has something to say.",
        },
        Exercise {
            question: "How many system calls does a reply take with many clients?",
            command: "throng run --models polling,poll,epoll --clients 10,300 --repeats 2 --duration 500ms",
            look_for: "System calls per reply, and how many of them are recvfrom().",
        },
    ],
};
