//! RLK406: a variable that selects a route and is not part of the key under which compiled graphs are cached.

use super::Context;
use super::environment::Purpose;
use super::variable_not_handed_on::missing;
use crate::findings::Finding;

pub(super) fn check(context: &Context<'_>, findings: &mut Vec<Finding>) {
    missing(context, findings, "variable-not-in-cache-key", "default", Purpose::CacheKey, "the key is made of these");
}
