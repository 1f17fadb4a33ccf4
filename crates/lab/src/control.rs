//! The control that a command puts to the test, as its argument names it.

use crate::error::LabError;
use skyhaul_cc::{Config, NAMES};
use skyhaul_scenario::did_you_mean;
use skyhaul_study::model::Raw;

/// Reads a name, or an inline table with `name` and options, as the value of the key `cc` of a flow. Options are not checked.
///
/// # Errors
/// If it is neither, or no control has the name.
pub(crate) fn read(text: &str) -> Result<Raw, LabError> {
    let text = text.trim();
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
