//! Kernel memory of the clients: their sockets at both ends, entries of poll and epoll sets, and the stacks and page
//! tables of whatever serves them.
//!
//! `/proc/meminfo` (`proc_meminfo(5)`) counts slabs, kernel stacks and page tables of the whole machine. The value is
//! therefore their growth from before the first client until all were connected and idle. Any user may read it. It
//! includes other activity, so values for few clients are noisy.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::memory::growth;
use super::{Moment, Probe, ProbeKind, Sample, Subject, Target};
use crate::network::proc_file::ProcFile;
use throng_record::{ERROR_OF_MEMORY, MemoryPart, Purpose, metrics};
use throng_spec::registry::{Info, Unsupported};

/// The kind of probe `kernel-memory`.
pub(super) const KERNEL_MEMORY: ProbeKind = ProbeKind {
    info: Info {
        name: "kernel-memory",
        summary: "kernel memory per client: slabs, kernel stacks, page tables",
    },
    supported: || ProcFile::open("/proc/meminfo").map(drop),
    metrics: metrics::kernel_memory::METRICS,
    subject: Subject::Network,
    purpose: Purpose::Timed,
    by_default: true,
    make: || Box::new(KernelMemoryProbe::default()),
};

/// Fields of /proc/meminfo that are added up.
const RETAINED: [&str; 3] = ["Slab", "KernelStack", "PageTables"];

/// The kernel frees the memory of earlier connections and processes with a delay. The first value is read once less
/// than [`ERROR_OF_MEMORY`] was freed within `INTERVAL`, or after `LONGEST_WAIT`.
const INTERVAL: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(2);

#[derive(Default)]
struct KernelMemoryProbe {
    file: Option<ProcFile>,
    before: Option<f64>,
    /// The value with all clients connected, and their number.
    after: Option<(f64, u64)>,
    /// What holds it before the first client, and what each takes.
    parts_before: BTreeMap<MemoryPart, f64>,
    per_client: Option<BTreeMap<MemoryPart, f64>>,
    missing: Option<(&'static str, Unsupported)>,
}

/// Reads the value once memory is no longer being freed; `None` if it cannot be read.
fn read_when_stable(mut read: impl FnMut() -> Option<f64>) -> Option<f64> {
    let deadline = Instant::now() + LONGEST_WAIT;
    let mut last = read()?;
    loop {
        sleep(INTERVAL);
        let now = read()?;
        if last - now < ERROR_OF_MEMORY || Instant::now() >= deadline {
            return Some(now);
        }
        last = now;
    }
}

/// Bytes, from the text of `/proc/meminfo`.
fn retained(text: &str) -> Option<f64> {
    RETAINED.into_iter().map(|name| field(text, name)).sum()
}

fn field(text: &str, name: &str) -> Option<f64> {
    let mut lines = text.lines();
    let rest = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib as f64 * 1024.0)
}

/// What holds the memory of the kernel: stacks and page tables from the text of `/proc/meminfo`, and objects from
/// that of `/proc/slabinfo`, which only root may read.
fn parts(meminfo: &str, slabs: &str) -> BTreeMap<MemoryPart, f64> {
    let fields = [
        ("KernelStack", MemoryPart::KernelStacks),
        ("PageTables", MemoryPart::PageTables),
    ];
    let known = fields
        .into_iter()
        .filter_map(|(name, part)| Some((part, field(meminfo, name)?)));
    known.chain(slabs.lines().filter_map(slab)).collect()
}

/// Bytes of the pages of a cache, from its line: its name, objects in use and in all, size of an object, objects and
/// pages of a slab, ..., ": slabdata", slabs in use and in all.
fn slab(line: &str) -> Option<(MemoryPart, f64)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let pages: f64 = words.get(5)?.parse().ok()?;
    let slabs: f64 = words.get(14)?.parse().ok()?;
    let name = MemoryPart::Slab((*words.first()?).to_owned());
    Some((name, pages * slabs * rustix::param::page_size() as f64))
}

/// The text of `/proc/slabinfo`; empty if it may not be read.
fn slabinfo() -> String {
    std::fs::read_to_string("/proc/slabinfo").unwrap_or_default()
}

impl Probe for KernelMemoryProbe {
    fn attach(&mut self, _: &Target) -> Result<(), Unsupported> {
        let mut file = ProcFile::open("/proc/meminfo")?;
        // The file is read again below, where an error is one of the trial.
        self.before = read_when_stable(|| file.read().ok().and_then(retained));
        if let Ok(text) = file.read() {
            self.parts_before = parts(text, &slabinfo());
        }
        self.file = Some(file);
        Ok(())
    }

    fn sample(
        &mut self,
        moment: Moment,
        Target { presence, .. }: &Target,
        _: Instant,
        _: &mut Vec<Sample>,
    ) -> anyhow::Result<()> {
        if let (Moment::Before, Some(file), false) =
            (moment, &mut self.file, presence.comes_and_goes)
        {
            let text = file.read()?;
            let now = retained(text);
            if presence.present > 0 {
                let after = parts(text, &slabinfo());
                self.per_client = Some(growth(&self.parts_before, &after, presence.present));
            }
            self.after = now.map(|bytes| (bytes, presence.present));
            if now <= self.before {
                let why = Unsupported {
                    reason: "more kernel memory was freed than the clients took".to_owned(),
                    remedy: "use more clients, or stop other processes".to_owned(),
                };
                self.missing = Some(("kernel_bytes_per_client", why));
            }
        }
        Ok(())
    }

    fn figures(&self, out: &mut dyn FnMut(&'static str, f64)) {
        if let (Some(before), Some((after, clients @ 1..))) = (self.before, self.after)
            && after > before
        {
            out("kernel_bytes_per_client", (after - before) / clients as f64);
        }
    }

    fn memory_per_client(&self) -> Option<&BTreeMap<MemoryPart, f64>> {
        self.per_client.as_ref()
    }

    fn missing(&self) -> &[(&'static str, Unsupported)] {
        self.missing.as_slice()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slabs_stacks_and_page_tables_are_added_up() {
        let text = "MemTotal: 9 kB\nSlab:   100 kB\nKernelStack: 20 kB\nPageTables:  3 kB\nSecPageTables: 7 kB\n";
        assert_eq!(retained(text), Some(123.0 * 1024.0));
        assert_eq!(retained("Slab: 100 kB\nPageTables: 3 kB\n"), None);
        assert_eq!(
            retained("Slab: x kB\nKernelStack: 2 kB\nPageTables: 3 kB\n"),
            None
        );
    }

    #[test]
    fn caches_are_told_apart() {
        let page = rustix::param::page_size() as f64;
        let slabs = "slabinfo - version: 2.1\n# name <active_objs> ...\n\
            TCP  10 24 2432 13 8 : tunables 0 0 0 : slabdata 2 2 0\n";
        let wanted = [
            (MemoryPart::KernelStacks, 20.0 * 1024.0),
            (MemoryPart::PageTables, 3.0 * 1024.0),
            (MemoryPart::Slab("TCP".to_owned()), 16.0 * page),
        ];
        let found = parts("KernelStack: 20 kB\nPageTables: 3 kB\n", slabs);
        assert_eq!(found, BTreeMap::from(wanted));
    }

    #[test]
    fn the_first_value_is_read_when_memory_is_no_longer_freed() {
        let mut values = [900e3, 500e3, 200e3, 190e3].into_iter();
        assert_eq!(read_when_stable(|| values.next()), Some(190e3));
        let mut growing = [100e3, 300e3].into_iter();
        assert_eq!(read_when_stable(|| growing.next()), Some(300e3));
        assert_eq!(read_when_stable(|| None), None);
    }

    #[test]
    fn this_machine_is_read() {
        let mut file = ProcFile::open("/proc/meminfo").unwrap();
        assert!(retained(file.read().unwrap()).unwrap() > 0.0);
    }
}
