//! Cases in one block of bytes.
//!
//! All numbers are little-endian. The block begins with [`MAGIC`] and the number of cases (32 bits), then come the cases.
//! A *place* is a position in the block (32 bits) where something stands that several cases may share.
//!
//! | of a case | |
//! |---|---|
//! | operation | place of a text |
//! | dialect | place of a text, 0 for none |
//! | parameters | place of a list: their number (8 bits), then for each a name (place of a text), a kind (8 bits) and 64 bits: a number's bits, 1 or 0 for a flag, the place of a name's text |
//! | inputs | their number (8 bits), then for each a name (place of a text) and a place of an array |
//!
//! A text is its length (16 bits) and its bytes. An array is a kind (8 bits), a rank (8 bits), its sizes (32 bits each) and its
//! elements.

use plumbline_core::spec::{Given, GivenValue};

/// What a block begins with.
pub const MAGIC: &[u8; 8] = b"plumbit1";

/// Kinds of parameter values.
pub mod kind {
    /// Switched off.
    pub const NONE: u8 = 0;
    /// A number.
    pub const NUMBER: u8 = 1;
    /// Yes or no.
    pub const FLAG: u8 = 2;
    /// A name.
    pub const NAME: u8 = 3;
    /// An array of `f32`.
    pub const F32: u8 = 4;
    /// An array of `f64`.
    pub const F64: u8 = 5;
    /// An array of bytes.
    pub const MASK: u8 = 6;
    /// An array of `u32`.
    pub const INDEX: u8 = 7;
}

/// The block does not hold what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A place in a block from which things are read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    block: &'a [u8],
    place: usize,
}

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.place.checked_add(count).ok_or(Malformed)?;
        let bytes = self.block.get(self.place..end).ok_or(Malformed)?;
        self.place = end;
        Ok(bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bytes(N)?.first_chunk().copied().ok_or(Malformed)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    fn word(&mut self) -> Result<usize, Malformed> {
        self.array().map(|bytes| u32::from_le_bytes(bytes) as usize)
    }

    fn at(&self, place: usize) -> Reader<'a> {
        Reader { block: self.block, place }
    }

    /// The text that the next place leads to; `None` for place 0.
    fn text(&mut self) -> Result<Option<&'a str>, Malformed> {
        let place = self.word()?;
        if place == 0 {
            return Ok(None);
        }
        let mut there = self.at(place);
        let length = there.array().map(u16::from_le_bytes)?;
        core::str::from_utf8(there.bytes(usize::from(length))?).map(Some).map_err(|_| Malformed)
    }
}

/// The cases of a block.
#[derive(Clone, Copy, Debug)]
pub struct Pack<'a> {
    reader: Reader<'a>,
    left: usize,
}

impl<'a> Pack<'a> {
    /// The cases of a block, in order.
    pub fn new(block: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader { block, place: 0 };
        if &reader.array()? != MAGIC {
            return Err(Malformed);
        }
        let left = reader.word()?;
        Ok(Pack { reader, left })
    }
}

impl<'a> Iterator for Pack<'a> {
    type Item = Result<Case<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let case = Case::read(&mut self.reader);
        if case.is_err() {
            self.left = 0;
        }
        Some(case)
    }
}

/// One case.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The operation's identifier.
    pub operation: &'a str,
    /// The dialect.
    pub dialect: Option<&'a str>,
    params: Reader<'a>,
    inputs: Reader<'a>,
}

impl<'a> Case<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let operation = reader.text()?.ok_or(Malformed)?;
        let dialect = reader.text()?;
        let params = reader.word()?;
        let params = reader.at(params);
        let inputs = *reader;
        let count = reader.byte()?;
        reader.bytes(8 * usize::from(count))?;
        Ok(Case { operation, dialect, params, inputs })
    }

    /// The parameters.
    pub fn params(&self) -> impl Iterator<Item = Result<Given<'a>, Malformed>> + use<'a> {
        let mut reader = self.params;
        let count = reader.byte().unwrap_or(0);
        (0..count).map(move |_| {
            let name = reader.text()?.ok_or(Malformed)?;
            let value = match reader.byte()? {
                kind::NONE => reader.bytes(8).map(|_| GivenValue::None)?,
                kind::NUMBER => GivenValue::Number(f64::from_bits(u64::from_le_bytes(reader.array()?))),
                kind::FLAG => GivenValue::Flag(reader.array::<8>()? != [0; 8]),
                kind::NAME => {
                    let name = reader.text()?.ok_or(Malformed)?;
                    reader.word()?;
                    GivenValue::Name(name)
                }
                _ => return Err(Malformed),
            };
            Ok(Given { name, value })
        })
    }

    /// The inputs.
    pub fn inputs(&self) -> impl Iterator<Item = Result<Array<'a>, Malformed>> + use<'a> {
        let mut reader = self.inputs;
        let count = reader.byte().unwrap_or(0);
        (0..count).map(move |_| {
            let name = reader.text()?.ok_or(Malformed)?;
            let place = reader.word()?;
            Array::read(name, reader.at(place))
        })
    }
}

/// An input.
#[derive(Clone, Copy, Debug)]
pub struct Array<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its kind, from [`kind`].
    pub kind: u8,
    /// Its sizes.
    pub shape: [usize; MAX_RANK],
    /// How many of them count.
    pub rank: usize,
    elements: &'a [u8],
}

/// The largest rank of an array.
pub const MAX_RANK: usize = 4;

impl<'a> Array<'a> {
    fn read(name: &'a str, mut reader: Reader<'a>) -> Result<Self, Malformed> {
        let kind = reader.byte()?;
        let rank = usize::from(reader.byte()?);
        let mut shape = [0; MAX_RANK];
        let mut count = 1usize;
        for size in shape.get_mut(..rank).ok_or(Malformed)? {
            *size = reader.word()?;
            count = count.checked_mul(*size).ok_or(Malformed)?;
        }
        let width = match kind {
            kind::MASK => 1,
            kind::F32 | kind::INDEX => 4,
            kind::F64 => 8,
            _ => return Err(Malformed),
        };
        let elements = reader.bytes(count.checked_mul(width).ok_or(Malformed)?)?;
        Ok(Array { name, kind, shape, rank, elements })
    }

    /// The bytes of a mask.
    pub fn mask(&self) -> &'a [u8] {
        self.elements
    }

    /// The numbers of an array of indices.
    pub fn indices(&self) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        self.elements.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes))
    }

    /// The numbers of an array of `f32`.
    pub fn singles(&self) -> impl ExactSizeIterator<Item = f32> + use<'a> {
        self.elements.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
    }

    /// The numbers of an array of `f64`.
    pub fn doubles(&self) -> impl ExactSizeIterator<Item = f64> + use<'a> {
        self.elements.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes))
    }
}
