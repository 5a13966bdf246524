//! Why two servers differ, in two sentences.

use super::{Difference, Of, Why};
use throng_record::MemoryPart;
use throng_record::format::{bytes, cut, hundredths, list, time};
use throng_record::profile::{Function, Part};

/// Most parts that a sentence names.
const MOST_NAMED: usize = 3;
/// Most characters of a function's name, and of one with the modules that it is in.
const LONGEST_NAME: usize = 40;
const LONGEST_PATH: usize = 24;
/// System calls in which a server waits for its clients.
const FOR_CLIENTS: [&str; 15] = [
    "accept",
    "accept4",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "read",
    "recvfrom",
    "recvmsg",
    "io_uring_enter",
    "rt_sigtimedwait",
    "io_getevents",
];
/// Fewer calls per request are not named.
const FEWEST_CALLS: f64 = 0.1;
/// A rest that is a larger share of the difference is mentioned, or the parts would not add up.
const GREAT_REST: f64 = 0.1;
/// Calls that put a thread to sleep for a time.
const PAUSES: [&str; 2] = ["nanosleep", "clock_nanosleep"];

/// The name of what differs.
pub(super) fn name(of: &Of) -> String {
    match of {
        Of::OwnCode => "its own code".to_owned(),
        Of::Kernel(Part::Call(call)) => format!("{call}()"),
        Of::Kernel(Part::Interrupt) => "interrupts".to_owned(),
        Of::Kernel(Part::Switch) => "switching threads".to_owned(),
        Of::Kernel(Part::Kernel | Part::User(_)) => "entry to the kernel".to_owned(),
        Of::Function(Function { name, .. }) if name.is_empty() => "other functions".to_owned(),
        Of::Function(Function {
            name,
            caller: Some(caller),
        }) => format!("{}, called by {}", brief(name), brief(caller)),
        Of::Function(Function { name, .. }) => brief(name),
        Of::Call(call) | Of::Asleep(call) => call.clone(),
        Of::VoluntarySwitches => "voluntary context switches".to_owned(),
        Of::InvoluntarySwitches => "involuntary context switches".to_owned(),
        Of::Kernel(Part::PageFault) | Of::PageFaults => "page faults".to_owned(),
        Of::WaitingForCpu => "waiting for a CPU".to_owned(),
        Of::Memory(part) => match part {
            MemoryPart::Heap => "the heap".to_owned(),
            MemoryPart::Stacks => "stacks".to_owned(),
            MemoryPart::Files => "files and shared memory".to_owned(),
            MemoryPart::KernelStacks => "kernel stacks".to_owned(),
            MemoryPart::PageTables => "page tables".to_owned(),
            MemoryPart::Slab(cache) => cache.clone(),
        },
    }
}

/// The end of a long path: "epoll::Loop::on_ready".
fn brief(name: &str) -> String {
    let mut rest = name;
    while rest.chars().count() > LONGEST_PATH {
        match rest.split_once("::") {
            Some((_, inner)) if !inner.is_empty() => rest = inner,
            _ => break,
        }
    }
    cut(rest, LONGEST_NAME)
}

/// What explains the CPU time, and what explains the rest.
pub(super) fn sentences(why: &Why) -> Vec<String> {
    let all = [cpu(why), waits(why), memory(why)];
    all.into_iter().flatten().collect()
}

fn cpu(why: &Why) -> Option<String> {
    let Why {
        server, reference, ..
    } = why;
    why.cpu?;
    let shown: Vec<&Difference> = why.parts.iter().filter(|part| part.is_shown).collect();
    let is_more = match (why.timed_us, shown.first()) {
        (Some(timed), _) => timed > 0.0,
        (None, Some(largest)) => largest.difference.value > 0.0,
        (None, None) => {
            return Some(format!(
                "No part of the CPU time per request of {server} and {reference} is shown to differ."
            ));
        }
    };
    let (along, against): (Vec<&Difference>, Vec<&Difference>) = shown
        .into_iter()
        .partition(|part| (part.difference.value > 0.0) == is_more);
    let clauses = |parts: &[&Difference]| -> String {
        let named = parts.iter().take(MOST_NAMED);
        list(&named.map(|part| clause(why, part)).collect::<Vec<_>>())
    };
    let mut text = match why.timed_us {
        Some(timed) => {
            let Sized { size, word } = sized(timed);
            format!("{server} needs {size} {word} CPU time per request than {reference}: ")
        }
        None => format!("Compared with {reference}, {server} needs "),
    };
    text += &match (along.is_empty(), why.timed_us) {
        (true, _) => "no single part is shown to be the cause".to_owned(),
        (false, Some(_)) => clauses(&along),
        (false, None) => clauses(&along) + " per request",
    };
    if !against.is_empty() {
        text += &format!(", but {}", clauses(&against));
    }
    let named = along
        .iter()
        .take(MOST_NAMED)
        .chain(against.iter().take(MOST_NAMED));
    let named_us: f64 = named.map(|part| part.difference.value).sum();
    let timed_us = why.timed_us.filter(|_| !along.is_empty());
    let rest = timed_us.map(|timed| (timed, timed - named_us));
    if let Some((_, rest_us)) = rest.filter(|(timed, rest)| rest.abs() > GREAT_REST * timed.abs()) {
        let Sized { size, word } = sized(rest_us);
        text += &format!(". All else together needs {size} {word}");
    }
    Some(text + ".")
}

/// What the memory of a client differs by, if parts of it do.
fn memory(why: &Why) -> Option<String> {
    let memory = why.memory.as_ref()?;
    let difference = memory.difference();
    let shown = memory.parts.iter().filter(|part| part.is_shown);
    let along = shown.filter(|part| (part.difference.value > 0.0) == (difference > 0.0));
    let named: Vec<String> = along
        .take(MOST_NAMED)
        .map(|part| {
            let size = bytes(part.difference.value.abs());
            let objects = match &part.of {
                Of::Memory(MemoryPart::Slab(_)) => " objects of the kernel",
                _ => "",
            };
            format!("{size} {} for {}{objects}", word(difference), part.name)
        })
        .collect();
    if named.is_empty() {
        return None;
    }
    let size = bytes(difference.abs());
    Some(format!(
        "A client of {} takes {size} {} memory than one of {}: {}.",
        why.server,
        word(difference),
        why.reference,
        list(&named)
    ))
}

/// The direction of a difference.
fn word(difference: f64) -> &'static str {
    if difference > 0.0 { "more" } else { "less" }
}

/// A difference without its direction, and the direction.
struct Sized {
    size: String,
    word: &'static str,
}

fn sized(difference: f64) -> Sized {
    Sized {
        size: time(difference.abs()),
        word: word(difference),
    }
}

/// "9.8 µs less in select() (1.00 call per request instead of 2.00)", "7 µs more in its own code (6.8 µs in spin)".
fn clause(why: &Why, part: &Difference) -> String {
    let Sized { size, word } = sized(part.difference.value);
    let text = format!("{size} {word} in {}", part.name);
    match &part.of {
        Of::Kernel(Part::Call(call)) => text + &why.call(call).map_or_else(String::new, change),
        Of::OwnCode => text + &mostly(why, part),
        _ => text,
    }
}

/// The function that most of a difference in own code is in; empty if there is none, as in two programs that have nothing
/// in common.
fn mostly(why: &Why, own_code: &Difference) -> String {
    let whole = own_code.difference.value;
    let is_most = |one: &&Difference| {
        let part = one.difference.value;
        let is_named = matches!(&one.of, Of::Function(of) if !of.name.is_empty());
        one.is_shown && is_named && part * whole > 0.0 && 2.0 * part.abs() > whole.abs()
    };
    let size = |one: &Difference| sized(one.difference.value).size;
    if let Some(one) = why.functions.iter().find(is_most) {
        return format!(" ({} in {})", size(one), one.name);
    }
    let with_libraries = why.own_functions.iter().find(is_most);
    with_libraries.map_or_else(String::new, |one| {
        format!(" ({} in {} and what it calls)", size(one), one.name)
    })
}

/// How the number of a call changes: " (1.00 call per request instead of 2.00)", " (1 call per request)".
fn change(call: &Difference) -> String {
    let [then, now] = [call.reference, call.server].map(per_request);
    let calls = if now == "1.00" { "call" } else { "calls" };
    if !call.is_shown || then == now {
        return format!(" ({now} {calls} per request)");
    }
    match (then.as_str(), now.as_str()) {
        ("0", now) => format!(" ({now} {calls} per request instead of none)"),
        (then, "0") => format!(" (no call instead of {then} per request)"),
        (then, now) => format!(" ({now} {calls} per request instead of {then})"),
    }
}

/// A number per request; 0 without decimals.
fn per_request(count: f64) -> String {
    if count < 0.005 {
        "0".to_owned()
    } else {
        hundredths(count)
    }
}

/// What threads wait for besides their clients.
fn waits(why: &Why) -> Option<String> {
    let Why {
        server, reference, ..
    } = why;
    let is_cause = |wait: &&Difference| match &wait.of {
        Of::WaitingForCpu => wait.is_shown,
        Of::Asleep(call) if FOR_CLIENTS.contains(&call.as_str()) => false,
        // Idle threads of a pool wait for work too, however many there are; only more such calls are a difference.
        Of::Asleep(call) => wait.is_shown && why.call(call).is_some_and(|call| call.is_shown),
        _ => false,
    };
    let waited: Vec<&Difference> = why.waits.iter().filter(is_cause).take(MOST_NAMED).collect();
    let mut clauses: Vec<String> = waited
        .iter()
        .map(|wait| {
            let Sized { size, word } = sized(wait.difference.value);
            let times = why.call(&wait.name).map_or_else(String::new, change);
            match &wait.of {
                Of::WaitingForCpu => format!("wait {size} {word} for a CPU"),
                Of::Asleep(call) if PAUSES.contains(&call.as_str()) => {
                    format!("sleep {size} {word} in {call}(){times}")
                }
                _ => format!("wait {size} {word} in {}(){times}", wait.name),
            }
        })
        .collect();
    // Calls that no clause has named yet.
    let in_kernel = why
        .parts
        .iter()
        .filter(|part| part.is_shown)
        .filter_map(|part| match &part.of {
            Of::Kernel(Part::Call(name)) => Some(name.as_str()),
            _ => None,
        });
    let named: Vec<&str> = in_kernel
        .chain(waited.iter().map(|wait| wait.name.as_str()))
        .collect();
    let calls = why.calls.iter().filter(|call| {
        call.is_shown
            && !named.contains(&call.name.as_str())
            && call.difference.value.abs() >= FEWEST_CALLS
    });
    clauses.extend(calls.take(MOST_NAMED).map(|call| {
        let Sized { word, .. } = sized(call.difference.value);
        let apart = hundredths(call.difference.value.abs());
        format!("call {}() {apart} times {word}", call.name)
    }));
    let events = [
        (Of::VoluntarySwitches, "go to sleep", "times"),
        (Of::PageFaults, "have", "page faults"),
    ];
    for (of, verb, noun) in events {
        let mut found = why.events.iter().filter(|one| one.of == of && one.is_shown);
        clauses.extend(found.next().map(|one| {
            let Sized { word, .. } = sized(one.difference.value);
            let apart = hundredths(one.difference.value.abs());
            format!("{verb} {apart} {noun} {word}")
        }));
    }
    if clauses.is_empty() {
        return None;
    }
    Some(format!(
        "Per request, the threads of {server} {}, compared with {reference}.",
        list(&clauses)
    ))
}
