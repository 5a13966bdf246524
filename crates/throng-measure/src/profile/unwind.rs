//! Return addresses of a program from its registers and the top of its stack, by the unwind tables of its files; by
//! frame pointers where there are none, as in code that a program compiled itself.

use std::collections::HashMap;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use framehop::{ExplicitModuleSectionInfo, Module, Unwinder as _};
use object::elf::PF_X;
use object::{Object as _, ObjectSection as _, ObjectSegment as _, SegmentFlags};
use throng_sys::samples::Stack;

#[cfg(not(target_arch = "x86_64"))]
use framehop::aarch64::{CacheAarch64 as Cache, UnwindRegsAarch64, UnwinderAarch64 as Walker};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64, UnwinderX86_64 as Walker};

/// Most frames of a stack.
const DEEPEST: usize = 128;
/// Most programs with memory maps of their own; others are walked by frame pointers.
const MOST_IMAGES: usize = 64;
/// Largest file whose tables are read.
const MOST_BYTES: u64 = 1 << 30;

/// A section of a file, kept in memory.
#[derive(Clone, Default)]
struct Section(Arc<[u8]>);

impl Deref for Section {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// What a file says about its code.
struct Tables {
    info: ExplicitModuleSectionInfo<Section>,
    /// File offsets and addresses of its segments with code.
    segments: Vec<(Range<u64>, u64)>,
}

/// A range of a process's memory with code from a file.
struct Mapping {
    addresses: Range<u64>,
    offset: u64,
    path: String,
}

/// The code of a process, and of all others with the same code at the same addresses, like its forked children.
struct Image {
    /// A process that has it.
    pid: u32,
    walker: Walker<Section>,
}

/// The images of all processes of a server.
pub(super) struct Images {
    all: Vec<Image>,
    by_code: HashMap<u64, usize>,
    by_pid: HashMap<u32, usize>,
    tables: HashMap<String, Option<Arc<Tables>>>,
    cache: Cache,
}

impl Default for Images {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            by_code: HashMap::new(),
            by_pid: HashMap::new(),
            tables: HashMap::new(),
            cache: Cache::new(),
        }
    }
}

impl Images {
    /// The index of a process's image. One that has ended has that of `parent`.
    pub(super) fn of(&mut self, pid: u32, parent: u32) -> Option<usize> {
        if let Some(known) = self.by_pid.get(&pid) {
            return Some(*known);
        }
        let mappings = mappings(pid);
        if mappings.is_empty() {
            return if pid == parent {
                None
            } else {
                self.of(parent, parent)
            };
        }
        let mut hasher = DefaultHasher::new();
        for mapping in &mappings {
            (&mapping.addresses, mapping.offset, &mapping.path).hash(&mut hasher);
        }
        let code = hasher.finish();
        let index = match self.by_code.get(&code) {
            Some(known) => *known,
            None if self.all.len() == MOST_IMAGES => 0,
            None => {
                let walker = self.walker(pid, &mappings);
                self.all.push(Image { pid, walker });
                self.by_code.insert(code, self.all.len() - 1);
                self.all.len() - 1
            }
        };
        self.by_pid.insert(pid, index);
        Some(index)
    }

    /// A process with this image.
    pub(super) fn pid(&self, image: usize) -> u32 {
        self.all[image].pid
    }

    fn walker(&mut self, pid: u32, mappings: &[Mapping]) -> Walker<Section> {
        let mut walker = Walker::new();
        for mapping in mappings {
            let path = &mapping.path;
            let tables = self
                .tables
                .entry(path.clone())
                .or_insert_with(|| read(pid, path).map(Arc::new));
            let Some(tables) = tables else { continue };
            // A mapping begins at a page, and a segment need not.
            let end = mapping.offset + (mapping.addresses.end - mapping.addresses.start);
            let segment = tables
                .segments
                .iter()
                .find(|(file, _)| file.start < end && file.end > mapping.offset);
            let base = segment.map(|(file, address)| {
                let before = file.start.wrapping_sub(mapping.offset);
                mapping
                    .addresses
                    .start
                    .wrapping_add(before)
                    .wrapping_sub(*address)
            });
            if let Some(base) = base {
                let (name, addresses) = (path.clone(), mapping.addresses.clone());
                walker.add_module(Module::new(name, addresses, base, tables.info.clone()));
            }
        }
        walker
    }

    /// The addresses of a stack's program, innermost first. The sample may end before the stack does.
    pub(super) fn walk(&mut self, image: usize, stack: &Stack) -> Vec<u64> {
        let Some(registers) = stack.registers else {
            return Vec::new();
        };
        let (address, bottom, registers) = unwind_registers(registers);
        let memory = &stack.memory;
        let mut read_stack = |at: u64| {
            let from = at.checked_sub(bottom).ok_or(())? as usize;
            let word = memory.get(from..from.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(word.try_into().map_err(|_| ())?))
        };
        let walker = &self.all[image].walker;
        let mut frames = walker.iter_frames(address, registers, &mut self.cache, &mut read_stack);
        let mut addresses = Vec::new();
        while addresses.len() < DEEPEST {
            let Ok(Some(frame)) = frames.next() else {
                break;
            };
            // A return address is that of the next instruction, which may belong to another function.
            addresses.push(frame.address_for_lookup());
        }
        addresses
    }
}

/// The instruction pointer, the stack pointer, and what the walk needs, from the registers of a sample.
#[cfg(target_arch = "x86_64")]
fn unwind_registers([frame, stack, instruction]: [u64; 3]) -> (u64, u64, UnwindRegsX86_64) {
    let registers = UnwindRegsX86_64::new(instruction, stack, frame);
    (instruction, stack, registers)
}

#[cfg(not(target_arch = "x86_64"))]
fn unwind_registers([frame, link, stack, instruction]: [u64; 4]) -> (u64, u64, UnwindRegsAarch64) {
    (
        instruction,
        stack,
        UnwindRegsAarch64::new(link, stack, frame),
    )
}

/// The code that a process has from files; none if it has ended.
fn mappings(pid: u32) -> Vec<Mapping> {
    let maps = procfs::process::Process::new(pid.cast_signed()).and_then(|process| process.maps());
    let all = maps.into_iter().flatten();
    let of_code = all.filter_map(|map| {
        let procfs::process::MMapPath::Path(path) = &map.pathname else {
            return None;
        };
        let has_code = map.perms.contains(procfs::process::MMPermissions::EXECUTE);
        has_code.then(|| Mapping {
            addresses: map.address.0..map.address.1,
            offset: map.offset,
            path: path.display().to_string(),
        })
    });
    of_code.collect()
}

/// Reads the tables of a file as a process sees it.
fn read(pid: u32, path: &str) -> Option<Tables> {
    let inside = Path::new("/proc").join(pid.to_string()).join("root");
    let file = File::open(inside.join(path.trim_start_matches('/'))).ok()?;
    let meta = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    if meta.len() > MOST_BYTES {
        return None;
    }
    let cache = object::ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    let section = |name: &str| {
        let section = elf.section_by_name(name)?;
        let addresses = section.address()..section.address() + section.size();
        let data = section.uncompressed_data().ok()?;
        Some((addresses, Section(data.into())))
    };
    let (text, frames, index) = (
        section(".text"),
        section(".eh_frame"),
        section(".eh_frame_hdr"),
    );
    let offsets = section(".got").map(|(addresses, _)| addresses);
    let debug_frames = section(".debug_frame").map(|(_, data)| data);
    let part = |of: Option<(Range<u64>, Section)>| of.unzip();
    let ((text_svma, text), (eh_frame_svma, eh_frame)) = (part(text), part(frames));
    let (eh_frame_hdr_svma, eh_frame_hdr) = part(index);
    let has_code =
        |flags| matches!(flags, SegmentFlags::Elf { p_flags, .. } if (p_flags & PF_X).0 != 0);
    let segments = elf
        .segments()
        .filter(|segment| has_code(segment.flags()))
        .map(|segment| {
            let (offset, bytes) = segment.file_range();
            (offset..offset + bytes, segment.address())
        });
    Some(Tables {
        segments: segments.collect(),
        info: ExplicitModuleSectionInfo {
            text_svma,
            text,
            eh_frame_svma,
            eh_frame,
            eh_frame_hdr_svma,
            eh_frame_hdr,
            got_svma: offsets,
            debug_frame: debug_frames,
            ..ExplicitModuleSectionInfo::default()
        },
    })
}
