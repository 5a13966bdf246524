//! The lesson about `tokio`.

use super::source;
use crate::learn::diagram::{ALL_CLIENTS, Diagram, Group, Queue};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "tokio",
    why: "The code reads as that of `thread`, one function for each client, while the machine works as \
          `epoll-et`: where a thread would sleep, a task returns to the runtime, which runs another one. The \
          compiler turns the function into a state machine. Tasks may move between threads, so that no CPU \
          is idle while another has too much; that balance is paid with wake-ups and shared queues.",
    diagram: Diagram {
        groups: &[
            Group {
                from: ALL_CLIENTS,
                through: "ready list",
                waiter: "a runtime thread",
                sleeps_in: "epoll_wait()",
                then: "runs the tasks that can go on",
            },
            Group {
                from: &[("ready tasks", Queue::Inside)],
                through: "",
                waiter: "the others",
                sleeps_in: "futex()",
                then: "woken when there are tasks for them",
            },
        ],
    },
    calls: "Traced with two runtime threads. Which of them wakes is chance; with a client that comes there may \
            be a hand-over, by futex() or through an eventfd.",
    excerpts: &[
        Excerpt {
            source: source!("tokio.rs"),
            function: "accept(server",
            notes: &[Note {
                at: "accepted = listener.accept() => accepted,",
                says: "Looks like waiting, but only this task waits: the thread does other work.",
            }],
        },
        Excerpt {
            source: source!("tokio.rs"),
            function: "serve(mut conn",
            notes: &[
                Note {
                    at: "let mut input = vec![0; INPUT_BYTES];",
                    says: "The usual way to write it: a buffer for each client, idle or not.",
                },
                Note {
                    at: "socket.read(&mut input)",
                    says: "Tries recv(); on EAGAIN the task is put aside until epoll names its socket.",
                },
                Note {
                    at: "socket.write(answers)",
                    says: "The same for send().",
                },
            ],
        },
    ],
    exercises: &[
        Exercise {
            question: "What does plain code cost against a loop written by hand?",
            command: "throng compare tokio epoll-et --clients 100 --duration 500ms --runs 3",
            look_for: "CPU time and system calls per reply.",
        },
        Exercise {
            question: "And against threads, for which one writes the same code?",
            command: "throng compare tokio thread --clients 1000 --duration 500ms --runs 3",
            look_for: "Context switches, threads and memory.",
        },
        Exercise {
            question: "What does each idle task hold?",
            command: "throng compare tokio epoll --clients 1000 --think 1s --duration 2s --runs 2",
            look_for: "Memory per client: one has a buffer for each, the other one for all.",
        },
    ],
};
