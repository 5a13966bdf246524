//! Flame graphs: where a server's CPU time goes, as a tree of functions, and how two servers differ in it.
//!
//! A frame is as wide as its share of the time, and lies below the function that called it. (B. Gregg, "The Flame
//! Graph", Communications of the ACM 59 (2016), which has them growing upwards.)

use std::collections::BTreeMap;

use crate::trial_files::Stacks;
use crate::why::Why;
use throng_record::format::time;

/// A narrower frame is left out, with all below it.
const NARROWEST: f64 = 0.001;
/// Most frames of a graph.
const MOST_FRAMES: usize = 3000;
/// Below this share of the largest difference a frame counts as equal.
const STEPS: f64 = 4.0;

/// A flame graph.
#[derive(Debug, Clone, PartialEq)]
pub struct FlameGraph {
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// All frames, each after the one that called it.
    pub frames: Vec<Frame>,
    /// Most frames above each other.
    pub depth: usize,
}

/// A function with everything that it calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub name: String,
    /// Number of frames above it.
    pub depth: usize,
    /// Where it begins, and its width, as shares of the whole.
    pub from: f64,
    pub width: f64,
    /// What it says on demand: its time per request, its share or its change.
    pub text: String,
    pub tone: Tone,
}

/// The colour of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// The kernel, in a graph of one server.
    Kernel,
    /// The program, in a graph of one server.
    Program,
    /// In a graph of two: from -4, much less than the reference, to 4, much more.
    Change(i8),
}

/// The end of the names of the kernel's functions in folded stacks, as other tools write it too.
const OF_KERNEL: &str = "_[k]";

/// A node of the tree, with the time of the reference and of the server, in microseconds per request.
#[derive(Default)]
struct Node<'a> {
    own: [f64; 2],
    all: [f64; 2],
    below: BTreeMap<&'a str, Node<'a>>,
}

impl<'a> Node<'a> {
    fn add(&mut self, stack: &'a str, side: usize, time: f64) {
        let mut node = self;
        node.all[side] += time;
        for name in stack.split(';') {
            node = node.below.entry(name).or_default();
            node.all[side] += time;
        }
        node.own[side] += time;
    }

    /// The width of its frame: whatever either server needs has room.
    fn width(&self) -> f64 {
        let below: f64 = self.below.values().map(Self::width).sum();
        self.own[0].max(self.own[1]) + below
    }

    fn greatest_change(&self) -> f64 {
        let below = self.below.values().map(Self::greatest_change);
        below.fold((self.all[1] - self.all[0]).abs(), f64::max)
    }
}

/// The graphs of a run: one for each server with the largest number of clients, and one for each pair.
pub(crate) fn graphs(stacks: &[Stacks], all: &[Why]) -> Vec<FlameGraph> {
    let mut graphs = Vec::new();
    let cpu = |of: &Stacks| {
        let mut both = all.iter().filter(|why| why.clients == of.clients);
        both.find_map(|why| {
            let cpu = why.cpu.as_ref()?;
            let is_reference = why.reference == of.server;
            (is_reference || why.server == of.server).then_some(if is_reference {
                cpu.reference
            } else {
                cpu.server
            })
        })
    };
    for of in stacks {
        graphs.extend(cpu(of).and_then(|cpu| single(of, cpu)));
    }
    for why in all {
        let find = |server: &str| {
            let mut found = stacks.iter();
            found.find(|of| of.server == server && of.clients == why.clients)
        };
        if let (Some(then), Some(now), Some(of_cpu)) =
            (find(&why.reference), find(&why.server), &why.cpu)
        {
            graphs.extend(pair(why, [(then, of_cpu.reference), (now, of_cpu.server)]));
        }
    }
    graphs
}

fn single(of: &Stacks, cpu: f64) -> Option<FlameGraph> {
    let mut root = Node::default();
    add(&mut root, of, 0, cpu);
    let caption = format!(
        "CPU time per request: {}. Below each function are those that it calls; orange: the kernel.",
        time(cpu)
    );
    let tone = |name: &str, _: &Node<'_>| {
        if name.ends_with(OF_KERNEL) {
            Tone::Kernel
        } else {
            Tone::Program
        }
    };
    let text = |node: &Node<'_>| {
        let share = 100.0 * node.all[0] / cpu;
        format!("{} per request, {share:.1} %", time(node.all[0]))
    };
    FlameGraph::of(of.server.clone(), caption, &root, (&tone, &text))
}

fn pair(why: &Why, sides: [(&Stacks, f64); 2]) -> Option<FlameGraph> {
    let mut root = Node::default();
    for (side, (of, cpu)) in sides.into_iter().enumerate() {
        add(&mut root, of, side, cpu);
    }
    let most = root.greatest_change();
    let title = format!("{} compared with {}", why.server, why.reference);
    let caption = format!(
        "Red: {} needs more there than {}; blue: less. Each frame has room for the one that needs more.",
        why.server, why.reference
    );
    let tone = |_: &str, node: &Node<'_>| {
        let change = (node.all[1] - node.all[0]) / most;
        Tone::Change((STEPS * change.abs().sqrt() * change.signum()).round() as i8)
    };
    let text = |node: &Node<'_>| {
        let [then, now] = node.all;
        let more = if now > then { "more" } else { "less" };
        let apart = time((now - then).abs());
        format!(
            "{} becomes {} per request, {apart} {more}",
            time(then),
            time(now)
        )
    };
    FlameGraph::of(title, caption, &root, (&tone, &text))
}

fn add<'a>(root: &mut Node<'a>, of: &'a Stacks, side: usize, cpu: f64) {
    let samples: u64 = of.stacks.iter().map(|(_, count)| count).sum();
    for (stack, count) in &of.stacks {
        root.add(stack, side, cpu * *count as f64 / samples.max(1) as f64);
    }
}

type Looks<'f> = (
    &'f dyn Fn(&str, &Node<'_>) -> Tone,
    &'f dyn Fn(&Node<'_>) -> String,
);

impl FlameGraph {
    fn of(title: String, caption: String, root: &Node<'_>, looks: Looks<'_>) -> Option<Self> {
        let whole = root.width();
        let mut graph = Self {
            title,
            caption,
            frames: Vec::new(),
            depth: 0,
        };
        if whole > 0.0 {
            graph.grow("all", root, (0.0, whole), 0, looks);
        }
        (graph.frames.len() > 1).then_some(graph)
    }

    fn grow(
        &mut self,
        name: &str,
        node: &Node<'_>,
        (from, whole): (f64, f64),
        depth: usize,
        looks: Looks<'_>,
    ) {
        let width = node.width() / whole;
        if width < NARROWEST || self.frames.len() >= MOST_FRAMES {
            return;
        }
        self.depth = self.depth.max(depth + 1);
        let (tone, text) = looks;
        self.frames.push(Frame {
            name: name.strip_suffix(OF_KERNEL).unwrap_or(name).to_owned(),
            depth,
            from: from / whole,
            width,
            text: text(node),
            tone: tone(name, node),
        });
        let mut at = from;
        for (function, below) in &node.below {
            self.grow(function, below, (at, whole), depth + 1, looks);
            at += below.width();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks(server: &str, all: &[(&str, u64)]) -> Stacks {
        Stacks {
            server: server.to_owned(),
            clients: 5,
            stacks: all
                .iter()
                .map(|(stack, count)| ((*stack).to_owned(), *count))
                .collect(),
        }
    }

    #[test]
    fn frames_are_as_wide_as_their_time() {
        let of = stacks("one", &[("main;a", 30), ("main;b;c_[k]", 60), ("main", 10)]);
        let graph = single(&of, 10.0).unwrap();
        let shown: Vec<(&str, usize, u32, u32)> = graph
            .frames
            .iter()
            .map(|frame| {
                let percent = |share: f64| (100.0 * share).round() as u32;
                (
                    frame.name.as_str(),
                    frame.depth,
                    percent(frame.from),
                    percent(frame.width),
                )
            })
            .collect();
        let expected = [
            ("all", 0, 0, 100),
            ("main", 1, 0, 100),
            ("a", 2, 0, 30),
            ("b", 2, 30, 60),
            ("c", 3, 30, 60),
        ];
        assert_eq!(shown, expected);
        assert_eq!(graph.depth, 4);
        assert_eq!(graph.frames[4].tone, Tone::Kernel);
        assert_eq!(graph.frames[2].text, "3.00 µs per request, 30.0 %");
        assert!(single(&stacks("none", &[]), 10.0).is_none());
    }

    #[test]
    fn what_either_server_needs_has_room_in_the_difference() {
        let then = stacks("then", &[("main;old", 50), ("main;same", 50)]);
        let now = stacks("now", &[("main;new", 10), ("main;same", 10)]);
        let mut root = Node::default();
        add(&mut root, &then, 0, 10.0);
        add(&mut root, &now, 1, 10.0);
        assert!(
            (root.width() - 15.0).abs() < 1e-9,
            "old, new, and same once"
        );
        assert!((root.greatest_change() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn a_graph_is_bounded() {
        let many: Vec<(String, u64)> = (0..20_000)
            .map(|number| (format!("main;f{number}"), 1))
            .collect();
        let of = Stacks {
            server: "many".to_owned(),
            clients: 5,
            stacks: many,
        };
        assert_eq!(single(&of, 10.0).unwrap().frames.len(), 2);
    }
}
