//! The control that a command puts to the test, as its argument names it.

use crate::error::LabError;
use sha2::{Digest as _, Sha256};
use skyhaul_cc::{Config, NAMES};
use skyhaul_scenario::did_you_mean;
use skyhaul_study::model::Raw;
use std::fmt::Write as _;

/// Reads a name, or an inline table with `name` and options, as the value of the key `cc` of a flow. Options are not checked.
///
/// # Errors
/// If it is neither, or no control has the name.
pub(crate) fn read(text: &str) -> Result<Raw, LabError> {
    let text = text.trim();
    if text.is_empty() {
        let message = "it is empty: write a name, or a table such as { name = \"newreno\" }".to_owned();
        return Err(LabError::Control { control: "control".to_owned(), message });
    }
    let refused = |message: String| LabError::Control { control: text.to_owned(), message };
    let value: Raw = if text.starts_with('{') {
        let table: toml::Table = toml::from_str(&format!("cc = {text}"))
            .map_err(|e| refused(format!("not an inline table: {}", e.message().replace('\n', " "))))?;
        table.into_iter().next().map(|(_, v)| v).ok_or_else(|| refused("not an inline table".to_owned()))?
    } else {
        Raw::String(text.to_owned())
    };
    let name = value.get("name").or(Some(&value)).and_then(Raw::as_str);
    let name =
        name.ok_or_else(|| refused("the table has no `name`, such as { name = \"newreno\" }".to_owned()))?;
    if Config::by_name(name).is_none() && name != "user" {
        let hint = did_you_mean(name, NAMES.iter().copied());
        return Err(refused(format!("there is no such control{hint} (known: {})", NAMES.join(", "))));
    }
    Ok(value)
}

/// Longest name of a control in the name of a folder.
const LONGEST: usize = 60;

/// What is before a control of one's own whose name could be taken for that of another.
const OWN: &str = "user-";

/// Whether a name is a known one, or that with options behind it.
fn begins_with(name: &str, known: &str) -> bool {
    name.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// A control as part of a folder's name: the name of the control, then its options. Equal tables give equal slugs. Where
/// characters are replaced or cut, the first digits of a hash tell different controls apart.
pub(crate) fn slug(text: &str) -> String {
    let value = read(text).unwrap_or_else(|_| Raw::String(text.trim().to_owned()));
    let mut words = Vec::new();
    // A control of one's own is known by its own name; where a slug of another control may begin so, `user-` is before it.
    let (provided, named) = (value.get("control"), value.get("name").or(Some(&value)));
    let name = provided.or(named).and_then(Raw::as_str).unwrap_or("control");
    let own = name.strip_prefix("user:").or(provided.is_some().then_some(name));
    match own {
        Some(own) if own.starts_with(OWN) || NAMES.iter().any(|known| begins_with(own, known)) => {
            words.push(format!("{OWN}{own}"));
        }
        own => words.push(own.unwrap_or(name).to_owned()),
    }
    if let Raw::Table(table) = &value {
        let options = table.iter().filter(|(key, _)| !["name", "control", "options"].contains(&key.as_str()));
        options.for_each(|(key, value)| spell(key, value, &mut words));
        if let Some(Raw::Table(own)) = table.get("options") {
            own.iter().for_each(|(key, value)| spell(key, value, &mut words));
        }
    }
    let whole = words.join("-");
    let keep = |c: char| if c.is_ascii_alphanumeric() || "-._".contains(c) { c } else { '_' };
    let mut slug: String = whole.chars().map(keep).take(LONGEST).collect();
    if slug != whole {
        let hash = Sha256::digest(&whole);
        let _ = write!(slug, "-{:02x}{:02x}{:02x}", hash[0], hash[1], hash[2]);
    }
    slug
}

/// An option as a word; those of a table have its name in front.
fn spell(key: &str, value: &Raw, words: &mut Vec<String>) {
    match value {
        Raw::Table(table) => table.iter().for_each(|(k, v)| spell(&format!("{key}.{k}"), v, words)),
        Raw::String(text) => words.push(format!("{key}-{text}")),
        other => words.push(format!("{key}-{other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_folder_tells_options_apart() {
        for (control, want) in [
            ("newreno", "newreno"),
            (" hark ", "hark"),
            ("{ name = 'hark', probes = false }", "hark-probes-false"),
            ("{name=\"hark\",probes=false}", "hark-probes-false"),
            ("{ probes = false, name = 'hark' }", "hark-probes-false"),
            ("{ name = 'gaimd', beta = 0.5, alpha = 1.0 }", "gaimd-alpha-1.0-beta-0.5"),
            ("user:mine", "mine"),
            ("{ name = 'user', control = 'mine', options = { k = 3 } }", "mine-k-3"),
        ] {
            assert_eq!(slug(control), want, "{control}");
        }
        // Controls of one's own with the name of another, or of another with options.
        let others =
            ["user:hark", "hark", "user:user-hark", "user:hark-probes-false", "{name='hark', probes=false}"];
        let slugs = others.map(slug);
        assert_eq!(slugs[0], "user-hark");
        assert!((0..5).all(|i| !slugs[..i].contains(&slugs[i])), "{slugs:?}");
        assert_eq!(slug("{ name = 'user', control = 'hark' }"), slugs[0]);
        assert_eq!(slug("user:harken"), "harken");
        // A character that a file system may refuse is replaced, and a hash tells the controls apart.
        let odd = ["user:a/b", "user:a b", "user:a_b"].map(slug);
        assert!(odd.iter().all(|s| !s.contains(['/', ' '])), "{odd:?}");
        assert!(odd[0] != odd[1] && odd[1] != odd[2] && odd[0] != odd[2], "{odd:?}");
        let long = |end: &str| slug(&format!("user:{}{end}", "x".repeat(100)));
        assert!(long("a").len() < 70 && long("a") != long("b"));
    }
}
