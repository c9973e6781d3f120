//! Names of modules: what one statement binds, and nothing assigns again.

use std::rc::Rc;
use std::sync::Arc;

use super::value::{ClassValue, Closure, FieldDef, Instance, Method, Scope, Stop, Value};
use super::{Evaluator, Frame};
use crate::names::ModuleId;
use crate::profile::Known;
use crate::syntax::Range;
use crate::syntax::tree::{Argument, Class, Expr, ExprKind, Function, Stmt, StmtKind, Tree};
use crate::text::Span;

/// Built-in names that are modelled or may be named.
const BUILTINS: &[&str] = &[
    "abs",
    "all",
    "any",
    "bool",
    "dict",
    "divmod",
    "enumerate",
    "float",
    "frozenset",
    "getattr",
    "hasattr",
    "int",
    "isinstance",
    "len",
    "list",
    "max",
    "min",
    "object",
    "open",
    "print",
    "property",
    "range",
    "reversed",
    "round",
    "set",
    "setattr",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tuple",
    "type",
    "vars",
    "zip",
];

/// Exceptions that an import may raise.
const IMPORT_ERRORS: &[&str] = &["ImportError", "ModuleNotFoundError"];

/// Decorators that leave what a function computes as it is.
const TRANSPARENT: &[&str] = &[
    "functools.cache",
    "functools.lru_cache",
    "torch.inference_mode",
    "torch.no_grad",
    "torch.compiler.disable",
    "torch.compiler.assume_constant_result",
];

/// Decorators that make a kernel.
const KERNEL: &[&str] = &["triton.jit", "triton.autotune", "triton.heuristics"];

/// A statement of a module that binds a name.
struct Binding<'t> {
    stmt: &'t Stmt,
}

impl Evaluator<'_> {
    pub(super) fn tree(&mut self, module: ModuleId) -> Rc<Tree> {
        if let Some(tree) = self.trees.get(&module) {
            return tree.clone();
        }
        let file = self.facts.program.module(module).file;
        let text: &str = &self.facts.files.get(file).text;
        let tree = Rc::new(crate::syntax::trees(&[text]).pop().unwrap_or_default());
        self.trees.insert(module, tree.clone());
        tree
    }

    /// Places of all statements of a module that bind a name, whatever they depend on.
    pub(super) fn bindings(&mut self, module: ModuleId, name: &str) -> Vec<Range> {
        let tree = self.tree(module);
        let mut out = Vec::new();
        let mut open: Vec<&[Stmt]> = vec![&tree.body];
        while let Some(body) = open.pop() {
            for stmt in body {
                if binds(stmt, name) {
                    out.push(stmt.range);
                }
                open.extend(blocks(stmt));
            }
        }
        out.sort_unstable();
        out
    }

    /// The value of a name of a module, read at `at`.
    pub(super) fn module_name(&mut self, module: ModuleId, name: &str, at: Span) -> Result<Value, Stop> {
        let key = (module, name.to_owned());
        if let Some(known) = self.globals.get(&key) {
            return known.clone();
        }
        if self.open.contains(&key) {
            return Err(self.stop(format!("`{name}`, which is defined by itself"), at));
        }
        self.open.push(key.clone());
        // A module's names do not depend on the size, nor on how the function that reads them is run.
        let lenient = std::mem::replace(&mut self.lenient, false);
        let value = self.find(module, name, at);
        self.lenient = lenient;
        self.open.pop();
        self.globals.insert(key, value.clone());
        value
    }

    fn find(&mut self, module: ModuleId, name: &str, at: Span) -> Result<Value, Stop> {
        if let Some(place) = self.facts.replaced.get(&(module, name.to_owned())) {
            return Err(self.stop(format!("`{name}`, which other code replaces"), *place));
        }
        let tree = self.tree(module);
        if let Some(place) = assigned_by_function(&tree, name) {
            let place = self.span(module, place);
            return Err(self.stop(format!("the global `{name}`, which a function assigns"), place));
        }
        let mut found: Vec<Binding<'_>> = Vec::new();
        self.reached(module, &tree.body, name, &mut found)?;
        match found.as_slice() {
            [] => {
                if BUILTINS.contains(&name) {
                    return Ok(Value::External(format!("builtins.{name}").into()));
                }
                if name == "__name__" {
                    let program = self.facts.program;
                    return Ok(Value::text(program.strings.text(program.module(module).name)));
                }
                // A package's submodule.
                let dotted = format!("{}.{name}", self.facts.program.strings.text(self.facts.program.module(module).name));
                if self.facts.program.module(module).is_package
                    && let Some(found) = self.module_called(module, &dotted)
                {
                    return Ok(Value::Module(found));
                }
                Err(self.stop(format!("the name `{name}`, which nothing that is followed defines"), at))
            }
            [only] => self.bound(module, only.stmt, name),
            [.., last] => {
                let place = self.span(module, last.stmt.range);
                Err(self.stop(format!("the global `{name}`, which is assigned more than once"), place))
            }
        }
    }

    /// Statements that bind a name in the branches that are taken.
    fn reached<'t>(&mut self, module: ModuleId, body: &'t [Stmt], name: &str, found: &mut Vec<Binding<'t>>) -> Result<(), Stop> {
        for stmt in body {
            if binds(stmt, name) {
                found.push(Binding { stmt });
            }
            let touches = |body: &[Stmt]| {
                let mut open = vec![body];
                while let Some(body) = open.pop() {
                    for stmt in body {
                        if binds(stmt, name) {
                            return true;
                        }
                        open.extend(blocks(stmt));
                    }
                }
                false
            };
            match &stmt.kind {
                StmtKind::If(branches) if branches.iter().any(|(_, body)| touches(body)) => {
                    let frame = Frame { module, scope: None, locals: &[] };
                    for (test, body) in branches {
                        let taken = match test {
                            Some(test) => {
                                let value = self.expr(&frame, test)?;
                                let at = self.span(module, test.range);
                                self.truth(&value, at)?
                            }
                            None => true,
                        };
                        if taken {
                            self.reached(module, body, name, found)?;
                            break;
                        }
                    }
                }
                StmtKind::Try { body, handlers, orelse, finalbody } if blocks(stmt).iter().any(|body| touches(body)) => {
                    let imports = handlers
                        .iter()
                        .all(|(types, _)| !types.is_empty() && types.iter().all(|kind| IMPORT_ERRORS.contains(&kind.as_str())));
                    let at = self.span(module, stmt.range);
                    if !imports {
                        return Err(self.stop(format!("the global `{name}`, which depends on an exception"), at));
                    }
                    self.assumed.insert(Span::new(at.file, at.start, at.start + 3), "the imports of this `try` succeed".to_owned());
                    self.reached(module, body, name, found)?;
                    self.reached(module, orelse, name, found)?;
                    self.reached(module, finalbody, name, found)?;
                }
                StmtKind::With { body, .. } => self.reached(module, body, name, found)?,
                StmtKind::For { .. } | StmtKind::While { .. } if blocks(stmt).iter().any(|body| touches(body)) => {
                    let at = self.span(module, stmt.range);
                    return Err(self.stop(format!("the global `{name}`, which a loop assigns"), at));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The value that one statement gives a name.
    fn bound(&mut self, module: ModuleId, stmt: &Stmt, name: &str) -> Result<Value, Stop> {
        let frame = Frame { module, scope: None, locals: &[] };
        let at = self.span(module, stmt.range);
        match &stmt.kind {
            StmtKind::Assign { targets, value } => {
                let value = self.expr(&frame, value)?;
                for target in targets {
                    if let Some(part) = self.part(target, &value, name, at)? {
                        return Ok(named(part, name));
                    }
                }
                Err(self.stop(format!("the global `{name}`"), at))
            }
            StmtKind::Annotated { value: Some(value), .. } => Ok(named(self.expr(&frame, value)?, name)),
            StmtKind::Function(function) => self.define(module, function, None),
            StmtKind::Class(class) => self.class(module, class),
            StmtKind::Import { module: dotted, alias } => {
                let wanted = if alias.is_some() { dotted.as_str() } else { dotted.split('.').next().unwrap_or("") };
                Ok(self.imported(module, wanted))
            }
            StmtKind::ImportFrom { module: from, level, name: member, .. } => {
                let Some(base) = self.facts.program.absolute(module, from, *level) else {
                    return Err(self.stop("an import that leads out of its package", at));
                };
                let dotted = if base.is_empty() { member.clone() } else { format!("{base}.{member}") };
                match self.module_called(module, &base) {
                    Some(home) => {
                        let own = !self.bindings(home, member).is_empty();
                        match self.module_called(module, &dotted) {
                            Some(submodule) if !own => Ok(Value::Module(submodule)),
                            _ => self.module_name(home, member, at),
                        }
                    }
                    None => Ok(self.imported(module, &dotted)),
                }
            }
            StmtKind::Augmented { .. } => Err(self.stop(format!("the global `{name}`, which is assigned more than once"), at)),
            _ => Err(self.stop(format!("the global `{name}`, bound by a statement that is not followed"), at)),
        }
    }

    /// The part of an assigned value that a target gives to a name.
    fn part(&mut self, target: &Expr, value: &Value, name: &str, at: Span) -> Result<Option<Value>, Stop> {
        match &target.kind {
            ExprKind::Name(own) => Ok((own == name).then(|| value.clone())),
            ExprKind::Tuple(targets) | ExprKind::List(targets) => {
                let items = self.items(value, at)?;
                if items.len() != targets.len() {
                    return Err(self.stop("an assignment of another number of values", at));
                }
                for (target, item) in targets.iter().zip(items.iter()) {
                    if let Some(found) = self.part(target, item, name, at)? {
                        return Ok(Some(found));
                    }
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn module_called(&self, near: ModuleId, dotted: &str) -> Option<ModuleId> {
        let program = self.facts.program;
        program.find(program.strings.find(dotted)?, program.module(near).source)
    }

    fn imported(&self, near: ModuleId, dotted: &str) -> Value {
        self.module_called(near, dotted).map_or_else(|| self.external(dotted), Value::Module)
    }

    /// A name outside the sources, as the profile knows it.
    pub(super) fn external(&self, dotted: &str) -> Value {
        match self.facts.known.get(dotted) {
            Some(Known::None) => Value::None,
            Some(Known::Bool(value)) => Value::Bool(*value),
            Some(Known::Int(value)) => Value::int(i128::from(*value)),
            Some(Known::Str(text)) => Value::text(text),
            Some(Known::Present) | None => Value::External(dtype_name(dotted).into()),
        }
    }

    /// Dotted name of a decorator.
    fn decorator(&mut self, frame: &Frame<'_>, decorator: &Expr) -> Result<Option<String>, Stop> {
        let expr = match &decorator.kind {
            ExprKind::Call { func, .. } => func,
            _ => decorator,
        };
        Ok(match self.expr(frame, expr)? {
            Value::External(name) => Some(name.to_string()),
            _ => None,
        })
    }

    /// A function object.
    pub(super) fn define(&mut self, module: ModuleId, function: &Arc<Function>, scope: Option<&Frame<'_>>) -> Result<Value, Stop> {
        let outside = Frame { module, scope: None, locals: &[] };
        let frame = scope.unwrap_or(&outside);
        let mut kernel = false;
        for decorator in &function.decorators {
            let at = self.span(module, decorator.range);
            match self.decorator(frame, decorator)?.as_deref() {
                Some(name) if KERNEL.contains(&name) => kernel = true,
                Some(name) if TRANSPARENT.contains(&name) => {}
                _ => return Err(self.stop(format!("the decorator `{}`", self.text(at)), at)),
            }
        }
        let mut defaults = Vec::with_capacity(function.params.len());
        for param in &function.params {
            // Kernels have defaults of device types, which do not matter here.
            defaults.push(match &param.default {
                Some(default) if !kernel => Some(self.expr(frame, default)?),
                _ => None,
            });
        }
        let outer = frame.scope.as_ref().map(Rc::downgrade);
        Ok(Value::Function(Rc::new(Closure { function: function.clone(), module, outer, defaults, kernel })))
    }

    /// A class object: a data class, a named tuple, or a bag of constants.
    pub(super) fn class(&mut self, module: ModuleId, class: &Arc<Class>) -> Result<Value, Stop> {
        let frame = Frame { module, scope: None, locals: &[] };
        let at = self.span(module, class.name_range);
        let mut holds_fields = false;
        for decorator in &class.decorators {
            let place = self.span(module, decorator.range);
            match self.decorator(&frame, decorator)?.as_deref() {
                Some("dataclasses.dataclass") => holds_fields = true,
                _ => return Err(self.stop(format!("the decorator `{}`", self.text(place)), place)),
            }
        }
        let mut value = ClassValue { class: class.clone(), module, fields: Vec::new(), methods: Vec::new(), constants: Vec::new() };
        if class.keywords {
            return Err(self.stop(format!("the class `{}`, which has a keyword", class.name), at));
        }
        for base in &class.bases {
            match self.expr(&frame, base)? {
                Value::External(name) if &*name == "typing.NamedTuple" => holds_fields = true,
                Value::External(name) if &*name == "builtins.object" => {}
                Value::Class(base) if holds_fields => {
                    value
                        .fields
                        .extend(base.fields.iter().map(|field| FieldDef { name: field.name.clone(), default: field.default.clone() }));
                    value.methods.extend(base.methods.iter().cloned());
                    value.constants.extend(base.constants.iter().cloned());
                }
                _ => {
                    let place = self.span(module, base.range);
                    return Err(self.stop(format!("the class `{}` with the base `{}`", class.name, self.text(place)), place));
                }
            }
        }
        for stmt in &class.body {
            let place = self.span(module, stmt.range);
            match &stmt.kind {
                StmtKind::Annotated { target, annotation, value: default } if holds_fields && !annotation.ends_with("ClassVar") => {
                    let ExprKind::Name(name) = &target.kind else { continue };
                    let default = default.as_ref().map(|default| self.default(&frame, default)).transpose()?.flatten();
                    match value.fields.iter_mut().find(|field| field.name == *name) {
                        Some(field) => field.default = default,
                        None => value.fields.push(FieldDef { name: name.clone(), default }),
                    }
                }
                StmtKind::Annotated { target, value: Some(constant), .. } => {
                    if let ExprKind::Name(name) = &target.kind {
                        let constant = self.expr(&frame, constant)?;
                        value.constants.push((name.clone(), named(constant, &format!("{}.{name}", class.name))));
                    }
                }
                StmtKind::Assign { targets, value: constant } => {
                    let constant = self.expr(&frame, constant)?;
                    for target in targets {
                        if let ExprKind::Name(name) = &target.kind {
                            value.constants.push((name.clone(), named(constant.clone(), &format!("{}.{name}", class.name))));
                        }
                    }
                }
                StmtKind::Function(function) => {
                    if matches!(function.name.as_str(), "__init__" | "__new__" | "__post_init__" | "__eq__" | "__bool__" | "__getattr__") {
                        return Err(self.stop(format!("the class `{}`, which defines `{}`", class.name, function.name), place));
                    }
                    let (method, how) = self.method(&frame, function)?;
                    value.methods.retain(|(name, ..)| *name != function.name);
                    value.methods.push((function.name.clone(), method, how));
                }
                StmtKind::Expr(_) | StmtKind::Pass | StmtKind::Annotated { .. } => {}
                _ => return Err(self.stop(format!("the class `{}`, whose body holds more than definitions", class.name), place)),
            }
        }
        if !holds_fields {
            value.fields.clear();
        }
        Ok(Value::Class(Rc::new(value)))
    }

    fn method(&mut self, frame: &Frame<'_>, function: &Arc<Function>) -> Result<(Rc<Closure>, Method), Stop> {
        let mut how = Method::Plain;
        for decorator in &function.decorators {
            let at = self.span(frame.module, decorator.range);
            match self.decorator(frame, decorator)?.as_deref() {
                Some("builtins.property" | "functools.cached_property") => how = Method::Property,
                Some("builtins.staticmethod") => how = Method::Static,
                Some(name) if TRANSPARENT.contains(&name) => {}
                _ => return Err(self.stop(format!("the decorator `{}`", self.text(at)), at)),
            }
        }
        let mut defaults = Vec::new();
        for param in &function.params {
            defaults.push(param.default.as_ref().map(|default| self.expr(frame, default)).transpose()?);
        }
        Ok((Rc::new(Closure { function: function.clone(), module: frame.module, outer: None, defaults, kernel: false }), how))
    }

    /// Default of a field, seen through `field(...)`.
    fn default(&mut self, frame: &Frame<'_>, default: &Expr) -> Result<Option<Value>, Stop> {
        if let ExprKind::Call { func, args } = &default.kind
            && let Value::External(name) = self.expr(frame, func)?
            && &*name == "dataclasses.field"
        {
            for (passing, value) in args {
                match passing {
                    Argument::Keyword(name) if name == "default" => return Ok(Some(self.expr(frame, value)?)),
                    Argument::Keyword(name) if name == "default_factory" || name == "init" => {
                        let at = self.span(frame.module, value.range);
                        return Err(self.stop(format!("a field with `{name}`"), at));
                    }
                    _ => {}
                }
            }
            return Ok(None);
        }
        Ok(Some(self.expr(frame, default)?))
    }

    /// The scope of a call of a closure.
    pub(super) fn scope_for(&self, closure: &Closure, at: Span) -> Result<Rc<Scope>, Stop> {
        let outer = match &closure.outer {
            Some(outer) => Some(outer.upgrade().ok_or_else(|| self.stop("a function whose surrounding call has ended", at))?),
            None => None,
        };
        Ok(Rc::new(Scope { outer, ..Scope::default() }))
    }
}

/// Short and long names of a tensor's element type are one.
fn dtype_name(dotted: &str) -> &str {
    match dotted {
        "torch.float" => "torch.float32",
        "torch.double" => "torch.float64",
        "torch.half" => "torch.float16",
        "torch.int" => "torch.int32",
        "torch.long" => "torch.int64",
        "torch.short" => "torch.int16",
        other => other,
    }
}

/// Gives instances that a module holds the name by which it holds them.
fn named(value: Value, name: &str) -> Value {
    match value {
        Value::Instance(instance) if instance.name.is_none() => Value::Instance(Rc::new(Instance {
            class: instance.class.clone(),
            fields: instance.fields.clone(),
            made: instance.made,
            name: Some(name.to_owned()),
        })),
        Value::Sequence(items) => {
            let items = items.iter().enumerate().map(|(at, item)| named(item.clone(), &format!("{name}[{at}]")));
            Value::Sequence(Rc::new(items.collect()))
        }
        Value::Dict(items) => {
            let items = items.iter().map(|(key, item)| (key.clone(), named(item.clone(), &format!("{name}[{}]", key.shown()))));
            Value::Dict(Rc::new(items.collect()))
        }
        other => other,
    }
}

/// Whether a statement binds a name of the scope it stands in.
fn binds(stmt: &Stmt, name: &str) -> bool {
    match &stmt.kind {
        StmtKind::Assign { targets, .. } => targets.iter().any(|target| target_binds(target, name)),
        StmtKind::Augmented { target, .. } | StmtKind::For { target, .. } => target_binds(target, name),
        StmtKind::Annotated { target, value, .. } => value.is_some() && target_binds(target, name),
        StmtKind::Function(function) => function.name == name,
        StmtKind::Class(class) => class.name == name,
        StmtKind::Import { module, alias } => alias.as_deref().unwrap_or_else(|| module.split('.').next().unwrap_or("")) == name,
        StmtKind::ImportFrom { name: own, alias, .. } => alias.as_ref().unwrap_or(own) == name,
        StmtKind::With { items, .. } => items.iter().any(|(_, target)| target.as_ref().is_some_and(|target| target_binds(target, name))),
        _ => false,
    }
}

fn target_binds(target: &Expr, name: &str) -> bool {
    match &target.kind {
        ExprKind::Name(own) => own == name,
        ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().any(|item| target_binds(item, name)),
        ExprKind::Starred(inner) => target_binds(inner, name),
        _ => false,
    }
}

/// Blocks of a statement that run in the same scope.
pub(super) fn blocks(stmt: &Stmt) -> Vec<&[Stmt]> {
    match &stmt.kind {
        StmtKind::If(branches) => branches.iter().map(|(_, body)| body.as_slice()).collect(),
        StmtKind::For { body, orelse, .. } | StmtKind::While { body, orelse, .. } => vec![body, orelse],
        StmtKind::Try { body, handlers, orelse, finalbody } => {
            let handlers = handlers.iter().map(|(_, body)| body.as_slice());
            handlers.chain([body.as_slice(), orelse.as_slice(), finalbody.as_slice()]).collect()
        }
        StmtKind::With { body, .. } => vec![body],
        _ => Vec::new(),
    }
}

/// Where a function of a module assigns one of its names.
fn assigned_by_function(tree: &Tree, name: &str) -> Option<Range> {
    let mut open: Vec<(&[Stmt], bool)> = vec![(&tree.body, false)];
    while let Some((body, inside)) = open.pop() {
        for stmt in body {
            match &stmt.kind {
                StmtKind::Global(names) if inside && names.iter().any(|own| own == name) => return Some(stmt.range),
                StmtKind::Function(function) => open.push((&function.body, true)),
                StmtKind::Class(class) => open.push((&class.body, true)),
                _ => open.extend(blocks(stmt).into_iter().map(|body| (body, inside))),
            }
        }
    }
    None
}
