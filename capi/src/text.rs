//! Text across the boundary.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::ptr;

use crate::status::Refused;

/// Text of the library: UTF-8, not terminated by a zero byte, valid for as long as the library is loaded.
/// `printf("%.*s", (int)text.length, text.data)` prints it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PlumblineText {
    /// The first byte; null where there is no text.
    pub data: *const c_char,
    /// How many bytes.
    pub length: usize,
}

impl PlumblineText {
    /// No text.
    pub const NONE: PlumblineText = PlumblineText { data: ptr::null(), length: 0 };

    /// The text.
    pub(crate) fn new(text: &'static str) -> Self {
        PlumblineText { data: text.as_ptr().cast(), length: text.len() }
    }

    /// The text in Rust; `None` where there is none.
    pub fn as_str(&self) -> Option<&'static str> {
        if self.data.is_null() {
            return None;
        }
        // SAFETY: the pointer and the length come from a `&'static str`: only `new` makes a text that is not null.
        let bytes = unsafe { std::slice::from_raw_parts(self.data.cast::<u8>(), self.length) };
        std::str::from_utf8(bytes).ok()
    }
}

/// A name that the caller gave; `None` for a null pointer.
///
/// # Safety
/// Where it is not null, `pointer` leads to bytes that end in a zero byte and stay unchanged for `'a`.
pub(crate) unsafe fn name<'a>(pointer: *const c_char) -> Result<Option<&'a str>, Refused<'a>> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not null; the rest is what this function asks of its caller.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| Refused::BadText)
}
