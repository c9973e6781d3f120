//! What a test module would show if it ran.
//!
//! In: the facts and text of one Python file. Out: [`Statements`] and the module's skip condition. A test that is written shows nothing until a run
//! is recorded, which the caller decides. Refused: a number whose role (rows, N, K) neither a parameter's nor a variable's name says.

use std::collections::BTreeMap;

use super::statements::{Comparison, Shape, Stated, Statements, Tile, device, vendors, words};
use crate::syntax::{Literal, ModuleFacts, Op, OpKind, Passing, Reg, Scope, ScopeId};
use crate::text::TextFile;

/// Most shapes that one parametrised call stands for.
const MAX_EXPANSION: usize = 64;
/// Steps that a register is followed back at most.
const MAX_STEPS: usize = 64;

/// Which operand size a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Rows,
    N,
    K,
}

fn size_of(name: &str) -> Option<Size> {
    match name.to_lowercase().as_str() {
        "m" | "rows" | "m_size" | "num_rows" | "tokens" | "num_tokens" => Some(Size::Rows),
        "n" | "n_size" | "out_features" => Some(Size::N),
        "k" | "k_size" | "in_features" => Some(Size::K),
        _ => None,
    }
}

struct Reader<'a> {
    facts: &'a ModuleFacts,
    file: &'a TextFile,
    /// Values of parametrised names: (function, name) to lists of numbers, one list per case.
    cases: BTreeMap<(ScopeId, String), Vec<Vec<i64>>>,
    out: Statements,
}

/// Reads a test module; the second part is the condition under which the whole module is skipped.
pub(super) fn read(facts: &ModuleFacts, file: &TextFile) -> (Statements, Option<Stated<String>>) {
    let mut reader = Reader { facts, file, cases: BTreeMap::new(), out: Statements::default() };
    reader.platform();
    for scope in &facts.scopes {
        for op in &scope.ops {
            reader.parametrize(scope, op);
        }
    }
    for (at, scope) in facts.scopes.iter().enumerate() {
        let id = ScopeId::try_from(at).unwrap_or(ScopeId::MAX);
        for op in &scope.ops {
            reader.call(id, scope, op);
            reader.comparison(scope, op);
            reader.tile(scope, op);
        }
    }
    let skip = reader.skip();
    (reader.out, skip)
}

impl Reader<'_> {
    /// Vendors and devices by name. `torch.cuda` and the device string `cuda` are what a ROCm build is called by, too.
    fn platform(&mut self) {
        for (at, line) in self.file.text.lines().enumerate() {
            let number = u32::try_from(at + 1).unwrap_or(u32::MAX);
            let plain = line.replace("torch.cuda", "").replace("\"cuda\"", "").replace("'cuda'", "").replace("torch.backends.cuda", "");
            let words = words(&plain);
            self.out.devices.extend(words.iter().filter_map(|word| device(word)).map(|value| Stated { value, line: number }));
            vendors(&words, number, &mut self.out);
        }
    }

    fn line(&self, op: &Op) -> u32 {
        self.file.line_of(op.range.0)
    }

    /// The operation that fills a register, through copies and names of the module.
    fn origin<'s>(&'s self, scope: &'s Scope, reg: Reg) -> Option<(&'s Scope, &'s OpKind)> {
        let (mut scope, mut reg) = (scope, reg);
        for _ in 0..MAX_STEPS {
            let kind = &scope.ops.iter().find(|op| writes(&op.kind) == Some(reg))?.kind;
            match kind {
                OpKind::Move(_, src) | OpKind::Filter(_, src, _) => reg = *src,
                OpKind::LoadGlobal(_, name) => {
                    let module = self.facts.scopes.first()?;
                    let mut stores = module.ops.iter().filter_map(|op| match op.kind {
                        OpKind::StoreGlobal(stored, src) if stored == *name => Some(src),
                        _ => None,
                    });
                    match (stores.next(), stores.next()) {
                        (Some(src), None) => (scope, reg) = (module, src),
                        _ => return Some((scope, kind)),
                    }
                }
                _ => return Some((scope, kind)),
            }
        }
        None
    }

    fn number(&self, scope: &Scope, reg: Reg) -> Option<i64> {
        match self.origin(scope, reg)?.1 {
            OpKind::Literal(_, Literal::Int(value)) => Some(*value),
            _ => None,
        }
    }

    fn text(&self, scope: &Scope, reg: Reg) -> Option<&str> {
        match self.origin(scope, reg)?.1 {
            OpKind::Literal(_, Literal::Str(name)) => Some(self.facts.name(*name)),
            _ => None,
        }
    }

    fn items<'s>(&'s self, scope: &'s Scope, reg: Reg) -> Option<(&'s Scope, Vec<Reg>)> {
        match self.origin(scope, reg)? {
            (scope, OpKind::Sequence { items, .. }) => Some((scope, items.iter().map(|(reg, _)| *reg).collect())),
            _ => None,
        }
    }

    /// Last part of the name that is called.
    fn callee(&self, scope: &Scope, func: Reg) -> Option<String> {
        match self.origin(scope, func)?.1 {
            OpKind::LoadAttr { name, .. } | OpKind::LoadGlobal(_, name) | OpKind::ImportFrom { name, .. } => {
                Some(self.facts.name(*name).to_owned())
            }
            OpKind::Function { scope, .. } | OpKind::Class { scope, .. } => {
                self.facts.scopes.get(*scope as usize).map(|scope| self.facts.name(scope.name).to_owned())
            }
            _ => None,
        }
    }

    /// `parametrize("m,n,k", [(…), …])`, with the function that it decorates.
    fn parametrize(&mut self, scope: &Scope, op: &Op) {
        let OpKind::Call { dst, func, args, .. } = &op.kind else { return };
        if self.callee(scope, *func).as_deref() != Some("parametrize") || args.len() < 2 {
            return;
        }
        let names: Vec<String> = match (self.text(scope, args[0].1), self.items(scope, args[0].1)) {
            (Some(text), _) => text.split(',').map(|name| name.trim().to_owned()).collect(),
            (None, Some((inner, items))) => items.iter().filter_map(|reg| self.text(inner, *reg)).map(str::to_owned).collect(),
            (None, None) => return,
        };
        let Some((inner, values)) = self.items(scope, args[1].1) else { return };
        let rows: Vec<Vec<Option<i64>>> = values
            .iter()
            .map(|reg| match self.items(inner, *reg) {
                Some((deep, items)) => items.iter().map(|reg| self.number(deep, *reg)).collect(),
                None => vec![self.number(inner, *reg)],
            })
            .collect();
        let whole = |row: &Vec<Option<i64>>| row.iter().copied().collect::<Option<Vec<i64>>>();
        let line = self.line(op);
        if let (true, Some(function)) = (names.len() == 1, decorated(scope, *dst)) {
            let lists: Vec<Vec<i64>> = rows.iter().filter_map(whole).collect();
            let sizes = self.unpacked(&names[0]);
            for list in lists.iter().filter(|list| list.len() > 1 && list.len() == sizes.len()) {
                self.add(sizes.iter().copied().zip(list.iter().copied().map(Some)), line);
            }
            self.cases.insert((function, names[0].clone()), lists);
        } else if names.len() > 1 {
            for row in rows.into_iter().filter(|row| row.len() == names.len()) {
                self.add(names.iter().map(|name| size_of(name)).zip(row), line);
            }
        }
    }

    /// Sizes in `m, n, k = NAME`, wherever the module unpacks the name so.
    fn unpacked(&self, name: &str) -> Vec<Option<Size>> {
        for line in self.file.text.lines() {
            if let Some((left, right)) = line.split_once('=')
                && right.trim() == name
                && left.contains(',')
            {
                return left.split(',').map(|part| size_of(part.trim())).collect();
            }
        }
        Vec::new()
    }

    fn add(&mut self, sizes: impl Iterator<Item = (Option<Size>, Option<i64>)>, line: u32) {
        let (mut m, mut n, mut k) = (None, None, None);
        for (size, value) in sizes {
            match size {
                Some(Size::Rows) => m = value,
                Some(Size::N) => n = value,
                Some(Size::K) => k = value,
                None => {}
            }
        }
        if let (Some(n), Some(k)) = (n, k) {
            self.out.shapes.insert(Stated { value: Shape { name: String::new(), m, n, k }, line });
        }
    }

    /// A call of a function of this module whose parameters say what the numbers are.
    fn call(&mut self, id: ScopeId, scope: &Scope, op: &Op) {
        let OpKind::Call { func, args, .. } = &op.kind else { return };
        let Some((_, OpKind::Function { scope: target, .. })) = self.origin(scope, *func) else { return };
        let Some(target) = self.facts.scopes.get(*target as usize) else { return };
        let mut sizes: Vec<(Option<Size>, Vec<i64>)> = Vec::new();
        for (at, (passing, reg)) in args.iter().enumerate() {
            let name = match passing {
                Passing::Position => target.params.get(at).map(|param| self.facts.name(param.name)),
                Passing::Keyword(name) => Some(self.facts.name(*name)),
                Passing::Star | Passing::DoubleStar => return,
            };
            let values = match self.number(scope, *reg) {
                Some(value) => vec![value],
                None => self.cases_of(id, scope, *reg),
            };
            sizes.push((name.and_then(size_of), values));
        }
        let line = self.line(op);
        let of = |size| sizes.iter().find(|(own, _)| *own == Some(size)).map(|(_, values)| values.clone()).unwrap_or_default();
        let (rows, ns, ks) = (of(Size::Rows), of(Size::N), of(Size::K));
        if rows.len().max(1) * ns.len() * ks.len() > MAX_EXPANSION {
            return;
        }
        let rows: Vec<Option<i64>> = if rows.is_empty() { vec![None] } else { rows.into_iter().map(Some).collect() };
        for m in &rows {
            for n in &ns {
                for k in &ks {
                    self.out.shapes.insert(Stated { value: Shape { name: String::new(), m: *m, n: *n, k: *k }, line });
                }
            }
        }
    }

    /// Numbers that a parametrised parameter takes.
    fn cases_of(&self, id: ScopeId, scope: &Scope, reg: Reg) -> Vec<i64> {
        let Some(param) = scope.params.iter().find(|param| param.reg == reg) else { return Vec::new() };
        let lists = self.cases.get(&(id, self.facts.name(param.name).to_owned()));
        lists.into_iter().flatten().filter(|list| list.len() == 1).map(|list| list[0]).collect()
    }

    fn comparison(&mut self, scope: &Scope, op: &Op) {
        let value = match &op.kind {
            OpKind::Call { func, args, .. } => match self.callee(scope, *func).as_deref() {
                Some("equal" | "array_equal") if args.len() >= 2 && args.iter().take(2).all(|(_, reg)| self.is_raw(scope, *reg)) => {
                    Comparison::RawBits
                }
                Some("equal" | "array_equal") => Comparison::ValueEqual,
                Some("allclose" | "isclose" | "assert_close" | "assert_allclose") => Comparison::Tolerance,
                _ => return,
            },
            OpKind::Binary { left, right, .. } if self.is_bytes(scope, *left) && self.is_bytes(scope, *right) => Comparison::RawBits,
            _ => return,
        };
        self.out.comparisons.insert(Stated { value, line: self.line(op) });
    }

    /// `x.view(torch.int16)`: the bits as integers.
    fn is_raw(&self, scope: &Scope, reg: Reg) -> bool {
        let Some((scope, OpKind::Call { func, args, .. })) = self.origin(scope, reg) else { return false };
        let integer = |reg: Reg| {
            matches!(self.origin(scope, reg), Some((_, OpKind::LoadAttr { name, .. }))
                if ["int", "uint"].iter().any(|stem| self.facts.name(*name).strip_prefix(stem).is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()) && !rest.is_empty())))
        };
        match self.callee(scope, *func).as_deref() {
            Some("view") => args.len() == 1 && integer(args[0].1),
            Some("tobytes") => true,
            _ => false,
        }
    }

    fn is_bytes(&self, scope: &Scope, reg: Reg) -> bool {
        matches!(self.origin(scope, reg), Some((scope, OpKind::Call { func, .. })) if self.callee(scope, *func).as_deref() == Some("tobytes"))
    }

    /// `MfmaGemmConfig(64, 128, 4, 2, 2, 8)`, or a tuple of six numbers.
    fn tile(&mut self, scope: &Scope, op: &Op) {
        let regs: Vec<Reg> = match &op.kind {
            OpKind::Call { func, args, .. } if self.callee(scope, *func).is_some_and(|name| name.ends_with("Config")) => {
                args.iter().filter(|(passing, _)| *passing == Passing::Position).map(|(_, reg)| *reg).collect()
            }
            OpKind::Sequence { items, mutable: false, .. } => items.iter().map(|(reg, _)| *reg).collect(),
            _ => return,
        };
        let numbers: Option<Vec<i64>> = regs.iter().map(|reg| self.number(scope, *reg)).collect();
        if let Some(tile) = numbers.and_then(|numbers| Tile::try_from(numbers).ok()) {
            self.out.tiles.insert(Stated { value: tile, line: self.line(op) });
        }
    }

    /// `pytestmark = pytest.mark.skipif(…)`, or a call of `skip` in the module's own body.
    fn skip(&self) -> Option<Stated<String>> {
        let module = self.facts.scopes.first()?;
        let marked: Vec<Reg> = module
            .ops
            .iter()
            .filter_map(|op| match op.kind {
                OpKind::StoreGlobal(name, src) if self.facts.name(name) == "pytestmark" => Some(src),
                _ => None,
            })
            .collect();
        let marked =
            |dst: Reg| marked.iter().any(|mark| *mark == dst || self.items(module, *mark).is_some_and(|(_, items)| items.contains(&dst)));
        let op = module.ops.iter().find(|op| match &op.kind {
            OpKind::Call { dst, func, .. } => match self.callee(module, *func).as_deref() {
                Some("skipif") => marked(*dst),
                Some("skip" | "importorskip") => true,
                _ => false,
            },
            _ => false,
        })?;
        let text = self.file.text.get(op.range.0 as usize..op.range.1 as usize).unwrap_or("");
        Some(Stated { value: text.split_whitespace().collect::<Vec<_>>().join(" "), line: self.line(op) })
    }
}

/// The function that a decorator, which `dst` holds, is applied to.
fn decorated(scope: &Scope, dst: Reg) -> Option<ScopeId> {
    let mut at = scope.ops.iter().find_map(|op| match &op.kind {
        OpKind::Call { func, args, decorator: true, .. } if *func == dst => args.first().map(|(_, reg)| *reg),
        _ => None,
    })?;
    for _ in 0..MAX_STEPS {
        match &scope.ops.iter().find(|op| writes(&op.kind) == Some(at))?.kind {
            OpKind::Function { scope, .. } => return Some(*scope),
            OpKind::Call { args, decorator: true, .. } => at = args.first()?.1,
            OpKind::Move(_, src) => at = *src,
            _ => return None,
        }
    }
    None
}

/// The register that an operation fills.
const fn writes(kind: &OpKind) -> Option<Reg> {
    match kind {
        OpKind::Literal(dst, _)
        | OpKind::LoadGlobal(dst, _)
        | OpKind::LoadFree(dst, _, _)
        | OpKind::Move(dst, _)
        | OpKind::Phi(dst, _)
        | OpKind::Filter(dst, _, _)
        | OpKind::Import { dst, .. }
        | OpKind::ImportFrom { dst, .. }
        | OpKind::LoadAttr { dst, .. }
        | OpKind::LoadItem { dst, .. }
        | OpKind::LoadSlice { dst, .. }
        | OpKind::Sequence { dst, .. }
        | OpKind::Dict { dst, .. }
        | OpKind::Unpack { dst, .. }
        | OpKind::UnpackRest { dst, .. }
        | OpKind::Function { dst, .. }
        | OpKind::Class { dst, .. }
        | OpKind::Call { dst, .. }
        | OpKind::Iterate { dst, .. }
        | OpKind::Enter { dst, .. }
        | OpKind::Await { dst, .. }
        | OpKind::Yield { dst, .. }
        | OpKind::YieldFrom { dst, .. }
        | OpKind::Not { dst, .. }
        | OpKind::Binary { dst, .. }
        | OpKind::Format { dst, .. } => Some(*dst),
        _ => None,
    }
}
