//! The lesson about `reactors`.

use super::source;
use crate::learn::diagram::{Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "reactors",
    why: "Event loops use one CPU; so there is one for each. The question is who gets which client. Here the \
          kernel decides when a client connects, by a hash of its address, and each loop has a listening \
          socket, an epoll and connections of its own: no lock, nobody woken in vain, nothing handed over. \
          But a hash knows nothing of load: one loop may sweat while another sleeps.",
    diagram: Diagram {
        groups: &[
            Group {
                from: &[
                    ("new client", Queue::Accept),
                    ("client 1", Queue::Receive),
                    ("client 4", Queue::Receive),
                ],
                through: "ready list 1",
                waiter: "reactor-0, CPU 0",
                sleeps_in: "epoll_wait()",
                then: "an epoll-et loop",
            },
            Group {
                from: &[
                    ("new client", Queue::Accept),
                    ("client 2", Queue::Receive),
                    ("client 3", Queue::Receive),
                ],
                through: "ready list 2",
                waiter: "reactor-1, CPU 1",
                sleeps_in: "epoll_wait()",
                then: "another one",
            },
        ],
    },
    calls: "Traced with two loops. Only one of them appears: the client was dealt to it, and the other one does \
            not even wake.",
    excerpts: &[
        Excerpt {
            source: source!("reactors.rs"),
            function: "run_on_each_cpu<",
            notes: &[
                Note {
                    at: "for (number, listener) in",
                    says: "A listening socket for each loop, all on one port: SO_REUSEPORT.",
                },
                Note {
                    at: "settle_down(&own, cpu)",
                    says: "Bound to its CPU, with caches of its own.",
                },
                Note {
                    at: "drop(start.read());",
                    says: "No loop runs before all are made.",
                },
                Note {
                    at: "let waited = wait(",
                    says: "The main thread sleeps until the end.",
                },
            ],
        },
        Excerpt {
            source: source!("epoll_et.rs"),
            function: "run(mut self",
            notes: &[Note {
                at: "wait_for_events(",
                says: "Each loop sleeps in an epoll_wait() of its own.",
            }],
        },
    ],
    exercises: &[
        Exercise {
            question: "How evenly are clients dealt out?",
            command: "throng run --models reactors,epoll-et --clients 4,16,200 --repeats 3 --duration 500ms",
            look_for: "Fairness with few clients, and with many.",
        },
        Exercise {
            question: "What do more loops bring?",
            command: "throng compare 'reactors --workers 1' 'reactors --workers 2' --clients 100 --duration 500ms --runs 3",
            look_for: "The rate only grows if the server has more than one CPU (--server-cpus).",
        },
        Exercise {
            question: "Who wakes for a client?",
            command: "throng explain reactors",
            look_for: "Which of the two loops is in the list, and whether the other one is.",
        },
    ],
};
