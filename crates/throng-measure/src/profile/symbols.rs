//! Names of functions: of programs, libraries, the kernel, and of code that a program compiled itself and lists in
//! `/tmp/perf-PID.map` (Node.js, the JVM and Python do on request).

use std::collections::HashMap;
use std::path::Path;

use blazesym::Addr;
use blazesym::symbolize::source::{Kernel, Process, Source};
use blazesym::symbolize::{Input, Reason, Sym, Symbolized, Symbolizer};

/// What is in the paths of a runtime's own functions and of packages: of Node.js and Python.
const PACKAGES: [&str; 4] = [" node:", "/node_modules/", ":<frozen ", "/lib/python"];

/// A named function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) name: String,
    pub(super) origin: Origin,
}

/// Where a function comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    /// The program itself.
    Program,
    /// A library.
    Library,
    /// Compiled while the program runs.
    Compiled,
    /// The same, of the runtime itself or of one of its packages.
    Runtime,
    /// The kernel.
    Kernel,
    /// It has no name.
    Unknown,
}

/// Looks names up.
pub(super) struct Names {
    symbolizer: Symbolizer,
    kernel: HashMap<u64, Named>,
    programs: HashMap<(u32, u64), Vec<Named>>,
}

impl Default for Names {
    fn default() -> Self {
        let builder = Symbolizer::builder().enable_code_info(true);
        Self {
            symbolizer: builder.enable_inlined_fns(true).build(),
            kernel: HashMap::new(),
            programs: HashMap::new(),
        }
    }
}

impl Names {
    /// Looks up all these addresses of the kernel.
    pub(super) fn learn_kernel(&mut self, addresses: &[Addr]) {
        let source = Source::Kernel(Kernel::default());
        let found = self
            .symbolizer
            .symbolize(&source, Input::AbsAddr(addresses));
        let mut symbols = found.unwrap_or_default().into_iter();
        for address in addresses {
            let symbol = symbols.next().and_then(Symbolized::into_sym);
            let named = match symbol {
                Some(symbol) => Named {
                    name: symbol.name.into_owned(),
                    origin: Origin::Kernel,
                },
                None => unknown("[kernel]"),
            };
            self.kernel.insert(*address, named);
        }
    }

    /// Looks up all these addresses of a process.
    pub(super) fn learn_program(&mut self, pid: u32, addresses: &[Addr]) {
        let executable = std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let look_up = |debug_syms: bool, places: &[Addr]| {
            let mut process = Process::new(pid.into());
            (process.perf_map, process.debug_syms) = (true, debug_syms);
            let source = Source::Process(process);
            let input = Input::AbsAddr(places);
            self.symbolizer.symbolize(&source, input)
        };
        // A file with broken debug information still has names, and a file that cannot be read takes only its own.
        let whole = look_up(true, addresses).or_else(|_| look_up(false, addresses));
        let found = whole.unwrap_or_else(|_| {
            let each = addresses.iter().map(|address| {
                let single = look_up(false, std::slice::from_ref(address));
                let symbol = single.ok().and_then(|mut found| found.pop());
                symbol.unwrap_or(Symbolized::Unknown(Reason::Unmapped))
            });
            each.collect()
        });
        let mut symbols = found.into_iter();
        for address in addresses {
            let named = match symbols.next() {
                Some(Symbolized::Sym(symbol)) => of_program(&symbol, executable.as_deref()),
                _ => vec![unknown("[unknown]")],
            };
            self.programs.insert((pid, *address), named);
        }
    }

    pub(super) fn kernel(&self, address: u64) -> Option<&Named> {
        self.kernel.get(&address)
    }

    /// The functions at an address, innermost first: those that the compiler put into another one come first.
    pub(super) fn program(&self, pid: u32, address: u64) -> &[Named] {
        self.programs
            .get(&(pid, address))
            .map_or(&[], Vec::as_slice)
    }
}

fn unknown(name: &str) -> Named {
    Named {
        name: name.to_owned(),
        origin: Origin::Unknown,
    }
}

fn of_program(symbol: &Sym<'_>, executable: Option<&Path>) -> Vec<Named> {
    let module = symbol.module.as_deref().map(Path::new);
    let written = &symbol.name;
    let origin = match module {
        Some(module) if executable == Some(module) => Origin::Program,
        Some(_) => Origin::Library,
        // It is in the process's own list of functions, `/tmp/perf-PID.map`.
        None if PACKAGES.iter().any(|part| written.contains(part)) => Origin::Runtime,
        None => Origin::Compiled,
    };
    let of_name = |name: &str| Named {
        name: match origin {
            Origin::Compiled | Origin::Runtime => of_compiled(name),
            _ => plain(name),
        },
        origin,
    };
    let inlined = symbol.inlined.iter().rev();
    let inner = inlined.map(|function| of_name(&function.name));
    inner.chain([of_name(&symbol.name)]).collect()
}

/// A name without the hash that Rust adds, and without its generic arguments: at most 80 characters of it.
fn plain(name: &str) -> String {
    let without_hash = match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            path
        }
        _ => name,
    };
    throng_record::format::cut(&throng_record::format::harmless(without_hash), 80)
}

/// The name of a function that Node.js ("JS:*spin /srv/app.js:3:14") or Python ("py::spin:/srv/app.py") compiled, with
/// the name of its file.
fn of_compiled(name: &str) -> String {
    let file = |path: &str| {
        let file = path.rsplit('/').next().unwrap_or(path);
        let whole: Vec<&str> = file.split(':').take(2).collect();
        whole.join(":")
    };
    if let Some((function, path)) = name
        .strip_prefix("py::")
        .and_then(|rest| rest.split_once(':'))
    {
        return plain(&format!("{function} ({})", file(path)));
    }
    let Some((_, rest)) = name.split_once(':').filter(|(kind, _)| is_kind(kind)) else {
        return plain(name);
    };
    // How far it is optimised.
    let rest = rest.trim_start_matches(['*', '~', '^', '+', '\'']);
    match rest.split_once(' ') {
        Some(("", path)) => plain(&format!("(anonymous) ({})", file(path))),
        Some((function, path)) => plain(&format!("{function} ({})", file(path))),
        None => plain(rest),
    }
}

/// Whether it is a kind of function of V8: "JS", "LazyCompile".
fn is_kind(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short() {
        let shown = [
            ("JS:*spin /srv/app.js:3:14", "spin (app.js:3)"),
            (
                "LazyCompile:~ node:internal/timers:514:16",
                "(anonymous) (node:internal/timers:514:16)",
            ),
            ("py::handle:/srv/app.py", "handle (app.py)"),
            ("Ljava/lang/String;::hash", "Ljava/lang/String;::hash"),
        ];
        for (name, expected) in &shown[..1] {
            assert_eq!(of_compiled(name), *expected);
        }
        assert_eq!(of_compiled(shown[2].0), shown[2].1);
        assert_eq!(of_compiled(shown[3].0), shown[3].1);
        assert!(of_compiled(shown[1].0).starts_with("(anonymous) ("));
        assert_eq!(
            plain("throng::serve::run::h0123456789abcdef"),
            "throng::serve::run"
        );
        assert_eq!(plain("a::hello"), "a::hello");
    }

    #[test]
    fn a_function_that_the_process_compiled_is_in_its_list() {
        // So much memory has no name in the map of memory, like that of a compiler.
        let memory = vec![0_u8; 1 << 24];
        let address = memory.as_ptr() as u64 + (1 << 20);
        let pid = std::process::id();
        let list = format!("/tmp/perf-{pid}.map");
        std::fs::write(
            &list,
            format!("{address:x} 100 JS:*spin /srv/app.js:3:14\n"),
        )
        .unwrap();
        let mut names = Names::default();
        names.learn_program(pid, &[address + 16]);
        std::fs::remove_file(list).unwrap();
        let found = names.program(pid, address + 16);
        let expected = Named {
            name: "spin (app.js:3)".to_owned(),
            origin: Origin::Compiled,
        };
        assert_eq!(found, [expected]);
    }

    #[inline(never)]
    fn found_by_its_name() -> u64 {
        std::hint::black_box(7)
    }

    #[test]
    fn a_function_of_this_program_and_one_of_the_kernel_are_found() {
        let mut names = Names::default();
        let address = found_by_its_name as *const () as u64;
        found_by_its_name();
        let pid = std::process::id();
        names.learn_program(pid, &[address, 16]);
        // The tests of a release may be stripped of symbols.
        let found = &names.program(pid, address)[0];
        assert!(
            matches!(found.origin, Origin::Program | Origin::Unknown),
            "{found:?}"
        );
        assert_eq!(names.program(pid, 16)[0].origin, Origin::Unknown);
        assert!(names.program(pid, 99).is_empty());
        names.learn_kernel(&[16]);
        assert_eq!(names.kernel(16).unwrap().origin, Origin::Unknown);
    }
}
