//! The options of a launch: what `launch(..)`, rows of `tune` and `--set` may name.

/// An option of a launch.
#[derive(Debug)]
pub struct LaunchOption {
    /// Its name.
    pub name: &'static str,
    /// Whether it is true or false; others are numbers.
    pub is_bool: bool,
    /// How it is written, with a typical value.
    pub example: &'static str,
    /// What it says, in a sentence or two of Markdown.
    pub doc: &'static str,
}

/// The options, in the order in which they are usually written.
pub const LAUNCH_OPTIONS: &[LaunchOption] = &[
    number(
        "warps",
        "warps = 4",
        "The warps of a program, groups of `target.warp_size` lanes. Another number than a power of two is rounded down to one, but \
         where products of a program can be split over any multiple of 4.",
    ),
    number(
        "stages",
        "stages = 3",
        "The iterations in flight of loops that feed a `dot`. More hide more latency and take more shared memory.",
    ),
    number(
        "ctas",
        "ctas = 2",
        "The blocks of a cluster over which the warps of a program are split: 2, 4 or 8. For rows that are too long for one block.",
    ),
    number(
        "cluster",
        "cluster = 2",
        "The programs, which differ in `program_id(2)` only, that share loads by multicast: 1, 2, 4 or 8.",
    ),
    number(
        "max_regs",
        "max_regs = 128",
        "The most registers of a lane, at least 24; values that do not fit are spilled. 0 is no limit.",
    ),
    number(
        "occupancy",
        "occupancy = 2",
        "The least number of programs that fit on a multiprocessor, which limits the registers of each. 0 is no limit.",
    ),
    LaunchOption {
        name: "cooperative",
        is_bool: true,
        example: "cooperative = true",
        doc: "All programs run at the same time, so that `grid_barrier()` can wait for all of them.",
    },
];

const fn number(name: &'static str, example: &'static str, doc: &'static str) -> LaunchOption {
    LaunchOption { name, is_bool: false, example, doc }
}

/// The names of the options.
pub fn launch_options() -> impl Iterator<Item = &'static str> {
    LAUNCH_OPTIONS.iter().map(|o| o.name)
}

/// Returns true if there is an option with this name.
pub fn is_launch_option(name: &str) -> bool {
    launch_options().any(|o| o == name)
}
