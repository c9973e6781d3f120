//! Files beside the code: paths that start from `__file__`, and what JSON documents at such paths hold.
//!
//! In: calls, attributes and items of [`Object::File`] and [`Object::Json`]. Out: the path that comes of it, or the part of the document. A file
//! stands for its own content: reading and opening it gives it again. What is not in a document is unknown.

use super::engine::Engine;
use super::graph::{CallRecord, NodeId, Use};
use super::object::{Builtin, Object, ObjectId, Reason};
use crate::names::{ModuleId, Sym};

/// Functions that take a path, or what was read from it.
const FUNCTIONS: &[&str] =
    &["json.load", "json.loads", "open", "os.path.abspath", "os.path.dirname", "os.path.join", "os.path.realpath", "pathlib.Path"];

/// Methods of paths and open files that give another path, or the content.
const METHODS: &[&str] = &["absolute", "joinpath", "open", "read", "read_text", "resolve", "with_name"];

/// A path with another one after it; `..` and `.` are followed.
fn join(path: &str, next: &str) -> Option<String> {
    let (source, path) = path.split_once(':')?;
    let mut parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    for part in next.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    (!next.starts_with('/')).then(|| format!("{source}:{}", parts.join("/")))
}

impl Engine<'_> {
    /// The file of a module: its source and its path there.
    pub(super) fn file_of(&mut self, module: ModuleId) -> Object {
        let module = self.program.module(module);
        let path = format!("{}:{}", module.source, module.path);
        Object::File(self.intern(&path))
    }

    /// Has a call of a function that takes paths done again for each file that comes; false if it is none.
    pub(super) fn calls_with_file(&mut self, call: u32, name: Sym) -> bool {
        if !FUNCTIONS.contains(&self.text(name)) {
            return false;
        }
        for at in 0..self.calls[call as usize].args.len() {
            let node = self.calls[call as usize].args[at].1;
            self.subscribe(node, Use::FileCall { call, name });
        }
        true
    }

    /// Evaluates such a call on the files and strings that its arguments hold now.
    pub(super) fn file_call(&mut self, call: u32, name: Sym) {
        let CallRecord { dst, .. } = self.calls[call as usize];
        let Some(first) = self.argument(call, 0) else { return };
        for object in self.set(first).to_vec() {
            let Object::File(file) = self.get(object) else { continue };
            match self.text(name) {
                "json.load" | "json.loads" => {
                    let root = self.intern("");
                    self.add_object(dst, Object::Json(file, root));
                }
                "os.path.dirname" => self.joined(file, "..", dst),
                "os.path.join" | "pathlib.Path" => self.joined_with(call, 1, file, dst),
                _ => self.add(dst, object),
            }
        }
    }

    /// Adds a file with the strings of a call's arguments from `at` on after it, if each is one string.
    fn joined_with(&mut self, call: u32, at: usize, file: Sym, dst: NodeId) {
        let mut next = String::new();
        for at in at.. {
            let Some(node) = self.argument(call, at) else { break };
            let [only] = self.set(node) else { return };
            let Object::Str(text) = self.get(*only) else { return };
            next = format!("{next}/{}", self.text(text));
        }
        self.joined(file, next.trim_start_matches('/'), dst);
    }

    fn joined(&mut self, file: Sym, next: &str, dst: NodeId) {
        if let Some(path) = join(self.text(file), next) {
            let path = self.intern(&path);
            self.add_object(dst, Object::File(path));
        }
    }

    /// `file / "name"`.
    pub(super) fn file_divided(&mut self, file: ObjectId, next: ObjectId, dst: NodeId) -> bool {
        let (Object::File(file), Object::Str(next)) = (self.get(file), self.get(next)) else { return false };
        let next = self.text(next).to_owned();
        self.joined(file, &next, dst);
        true
    }

    /// Reads an attribute of a file or document.
    pub(super) fn load_file_attr(&mut self, object: ObjectId, name: Sym, dst: NodeId) {
        match (self.get(object), self.text(name)) {
            (Object::File(file), "parent") => self.joined(file, "..", dst),
            (Object::File(_), method) if METHODS.contains(&method) => {
                self.add_object(dst, Object::BuiltinMethod(Builtin::Str, name, object))
            }
            (Object::Json(..), "get") => self.add_object(dst, Object::BuiltinMethod(Builtin::Dict, name, object)),
            _ => self.add_object(dst, Object::Unknown(Reason::Opaque)),
        }
    }

    /// A method of a file, on what its arguments hold now.
    pub(super) fn file_method(&mut self, call: u32, name: Sym, file: Sym) {
        let CallRecord { dst, .. } = self.calls[call as usize];
        match self.text(name) {
            "joinpath" => self.joined_with(call, 0, file, dst),
            "with_name" => {
                if let Some(folder) = join(self.text(file), "..") {
                    let folder = self.intern(&folder);
                    self.joined_with(call, 0, folder, dst);
                }
            }
            _ => self.add_object(dst, Object::File(file)),
        }
    }

    /// Reads an item of a document.
    pub(super) fn load_json_item(&mut self, file: Sym, path: Sym, key: ObjectId, dst: NodeId) {
        let assumptions = self.assumptions;
        let part = match self.get(key) {
            Object::Str(key) => Some(self.text(key).to_owned()),
            Object::Int(at) => Some(at.to_string()),
            _ => None,
        };
        let document = assumptions.documents.get(self.text(file));
        let (Some(part), Some(document)) = (part, document) else {
            return self.add_object(dst, Object::Unknown(Reason::ComputedString));
        };
        let path = self.text(path);
        let full = if path.is_empty() { part } else { format!("{path}/{part}") };
        let below = format!("{full}/");
        let found = if let Some(text) = document.get(&full) {
            Object::Str(self.intern(text))
        } else if document.range(below.clone()..).next().is_some_and(|(path, _)| path.starts_with(&below)) {
            Object::Json(file, self.intern(&full))
        } else {
            Object::Unknown(Reason::Opaque)
        };
        self.add_object(dst, found);
    }
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn paths_stay_in_their_source() {
        assert_eq!(join("0:pkg/main.py", "..").as_deref(), Some("0:pkg"));
        assert_eq!(join("0:pkg", "../configs/./a.json").as_deref(), Some("0:configs/a.json"));
        assert_eq!(join("1:a.py", "../..").as_deref(), None);
        assert_eq!(join("1:a", "/etc/a.json").as_deref(), None);
    }
}
