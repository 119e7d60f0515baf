//! The speed of GPUs: [`Chip`], by which the share of what a machine can do is stated.
//!
//! Numbers are those of the vendors' data sheets for dense operations at the boost clock, unless a row says that they
//! were measured; those of the shared cache and of MI250X are for one die, from measurements that others published. A GPU
//! that has no row has no roofline.

use tk_ops::DType;

/// What one GPU can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chip {
    /// What the name that its driver reports begins with; of several rows the first counts.
    pub name: &'static str,
    /// The target of its binaries.
    pub target: &'static str,
    /// Bytes that memory moves in a second, reads and writes together.
    pub memory: f64,
    /// Operations of matrix instructions in a second on operands of 16 bits, with sums of 32 bits.
    pub matrix16: f64,
    /// The same for operands of 8 bits.
    pub matrix8: f64,
    /// The same for f32 rounded to tf32, or for f32 where there is no such instruction.
    pub matrix32: f64,
    /// The same for f64.
    pub matrix64: f64,
    /// Operations on f32 outside of matrix instructions in a second; a fused multiply-add is two.
    pub float32: f64,
    /// Multiprocessors.
    pub sms: u32,
    /// Cycles in a second at the boost clock.
    pub clock: f64,
    /// Bytes that the cache that all multiprocessors share moves in a second.
    pub l2: f64,
    /// Bytes of that cache.
    pub l2_bytes: f64,
}

/// NVIDIA H100 SXM, from its data sheet.
const H100: Chip = Chip {
    name: "NVIDIA H100",
    target: "sm_90a",
    memory: 3.35e12,
    matrix16: 989e12,
    matrix8: 1979e12,
    matrix32: 494e12,
    matrix64: 67e12,
    float32: 67e12,
    sms: 132,
    clock: 1.755e9,
    l2: 12e12,
    l2_bytes: 50e6,
};

/// NVIDIA A100 with 80 GB, from its data sheet.
const A100: Chip = Chip {
    name: "NVIDIA A100",
    target: "sm_80",
    memory: 2.039e12,
    matrix16: 312e12,
    matrix8: 624e12,
    matrix32: 156e12,
    matrix64: 19.5e12,
    float32: 19.5e12,
    sms: 108,
    clock: 1.41e9,
    l2: 4.0e12,
    l2_bytes: 40e6,
};

/// The GPUs whose numbers are known. AMD's are from the data sheets of its accelerators.
const CHIPS: &[Chip] = &[
    Chip { name: "NVIDIA H200", memory: 4.8e12, ..H100 },
    Chip {
        name: "NVIDIA H100 PCIe",
        target: "sm_90a",
        memory: 2.0e12,
        matrix16: 756e12,
        matrix8: 1513e12,
        matrix32: 378e12,
        matrix64: 51e12,
        float32: 51e12,
        sms: 114,
        clock: 1.755e9,
        ..H100
    },
    H100,
    Chip { name: "NVIDIA A100-SXM4-40GB", memory: 1.555e12, ..A100 },
    Chip { name: "NVIDIA A100-PCIE-40GB", memory: 1.555e12, ..A100 },
    A100,
    Chip {
        name: "AMD Instinct MI300X",
        target: "gfx942",
        memory: 5.3e12,
        matrix16: 1307e12,
        matrix8: 2615e12,
        matrix32: 654e12,
        matrix64: 163e12,
        float32: 163e12,
        sms: 304,
        clock: 2.1e9,
        l2: 10e12,
        l2_bytes: 256e6,
    },
    Chip {
        name: "AMD Instinct MI250X",
        target: "gfx90a",
        memory: 3.2e12,
        matrix16: 383e12,
        matrix8: 383e12,
        matrix32: 96e12,
        matrix64: 96e12,
        float32: 48e12,
        sms: 110,
        clock: 1.7e9,
        l2: 4e12,
        l2_bytes: 8e6,
    },
    Chip {
        name: "AMD Instinct MI210",
        target: "gfx90a",
        memory: 1.6e12,
        matrix16: 181e12,
        matrix8: 181e12,
        matrix32: 45e12,
        matrix64: 45e12,
        float32: 23e12,
        sms: 104,
        clock: 1.7e9,
        l2: 4e12,
        l2_bytes: 8e6,
    },
];

/// The GPU for which a target is usually compiled.
pub fn usual(target: &str) -> Option<&'static Chip> {
    const USUAL: [&str; 4] = ["NVIDIA H100", "NVIDIA A100", "AMD Instinct MI250X", "AMD Instinct MI300X"];
    CHIPS.iter().find(|c| c.target == target && USUAL.contains(&c.name))
}

/// The names of the GPUs whose numbers are known.
pub fn names() -> impl Iterator<Item = &'static str> {
    CHIPS.iter().map(|c| c.name)
}

/// The numbers of the GPU of this name.
pub fn chip(name: &str) -> Option<&'static Chip> {
    CHIPS.iter().find(|c| name.starts_with(c.name))
}

impl Chip {
    /// Operations of matrix products in a second for operands of a type.
    pub fn matrix(&self, dtype: DType) -> f64 {
        match dtype.bytes() {
            1 => self.matrix8,
            2 => self.matrix16,
            4 => self.matrix32,
            _ => self.matrix64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_counts() {
        let memory = |name| chip(name).map(|c| c.memory);
        assert_eq!(memory("NVIDIA H100 PCIe"), Some(2.0e12));
        assert_eq!(memory("NVIDIA H100 80GB HBM3"), Some(3.35e12));
        assert_eq!(memory("NVIDIA H200"), Some(4.8e12));
        assert_eq!(memory("NVIDIA A100-SXM4-80GB"), Some(2.039e12));
        assert_eq!(memory("Voodoo 2"), None);
    }
}
