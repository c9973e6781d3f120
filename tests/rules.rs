//! The pages of the rules.

use rlk_lint::catalog::RULES;

use crate::page::{self, Role};

/// Sections of every page, in this order.
const SECTIONS: [&str; 6] = ["What it does", "Why it matters", "Flagged", "Clean", "What it cannot see", "How to fix"];

#[test]
fn every_page_has_its_title_its_sections_and_examples_of_both_kinds() {
    let mut complaints = Vec::new();
    for rule in RULES.iter() {
        let page = match page::parse(rule.page) {
            Ok(page) => page,
            Err(error) => {
                complaints.push(format!("rules/{}/README.md: {error}", rule.slug));
                continue;
            }
        };
        let mut complain = |text: String| complaints.push(format!("rules/{}/README.md: {text}", rule.slug));
        if page.title != format!("{} {}", rule.id, rule.slug) {
            complain(format!("the title is {:?}", page.title));
        }
        if page.sections != SECTIONS {
            complain(format!("the sections are {:?}", page.sections));
        }
        for role in [Role::Flagged, Role::Clean] {
            if !page.examples.iter().any(|example| example.role == role) {
                complain(format!("there is no {role:?} example"));
            }
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}
