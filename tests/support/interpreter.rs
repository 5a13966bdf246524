//! Finds interpreters. The command of that name in PATH may be a script that searches for the interpreter at each
//! start, which takes longer than most servers that are written for it.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;

/// The actual program of an interpreter, Python or Node; `None` if it is not installed.
pub(crate) fn program(interpreter: &str) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let words = match interpreter {
        "node" => ["-e", "console.log(process.execPath)"],
        _ => ["-c", "import sys; print(sys.executable)"],
    };
    let ask = || {
        let output = Command::new(interpreter).args(words).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        // A path with a space would be two words of a command line.
        let is_one = !path.is_empty() && !path.contains(char::is_whitespace);
        let path = if is_one { path } else { interpreter.to_owned() };
        output.status.success().then_some(path)
    };
    let mut known = KNOWN.lock().expect("no test panics while it asks");
    let path = known.entry(interpreter.to_owned()).or_insert_with(ask);
    path.clone()
}
