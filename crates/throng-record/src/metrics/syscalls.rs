//! Metrics of the probe `syscalls`: system calls of a side by name, in separate trials.

use super::entry::{of_sides, per_request};
use super::{Better, Detail, Metric, Purpose, Subject, Unit, count, joined};

pub const METRICS: &[Metric] = &joined::<{ count(&PARTS) }>(&PARTS);

const PARTS: [&[Metric]; 5] = [PER_REQUEST, TOTALS, OTHER_PER_REQUEST, OTHER, NAMED];

#[rustfmt::skip]
const PER_REQUEST: &[Metric] = per_request! { "syscalls", Profiled:
    "syscalls" of "syscalls" * 1.0, "System calls", Mean, Lower, "system calls",
        server[.column(53).detail(Detail::Others(&[("client_syscalls_per_request", "clients {}")])).terminal(11).cost()];
};

#[rustfmt::skip]
const TOTALS: &[Metric] = of_sides! { "syscalls", Profiled:
    "syscalls", "System calls", Count, Lower, "system calls after all clients connected, until their last replies";
};

#[rustfmt::skip]
const OTHER_PER_REQUEST: &[Metric] = per_request! { "syscalls", Profiled:
    "syscalls_other" of "syscalls_other" * 1.0, "Other calls", Mean, Neutral, "system calls without a metric of their own";
};

#[rustfmt::skip]
const OTHER: &[Metric] = of_sides! { "syscalls", Profiled:
    "syscalls_other", "Other calls", Count, Neutral, "system calls without a metric of their own";
};

/// Defines [`CALLS`] and their metrics.
macro_rules! calls {
    ($($call:ident)*) => {
        /// The main calls of servers and clients, with the names of their values in records.
        pub const CALLS: &[(&str, &str)] =
            &[$((stringify!($call), concat!("syscalls_", stringify!($call))),)*];

        const NAMED: &[Metric] = &[$(
            of_call(Subject::Server, concat!("server_syscalls_", stringify!($call), "_per_request"),
                concat!(stringify!($call), "/request"), Unit::Mean,
                concat!("calls to ", stringify!($call), "(), per request"))
                .per_request_of(concat!("syscalls_", stringify!($call)), 1.0),
            of_call(Subject::LoadGenerator, concat!("client_syscalls_", stringify!($call), "_per_request"),
                concat!(stringify!($call), "/request (clients)"), Unit::Mean,
                concat!("calls to ", stringify!($call), "(), per request"))
                .per_request_of(concat!("syscalls_", stringify!($call)), 1.0),
            of_call(Subject::Server, concat!("server_syscalls_", stringify!($call)), stringify!($call),
                Unit::Count, concat!("calls to ", stringify!($call), "(); absent if there were none"))
                .value(concat!("syscalls_", stringify!($call))),
            of_call(Subject::LoadGenerator, concat!("client_syscalls_", stringify!($call)),
                concat!(stringify!($call), " (clients)"), Unit::Count,
                concat!("calls to ", stringify!($call), "(); absent if there were none"))
                .value(concat!("syscalls_", stringify!($call))),
        )*];
    };
}

calls! {
    recvfrom sendto read write readv writev recvmsg sendmsg pread64 pwrite64 sendfile64
    accept accept4 socket shutdown close setsockopt
    epoll_wait epoll_pwait epoll_pwait2 epoll_ctl poll ppoll select pselect6 io_uring_enter
    futex sched_yield clock_nanosleep rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigqueueinfo
    clone clone3 set_robust_list rseq exit wait4 mmap munmap mprotect madvise brk
    openat fcntl getpid getuid
}

const fn of_call(
    subject: Subject,
    name: &'static str,
    label: &'static str,
    unit: Unit,
    help: &'static str,
) -> Metric {
    Metric::of_probe(
        "syscalls",
        Purpose::Profiled,
        subject,
        name,
        label,
        unit,
        Better::Neutral,
        help,
    )
}

impl Metric {
    /// The single system call that it counts; "other" for those without a metric of their own.
    pub fn call(&self) -> Option<&'static str> {
        let value = self.probe_value()?.name;
        let mut calls = CALLS.iter().chain(&[("other", "syscalls_other")]);
        let (call, _) = calls.find(|(_, name)| *name == value)?;
        Some(call)
    }
}
