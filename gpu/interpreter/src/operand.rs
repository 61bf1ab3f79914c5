//! What instructions are about: types, registers, constants.

/// The type in an instruction's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A truth value.
    Predicate,
    /// Bits or an unsigned number of so many bits.
    Unsigned(u32),
    /// A signed number.
    Signed(u32),
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Type {
    /// From its name.
    pub fn of(name: &str) -> Option<Type> {
        Some(match name {
            "pred" => Type::Predicate,
            "b8" | "u8" => Type::Unsigned(8),
            "b16" | "u16" => Type::Unsigned(16),
            "b32" | "u32" => Type::Unsigned(32),
            "b64" | "u64" => Type::Unsigned(64),
            "s8" => Type::Signed(8),
            "s16" => Type::Signed(16),
            "s32" => Type::Signed(32),
            "s64" => Type::Signed(64),
            "f32" => Type::F32,
            "f64" => Type::F64,
            _ => return None,
        })
    }

    /// Its width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Type::Predicate => 1,
            Type::Unsigned(bits) | Type::Signed(bits) => bits,
            Type::F32 => 32,
            Type::F64 => 64,
        }
    }

    /// The bits of a value that belong to the type.
    pub fn cut(self, value: u64) -> u64 {
        match self.bits() {
            64 => value,
            bits => value & ((1 << bits) - 1),
        }
    }

    /// A value as a signed number.
    pub fn signed(self, value: u64) -> i64 {
        let unused = 64 - self.bits();
        ((value << unused) as i64) >> unused
    }
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// A register, by its place.
    Register(usize),
    /// A constant.
    Constant(u64),
    /// The thread's place in its block.
    Thread,
    /// Threads of a block.
    Threads,
    /// The block's place in the grid.
    Block,
    /// Blocks of the grid.
    Blocks,
}
