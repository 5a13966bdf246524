//! Flags of `throng serve` that only some models know.

use super::Usage;
use super::values;
use crate::serve::Model;
use crate::serve::models::MODELS;
use crate::serve::tuning::{Completion, Tuning};
use crate::sys::aio;

#[derive(Debug, clap::Args)]
#[group(id = "tuning")]
#[command(next_help_heading = "Options of single models")]
pub(super) struct Arguments {
    /// select: size of its descriptor sets; the C library's is 1024.
    #[arg(long, value_name = "N", value_parser = values::fd_setsize)]
    fd_setsize: Option<usize>,
    /// select: least descriptor of a client, so that its sets are as long with few clients as with many [default: 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(0..=1_000_000))]
    fd_from: Option<i32>,
    /// reactors: give each worker thread a descriptor table of its own, so each can hold as many clients as the limit
    /// allows. The kernel spreads clients unevenly: use a tenth more workers than needed.
    #[arg(long)]
    own_descriptors: bool,
    /// aio: how it learns of completions: signal, callback in a thread, poll (asks all every 1 ms) or busy [default:
    /// signal].
    #[arg(long, value_name = "signal|thread|poll|busy")]
    aio_completion: Option<Completion>,
    /// aio: most threads of the C library, whose own default is 20 [default: one per client].
    #[arg(long, value_name = "N", value_parser = values::at_least_one)]
    aio_threads: Option<u32>,
}

impl Arguments {
    /// Descriptors that the sets of select are to hold, if that was said.
    #[cfg(target_os = "linux")]
    pub(super) fn fd_setsize(&self) -> Option<usize> {
        self.fd_setsize
    }

    /// What the model is told, if it knows every flag that was given.
    pub(super) fn resolve(&self, model: &Model) -> anyhow::Result<Tuning> {
        for (flag, given) in [
            ("fd-setsize", self.fd_setsize.is_some()),
            ("fd-from", self.fd_from.is_some()),
            ("own-descriptors", self.own_descriptors),
            ("aio-completion", self.aio_completion.is_some()),
            ("aio-threads", self.aio_threads.is_some()),
        ] {
            if given && !model.knobs.contains(&flag) {
                let knowing = MODELS.iter().filter(|model| model.knobs.contains(&flag));
                let names: Vec<&str> = knowing.map(|model| model.info.name).collect();
                let (names, name) = (names.join(", "), model.info.name);
                return Err(Usage(format!("--{flag} is for {names}, not for {name}")).into());
            }
        }
        if self.aio_completion == Some(Completion::Thread) && !aio::HAS_CALLBACKS {
            let message = "--aio-completion thread needs glibc; take signal or poll".to_owned();
            return Err(Usage(message).into());
        }
        if self.aio_threads.is_some() && !aio::HAS_POOL {
            let message = "--aio-threads needs glibc; elsewhere the system decides".to_owned();
            return Err(Usage(message).into());
        }
        let usual = Tuning::default();
        Ok(Tuning {
            fd_setsize: self.fd_setsize.unwrap_or(usual.fd_setsize),
            fd_from: self.fd_from.unwrap_or(usual.fd_from),
            own_descriptors: self.own_descriptors,
            aio_completion: self.aio_completion.unwrap_or(usual.aio_completion),
            aio_threads: self.aio_threads.map_or(usual.aio_threads, |n| n as usize),
        })
    }
}
