//! Stacks counted, named, and divided into the parts of a server's CPU time.

use std::collections::{BTreeMap, HashMap};

use super::symbols::{Named, Names, Origin};
use super::unwind::Images;
use throng_record::profile::{Function, Part, PartSamples};
use throng_sys::samples::Stack;

/// Most different stacks that are kept; more count as [`OTHERS`].
const MOST_STACKS: usize = 50_000;
/// Most functions that are listed.
const MOST_FUNCTIONS: usize = 40;
/// Stacks that were not kept.
const OTHERS: &str = "[other stacks]";

/// A stack as addresses, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Addresses {
    image: usize,
    in_kernel: bool,
    kernel: Vec<u64>,
    program: Vec<u64>,
}

/// How often each stack was seen in each turn.
#[derive(Default)]
pub(super) struct StackCounts {
    counts: HashMap<Addresses, HashMap<usize, u32>>,
    /// Stacks beyond the limit.
    others: HashMap<usize, u32>,
    all: u64,
}

/// The parts of each turn, and all stacks with names.
pub(super) struct NamedStacks {
    pub(super) turns: Vec<Vec<PartSamples>>,
    pub(super) folded: Vec<(String, u64)>,
    pub(super) unnamed_share: Option<f64>,
}

impl StackCounts {
    pub(super) fn add(&mut self, turn: usize, image: usize, stack: Stack, program: Vec<u64>) {
        self.all += 1;
        let addresses = Addresses {
            image,
            in_kernel: stack.in_kernel,
            kernel: stack.kernel,
            program,
        };
        let of_stack = if self.counts.len() < MOST_STACKS || self.counts.contains_key(&addresses) {
            self.counts.entry(addresses).or_default()
        } else {
            &mut self.others
        };
        *of_stack.entry(turn).or_default() += 1;
    }

    /// Looks all names up.
    pub(super) fn named(self, images: &Images, turns: usize) -> NamedStacks {
        let mut names = Names::default();
        names.learn_kernel(&unique(self.counts.keys().flat_map(|stack| &stack.kernel)));
        let mut by_image: HashMap<usize, Vec<u64>> = HashMap::new();
        for stack in self.counts.keys() {
            by_image
                .entry(stack.image)
                .or_default()
                .extend(&stack.program);
        }
        for (image, addresses) in by_image {
            names.learn_program(images.pid(image), &unique(&addresses));
        }
        let mut by_part: Vec<BTreeMap<Part, u32>> = vec![BTreeMap::new(); turns];
        let mut folded: BTreeMap<String, u64> = BTreeMap::new();
        let mut unnamed = 0;
        for (stack, counts) in &self.counts {
            let program: Vec<&Named> = stack
                .program
                .iter()
                .flat_map(|address| names.program(images.pid(stack.image), *address))
                .collect();
            let kernel: Vec<&Named> = stack
                .kernel
                .iter()
                .filter_map(|address| names.kernel(*address))
                .collect();
            let part = if stack.in_kernel {
                in_kernel(&kernel)
            } else {
                Part::User(function(&program))
            };
            let total: u64 = counts.values().map(|count| u64::from(*count)).sum();
            let is_unnamed = program
                .first()
                .is_some_and(|named| named.origin == Origin::Unknown);
            unnamed += if is_unnamed { total } else { 0 };
            *folded.entry(fold(&program, &kernel)).or_default() += total;
            for (turn, count) in counts {
                *by_part[*turn].entry(part.clone()).or_default() += count;
            }
        }
        for (turn, count) in &self.others {
            *by_part[*turn]
                .entry(Part::User(Function::default()))
                .or_default() += count;
            *folded.entry(OTHERS.to_owned()).or_default() += u64::from(*count);
        }
        NamedStacks {
            turns: listed(by_part),
            folded: folded.into_iter().collect(),
            unnamed_share: (self.all > 0).then(|| unnamed as f64 / self.all as f64),
        }
    }
}

fn unique<'a>(addresses: impl IntoIterator<Item = &'a u64>) -> Vec<u64> {
    let mut all: Vec<u64> = addresses.into_iter().copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The parts of each turn, in which functions with few samples count together.
fn listed(by_part: Vec<BTreeMap<Part, u32>>) -> Vec<Vec<PartSamples>> {
    let mut totals: BTreeMap<Function, u32> = BTreeMap::new();
    for (part, count) in by_part.iter().flatten() {
        if let Part::User(function) = part {
            *totals.entry(function.clone()).or_default() += count;
        }
    }
    let mut most: Vec<(u32, Function)> = totals
        .into_iter()
        .map(|(function, count)| (count, function))
        .collect();
    most.sort_by(|one, other| other.cmp(one));
    most.truncate(MOST_FUNCTIONS);
    let is_listed = |function: &Function| most.iter().any(|(_, listed)| listed == function);
    let of_turn = |parts: BTreeMap<Part, u32>| {
        let mut kept: BTreeMap<Part, u32> = BTreeMap::new();
        for (part, count) in parts {
            let part = match part {
                Part::User(function) if !is_listed(&function) => Part::User(Function::default()),
                part => part,
            };
            *kept.entry(part).or_default() += count;
        }
        kept.into_iter()
            .map(|(part, count)| PartSamples { part, count })
            .collect()
    };
    by_part.into_iter().map(of_turn).collect()
}

/// The innermost function of a program. For a library's function, or one of a runtime that compiles programs, also the
/// program's own function that called it.
fn function(stack: &[&Named]) -> Function {
    let Some(innermost) = stack.first() else {
        return Function::default();
    };
    let mut compiled = [Origin::Compiled, Origin::Runtime].into_iter();
    let found = compiled.find(|origin| stack.iter().any(|named| named.origin == *origin));
    let of_program = found.unwrap_or(Origin::Program);
    let caller = stack.iter().find(|named| named.origin == of_program);
    let is_own = innermost.origin == of_program;
    Function {
        name: innermost.name.clone(),
        caller: caller.filter(|_| !is_own).map(|named| named.name.clone()),
    }
}

/// What the kernel did, from its functions, innermost first.
fn in_kernel(stack: &[&Named]) -> Part {
    // The outermost one that says it: a packet that arrives while a call sends one belongs to that call.
    let parts = stack.iter().rev().filter_map(|named| part_of(&named.name));
    parts.into_iter().next().unwrap_or(Part::Kernel)
}

/// The entries of system calls on different architectures.
const OF_CALLS: [&str; 4] = ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__riscv_sys_"];

/// What a function of the kernel is there for, if it says that.
fn part_of(function: &str) -> Option<Part> {
    let call = OF_CALLS
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix));
    if let Some(call) = call {
        return Some(Part::Call(call.trim_start_matches("new").to_owned()));
    }
    let has = |parts: &[&str]| parts.iter().any(|part| function.contains(part));
    if has(&["page_fault", "el0_da", "el0_ia"]) {
        Some(Part::PageFault)
    } else if has(&[
        "sysvec",
        "common_interrupt",
        "softirq",
        "el0_irq",
        "el1_irq",
    ]) {
        Some(Part::Interrupt)
    } else if has(&["exit_to_user_mode", "schedule", "ret_from_fork"]) {
        Some(Part::Switch)
    } else {
        None
    }
}

/// A stack as text, outermost function first, as flame graphs and other tools read it.
fn fold(program: &[&Named], kernel: &[&Named]) -> String {
    let in_program = program.iter().rev().map(|named| named.name.as_str());
    let in_kernel = kernel.iter().rev().map(|named| named.name.as_str());
    let names = in_program
        .map(separate)
        .chain(in_kernel.map(|name| separate(name) + "_[k]"));
    names.collect::<Vec<_>>().join(";")
}

/// A name without the sign that separates names.
fn separate(name: &str) -> String {
    name.replace([';', '\n'], ":")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str, origin: Origin) -> Named {
        Named {
            name: name.to_owned(),
            origin,
        }
    }

    fn kernel(names: &[&str]) -> Part {
        let all: Vec<Named> = names
            .iter()
            .map(|name| named(name, Origin::Kernel))
            .collect();
        in_kernel(&all.iter().collect::<Vec<_>>())
    }

    #[test]
    fn time_in_the_kernel_belongs_to_the_outermost_reason() {
        let sends = [
            "tcp_v4_rcv",
            "handle_softirqs",
            "tcp_sendmsg",
            "__x64_sys_sendto",
            "do_syscall_64",
        ];
        assert_eq!(kernel(&sends), Part::Call("sendto".to_owned()));
        assert_eq!(
            kernel(&["clear_page_erms", "asm_exc_page_fault"]),
            Part::PageFault
        );
        assert_eq!(
            kernel(&[
                "tcp_v4_rcv",
                "handle_softirqs",
                "asm_sysvec_apic_timer_interrupt"
            ]),
            Part::Interrupt
        );
        assert_eq!(
            kernel(&["__schedule", "schedule", "exit_to_user_mode_loop"]),
            Part::Switch
        );
        assert_eq!(kernel(&["entry_SYSCALL_64_safe_stack"]), Part::Kernel);
        assert_eq!(kernel(&[]), Part::Kernel);
    }

    #[test]
    fn a_librarys_function_has_the_one_that_called_it() {
        let copy = named("memcpy", Origin::Library);
        let own = named("answer", Origin::Program);
        let main = named("main", Origin::Program);
        let found = function(&[&copy, &own, &main]);
        assert_eq!(
            (found.name.as_str(), found.caller.as_deref()),
            ("memcpy", Some("answer"))
        );
        assert_eq!(function(&[&own, &main]).caller, None);
        assert_eq!(function(&[&copy]).caller, None);
        // A runtime's own functions, called by a program that it compiled.
        let compiled = named("spin (app.js:3)", Origin::Compiled);
        assert_eq!(
            function(&[&own, &compiled, &main]).caller.as_deref(),
            Some("spin (app.js:3)")
        );
        let runtime = named("copy (node:buffer)", Origin::Runtime);
        let caller = |stack: &[&Named]| function(stack).caller;
        assert_eq!(
            caller(&[&runtime, &compiled]).as_deref(),
            Some("spin (app.js:3)")
        );
        assert_eq!(
            caller(&[&copy, &runtime, &main]).as_deref(),
            Some("copy (node:buffer)")
        );
        assert_eq!(function(&[]), Function::default());
    }

    #[test]
    fn stacks_are_written_from_outside_in() {
        let own = named("a;b", Origin::Program);
        let call = named("__x64_sys_read", Origin::Kernel);
        assert_eq!(fold(&[&own], &[&call]), "a:b;__x64_sys_read_[k]");
    }

    #[test]
    fn rare_functions_count_together() {
        let part = |number: usize| {
            let name = format!("f{number:03}");
            Part::User(Function { name, caller: None })
        };
        let turn: BTreeMap<Part, u32> = (0..60)
            .map(|number| (part(number), number as u32 + 1))
            .collect();
        let all: u32 = turn.values().sum();
        let turns = listed(vec![turn]);
        assert_eq!(turns[0].len(), MOST_FUNCTIONS + 1);
        assert_eq!(turns[0].iter().map(|one| one.count).sum::<u32>(), all);
        assert_eq!(turns[0][0].part, Part::User(Function::default()));
    }
}
