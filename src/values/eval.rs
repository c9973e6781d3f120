//! The pure evaluator: truth, comparisons, strings, and the builtins that decide branches.

use super::engine::{Engine, PARTS};
use super::graph::{CallRecord, NodeId};
use super::models;
use super::object::{Object, ObjectId, Reason};
use crate::names::Sym;
use crate::syntax::{Keep, OpKind, Operator};

/// More pairs of operands than this are not multiplied out.
const MAX_PAIRS: usize = 256;

impl Engine<'_> {
    /// Whether an object may count as true (or false) in a test.
    pub(super) fn may_be(&self, object: ObjectId, wanted: bool) -> bool {
        match self.truth(object) {
            Some(value) => value == wanted,
            None => true,
        }
    }

    fn truth(&self, object: ObjectId) -> Option<bool> {
        match self.get(object) {
            Object::None => Some(false),
            Object::Bool(value) => Some(value),
            Object::Int(value) => Some(value != 0),
            Object::Str(text) => Some(!self.text(text).is_empty()),
            Object::Present(_)
            | Object::Module(_)
            | Object::Function(..)
            | Object::Class(..)
            | Object::Bound(..)
            | Object::Partial(..)
            | Object::Kernel(_)
            | Object::Launch(_)
            | Object::CustomOp(_)
            | Object::Apply(_)
            | Object::Context(..)
            | Object::Member(..)
            | Object::Builtin(_)
            | Object::Prefix(_)
            | Object::EntryPoint(_) => Some(true),
            _ => None,
        }
    }

    pub(super) fn keeps(&self, keep: Keep, object: ObjectId) -> bool {
        let none = matches!(self.get(object), Object::None);
        let unknown = matches!(self.get(object), Object::Unknown(_) | Object::External(_));
        match keep {
            Keep::Truthy => self.may_be(object, true),
            Keep::Falsy => self.may_be(object, false),
            Keep::IsNone => none || unknown,
            Keep::NotNone => !none,
        }
    }

    /// Results of `not`, comparisons, arithmetic and f-strings on what the operands hold now.
    pub(super) fn compute(&mut self, inst: super::object::InstanceId, op_index: u32) {
        let program = self.program;
        let scope = self.instances[inst.0 as usize].scope;
        match &program.scope(scope).ops[op_index as usize].kind {
            OpKind::Not { dst, src } => {
                let dst = self.reg(inst, *dst);
                for object in self.set(self.reg(inst, *src)).to_vec() {
                    for value in [true, false] {
                        if self.may_be(object, value) {
                            self.add_object(dst, Object::Bool(!value));
                        }
                    }
                }
            }
            OpKind::Binary { dst, left, op, right } => {
                let dst = self.reg(inst, *dst);
                let left = self.set(self.reg(inst, *left)).to_vec();
                let right = self.set(self.reg(inst, *right)).to_vec();
                if left.len() * right.len() > MAX_PAIRS {
                    self.undecided(*op, dst);
                    return;
                }
                for a in &left {
                    for b in &right {
                        self.binary(*a, *op, *b, dst, inst, op_index);
                    }
                }
            }
            OpKind::Format { dst, parts } => {
                let dst = self.reg(inst, *dst);
                let mut texts = vec![String::new()];
                for part in parts {
                    let objects = self.set(self.reg(inst, *part)).to_vec();
                    if objects.is_empty() {
                        return;
                    }
                    let mut next = Vec::new();
                    for object in objects {
                        let Some(text) = self.as_text(object) else {
                            for text in texts {
                                let known = self.intern(&text);
                                let begun = if text.is_empty() { Object::Unknown(Reason::ComputedString) } else { Object::Prefix(known) };
                                self.add_object(dst, begun);
                            }
                            return;
                        };
                        next.extend(texts.iter().map(|head| format!("{head}{text}")));
                    }
                    if next.len() > 32 {
                        return self.add_object(dst, Object::Unknown(Reason::ComputedString));
                    }
                    texts = next;
                }
                for text in texts {
                    let sym = self.intern(&text);
                    self.add_object(dst, Object::Str(sym));
                }
            }
            _ => {}
        }
    }

    fn as_text(&self, object: ObjectId) -> Option<String> {
        match self.get(object) {
            Object::Str(text) => Some(self.text(text).to_owned()),
            Object::Int(value) => Some(value.to_string()),
            _ => None,
        }
    }

    pub(super) fn undecided(&mut self, op: Operator, dst: NodeId) {
        if matches!(op, Operator::Add | Operator::Sub | Operator::Mul | Operator::FloorDiv | Operator::Mod | Operator::Other) {
            self.add_object(dst, Object::Unknown(Reason::Opaque));
        } else {
            self.add_object(dst, Object::Bool(true));
            self.add_object(dst, Object::Bool(false));
        }
    }

    fn binary(&mut self, a: ObjectId, op: Operator, b: ObjectId, dst: NodeId, inst: super::object::InstanceId, op_index: u32) {
        if op == Operator::Other && self.file_divided(a, b, dst) {
            return;
        }
        let decided = match op {
            Operator::Is if self.is_single(a) && self.is_single(b) => Some(a == b),
            Operator::IsNot if self.is_single(a) && self.is_single(b) => Some(a != b),
            Operator::Is | Operator::Eq => self.same(a, b),
            Operator::IsNot | Operator::NotEq => self.same(a, b).map(|same| !same),
            Operator::In => self.contains(b, a, inst, op_index),
            Operator::NotIn => self.contains(b, a, inst, op_index).map(|found| !found),
            Operator::Lt | Operator::LtE | Operator::Gt | Operator::GtE => match (self.get(a), self.get(b)) {
                (Object::Int(a), Object::Int(b)) => Some(match op {
                    Operator::Lt => a < b,
                    Operator::LtE => a <= b,
                    Operator::Gt => a > b,
                    _ => a >= b,
                }),
                _ => None,
            },
            _ => return self.arithmetic(a, op, b, dst, inst, op_index),
        };
        match decided {
            Some(value) => self.add_object(dst, Object::Bool(value)),
            None => self.undecided(op, dst),
        }
    }

    /// Whether two objects are the same one, if that can be said.
    fn same(&self, a: ObjectId, b: ObjectId) -> Option<bool> {
        let literal = |object: Object| {
            matches!(
                object,
                Object::None
                    | Object::Bool(_)
                    | Object::Int(_)
                    | Object::Str(_)
                    | Object::Member(..)
                    | Object::Class(..)
                    | Object::Builtin(_)
            )
        };
        let set = |object: Object| {
            matches!(
                object,
                Object::Present(_)
                    | Object::Function(..)
                    | Object::Module(_)
                    | Object::Instance(..)
                    | Object::Sequence(..)
                    | Object::Dict(..)
                    | Object::Bound(..)
            )
        };
        let (x, y) = (self.get(a), self.get(b));
        if literal(x) && literal(y) {
            return match (x, y) {
                (Object::Bool(p), Object::Int(q)) | (Object::Int(q), Object::Bool(p)) => Some(i64::from(p) == q),
                _ => Some(a == b),
            };
        }
        if let (Object::Prefix(begun), Object::Str(text)) | (Object::Str(text), Object::Prefix(begun)) = (x, y)
            && !self.text(text).starts_with(self.text(begun))
        {
            return Some(false);
        }
        if (matches!(x, Object::None) && set(y)) || (set(x) && matches!(y, Object::None)) {
            return Some(false);
        }
        None
    }

    /// Whether a container holds something. A container that is stored into may not hold it yet, or no longer: nothing is decided then.
    fn contains(&mut self, container: ObjectId, member: ObjectId, inst: super::object::InstanceId, op: u32) -> Option<bool> {
        if matches!(self.get(container), Object::Sequence(..) | Object::Dict(..)) {
            let parts = [self.field(container, super::graph::Key::Stored), self.element(container)];
            for part in parts {
                if self.watched.insert(((inst.0, op), part)) {
                    self.subscribe(part, super::graph::Use::Again(inst, op));
                }
            }
            if parts.iter().any(|part| !self.set(*part).is_empty()) {
                return None;
            }
        }
        match (self.get(container), self.get(member)) {
            (Object::Str(text), Object::Str(part)) => Some(self.text(text).contains(self.text(part))),
            (Object::Sequence(..), _) => {
                self.length(container)?;
                let all = self.field(container, super::graph::Key::All);
                let items = self.set(all).to_vec();
                self.member_of(&items, member)
            }
            (Object::External(name), Object::Str(variable)) if self.text(name) == "os.environ" => {
                match self.assumptions.environment.get(self.text(variable))? {
                    super::graph::Known::None => Some(false),
                    _ => Some(true),
                }
            }
            (Object::Dict(..), _) => {
                let keys = self.field(container, super::graph::Key::Keys);
                let items = self.set(keys).to_vec();
                self.member_of(&items, member)
            }
            _ => None,
        }
    }

    fn member_of(&self, items: &[ObjectId], member: ObjectId) -> Option<bool> {
        let mut all_decided = true;
        for item in items {
            match self.same(*item, member) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => all_decided = false,
            }
        }
        (all_decided && !items.is_empty()).then_some(false)
    }

    fn arithmetic(&mut self, a: ObjectId, op: Operator, b: ObjectId, dst: NodeId, inst: super::object::InstanceId, op_index: u32) {
        let object = match (self.get(a), op, self.get(b)) {
            (Object::Int(x), Operator::Add, Object::Int(y)) => x.checked_add(y).map(Object::Int),
            (Object::Int(x), Operator::Sub, Object::Int(y)) => x.checked_sub(y).map(Object::Int),
            (Object::Int(x), Operator::Mul, Object::Int(y)) => x.checked_mul(y).map(Object::Int),
            (Object::Int(x), Operator::FloorDiv, Object::Int(y)) if y > 0 => Some(Object::Int(x.div_euclid(y))),
            (Object::Int(x), Operator::Mod, Object::Int(y)) if y > 0 => Some(Object::Int(x.rem_euclid(y))),
            (Object::Str(x), Operator::Add, Object::Str(y)) => {
                let text = format!("{}{}", self.text(x), self.text(y));
                (text.len() < 1024).then(|| Object::Str(self.intern(&text)))
            }
            (Object::Str(begun) | Object::Prefix(begun), Operator::Add, _) => Some(Object::Prefix(begun)),
            (Object::Str(_), _, _) | (_, Operator::Add, Object::Str(_)) => Some(Object::Unknown(Reason::ComputedString)),
            (Object::Sequence(..), Operator::Add, Object::Sequence(..)) => {
                let joined = self.object(Object::Sequence(inst, op_index));
                for part in [a, b] {
                    let all = self.field(part, super::graph::Key::All);
                    let element = self.element(joined);
                    self.copy(all, element);
                }
                Some(Object::Sequence(inst, op_index))
            }
            _ => None,
        };
        // A counter in a loop must not count on for ever.
        let object = match object {
            Some(Object::Int(value)) if value.unsigned_abs() > 1 << 40 || self.set(dst).len() > 16 => Object::Unknown(Reason::Opaque),
            Some(Object::Str(_)) if self.set(dst).len() > 16 => Object::Unknown(Reason::ComputedString),
            Some(object) => object,
            None => Object::Unknown(Reason::Opaque),
        };
        self.add_object(dst, object);
    }

    // --- builtins that read values -------------------------------------------------------------------------------------------------

    /// Evaluates a builtin on what its arguments hold now.
    pub(super) fn evaluate_builtin(&mut self, call: u32, name: Sym) {
        let text = self.text(name).to_owned();
        let record = self.calls[call as usize].clone();
        let dst = record.dst;
        let arg = |engine: &Self, at: usize| engine.argument(call, at).map(|node| engine.set(node).to_vec()).unwrap_or_default();
        match text.as_str() {
            "getattr" => {
                for object in arg(self, 0) {
                    for key in arg(self, 1) {
                        match self.get(key) {
                            Object::Str(attribute) => {
                                if self.attribute_known(object, attribute) != Some(false) {
                                    self.load_attr(object, attribute, dst, record.caller, record.op);
                                }
                                if let Some(default) = self.argument(call, 2)
                                    && self.attribute_known(object, attribute) != Some(true)
                                {
                                    self.copy(default, dst);
                                }
                            }
                            Object::Unknown(Reason::ParameterUnbound) => self.add(dst, key),
                            _ => self.add_object(dst, Object::Unknown(Reason::ComputedString)),
                        }
                    }
                }
            }
            "hasattr" => {
                for object in arg(self, 0) {
                    for key in arg(self, 1) {
                        let known = match self.get(key) {
                            Object::Str(attribute) => self.attribute_known(object, attribute),
                            _ => None,
                        };
                        for value in [true, false] {
                            if known.is_none_or(|known| known == value) {
                                self.add_object(dst, Object::Bool(value));
                            }
                        }
                    }
                }
            }
            "setattr" => {
                let Some(src) = self.argument(call, 2) else { return };
                for object in arg(self, 0) {
                    for key in arg(self, 1) {
                        match self.get(key) {
                            Object::Str(attribute) => self.store_attr(object, attribute, src, record.caller, record.op),
                            _ => {
                                let reason = Reason::ComputedAttribute;
                                let any = self.field(object, super::graph::Key::Any);
                                self.add_object(any, Object::Unknown(reason));
                                self.record_unresolved(super::graph::Unresolved { caller: record.caller, op: record.op, reason });
                            }
                        }
                    }
                }
                self.add_object(dst, Object::None);
            }
            "isinstance" => {
                for object in arg(self, 0) {
                    for class in arg(self, 1) {
                        match self.instance_of(object, class) {
                            Some(value) => self.add_object(dst, Object::Bool(value)),
                            None => self.undecided(Operator::Is, dst),
                        }
                    }
                }
            }
            "issubclass" => self.undecided(Operator::Is, dst),
            "callable" => {
                for object in arg(self, 0) {
                    let known = match self.get(object) {
                        Object::None | Object::Int(_) | Object::Str(_) | Object::Bool(_) => Some(false),
                        Object::Function(..) | Object::Class(..) | Object::Bound(..) | Object::Builtin(_) | Object::Partial(..) => {
                            Some(true)
                        }
                        _ => None,
                    };
                    match known {
                        Some(value) => self.add_object(dst, Object::Bool(value)),
                        None => self.undecided(Operator::Is, dst),
                    }
                }
            }
            "bool" => {
                for object in arg(self, 0) {
                    for value in [true, false] {
                        if self.may_be(object, value) {
                            self.add_object(dst, Object::Bool(value));
                        }
                    }
                }
            }
            "str" | "int" => {
                for object in arg(self, 0) {
                    let value = match (text.as_str(), self.get(object)) {
                        ("str", Object::Str(_)) | ("int", Object::Int(_)) => self.get(object),
                        ("str", Object::Int(value)) => Object::Str(self.intern(&value.to_string())),
                        ("int", Object::Bool(value)) => Object::Int(i64::from(value)),
                        ("int", Object::Str(value)) => self.text(value).trim().parse().map_or(Object::Unknown(Reason::Opaque), Object::Int),
                        ("str", _) => Object::Unknown(Reason::ComputedString),
                        _ => Object::Unknown(Reason::Opaque),
                    };
                    self.add_object(dst, value);
                }
            }
            "type" => {
                for object in arg(self, 0) {
                    match self.get(object) {
                        Object::Instance(class, _) | Object::Member(class, _) => self.add(dst, class),
                        _ => self.add_object(dst, Object::Unknown(Reason::Opaque)),
                    }
                }
            }
            "__import__" => {
                for name in arg(self, 0) {
                    self.import_one(call, name);
                }
            }
            _ => {}
        }
    }

    /// Whether an object has an attribute, if that can be said.
    fn attribute_known(&mut self, object: ObjectId, name: Sym) -> Option<bool> {
        let open = |engine: &mut Self, class: ObjectId| {
            let bases = engine.external_bases(class);
            bases.into_iter().any(|base| !models::is_builtin(engine.text(base)))
        };
        match self.get(object) {
            Object::None | Object::Int(_) | Object::Bool(_) => Some(false),
            Object::External(outer) | Object::Present(outer) => {
                let full = format!("{}.{}", self.text(outer), self.text(name));
                self.assumptions.known.contains_key(&full).then_some(true)
            }
            Object::Module(module) => {
                let program = self.program;
                let record = program.module(module);
                if record.bound.contains(&name) { Some(true) } else { None }
            }
            Object::Class(..) => {
                if self.defines(object, name) || (self.text(name) == "apply" && self.is_autograd(object)) {
                    Some(true)
                } else if open(self, object) || self.patched.contains(&(object, name)) {
                    None
                } else {
                    Some(false)
                }
            }
            Object::Instance(class, _) => {
                let getter = self.intern("__getattr__");
                if self.defines(class, name) {
                    return Some(true);
                }
                let stored = self.field(object, super::graph::Key::Attr(name));
                if !self.set(stored).is_empty() || open(self, class) || self.defines(class, getter) {
                    return None;
                }
                // A later store would make it known; it is not there now.
                None
            }
            _ => None,
        }
    }

    fn instance_of(&mut self, object: ObjectId, class: ObjectId) -> Option<bool> {
        if let Object::Sequence(..) = self.get(class) {
            let all = self.field(class, super::graph::Key::All);
            let mut undecided = false;
            for class in self.set(all).to_vec() {
                match self.instance_of(object, class) {
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => undecided = true,
                }
            }
            return (!undecided).then_some(false);
        }
        match (self.get(object), self.get(class)) {
            (Object::None, Object::Class(..) | Object::Builtin(_)) => Some(false),
            (Object::Instance(own, _) | Object::Member(own, _), Object::Class(..)) => Some(self.order(own).contains(&class)),
            (Object::Instance(own, _), Object::External(_)) => self.order(own).contains(&class).then_some(true),
            (Object::Str(_), Object::Builtin(name)) => Some(self.text(name) == "str"),
            (Object::Int(_), Object::Builtin(name)) => Some(self.text(name) == "int"),
            (Object::Bool(_), Object::Builtin(name)) => Some(matches!(self.text(name), "bool" | "int")),
            (Object::Dict(..), Object::Builtin(name)) => Some(self.text(name) == "dict"),
            (Object::Str(_) | Object::Int(_) | Object::Bool(_) | Object::Dict(..), Object::Class(..)) => Some(false),
            _ => None,
        }
    }

    // --- strings -------------------------------------------------------------------------------------------------------------------

    pub(super) fn string_method(&mut self, call: u32, name: Sym, owner: ObjectId) {
        if let Object::File(file) = self.get(owner) {
            return self.file_method(call, name, file);
        }
        let Object::Str(own) = self.get(owner) else { return };
        let own = self.text(own).to_owned();
        let method = self.text(name).to_owned();
        let record: CallRecord = self.calls[call as usize].clone();
        let dst = record.dst;
        let texts: Vec<Option<String>> = (0..2)
            .map(|at| {
                let node = self.argument(call, at)?;
                match self.set(node) {
                    [only] => match self.get(*only) {
                        Object::Str(text) => Some(self.text(text).to_owned()),
                        Object::Int(value) => Some(value.to_string()),
                        _ => None,
                    },
                    _ => None,
                }
            })
            .collect();
        let given = record.args.len();
        let result = match (method.as_str(), given, texts[0].as_deref(), texts[1].as_deref()) {
            ("lower" | "casefold", 0, ..) => Some(own.to_lowercase()),
            ("upper", 0, ..) => Some(own.to_uppercase()),
            ("strip", 0, ..) => Some(own.trim().to_owned()),
            ("lstrip", 0, ..) => Some(own.trim_start().to_owned()),
            ("rstrip", 0, ..) => Some(own.trim_end().to_owned()),
            ("replace", 2, Some(from), Some(to)) => Some(own.replace(from, to)),
            ("removeprefix", 1, Some(prefix), _) => Some(own.strip_prefix(prefix).unwrap_or(&own).to_owned()),
            ("removesuffix", 1, Some(suffix), _) => Some(own.strip_suffix(suffix).unwrap_or(&own).to_owned()),
            ("startswith", 1, Some(prefix), _) => return self.add_object(dst, Object::Bool(own.starts_with(prefix))),
            ("endswith", 1, Some(suffix), _) => return self.add_object(dst, Object::Bool(own.ends_with(suffix))),
            ("rpartition" | "partition", 1, Some(separator), _) => {
                let found = if method == "partition" { own.split_once(separator) } else { own.rsplit_once(separator) };
                let parts = match found {
                    Some((head, tail)) => vec![head.to_owned(), separator.to_owned(), tail.to_owned()],
                    None if method == "partition" => vec![own.clone(), String::new(), String::new()],
                    None => vec![String::new(), String::new(), own.clone()],
                };
                return self.strings(&record, &parts);
            }
            ("rsplit" | "split", 1 | 2, Some(separator), limit) if !separator.is_empty() => {
                let limit = if given == 2 { limit.and_then(|limit| limit.parse::<usize>().ok()) } else { Some(usize::MAX - 1) };
                let Some(limit) = limit else { return self.add_object(dst, Object::Unknown(Reason::ComputedString)) };
                let mut parts: Vec<String> = if method == "split" {
                    own.splitn(limit + 1, separator).map(str::to_owned).collect()
                } else {
                    own.rsplitn(limit + 1, separator).map(str::to_owned).collect()
                };
                if method == "rsplit" {
                    parts.reverse();
                }
                return self.strings(&record, &parts);
            }
            ("split", 0, ..) => {
                let parts: Vec<String> = own.split_whitespace().map(str::to_owned).collect();
                return self.strings(&record, &parts);
            }
            ("startswith" | "endswith" | "isdigit" | "isidentifier" | "isalpha", ..) => return self.undecided(Operator::Is, dst),
            _ => None,
        };
        let waiting = texts.iter().take(given).any(Option::is_none)
            && (0..given).filter_map(|at| self.argument(call, at)).any(|node| self.set(node).is_empty());
        match result {
            Some(text) => {
                let sym = self.intern(&text);
                self.add_object(dst, Object::Str(sym));
            }
            None if waiting => {}
            None => self.add_object(dst, Object::Unknown(Reason::ComputedString)),
        }
    }

    /// A sequence of strings as the result of a call. Each receiver has its own: the operation number is told apart by the first string.
    fn strings(&mut self, record: &CallRecord, parts: &[String]) {
        let first = self.intern(&parts.join("\u{0}"));
        let op = record.op | PARTS | (first.0 & 0xFFFF) << 12;
        let object = self.object(Object::Sequence(record.caller, op));
        self.lengths.insert(object, i64::try_from(parts.len()).unwrap_or(0));
        for (at, part) in parts.iter().enumerate() {
            let key = self.object(Object::Int(i64::try_from(at).unwrap_or(0)));
            let item = self.item(object, key);
            let sym = self.intern(part);
            self.add_object(item, Object::Str(sym));
        }
        self.add(record.dst, object);
    }
}
