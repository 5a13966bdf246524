//! What distinguishes CPUs beyond the model name: stepping, microcode, maximum frequency.

use std::collections::BTreeMap;
use std::fs;

use super::read;

/// Where the kernel describes all CPUs.
const INFO: &str = "/proc/cpuinfo";
/// Where the kernel describes their frequencies.
const DEVICES: &str = "/sys/devices/system/cpu";

/// Fields of `/proc/cpuinfo` on x86 and ARM, and our names for them.
const FIELDS: [(&str, &str); 10] = [
    ("vendor_id", "vendor"),
    ("cpu family", "family"),
    ("model", "model"),
    ("stepping", "stepping"),
    ("microcode", "microcode"),
    ("CPU implementer", "implementer"),
    ("CPU architecture", "architecture"),
    ("CPU variant", "variant"),
    ("CPU part", "part"),
    ("CPU revision", "revision"),
];

/// Files of the first CPU's frequency, and our names for them.
const FREQUENCY: [(&str, &str); 3] = [
    ("scaling_min_freq", "lowest MHz"),
    ("scaling_max_freq", "highest MHz"),
    ("scaling_driver", "frequency driver"),
];

/// The first CPU.
pub(super) fn first() -> BTreeMap<String, String> {
    let mut cpu = fs::read_to_string(INFO).map_or_else(|_| BTreeMap::new(), |text| fields(&text));
    cpu.extend(FREQUENCY.iter().filter_map(|(file, name)| {
        let text = read(&format!("{DEVICES}/cpu0/cpufreq/{file}"))?;
        let value = text.parse().map_or(text, |khz: f64| mhz(khz / 1000.0));
        Some(((*name).to_owned(), value))
    }));
    cpu.extend(turbo().map(|turbo| ("turbo".to_owned(), turbo)));
    cpu
}

/// The first CPU in `/proc/cpuinfo`.
pub(crate) fn fields(text: &str) -> BTreeMap<String, String> {
    let lines = text.trim_start().lines();
    let first = lines.take_while(|line| !line.trim().is_empty());
    let fields = first.filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let (_, name) = FIELDS.iter().find(|(field, _)| *field == key.trim())?;
        let value = value.trim();
        (!value.is_empty()).then(|| ((*name).to_owned(), value.to_owned()))
    });
    fields.collect()
}

/// The current frequency, averaged over all CPUs.
pub(super) fn mean_mhz() -> Option<f64> {
    let of_info = fs::read_to_string(INFO).ok();
    of_info.and_then(|text| mean_of(&text)).or_else(|| {
        let khz = read(&format!("{DEVICES}/cpu0/cpufreq/scaling_cur_freq"))?;
        Some(khz.parse::<f64>().ok()? / 1000.0)
    })
}

/// The mean of the lines "cpu MHz" in `/proc/cpuinfo`.
pub(crate) fn mean_of(text: &str) -> Option<f64> {
    let of_line = |line: &str| {
        let (key, value) = line.split_once(':')?;
        let mhz: f64 = value.trim().parse().ok()?;
        (key.trim() == "cpu MHz" && mhz.is_finite()).then_some(mhz)
    };
    let all: Vec<f64> = text.lines().filter_map(of_line).collect();
    (!all.is_empty()).then(|| (all.iter().sum::<f64>() / all.len() as f64).round())
}

/// Whether CPUs may run faster than their nominal frequency: "on", "off".
fn turbo() -> Option<String> {
    let word = |on: bool| if on { "on" } else { "off" }.to_owned();
    let boost = read(&format!("{DEVICES}/cpufreq/boost")).map(|boost| word(boost == "1"));
    boost.or_else(|| {
        let no_turbo = read(&format!("{DEVICES}/intel_pstate/no_turbo"))?;
        Some(word(no_turbo == "0"))
    })
}

fn mhz(value: f64) -> String {
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: 143
model name\t: Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz
stepping\t: 8
microcode\t: 0xffffffff
cpu MHz\t\t: 2700.000
flags\t\t: fpu vme

processor\t: 1
stepping\t: 9
cpu MHz\t\t: 3301.000
";

    const ARM: &str = "\
processor\t: 0
BogoMIPS\t: 243.75
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x3
CPU part\t: 0xd0c
CPU revision\t: 1
";

    #[test]
    fn the_first_cpu_is_described() {
        let cpu = fields(X86);
        let expected = [
            ("family", "6"),
            ("microcode", "0xffffffff"),
            ("model", "143"),
            ("stepping", "8"),
            ("vendor", "GenuineIntel"),
        ];
        let found: Vec<(&str, &str)> = cpu.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, expected);
        let cpu = fields(ARM);
        assert_eq!((cpu["part"].as_str(), cpu.len()), ("0xd0c", 5));
        assert!(fields("nonsense\n:\n").is_empty());
    }

    #[test]
    fn the_frequency_is_that_of_all_cpus() {
        assert_eq!(mean_of(X86), Some(3001.0));
        assert_eq!(mean_of(ARM), None);
        assert_eq!(mean_of("cpu MHz : inf\ncpu MHz : -\n"), None);
    }
}
