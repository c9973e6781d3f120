//! RLK405: a variable that selects a route and is not among those that the launcher hands on to its workers.

use super::environment::{List, Purpose, Selector, usable_from};
use super::{Context, rule};
use crate::findings::{Finding, Related};

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    missing(context, findings, "variable-not-handed-on", "default", Purpose::Launch, "this is what workers are given");
}

/// A finding for each variable that selects a route and is missing from a list about the family, at its read.
pub(super) fn missing(
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
    slug: &str,
    message: &'static str,
    purpose: Purpose,
    words: &str,
) {
    let environment = context.environment();
    for (name, selector) in &environment.selectors {
        let lists: Vec<Related> = environment
            .lists_for(purpose)
            .filter(|list| !list.names.contains(name) && concerns(context, purpose, list, selector))
            .map(|list| Related { span: context.first_line(list.place), message: words.to_owned() })
            .collect();
        let Some(first) = lists.first() else { continue };
        let file = context.files.get(first.span.file);
        let place = format!("{}:{}", file.path, file.line_of(first.span.start));
        let arguments = vec![name.clone(), selector.function.clone(), place];
        let mut finding = Finding::new(rule(slug), message, arguments, selector.read.span, name.clone());
        finding.related = lists;
        if selector.place != selector.read.span {
            finding.related.push(Related { span: selector.place, message: "the route is selected here".to_owned() });
        }
        findings.push(finding);
    }
}

/// Whether a list is about the process in which a variable selects a route. The key of a cache is about what its module can use; the others are about
/// the whole run.
fn concerns(context: &Context<'_>, purpose: Purpose, list: &List, selector: &Selector) -> bool {
    let Some(module) = list.module.filter(|_| purpose == Purpose::CacheKey) else { return true };
    usable_from(context, module).iter().any(|module| selector.modules.contains(module))
}
