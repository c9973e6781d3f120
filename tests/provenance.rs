//! RLK101 to RLK105 on repositories that the tests build: each mistake of a pin, a tree or a patch is found alone.

use std::path::Path;

use rlk_lint::findings::Finding;
use rlk_lint::run::lint::{self, Judging, Request};
use sha2::{Digest, Sha256};

use crate::support::{HEAD, commit};

const BASE: &str = "def product(a, b):\n    return a\n";

const PATCH: &str = "\
diff --git a/lib.py b/lib.py
--- a/lib.py
+++ b/lib.py
@@ -1,2 +1,2 @@
 def product(a, b):
-    return a
+    return b
";

const FAMILY: &str = "\n[[family]]\nid = \"det_gemm\"\nkeys = [\"det_gemm\"]\nsinks = [\"lib.product\"]\nfacades = []\n";

/// A repository `lib` with one commit, and the ids of its commit and its tree.
struct Lib {
    folder: tempfile::TempDir,
    commit: String,
    tree: String,
}

impl Lib {
    fn new() -> Self {
        Self::holding(BASE)
    }

    fn holding(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("lib"), "lib.py", text);
        let (commit, tree) = commit(&folder.path().join("lib"));
        Self { folder, commit, tree }
    }

    fn write(&self, path: &str, text: &str) {
        write(self.folder.path(), path, text);
    }

    /// `rule message-key` of findings under a profile with these lines in its source.
    fn found(&self, lines: &str) -> Vec<String> {
        let profile = format!("{HEAD}\n[[source]]\nid = \"lib\"\npath = \"lib\"\nroots = [\".\"]\nrole = \"kernel\"\n{lines}{FAMILY}");
        let opened = lint::open_text(&profile, "rlk-lint.toml", self.folder.path().to_path_buf(), &Request::default());
        let opened = opened.unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)));
        let judging = Judging { fail_on: None, wanted: &|rule| rule.id.starts_with("RLK10"), category: None };
        let linted = lint::lint(opened, &judging, 1).unwrap();
        // Two of one rule on one line are one finding, which says both.
        let also = |finding: &Finding| finding.related.iter().filter(|related| related.message.starts_with("also on this line")).count();
        let told = |finding: &Finding| format!("{} {}{}", finding.rule.id, finding.message, " and more".repeat(also(finding)));
        linted.report.findings.iter().map(told).collect()
    }

    fn pinned(&self, lines: &str) -> Vec<String> {
        self.found(&format!("commit = \"{}\"\n{lines}", self.commit))
    }
}

fn write(folder: &Path, path: &str, text: &str) {
    let full = folder.join(path);
    std::fs::create_dir_all(full.parent().unwrap()).unwrap();
    std::fs::write(full, text).unwrap();
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_companion_needs_a_commit_and_the_checkout_does_not() {
    let lib = Lib::new();
    assert_eq!(lib.found(""), ["RLK101 default"]);
    assert_eq!(lib.found("main = true\n"), Vec::<String>::new());
    assert_eq!(lib.pinned(""), Vec::<String>::new());
    std::fs::remove_dir_all(lib.folder.path().join("lib/.git")).unwrap();
    assert_eq!(lib.found("main = true\n"), ["RLK101 default"], "a plain folder has no revision at all");
}

#[test]
fn a_commit_has_to_have_the_tree_of_its_pin() {
    let lib = Lib::new();
    assert_eq!(lib.pinned(&format!("tree = \"{}\"\n", lib.tree)), Vec::<String>::new());
    assert_eq!(lib.pinned(&format!("tree = \"{}\"\n", "12".repeat(20))), ["RLK102 default"]);
}

#[test]
fn an_edited_checkout_is_told_unless_the_commit_is_read() {
    let lib = Lib::new();
    lib.write("lib/lib.py", "def product(a, b):\n    return None\n");
    assert_eq!(lib.found("main = true\n"), ["RLK103 default"]);
    lib.write("lib/lib.py", BASE);
    assert_eq!(lib.found("main = true\n"), Vec::<String>::new());
}

#[test]
fn digest_tree_and_text_of_a_patch_are_judged_apart() {
    let lib = Lib::new();
    lib.write("lib.patch", PATCH);
    let patched = Lib::holding(&BASE.replace("return a", "return b")).tree;
    let source =
        |digest: &str, tree: &str| lib.pinned(&format!("[source.patch]\npath = \"lib.patch\"\nsha256 = \"{digest}\"\ntree = \"{tree}\"\n"));
    let (right, wrong) = (sha256(PATCH), sha256("another patch"));
    assert_eq!(source(&right, &patched), Vec::<String>::new());
    assert_eq!(source(&wrong, &patched), ["RLK104 digest"]);
    assert_eq!(source(&right, &lib.tree), ["RLK104 tree"], "the tree is that of the base");
    assert_eq!(source(&wrong, &lib.tree), ["RLK104 digest and more"]);
    // One blank more in a context line: git would apply it with a warning.
    let moved = PATCH.replace(" def product(a, b):", " def product(a,  b):");
    lib.write("lib.patch", &moved);
    assert_eq!(source(&sha256(&moved), &patched), ["RLK104 apply"]);
}

#[test]
fn python_that_does_not_parse_is_a_finding_and_the_rest_is_kept() {
    let lib = Lib::holding("def product(a, b):\n    return a\n\n\ndef broken(:\n    pass\n");
    assert_eq!(lib.pinned(""), ["RLK105 default"]);
    assert_eq!(Lib::new().pinned(""), Vec::<String>::new());
}
