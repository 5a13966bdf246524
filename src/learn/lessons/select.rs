//! The lesson about `select`.

use super::source;
use crate::learn::diagram::{ALL_CLIENTS, Diagram, Group};
use crate::learn::excerpt::{Excerpt, Note};
use crate::learn::{Exercise, Lesson};

pub(super) const LESSON: Lesson = Lesson {
    model: "select",
    why: "One thread for all, and it sleeps: the first of the calls that wait for many sockets at once \
          (4.2BSD, 1983). Its memory is as long as the highest descriptor: the sets are copied in, every \
          socket in them is asked, the sets are copied back, and then the program searches them for the \
          bits that are left. That is little for ten clients and much for a thousand idle ones; and a set has \
          room for 1024 descriptors only.",
    diagram: Diagram {
        groups: &[Group {
            from: ALL_CLIENTS,
            through: "bit sets",
            waiter: "the one thread",
            sleeps_in: "select()",
            then: "searches the sets, then recv(), send()",
        }],
    },
    calls: "One call to wait, which says that something is ready; which one, the program finds in the sets. \
            With many active clients one select() stands for many of them, with a single one there is one a \
            request.",
    excerpts: &[
        Excerpt {
            source: source!("select.rs"),
            function: "run(mut self",
            notes: &[
                Note {
                    at: "readable.copy_from(&self.read);",
                    says: "select() overwrites its sets with the answer, so each call needs fresh copies.",
                },
                Note {
                    at: "match select(",
                    says: "The kernel walks all descriptors up to the highest, each time.",
                },
                Note {
                    at: "readable.union(",
                    says: "And so does the program, to find the ready ones.",
                },
            ],
        },
        Excerpt {
            source: source!("select.rs"),
            function: "accept(&mut self",
            notes: &[Note {
                at: "self.server.tuning.fd_setsize",
                says: "A higher number would be written beyond the set: the client is turned away.",
            }],
        },
    ],
    exercises: &[
        Exercise {
            question: "Where does it end, and what if that is lifted?",
            command: "throng limit select 'select --fd-setsize 8192' --most 3000",
            look_for: "1024 descriptors less those that the server needs itself, and what refused the next client.",
        },
        Exercise {
            question: "What do idle clients cost an active one?",
            command: "throng compare select poll epoll --clients 900 --think 500ms --duration 1s --runs 2",
            look_for: "CPU time per reply. The rate is the same; what grows is the cost of each look.",
        },
        Exercise {
            question: "And when all of them are active?",
            command: "throng compare select epoll --clients 500 --duration 500ms --runs 3",
            look_for: "The gap closes: one look now finds many that are ready.",
        },
    ],
};
