//! Parameters that are one of several names.

/// An enumeration whose members have names in the catalog.
pub trait Choice: Copy + 'static {
    /// The names, in the order of the members.
    const NAMES: &'static [&'static str];
    /// The members.
    const MEMBERS: &'static [Self];

    /// The member of that name.
    fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().zip(Self::MEMBERS).find(|(candidate, _)| **candidate == name).map(|(_, member)| *member)
    }
}

/// Define an enumeration together with the names of its members.
macro_rules! choice {
    ($(#[$attribute:meta])* pub enum $name:ident { $($(#[$member_attribute:meta])* $member:ident = $text:literal),+ $(,)? }) => {
        $(#[$attribute])*
        // Kernels for a graphics processor are handed members, by a program that another compiler may have made.
        #[repr(u8)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$member_attribute])* $member),+ }
        impl $crate::spec::Choice for $name {
            const NAMES: &'static [&'static str] = &[$($text),+];
            const MEMBERS: &'static [Self] = &[$($name::$member),+];
        }
        impl $name {
            /// The name in the catalog.
            #[allow(dead_code, reason = "not every enumeration's name is written into a preset")]
            pub const fn name(self) -> &'static str {
                match self { $($name::$member => $text),+ }
            }
        }
    };
}
pub(crate) use choice;
