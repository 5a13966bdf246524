//! The fuzz targets. Each is an ordinary function of some bytes, which panics if something is wrong.
//!
//! libFuzzer calls them (`fuzz_targets/target.rs`), and so does `tests/pure/fuzz.rs` of throng, which
//! compiles this file as a module of its own and needs neither libFuzzer nor a nightly compiler.

pub mod bytes;
pub mod conn;
pub mod encrypted;
/// The messages between the two processes of a rank of throng-mpi. Only reading and writing them is fuzzed.
#[path = "../../crates/throng-mpi/src/frame.rs"]
mod frame;
pub mod halves;
pub mod readers;
pub mod requests;
pub mod values;

/// A fuzz target.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its program and its corpus.
    pub name: &'static str,
    /// What it does with some bytes.
    pub body: fn(&[u8]),
    /// Mutations of each input in its corpus in the short run of a test; fewer for slow targets.
    pub mutations: usize,
}

const fn target(name: &'static str, body: fn(&[u8]), mutations: usize) -> Target {
    Target {
        name,
        body,
        mutations,
    }
}

/// Every target. To add one: a line here, a `[[bin]]` in `Cargo.toml`, and a corpus.
pub const TARGETS: &[Target] = &[
    target("echo_session", halves::echo_session, 100),
    target("factorial_session", halves::factorial_session, 100),
    target("upload_session", halves::upload_session, 100),
    target("top_session", halves::top_session, 100),
    target("http_session", halves::http_session, 100),
    target("websocket_session", halves::websocket_session, 100),
    target("http2_session", halves::http2_session, 100),
    target("echo_requester", halves::echo_requester, 100),
    target("factorial_requester", halves::factorial_requester, 100),
    target("upload_requester", halves::upload_requester, 100),
    target("top_requester", halves::top_requester, 100),
    target("http_requester", halves::http_requester, 100),
    target("websocket_requester", halves::websocket_requester, 100),
    target("http2_requester", halves::http2_requester, 100),
    target("custom_requester", halves::custom_requester, 100),
    target("expectation", readers::expectation, 20),
    target("conn_lending", conn::lending, 60),
    target("conn_turns", conn::turns, 30),
    target("study", readers::study, 8),
    target("record", readers::record, 2),
    target("record_values", readers::record_values, 10),
    target("capture", readers::capture, 60),
    target("cluster", readers::cluster, 40),
    target("cluster_values", readers::cluster_values, 20),
    target("study_record", readers::study_record, 10),
    target("study_record_values", readers::study_record_values, 10),
    target("kernel_text", readers::kernel_text, 30),
    target("sockets", readers::sockets, 60),
    target("mpi_frame", readers::mpi_frame, 60),
    target("tls_handshake", encrypted::tls_handshake, 40),
    target("tls_session", encrypted::tls_session, 15),
    target("request_file", requests::request_file, 60),
    target("variables", requests::variables, 100),
];

/// The target of this name.
///
/// # Panics
/// When there is none.
pub fn find(name: &str) -> Target {
    let found = TARGETS.iter().find(|target| target.name == name);
    *found.expect("each program is named after its target")
}
