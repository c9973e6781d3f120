//! The embedded companions: their ids, and that they are what lies in the folder.

use super::*;
use crate::profile::PatchPin;
use crate::sources::embedded::{COMPANIONS, companion_ids, materialise, profile_text};

#[test]
fn the_embedded_profile_pins_the_ids_that_the_files_give() {
    let folder = tempfile::tempdir().unwrap();
    let written = materialise(folder.path()).unwrap();
    assert_eq!(written.companions.iter().map(|companion| companion.id.clone()).collect::<Vec<_>>(), companion_ids());
    let text = profile_text().unwrap_or_default();
    let mut wrong = String::new();
    for companion in &written.companions {
        let mut pinned = source(&companion.id, &companion.repository, Some(&companion.ids.commit));
        let mut right = vec![("commit", companion.ids.commit.clone())];
        if let Some(sha256) = &companion.patch_sha256 {
            let path = folder.path().join(format!("{}.patch", companion.id)).to_string_lossy().into_owned();
            pinned.patch = Some(PatchPin { path, source: None, sha256: Some(sha256.clone()), tree: None });
            right.push(("patch sha256", sha256.clone()));
        }
        let (loaded, _) = load_one(pinned);
        assert_eq!(loaded.problems, [], "companion `{}`", companion.id);
        right.extend(loaded.patched_tree.map(|tree| ("patch tree", tree)));
        for (key, value) in right.iter().filter(|(_, value)| !text.contains(value.as_str())) {
            wrong.push_str(&format!("companion `{}`: the {key} is {value}\n", companion.id));
        }
    }
    assert!(wrong.is_empty(), "fixtures/companions/rlk-lint.toml does not hold these values:\n{wrong}");
}

#[test]
fn companions_are_written_once_and_always_with_the_same_ids() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let ids = |at: &Path| materialise(at).unwrap().companions.into_iter().map(|companion| companion.ids).collect::<Vec<_>>();
    assert_eq!(ids(one.path()), ids(two.path()));
    if !companion_ids().is_empty() {
        assert!(matches!(materialise(one.path()), Err(crate::sources::SourceError::Write { .. })));
    }
}

#[test]
fn everything_in_the_folder_is_embedded() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/companions");
    let mut todo = vec![root.clone()];
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            let inside = path.strip_prefix(&root).unwrap();
            let embedded = COMPANIONS.get_file(inside).map(|file| file.contents().to_vec());
            assert!(
                embedded.is_some_and(|bytes| bytes == std::fs::read(&path).unwrap()),
                "{} is not embedded as it is: touch src/sources/embedded.rs and build again",
                inside.display()
            );
        }
    }
}
