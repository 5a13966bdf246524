//! The provenance of a run: the machine, throng, the servers.

use std::collections::BTreeMap;

use throng::record::{
    Foreign, ForeignProgram, Host, OtherProcess, Running, RunningProcess, ServerInfo,
    ThrongProgram, UsedFile,
};
use throng::registry::Unsupported;

use super::texts;

pub(super) fn full_host() -> Host {
    Host {
        kernel: "Linux 6".to_owned(),
        cpu_model: Some("some".to_owned()),
        cpu: texts("stepping"),
        cpu_mhz: Some(2000.0),
        cpus: 2,
        cpu_quota: Some(0.5),
        memory_bytes: Some(1),
        virtual_machine: Some("yes".to_owned()),
        descriptors_soft: Some(1),
        descriptors_hard: Some(1),
        somaxconn: Some(1),
        ephemeral_ports: Some((1, 2)),
        load_average_1min: Some(0.0),
        other_processes: vec![OtherProcess {
            name: "cc".to_owned(),
            cpu_percent: 99.0,
        }],
        governor: Some("performance".to_owned()),
        simultaneous_threads: Some("on".to_owned()),
        clock_source: Some("tsc".to_owned()),
        huge_pages: Some("never".to_owned()),
        libc: Some("glibc 2".to_owned()),
        sysctls: texts("net.core.somaxconn"),
        kernel_command_line: Some("ro quiet".to_owned()),
        limits: texts("nofile"),
        mitigations: texts("meltdown"),
    }
}

pub(super) fn full_program() -> ThrongProgram {
    ThrongProgram {
        sha256: Some("0".repeat(64)),
        commit: Some("1234abcd".to_owned()),
        modified: Some(true),
        compiler: Some("rustc 1".to_owned()),
        flags: Some("release, opt-level 3".to_owned()),
    }
}

pub(super) fn server() -> ServerInfo {
    ServerInfo {
        name: "epoll".to_owned(),
        summary: "one".to_owned(),
        structural_limit: Some("some".to_owned()),
        command: vec!["throng".to_owned()],
        foreign: Some(Foreign {
            ready: Some("listening".to_owned()),
            stop_signal: Some("QUIT".to_owned()),
            allow_remote: true,
            program: Some(ForeignProgram {
                file: file(),
                version: Some("v1".to_owned()),
                scripts: vec![file()],
            }),
            running: Some(Running {
                address: "127.0.0.1:80".to_owned(),
                path: Some("/".to_owned()),
                named_by: Some("pid 17".to_owned()),
                processes: vec![RunningProcess {
                    pid: 17,
                    name: "nginx".to_owned(),
                    program: Some(file()),
                }],
                unknown: Some(Unsupported {
                    reason: "it is far away".to_owned(),
                    remedy: "go there".to_owned(),
                }),
            }),
        }),
        limits: BTreeMap::from([("nofile".to_owned(), 300)]),
        environment: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
        cwd: Some("/srv".to_owned()),
        setup: vec!["true".to_owned()],
        cleanup: vec!["true".to_owned()],
        logs: vec!["/var/log/nginx/error.log".to_owned()],
        prepare: vec!["true".to_owned()],
        conclude: vec!["true".to_owned()],
    }
}

fn file() -> UsedFile {
    UsedFile {
        word: "server.js".to_owned(),
        path: "/srv/server.js".to_owned(),
        sha256: Some("0".repeat(64)),
    }
}
