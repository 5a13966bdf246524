//! Flags of `throng serve` that only apply to some models.

use std::time::Duration;

use super::WrongOption;
use super::values;
use crate::serve::Model;
use crate::serve::models::MODELS;
use crate::serve::tuning::{Accept, Completion, Tuning};
use crate::sys::aio;

#[derive(Debug, clap::Args)]
#[group(id = "tuning")]
#[command(next_help_heading = "Model options")]
pub(super) struct Arguments {
    /// select: size of its descriptor sets [default: 1024, as in the C library].
    #[arg(long, value_name = "N", value_parser = values::fd_setsize)]
    fd_setsize: Option<usize>,
    /// select: lowest descriptor of a client, to make its sets long even with few clients [default: 0].
    #[arg(long, value_name = "N", value_parser = values::number::<i32>(0, 1_000_000))]
    fd_from: Option<i32>,
    /// reactors: give each worker thread its own descriptor table, so that the descriptor limit applies per thread. The
    /// kernel spreads clients unevenly, so use 10 % more workers than needed.
    #[arg(long)]
    own_descriptors: bool,
    /// aio: completion by signal, by callback in a thread, by poll every 1 ms, or by busy polling [default: signal].
    #[arg(long, value_name = "signal|thread|poll|busy")]
    aio_completion: Option<Completion>,
    /// aio: maximum threads of the C library, whose own default is 20 [default: one per client].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    aio_threads: Option<u32>,
    /// aio: clients beyond --aio-threads wait for a thread, instead of being rejected. A silent client keeps its thread.
    #[arg(long, requires = "aio_threads")]
    aio_queue: bool,
    /// thread: nice value of the clients' threads, 1 to 19, so that the accepting thread comes first [default: 0].
    #[arg(long, value_name = "N", value_parser = values::number::<i32>(1, 19))]
    client_nice: Option<i32>,
    /// reactors: accept from a queue per loop (reuseport), or all from one queue (shared) [default: reuseport].
    #[arg(long, value_name = "reuseport|shared", hide_possible_values = true,
          value_parser = values::one_of(&Accept::NAMED))]
    accept: Option<Accept>,
    /// All models: CPU time that each request takes before its reply, as in a real service [default: none].
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    work: Option<Duration>,
}

impl Arguments {
    /// The size of select()'s sets, if given.
    #[cfg(target_os = "linux")]
    pub(super) fn fd_setsize(&self) -> Option<usize> {
        self.fd_setsize
    }

    /// The options for a model, provided that it supports every given flag.
    pub(super) fn resolve(&self, model: &Model) -> anyhow::Result<Tuning> {
        for (flag, given) in [
            ("fd-setsize", self.fd_setsize.is_some()),
            ("fd-from", self.fd_from.is_some()),
            ("own-descriptors", self.own_descriptors),
            ("aio-completion", self.aio_completion.is_some()),
            ("aio-threads", self.aio_threads.is_some()),
            ("aio-queue", self.aio_queue),
            ("accept", self.accept.is_some()),
            ("client-nice", self.client_nice.is_some()),
        ] {
            if given && !model.knobs.contains(&flag) {
                let knowing = MODELS.iter().filter(|other| other.knobs.contains(&flag));
                let names: Vec<&str> = knowing.map(|other| other.info.name).collect();
                let (names, name) = (names.join(", "), model.info.name);
                let why = format!("--{flag} is an option of {names}, not of {name}; leave it out");
                return Err(WrongOption::new(flag, why).into());
            }
        }
        if self.aio_completion == Some(Completion::Thread) && !aio::HAS_CALLBACKS {
            let message = "--aio-completion thread needs glibc; use signal or poll".to_owned();
            return Err(WrongOption::new("aio-completion", message).into());
        }
        if self.aio_threads.is_some() && !aio::HAS_POOL {
            let message = "--aio-threads needs glibc; leave it out".to_owned();
            return Err(WrongOption::new("aio-threads", message).into());
        }
        if self.client_nice.is_some() && !cfg!(target_os = "linux") {
            let message = "--client-nice needs Linux, where threads have nice values; leave it out";
            return Err(WrongOption::new("client-nice", message.to_owned()).into());
        }
        let usual = Tuning::default();
        Ok(Tuning {
            fd_setsize: self.fd_setsize.unwrap_or(usual.fd_setsize),
            fd_from: self.fd_from.unwrap_or(usual.fd_from),
            own_descriptors: self.own_descriptors,
            aio_completion: self.aio_completion.unwrap_or(usual.aio_completion),
            aio_threads: self.aio_threads.map_or(usual.aio_threads, |n| n as usize),
            aio_queue: self.aio_queue,
            accept: self.accept.unwrap_or(usual.accept),
            work: self.work.unwrap_or(usual.work),
            client_nice: self.client_nice.unwrap_or(usual.client_nice),
        })
    }
}
