//! Gives the shared library the name under which programs look for it, where the linker has such names.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let linux_or_alike = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux" || os.ends_with("bsd"));
    if linux_or_alike {
        // Before 1.0 every minor version may change the interface.
        let version = env!("CARGO_PKG_VERSION_MAJOR").to_owned() + "." + env!("CARGO_PKG_VERSION_MINOR");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libplumbline.so.{version}");
    }
}
