//! What a processor can do.

use plumbline_core::engine::{Engine, Portable};

use crate::engines;

/// Vector instructions that this processor has: a value of this type says that they may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(engines::Avx2),
    #[cfg(target_arch = "x86_64")]
    Avx512(engines::Avx512),
}

/// Something to be done by an engine.
pub trait Task {
    /// What it returns.
    type Output;
    /// Do it.
    fn run<E: Engine>(self, engine: E) -> Self::Output;
}

impl Level {
    /// What core is compiled for.
    pub const PORTABLE: Level = Level(Kind::Portable);

    /// The names of all levels, whether this processor has them or not, the widest last.
    pub const NAMES: [&'static str; 3] = ["portable", "avx2", "avx512"];

    /// The levels of this processor, the widest last.
    pub fn supported() -> impl Iterator<Item = Level> {
        #[cfg(target_arch = "x86_64")]
        let detected = [engines::Avx2::detect().map(Kind::Avx2), engines::Avx512::detect().map(Kind::Avx512)];
        #[cfg(not(target_arch = "x86_64"))]
        let detected: [Option<Kind>; 0] = [];
        core::iter::once(Level::PORTABLE).chain(detected.into_iter().flatten().map(Level))
    }

    /// The widest level of this processor.
    pub fn best() -> Level {
        Level::supported().last().unwrap_or(Level::PORTABLE)
    }

    /// The level of that name, where this processor has it.
    pub fn from_name(name: &str) -> Option<Level> {
        Level::supported().find(|level| level.name() == name)
    }

    /// One of [`NAMES`](Self::NAMES).
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(_) => "avx2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(_) => "avx512",
        }
    }

    /// Do something by this level's engine.
    ///
    /// ```
    /// use plumbline_core::engine::Engine;
    /// use plumbline_simd::{Level, Task};
    /// struct Sum<'a>(&'a [f32; 64]);
    /// impl Task for Sum<'_> {
    ///     type Output = f32;
    ///     fn run<E: Engine>(self, engine: E) -> f32 {
    ///         engine.run(self.0, |numbers| plumbline_core::num::halving_fold(numbers, |a, b| a + b))
    ///     }
    /// }
    /// assert_eq!(Level::best().run(Sum(&[0.5; 64])), 32.0);
    /// ```
    pub fn run<T: Task>(self, task: T) -> T::Output {
        match self.0 {
            Kind::Portable => task.run(Portable),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2(engine) => task.run(engine),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512(engine) => task.run(engine),
        }
    }
}
