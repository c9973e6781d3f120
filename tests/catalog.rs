//! The rules' metadata: what SARIF viewers and GitHub demand, and what keeps ids stable.

use std::collections::BTreeSet;

use rlk_lint::catalog::{Level, RULES, RuleMeta};

/// Characters that GitHub takes in a description.
const LONGEST_DESCRIPTION: usize = 1024;
/// Tags that GitHub shows.
const MOST_TAGS: usize = 10;

/// Runs a check on every rule and fails with all complaints at once.
fn for_each_rule(check: impl Fn(&RuleMeta, &mut dyn FnMut(String))) {
    assert!(!RULES.is_empty());
    let mut complaints = Vec::new();
    for rule in RULES.iter() {
        check(rule, &mut |text| complaints.push(format!("{} {}: {text}", rule.id, rule.slug)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn ids_are_unique_sorted_and_of_one_form() {
    for_each_rule(|rule, complain| {
        let digits = rule.id.strip_prefix("RLK").unwrap_or("");
        if digits.len() != 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            complain("the id is not RLK and three digits".into());
        }
    });
    let ids: Vec<&str> = RULES.iter().map(|rule| rule.id.as_str()).collect();
    assert!(ids.is_sorted_by(|a, b| a < b), "not in order, or not unique: {ids:?}");
}

#[test]
fn names_are_in_pascal_case_and_unique() {
    let mut seen = BTreeSet::new();
    for rule in RULES.iter() {
        assert!(seen.insert(rule.name.to_ascii_lowercase()), "{} is not unique", rule.name);
        assert!(seen.insert(rule.slug.to_owned()), "{} is not unique", rule.slug);
    }
    for_each_rule(|rule, complain| {
        let pascal = rule.name.starts_with(|c: char| c.is_ascii_uppercase())
            && rule.name.chars().all(|c| c.is_ascii_alphanumeric())
            && rule.name.chars().any(|c| c.is_ascii_lowercase());
        if !pascal || rule.name.eq_ignore_ascii_case(&rule.id) {
            complain(format!("the name is {:?}", rule.name));
        }
        if rule.name.len() > 255 {
            complain("the name is too long".into());
        }
    });
}

#[test]
fn messages_have_placeholders_in_single_quotes_and_a_final_period() {
    for_each_rule(|rule, complain| {
        if rule.messages.is_empty() {
            complain("there is no message".into());
        }
        for (key, text) in &rule.messages {
            if !text.ends_with('.') {
                complain(format!("{key}: no final period"));
            }
            if text.contains("](") {
                complain(format!("{key}: links are made from second places, not written"));
            }
            let mut numbers = BTreeSet::new();
            for (at, _) in text.match_indices('{') {
                let inside = text[at + 1..].split('}').next().unwrap_or("");
                let quoted = text[..at].ends_with('\'') && text[at + 1 + inside.len()..].starts_with("}'");
                match inside.parse::<usize>() {
                    Ok(number) if quoted => {
                        numbers.insert(number);
                    }
                    _ => complain(format!("{key}: {{{inside}}} is no placeholder in single quotes")),
                }
            }
            if text.matches('{').count() != text.matches('}').count() {
                complain(format!("{key}: a brace is left over"));
            }
            if numbers.is_empty() {
                complain(format!("{key}: no placeholder, so that every finding says the same"));
            }
            if !numbers.iter().copied().eq(0..numbers.len()) {
                complain(format!("{key}: placeholders {numbers:?} do not count from 0"));
            }
        }
    });
}

#[test]
fn descriptions_are_plain_sentences_that_fit() {
    for_each_rule(|rule, complain| {
        for (what, text) in [("summary", &rule.summary), ("description", &rule.description)] {
            if text.chars().count() > LONGEST_DESCRIPTION {
                complain(format!("the {what} is too long"));
            }
            if !text.ends_with('.') || text.contains(['`', '\n', '*', '<']) || text.starts_with(char::is_lowercase) {
                complain(format!("the {what} is no plain sentence: {text:?}"));
            }
        }
        if rule.summary == rule.description {
            complain("the description repeats the summary".into());
        }
    });
}

#[test]
fn tags_are_few_and_plain() {
    for_each_rule(|rule, complain| {
        let unique: BTreeSet<&String> = rule.tags.iter().collect();
        if rule.tags.is_empty() || rule.tags.len() > MOST_TAGS || unique.len() != rule.tags.len() {
            complain(format!("the tags are {:?}", rule.tags));
        }
        if rule.tags.iter().any(|tag| tag.is_empty() || !tag.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')) {
            complain(format!("a tag is not in lower case: {:?}", rule.tags));
        }
    });
}

#[test]
fn every_rule_says_since_when_and_is_on_unless_noted() {
    for_each_rule(|rule, complain| {
        let parts: Vec<&str> = rule.since.split('.').collect();
        if parts.len() != 3 || !parts.iter().all(|part| part.parse::<u32>().is_ok()) {
            complain(format!("since is {:?}", rule.since));
        }
        if rule.level == Level::Off {
            complain("a rule that is off by default is seen by nobody".into());
        }
    });
}
