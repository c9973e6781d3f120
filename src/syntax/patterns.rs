//! `match` statements to operations.

use ruff_python_ast::{self as ast, Pattern};
use ruff_text_size::Ranged;

use super::facts::*;
use super::lower::{Lowering, index, range};

impl Lowering<'_> {
    pub(super) fn match_statement(&mut self, stmt: &ast::StmtMatch) -> bool {
        let at = range(stmt.range());
        let subject = self.expr(&stmt.subject);
        let outer = self.frame().cond;
        let entry = self.frame().env.clone();
        let mut states = Vec::new();
        let mut exhaustive = false;
        for case in &stmt.cases {
            let mut env = entry.clone();
            env.resize(self.frame().env.len(), NO_REG);
            self.frame().env = env;
            exhaustive |= case.guard.is_none() && matches!(&case.pattern, Pattern::MatchAs(pattern) if pattern.pattern.is_none());
            let cond = match &case.pattern {
                Pattern::MatchValue(pattern) => {
                    let right = self.expr(&pattern.value);
                    let dst = self.reg();
                    self.emit(OpKind::Binary { dst, left: subject, op: Operator::Eq, right }, range(pattern.range()));
                    self.condition(CondKind::Test(dst, true), range(pattern.range()))
                }
                other => self.condition(CondKind::Maybe, range(other.range())),
            };
            states.extend(self.arm(cond, |lowering| {
                lowering.pattern(&case.pattern, subject);
                if let Some(guard) = &case.guard {
                    lowering.expr(guard);
                }
                lowering.block(&case.body)
            }));
        }
        if !exhaustive {
            let mut env = entry;
            env.resize(self.frame().env.len(), NO_REG);
            states.push((env, outer));
        }
        self.frame().cond = outer;
        self.join(states, (at.0, at.0))
    }

    fn pattern(&mut self, pattern: &Pattern, subject: Reg) {
        let at = range(pattern.range());
        match pattern {
            Pattern::MatchValue(pattern) => {
                self.expr(&pattern.value);
            }
            Pattern::MatchSequence(sequence) => {
                for (place, part) in sequence.patterns.iter().enumerate() {
                    let dst = self.reg();
                    self.emit(OpKind::Unpack { dst, src: subject, index: index(place), from_end: false }, at);
                    self.pattern(part, dst);
                }
            }
            Pattern::MatchMapping(mapping) => {
                for (key, part) in mapping.keys.iter().zip(&mapping.patterns) {
                    let key = self.expr(key);
                    let dst = self.reg();
                    self.emit(OpKind::LoadItem { dst, obj: subject, key }, at);
                    self.pattern(part, dst);
                }
            }
            Pattern::MatchClass(class) => {
                self.expr(&class.cls);
                for keyword in &class.arguments.keywords {
                    let dst = self.reg();
                    let name = self.intern(&keyword.attr);
                    self.emit(OpKind::LoadAttr { dst, obj: subject, name }, at);
                    self.pattern(&keyword.pattern, dst);
                }
                for part in &class.arguments.patterns {
                    let dst = self.opaque(at);
                    self.pattern(part, dst);
                }
            }
            Pattern::MatchAs(pattern) => {
                if let Some(inner) = &pattern.pattern {
                    self.pattern(inner, subject);
                }
                if let Some(name) = &pattern.name {
                    self.assign_name(name, subject, at);
                }
            }
            Pattern::MatchStar(pattern) => {
                if let Some(name) = &pattern.name {
                    self.assign_name(name, subject, at);
                }
            }
            Pattern::MatchOr(or) => or.patterns.iter().for_each(|part| self.pattern(part, subject)),
            Pattern::MatchSingleton(_) => {}
        }
    }
}
