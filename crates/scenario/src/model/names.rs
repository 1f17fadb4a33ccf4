//! Tables whose keys are names.

/// Whether the keys of the table at this path are names that the user chose: no rule for a key of the format applies to
/// them, even if a link is called `delay`.
pub(crate) fn holds_names(path: &str) -> bool {
    let keys: Vec<&str> = path.split('.').collect();
    let keys = match keys.as_slice() {
        [event, "set", set @ ..] if event.starts_with("event[") => set,
        keys => keys,
    };
    match keys {
        ["links" | "flows" | "gateways" | "repair"] | ["flows", _, "chain", "legs"] => true,
        // The options of a user's own control, and what is inside of them.
        ["flows", _, "cc", "options", ..] | ["flows", _, "chain", "legs", _, "cc", "options", ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::holds_names;

    #[test]
    fn names_are_the_keys_of_these_tables_only() {
        for path in [
            "links",
            "flows",
            "gateways",
            "repair",
            "flows.a.chain.legs",
            "flows.a.cc.options",
            "flows.a.cc.options.deep",
            "flows.a.chain.legs.g.cc.options",
            "event[3].set.links",
        ] {
            assert!(holds_names(path), "{path}");
        }
        for path in
            ["", "links.links", "flows.chain", "flows.a.chain.legs.g", "flows.a.cc", "event", "event[3].set"]
        {
            assert!(!holds_names(path), "{path}");
        }
    }
}
