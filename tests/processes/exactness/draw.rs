//! The random draw of a trial: a server, a load and a fault.

use std::fmt;

use fastrand::Rng;
use throng::protocol::PROTOCOLS;
use throng::registry::Entry as _;
use throng::serve::models::MODELS;

use super::fault::Fault;

/// One trial.
pub(crate) struct Drawn {
    number: u64,
    pub(crate) protocol: &'static str,
    pub(crate) size: usize,
    /// Arguments of `throng serve` and of `throng load`.
    pub(crate) serve: Vec<String>,
    pub(crate) load: Vec<String>,
    pub(crate) fault: Fault,
    /// The seed of the fault's own choices.
    pub(crate) seed: u64,
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, fault) = (self.number, self.fault.name());
        write!(
            f,
            "trial {number}, {fault}: throng serve {}; throng load {}",
            self.serve.join(" "),
            self.load.join(" ")
        )
    }
}

impl Drawn {
    /// Size of the requests of another load on the same server.
    pub(crate) fn size_of_requests(&self) -> Vec<String> {
        if has_size(self.protocol) {
            vec!["--size".to_owned(), self.size.to_string()]
        } else {
            Vec::new()
        }
    }

    /// The trial of this number: models take turns, all else is random.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
        let random = &mut random;
        let models: Vec<&str> = MODELS
            .iter()
            .filter(|model| model.supported().is_ok())
            .map(|model| model.info.name)
            .collect();
        let model = models[number as usize % models.len()];
        let protocol = random_protocol(random);
        let fault = match Fault::draw(random, model) {
            // On a busy machine each of its replies may take longer than these clients wait.
            Fault::ServerHangs if protocol == "top" => Fault::None,
            fault => fault,
        };
        let workers = 1 + random.u32(..8);
        let mut clients = 1 + random.u32(..if protocol == "top" { 6 } else { 40 });
        // Who waits for another one to leave has to be let in at some time.
        let few = match model {
            "iterative" => 1,
            "prefork" | "thread-pool" => workers,
            _ => u32::MAX,
        };
        if fault.needs_all_inside() {
            clients = clients.min(few);
        }
        let size = size(random, protocol);
        let mut serve = words(&format!("{model} --protocol {protocol} --size {size}"));
        serve.extend(words(&format!("--workers {workers} {}", fault.of_server())));
        if model == "aio" {
            serve.extend(words(
                ["", "--aio-completion poll", "--aio-completion thread"][random.usize(..3)],
            ));
        }
        let mut load = words(&format!(
            "--protocol {protocol} -c {clients} --source 127.21.0.0/16"
        ));
        let declines = protocol == "upload" && random.u8(..3) == 0;
        if declines {
            serve.extend(words(&format!("--max-upload {size}")));
            load.extend(words(&format!("--size {size}:2,{}:1", size * 3 + 1)));
        } else if has_size(protocol) {
            load.extend(words(&format!("--size {size}")));
        }
        load.extend(shape(random, protocol, clients <= few, size, declines));
        load.extend(words(&fault.of_load()));
        load.extend(words(&format!(
            "--seed {} --threads {}",
            number + 1,
            1 + random.u32(..2)
        )));
        if random.u8(..4) == 0 && throng::sys::ring::supported().is_ok() {
            load.extend(words("--engine io-uring"));
        }
        Self {
            number,
            protocol,
            size,
            serve,
            load,
            fault,
            seed: random.u64(..),
        }
    }
}

/// Whether its requests have a size to choose.
fn has_size(protocol: &str) -> bool {
    let mut all = PROTOCOLS.iter();
    let found = all.find(|known| known.name() == protocol);
    found.is_some_and(|found| found.size(1) != found.size(2))
}

fn random_protocol(random: &mut Rng) -> &'static str {
    let there: Vec<&str> = PROTOCOLS
        .iter()
        .filter(|protocol| protocol.supported().is_ok())
        .map(|protocol| protocol.name())
        // For each request it looks at every process of the machine.
        .filter(|name| *name != "top" || random.u8(..4) == 0)
        .collect();
    there[random.usize(..there.len())]
}

/// Bytes of a request, or of a reply: few, as usual, or more than a socket holds.
fn size(random: &mut Rng, protocol: &str) -> usize {
    match (random.u8(..6), protocol) {
        (0, _) => 1 + random.usize(..20),
        (1, "echo" | "upload" | "http" | "websocket") => 100_000 + random.usize(..900_000),
        (2, _) => 1 + random.usize(..60_000),
        _ => 1000,
    }
}

/// The clients' connections, requests and closes. `all_inside`: whether the server has room for all at once.
fn shape(
    random: &mut Rng,
    protocol: &str,
    all_inside: bool,
    size: usize,
    declines: bool,
) -> Vec<String> {
    let mut shape = Vec::new();
    let most = if size > 50_000 || protocol == "top" {
        4
    } else {
        30
    };
    let has_jobs = !all_inside || random.bool();
    if has_jobs {
        shape.extend(words(&format!(
            "--each {} --time-limit 90s",
            1 + random.u32(..most)
        )));
        if random.u8(..3) == 0 {
            shape.extend(words(&format!("--at-once {}", 1 + random.u32(..20))));
        }
    } else {
        shape.extend(words(&format!(
            "-d {}ms --warm-up 0s",
            20 + random.u32(..150)
        )));
        if random.bool() {
            shape.extend(words("--eager"));
        }
    }
    // If the server closes after each reply, there is one at a time anyway.
    if protocol != "upload" {
        match random.u8(..5) {
            0 => shape.extend(words(&format!(
                "--requests-per-connection {}",
                1 + random.u32(..5)
            ))),
            1 if !has_jobs => shape.extend(words("--lifetime 15ms")),
            2 => shape.extend(words(&format!("--pipeline {}", 2 + random.u32(..30)))),
            _ => {}
        }
    }
    match random.u8(..4) {
        0 => shape.extend(words(
            ["--think exp:2ms", "--think 1ms..5ms"][random.usize(..2)],
        )),
        1 if !has_jobs => shape.extend(words("--rate 3000 --arrival poisson")),
        _ => {}
    }
    // A reset takes back what the server has not read yet, and of an upload that is declined the rest is that.
    if random.bool() && !declines {
        shape.extend(words("--close reset"));
    }
    shape
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
