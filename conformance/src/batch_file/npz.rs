//! numpy's `.npz`: a zip archive with one array in each member.

use std::io::{Cursor, Read as _};

use zip::ZipArchive;

use super::{BatchFile, npy};

/// The largest array that is unpacked (4 GiB): an archive of a few bytes can claim more than there is memory.
const LARGEST: u64 = 4 << 30;

pub(super) fn read(bytes: &[u8]) -> Result<BatchFile, String> {
    let broken = |error: &dyn std::fmt::Display| format!("the archive cannot be read: {error}");
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    let mut file = BatchFile::default();
    for index in 0..archive.len() {
        let member = archive.by_index(index).map_err(|error| broken(&error))?;
        let path = member.name().to_owned();
        if path.ends_with("data.pkl") {
            return Err("it is torch.save's format, which runs code when it is read; save the batch with \
                        safetensors.torch.save_file or numpy.savez"
                .into());
        }
        let name = path.strip_suffix(".npy").unwrap_or(&path).to_owned();
        let mut contents = Vec::new();
        member.take(LARGEST + 1).read_to_end(&mut contents).map_err(|error| format!("`{name}`: {error}"))?;
        if contents.len() as u64 > LARGEST {
            return Err(format!("`{name}` is larger than {} GiB", LARGEST >> 30));
        }
        let array = npy::read(&contents).map_err(|error| format!("`{name}`: {error}"))?;
        file.arrays.push((name, array));
    }
    Ok(file)
}
