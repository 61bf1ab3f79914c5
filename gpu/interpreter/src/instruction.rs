//! Instructions as they are executed.

use crate::operand::{Operand, Type};

/// An operation on two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binary {
    Add,
    Subtract,
    /// The low half of the product.
    Multiply,
    /// The whole product, in twice the width.
    MultiplyWide,
    /// The high half of the product.
    MultiplyHigh,
    Divide,
    Remainder,
    Smaller,
    Larger,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    /// The second value with the first one's sign.
    CopySign,
}

/// An operation on one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unary {
    Move,
    Negate,
    Absolute,
    Not,
    Reciprocal,
    SquareRoot,
    LeadingZeros,
    Ones,
}

/// A comparison; `unordered` ones hold where either side is NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub less: bool,
    pub equal: bool,
    pub greater: bool,
    pub unordered: bool,
}

/// How a conversion to a whole number rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// As the instruction does without a word about it: to the nearest, ties to even, where it rounds at all.
    Nearest,
    /// Towards zero.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
}

/// Which memory an address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The kernel's parameters.
    Parameter,
    /// The thread's own.
    Local,
    /// The device's, or the thread's own through a generic address.
    Generic,
    /// The module's constants.
    Constant,
}

/// What is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Unary {
        operation: Unary,
        kind: Type,
        to: usize,
        from: Operand,
    },
    Binary {
        operation: Binary,
        kind: Type,
        to: usize,
        left: Operand,
        right: Operand,
    },
    /// left · right + more, whole numbers only.
    MultiplyAdd {
        wide: bool,
        kind: Type,
        to: usize,
        left: Operand,
        right: Operand,
        more: Operand,
    },
    Compare {
        comparison: Comparison,
        kind: Type,
        to: usize,
        left: Operand,
        right: Operand,
    },
    Select {
        kind: Type,
        to: usize,
        left: Operand,
        right: Operand,
        condition: Operand,
    },
    Convert {
        rounding: Rounding,
        to_kind: Type,
        from_kind: Type,
        to: usize,
        from: Operand,
    },
    /// Bytes of two words, chosen by a word of four digits.
    Permute {
        to: usize,
        left: Operand,
        right: Operand,
        selector: Operand,
    },
    /// A field of bits.
    Extract {
        kind: Type,
        to: usize,
        from: Operand,
        position: Operand,
        length: Operand,
    },
    /// Two words shifted as one.
    Funnel {
        left: bool,
        to: usize,
        low: Operand,
        high: Operand,
        by: Operand,
    },
    /// A value from its parts, low ones first.
    Pack {
        to: usize,
        part: u32,
        from: Vec<Operand>,
    },
    /// The parts of a value.
    Unpack {
        to: Vec<usize>,
        part: u32,
        from: Operand,
    },
    Load {
        space: Space,
        kind: Type,
        to: Vec<usize>,
        base: Operand,
        offset: i64,
    },
    Store {
        space: Space,
        kind: Type,
        from: Vec<Operand>,
        base: Operand,
        offset: i64,
    },
    /// The smaller of memory and a value is written; the old content returned.
    AtomicMinimum {
        to: usize,
        base: Operand,
        offset: i64,
        value: Operand,
    },
    Shuffle {
        down: bool,
        to: usize,
        from: Operand,
        by: Operand,
    },
    Jump {
        target: usize,
    },
    JumpByTable {
        index: Operand,
        targets: Vec<usize>,
    },
    Exit,
    Trap,
}

/// An instruction with its guard: the predicate that must hold, or must not.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// Where it stands in the text.
    pub line: usize,
    pub guard: Option<(usize, bool)>,
    pub action: Action,
}
