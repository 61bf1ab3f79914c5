//! Arrays in the device's memory.
#![allow(unsafe_code)]

use core::marker::PhantomData;

/// An array that a kernel reads; without elements where the caller has none.
#[repr(C)]
#[derive(Debug)]
pub struct Reader<T> {
    pointer: *const T,
    length: usize,
}

impl<T> Clone for Reader<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Reader<T> {}

impl<T: Copy> Reader<T> {
    /// No array.
    pub const NONE: Reader<T> = Reader { pointer: core::ptr::null(), length: 0 };

    /// # Safety
    /// While a kernel runs with it, `pointer` must be the start of `length` initialised elements in the memory of the device
    /// that the kernel runs on, and no one may write to them.
    pub const unsafe fn new(pointer: *const T, length: usize) -> Self {
        Reader { pointer, length }
    }

    /// How many elements there are.
    #[inline(always)]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether there is an array.
    #[inline(always)]
    pub fn given(&self) -> bool {
        self.length != 0
    }

    /// One element; `None` past the end.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Option<T> {
        // SAFETY: the index is below the length, and `new` promises that many elements.
        if index < self.length { Some(unsafe { *self.pointer.add(index) }) } else { None }
    }

    /// One element; `otherwise` past the end.
    #[inline(always)]
    pub fn at(&self, index: usize, otherwise: T) -> T {
        self.get(index).unwrap_or(otherwise)
    }

    /// How many packs may be read: none where the array does not start at a pack's boundary.
    #[inline(always)]
    pub fn packs<P: Pack<T>>(&self) -> usize {
        if (self.pointer as usize).is_multiple_of(align_of::<P>()) { self.length / P::COUNT } else { 0 }
    }

    /// The elements of a pack, in one load.
    ///
    /// # Safety
    /// `pack` lies below [`Reader::packs`]. There is no comparison here because what stands behind one is loaded one by one.
    #[inline(always)]
    pub unsafe fn pack<P: Pack<T>>(&self, pack: usize) -> P {
        // SAFETY: the pack lies in the array, at a multiple of its size from an aligned start.
        unsafe { P::load(self.pointer.cast::<P>().add(pack)) }
    }

    /// The array as a slice.
    #[inline(always)]
    pub fn slice(&self) -> &[T] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: `new` promises that many elements that no one writes to.
        unsafe { core::slice::from_raw_parts(self.pointer, self.length) }
    }
}

/// An array that a kernel writes, each element from at most one thread.
#[repr(C)]
#[derive(Debug)]
pub struct Writer<T> {
    pointer: *mut T,
    length: usize,
    elements: PhantomData<*mut T>,
}

impl<T> Clone for Writer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Writer<T> {}

impl<T: Copy> Writer<T> {
    /// No array: what is written goes nowhere.
    pub const NONE: Writer<T> = Writer { pointer: core::ptr::null_mut(), length: 0, elements: PhantomData };

    /// # Safety
    /// While a kernel runs with it, `pointer` must be the start of `length` elements in the memory of the device that the
    /// kernel runs on, and no one else may use them.
    pub const unsafe fn new(pointer: *mut T, length: usize) -> Self {
        Writer { pointer, length, elements: PhantomData }
    }

    /// Whether there is an array.
    #[inline(always)]
    pub fn given(&self) -> bool {
        self.length != 0
    }

    /// Write one element; past the end nothing happens.
    #[inline(always)]
    pub fn set(&self, index: usize, value: T) {
        if index < self.length {
            // SAFETY: the index is below the length, and `new` promises that many elements of which no one else uses any.
            unsafe { *self.pointer.add(index) = value }
        }
    }

    /// What this thread wrote before.
    #[inline(always)]
    pub fn written(&self, index: usize) -> Option<T> {
        // SAFETY: as in `set`.
        if index < self.length { Some(unsafe { *self.pointer.add(index) }) } else { None }
    }

    /// How many packs may be written: none where the array does not start at a pack's boundary.
    #[inline(always)]
    pub fn packs<P: Pack<T>>(&self) -> usize {
        self.reader().packs::<P>()
    }

    /// Write a pack; nothing where it does not lie in the array whole.
    #[inline(always)]
    pub fn set_pack<P: Pack<T>>(&self, pack: usize, value: P) {
        if pack < self.packs::<P>() {
            // SAFETY: the pack lies in the array, at a multiple of its size from an aligned start, and `new` promises that no
            // one else uses its elements.
            unsafe { *self.pointer.cast::<P>().add(pack) = value }
        }
    }

    /// The address of the first element, where there is one.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<*mut T> {
        self.part(0, 1)
    }

    /// The address of `count` elements from `index` on, where the array holds them.
    #[inline(always)]
    pub(crate) fn part(&self, index: usize, count: usize) -> Option<*mut T> {
        let end = index.checked_add(count)?;
        // SAFETY: the part lies in the array.
        if end <= self.length { Some(unsafe { self.pointer.add(index) }) } else { None }
    }

    /// `count` elements from `index` on; none where the array does not hold them.
    ///
    /// # Safety
    /// They are initialised, and no one else uses them while the slice is there.
    #[inline(always)]
    #[allow(clippy::mut_from_ref, reason = "a writer stands for memory that is not its own")]
    pub unsafe fn slice(&self, index: usize, count: usize) -> &mut [T] {
        match self.part(index, count) {
            // SAFETY: the part lies in the array, and the rest is what the function asks for.
            Some(start) if count > 0 => unsafe { core::slice::from_raw_parts_mut(start, count) },
            _ => &mut [],
        }
    }

    /// The same array for a kernel that only reads it.
    #[inline(always)]
    pub fn reader(&self) -> Reader<T> {
        Reader { pointer: self.pointer, length: self.length }
    }
}

/// Neighbouring elements that one instruction loads or stores.
///
/// # Safety
/// The type is `COUNT` elements `T` side by side and nothing else.
pub unsafe trait Pack<T>: Copy {
    /// How many.
    const COUNT: usize;
    /// The same element, everywhere.
    fn splat(element: T) -> Self;
    /// Element by element from memory, which the compiler makes one load of; copied as a whole, parts would be loaded twice.
    ///
    /// # Safety
    /// The pointer is aligned, and points to a pack.
    unsafe fn load(pointer: *const Self) -> Self;
}

/// A pack of four.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct Pack4<T>(pub [T; 4]);

/// A pack of two.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug)]
pub struct Pack2<T>(pub [T; 2]);

/// Four bytes.
#[repr(C, align(4))]
#[derive(Clone, Copy, Debug)]
pub struct Bytes4(pub [u8; 4]);

/// Two bytes.
#[repr(C, align(2))]
#[derive(Clone, Copy, Debug)]
pub struct Bytes2(pub [u8; 2]);

// SAFETY: arrays whose size is their alignment.
unsafe impl Pack<f32> for Pack4<f32> {
    const COUNT: usize = 4;
    #[inline(always)]
    fn splat(element: f32) -> Self {
        Pack4([element; 4])
    }
    #[inline(always)]
    unsafe fn load(pointer: *const Self) -> Self {
        // SAFETY: what the trait asks for.
        let pack = unsafe { &*pointer };
        Pack4([pack.0[0], pack.0[1], pack.0[2], pack.0[3]])
    }
}
// SAFETY: as above.
unsafe impl Pack<f64> for Pack2<f64> {
    const COUNT: usize = 2;
    #[inline(always)]
    fn splat(element: f64) -> Self {
        Pack2([element; 2])
    }
    #[inline(always)]
    unsafe fn load(pointer: *const Self) -> Self {
        // SAFETY: what the trait asks for.
        let pack = unsafe { &*pointer };
        Pack2([pack.0[0], pack.0[1]])
    }
}
// SAFETY: as above.
unsafe impl Pack<u8> for Bytes4 {
    const COUNT: usize = 4;
    #[inline(always)]
    fn splat(element: u8) -> Self {
        Bytes4([element; 4])
    }
    #[inline(always)]
    unsafe fn load(pointer: *const Self) -> Self {
        // SAFETY: what the trait asks for.
        let pack = unsafe { &*pointer };
        Bytes4([pack.0[0], pack.0[1], pack.0[2], pack.0[3]])
    }
}
// SAFETY: as above.
unsafe impl Pack<u8> for Bytes2 {
    const COUNT: usize = 2;
    #[inline(always)]
    fn splat(element: u8) -> Self {
        Bytes2([element; 2])
    }
    #[inline(always)]
    unsafe fn load(pointer: *const Self) -> Self {
        // SAFETY: what the trait asks for.
        let pack = unsafe { &*pointer };
        Bytes2([pack.0[0], pack.0[1]])
    }
}

/// A number with its packs.
pub trait Number: plumbline_core::num::Real + crate::warp::Word {
    /// The pack of 16 bytes.
    type Pack: Pack<Self>;
    /// As many bytes.
    type Bytes: Pack<u8>;
    /// `f32` or `f64`.
    const SUFFIX: &'static str;

    /// A function of each place of a pack and of whether it is marked; +0 where the byte of `kept` is 0. Written out place by
    /// place: the numbers stay in registers.
    fn map_pack<const I: usize, const O: usize>(
        kept: Self::Bytes,
        marks: Self::Bytes,
        inputs: [Self::Pack; I],
        function: impl Fn(bool, [Self; I]) -> [Self; O],
    ) -> [Self::Pack; O];
}

#[inline(always)]
fn place<R: plumbline_core::num::Real, const I: usize, const O: usize>(
    kept: u8,
    mark: u8,
    inputs: [R; I],
    function: impl Fn(bool, [R; I]) -> [R; O],
) -> [R; O] {
    if kept != 0 { function(mark != 0, inputs) } else { [R::zero(); O] }
}

impl Number for f32 {
    type Pack = Pack4<f32>;
    type Bytes = Bytes4;
    const SUFFIX: &'static str = "f32";

    #[inline(always)]
    fn map_pack<const I: usize, const O: usize>(
        kept: Bytes4,
        marks: Bytes4,
        inputs: [Pack4<f32>; I],
        function: impl Fn(bool, [f32; I]) -> [f32; O],
    ) -> [Pack4<f32>; O] {
        let first = place(kept.0[0], marks.0[0], inputs.map(|pack| pack.0[0]), &function);
        let second = place(kept.0[1], marks.0[1], inputs.map(|pack| pack.0[1]), &function);
        let third = place(kept.0[2], marks.0[2], inputs.map(|pack| pack.0[2]), &function);
        let fourth = place(kept.0[3], marks.0[3], inputs.map(|pack| pack.0[3]), &function);
        core::array::from_fn(|output| Pack4([first[output], second[output], third[output], fourth[output]]))
    }
}

impl Number for f64 {
    type Pack = Pack2<f64>;
    type Bytes = Bytes2;
    const SUFFIX: &'static str = "f64";

    #[inline(always)]
    fn map_pack<const I: usize, const O: usize>(
        kept: Bytes2,
        marks: Bytes2,
        inputs: [Pack2<f64>; I],
        function: impl Fn(bool, [f64; I]) -> [f64; O],
    ) -> [Pack2<f64>; O] {
        let first = place(kept.0[0], marks.0[0], inputs.map(|pack| pack.0[0]), &function);
        let second = place(kept.0[1], marks.0[1], inputs.map(|pack| pack.0[1]), &function);
        core::array::from_fn(|output| Pack2([first[output], second[output]]))
    }
}
