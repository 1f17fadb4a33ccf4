//! Shortens quotations from a file in messages.

use std::borrow::Cow;

/// Longer quotations are shortened, characters.
const LONGEST: usize = 100;
/// Characters kept of their beginning and of their end.
const KEPT: (usize, usize) = (60, 20);

/// The message with quotations, between two `"` or two `` ` ``, of at most 100 characters: of longer ones, the
/// beginning and the end remain.
///
/// Expressions in files may be of any length; quoting them in full would hide the problem.
#[must_use]
pub fn shortened(message: &str) -> Cow<'_, str> {
    if message.len() <= LONGEST {
        return Cow::Borrowed(message);
    }
    let mut out = String::with_capacity(message.len());
    let mut rest = message;
    while let Some((before, quote, inside, after)) = quotation(rest) {
        out.push_str(before);
        out.push(quote);
        let count = inside.chars().count();
        if count > LONGEST {
            out.extend(inside.chars().take(KEPT.0));
            out.push_str(" … ");
            out.extend(inside.chars().skip(count - KEPT.1));
        } else {
            out.push_str(inside);
        }
        out.push(quote);
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The first quotation: what is before it, its mark, its inside, and what follows it.
fn quotation(text: &str) -> Option<(&str, char, &str, &str)> {
    let begin = text.find(['"', '`'])?;
    let quote = text[begin..].chars().next()?;
    let inside = &text[begin + 1..];
    let end = inside.find(quote)?;
    Some((&text[..begin], quote, &inside[..end], &inside[end + 1..]))
}

#[cfg(test)]
mod tests {
    use super::shortened;
    use crate::ScenarioError;

    #[test]
    fn quotations_keep_their_begin_and_end() {
        let long = "é".repeat(59) + "ABC" + &"x".repeat(500) + "the end of it is here";
        let message = format!("in `{long}`: expected a number at `+ *` and not \"{long}\"");
        let kept = format!("{}A … he end of it is here", "é".repeat(59));
        assert_eq!(
            shortened(&message),
            format!("in `{kept}`: expected a number at `+ *` and not \"{kept}\"")
        );
    }

    #[test]
    fn errors_display_what_they_quote_so() {
        let message = format!("\"{}\" is not accepted", "p".repeat(5000));
        let e = ScenarioError { file: "a.toml".into(), line: None, key: "flows.a.cc".into(), message };
        assert!(e.to_string().len() < 150, "{e}");
    }

    #[test]
    fn the_rest_stays() {
        let words = "a long message without any quotation ".repeat(9);
        assert_eq!(shortened(&words), words);
        let open = format!("{words} `it never ends {words}");
        assert_eq!(shortened(&open), open);
        let fits = format!("\"{}\" {words}", "y".repeat(100));
        assert_eq!(shortened(&fits), fits);
    }
}
