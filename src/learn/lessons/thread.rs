//! The lesson about `thread`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "thread",
    why: "As `fork`, but what is made for a client is a stack and a kernel thread in the same memory: \
          cheaper to make and to switch to, and state can be shared. It can also be broken in common: one \
          crash ends all. Each thread waits with its own call, so waiting for many clients means many \
          sleeping threads, each with a stack and a place in the scheduler.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[("new client", Queue::Accept)],
                through: "",
                waiter: "main thread",
                sleeps_in: "poll()",
                then: "wakes to accept() and start a thread",
            },
            Group {
                from: &[("client 1", Queue::Receive)],
                through: "",
                waiter: "thread 1",
                sleeps_in: "recv()",
                then: "wakes to send(); ends when its client leaves",
            },
            Group {
                from: &[("client 2", Queue::Receive)],
                through: "",
                waiter: "thread 2",
                sleeps_in: "recv()",
                then: "",
            },
        ],
    },
    calls: "recv and send, as with every blocking server. The arrival is a clone3() with what the C library \
            and Rust do around it: a stack with a guard page, signals blocked meanwhile, a second stack \
            for signals.",
    excerpts: &[Excerpt {
        source: source!("thread.rs"),
        function: "run(&self",
        notes: &[
            Note {
                at: "while wait(",
                says: "The main thread sleeps in poll() and serves nobody itself.",
            },
            Note {
                at: "if blocked.count() >= most",
                says: "Each thread needs memory mappings, of which a process may have a bounded number.",
            },
            Note {
                at: ".stack_size(STACK_BYTES)",
                says: "Address space; memory is only taken for the pages that are used.",
            },
            Note {
                at: "conn.serve(",
                says: "All that this thread will ever do: recv(), answer, send(), until the client leaves.",
            },
        ],
    }],
    exercises: &[
        Exercise {
            question: "What does an idle client cost here, and what in an event loop?",
            command: "throng compare thread epoll --clients 1000 --think 1s --duration 2s --runs 2",
            look_for: "Memory and threads; the rate is the same, since the clients set it.",
        },
        Exercise {
            question: "When does the number of threads begin to hurt?",
            command: "throng run --models thread,epoll --clients 10,100,1000 --repeats 3",
            look_for: "CPU time per reply over the number of clients, and the context switches.",
        },
        Exercise {
            question: "What ends it first where descriptors are few?",
            command: "throng limit thread --server-limit nofile=500",
            look_for: "What gave way first, and the evidence for it.",
        },
    ],
};
