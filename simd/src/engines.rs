//! The engines of x86-64: functions that are compiled for more instructions than the target's least processor has.
#![cfg(target_arch = "x86_64")]
#![allow(unsafe_code)]

use plumbline_core::engine::Engine;

/// An engine whose value is the proof that the processor has its features.
macro_rules! engine {
    ($(#[$doc:meta])* $name:ident: $($feature:tt),+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(());

        impl $name {
            /// The engine, where the processor (and the operating system) has all of its features.
            pub fn detect() -> Option<Self> {
                ($(std::arch::is_x86_feature_detected!($feature))&&+).then_some($name(()))
            }
        }

        impl Engine for $name {
            #[inline(always)]
            fn run<B, T>(self, block: B, stage: impl FnOnce(B) -> T) -> T {
                $(#[target_feature(enable = $feature)])+
                fn compiled<B, T>(block: B, stage: impl FnOnce(B) -> T) -> T {
                    stage(block)
                }
                // SAFETY: the only requirement of `compiled` is that the processor has the features it is compiled for.
                // A value of this type comes from `detect` alone, which has found each of them.
                unsafe { compiled(block, stage) }
            }
        }
    };
}

engine! {
    /// Vectors of 256 bits.
    Avx2: "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"
}
engine! {
    /// Vectors of 512 bits, and masks.
    Avx512: "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "bmi1", "bmi2", "lzcnt", "popcnt"
}
