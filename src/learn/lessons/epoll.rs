//! The lesson about `epoll`.

use super::source;
use crate::learn::diagram::{ALL_CLIENTS, Diagram, Group};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "epoll",
    why: "The list of sockets has moved into the kernel: it is told once who is to be watched, and a socket \
          that becomes ready puts itself into a list. A wait then costs as much as there is to do, not as \
          much as there are clients, so ten thousand idle ones cost memory only. Level-triggered means that \
          a socket is named again as long as there is something to read: forgetting is harmless.",
    diagram: Diagram {
        groups: &[Group {
            from: ALL_CLIENTS,
            through: "ready list",
            waiter: "the one thread",
            sleeps_in: "epoll_wait()",
            then: "recv() and send() for each that is named",
        }],
    },
    calls: "Three calls for a lonely client: wait, receive, send. Under load one epoll_wait() names many, and \
            what is left are two. epoll_ctl() is paid once, when the client comes.",
    excerpts: &[
        Excerpt {
            source: source!("epoll.rs"),
            function: "run(mut self",
            notes: &[
                Note {
                    at: "wait_for_events(",
                    says: "Sleeps in epoll_wait(); wakes with those that are ready, and nobody else.",
                },
                Note {
                    at: "if fd == listener",
                    says: "The listening socket is one of the watched: ready means that somebody connected.",
                },
            ],
        },
        Excerpt {
            source: source!("epoll.rs"),
            function: "accept(&mut self",
            notes: &[Note {
                at: "epoll::add(",
                says: "epoll_ctl(): from now on the kernel keeps this socket in its set.",
            }],
        },
        Excerpt {
            source: source!("epoll.rs"),
            function: "turn(&mut self",
            notes: &[
                Note {
                    at: "match slot.conn.turn(",
                    says: "recv(), answer, send(): none of these waits, the socket is non-blocking.",
                },
                Note {
                    at: "if writing != slot.writing",
                    says: "Only when a client stops taking its answers is another epoll_ctl() needed.",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "What do a thousand idle clients cost?",
            command: "throng compare epoll poll select --clients 900 --think 500ms --duration 1s --runs 2",
            look_for: "CPU time per reply: flat here, growing with the crowd in the others.",
        },
        Exercise {
            question: "How many replies does one epoll_wait() stand for?",
            command: "throng run --models epoll --clients 1,10,100,1000 --repeats 2 --duration 500ms",
            look_for: "System calls per reply, from 3 towards 2.",
        },
        Exercise {
            question: "What is the first thing to run out?",
            command: "throng limit epoll --server-limit nofile=300",
            look_for: "What gave way first, and the evidence.",
        },
        Exercise {
            question: "Which calls does one request make?",
            command: "throng explain epoll",
            look_for: "When a client comes, who is asked twice whether there is another one?",
        },
    ],
};
