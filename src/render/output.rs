//! Where reports go.
//!
//! In: a path and what writes the report. Out: the complete file, or the old one untouched. Refused: half a file; a broken pipe is no error.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file could not be written.
    #[error("cannot write the report to '{}': {cause}", path.display())]
    File {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The standard output could not be written to.
    #[error("cannot write the report to the standard output: {0}")]
    Stream(io::Error),
}

/// Writes a file as a whole: to a temporary file beside it, which then takes its place. Special files (pipes, `/dev/stdout`) are written
/// directly; a symbolic link keeps pointing to where it did.
///
/// # Errors
/// If the folder is missing or not writable, the disk is full, or `write` fails; the old file is then left as it was.
pub fn to_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
    let result = if is_special(path) { directly(path, write) } else { beside_and_rename(path, write) };
    result.map_err(|cause| OutputError::File { path: path.to_owned(), cause })
}

/// Writes to a stream. A reader that went away is no error: it has what it wanted.
///
/// # Errors
/// If the stream fails in any other way.
pub fn to_stream(stream: &mut dyn Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), OutputError> {
    let mut buffered = BufWriter::new(stream);
    let result = write(&mut buffered).and_then(|()| buffered.flush());
    match result {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
            // The buffer cannot be delivered either; dropping it would try once more.
            let _ = buffered.into_parts();
            Ok(())
        }
        other => other.map_err(OutputError::Stream),
    }
}

fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

fn directly(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(path)?);
    write(&mut out)?;
    out.flush()
}

fn beside_and_rename(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (temporary, file) = create_beside(&target)?;
    let result = fill(file, write).and_then(|()| {
        if let Ok(meta) = fs::metadata(&target) {
            fs::set_permissions(&temporary, meta.permissions())?;
        }
        fs::rename(&temporary, &target)
    });
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result
}

fn fill(file: File, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

/// A new file in the same folder, under a name that nobody else uses.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
    for attempt in 0..100u32 {
        let mut temporary = OsString::from(".");
        temporary.push(name);
        temporary.push(format!(".{}-{attempt}.tmp", std::process::id()));
        let temporary = target.with_file_name(temporary);
        match File::options().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "too many temporary files beside it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sarif");
        fs::write(&path, "old").unwrap();
        to_file(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(names(folder.path()), ["out.sarif"]);
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.sarif");
        fs::write(&path, "old").unwrap();
        let error = to_file(&path, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("disk full"))
        })
        .unwrap_err();
        assert!(error.to_string().contains("out.sarif': disk full"), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(names(folder.path()), ["out.sarif"]);
    }

    #[test]
    fn an_unwritable_place_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such/out.json");
        assert!(to_file(&missing, |_| Ok(())).unwrap_err().to_string().contains("no/such/out.json"));
        assert!(to_file(folder.path(), |_| Ok(())).unwrap_err().to_string().contains("is a directory"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_keeps_pointing_and_a_device_is_written_directly() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        to_file(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        to_file(Path::new("/dev/null"), |out| out.write_all(b"x")).unwrap();
    }

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_error() {
        assert!(to_stream(&mut Failing(io::ErrorKind::BrokenPipe), |out| out.write_all(&[0; 100_000])).is_ok());
        assert!(to_stream(&mut Failing(io::ErrorKind::BrokenPipe), |out| out.write_all(b"x")).is_ok());
        assert!(to_stream(&mut Failing(io::ErrorKind::StorageFull), |out| out.write_all(b"x")).is_err());
    }
}
