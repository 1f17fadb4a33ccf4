//! From text to tree.

use super::ExprError;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A literal.
    Number(f64),
    /// A quantity.
    Name(Name),
    /// `-x`.
    Negate(Box<Expr>),
    /// `a op b`, op one of `+ - * / ^`.
    Binary(char, Box<Expr>, Box<Expr>),
    /// `f(a, …)`.
    Call(String, Vec<Expr>),
}

/// A quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// A value per flow, of one group or of the flows of the metric.
    Flow {
        /// `flow[group]`.
        group: Option<String>,
        /// The quantity.
        quantity: String,
    },
    /// A value of a link.
    Link {
        /// The link.
        link: String,
        /// The quantity, with its direction.
        quantity: String,
    },
    /// A value of the run.
    Run(String),
    /// A curve per flow.
    Series {
        /// `series[group]`.
        group: Option<String>,
        /// The series.
        series: String,
    },
    /// A constant, of the study or of an axis value.
    Constant(String),
    /// An earlier metric of the study.
    Metric(String),
    /// An earlier metric at the metric's base.
    Base(String),
}

/// Every name of an expression; none if the text is not an expression, which only [`parse`] reports.
#[must_use]
pub fn names_in(text: &str) -> Vec<Name> {
    let mut all = Vec::new();
    if let Ok(expr) = parse(text) {
        expr.names(&mut |name| all.push(name.clone()));
    }
    all
}

impl Expr {
    /// Calls `f` with every name.
    pub fn names<'a>(&'a self, f: &mut dyn FnMut(&'a Name)) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) => f(name),
            Self::Negate(e) => e.names(f),
            Self::Binary(_, a, b) => {
                a.names(f);
                b.names(f);
            }
            Self::Call(_, arguments) => arguments.iter().for_each(|e| e.names(f)),
        }
    }
}

/// Deepest nesting; more could exhaust the stack.
const MAX_DEPTH: usize = 64;
/// Most operators `+ - * /` of an expression. Those of a chain such as `1 + 2 + 3` nest in the tree, the first one deepest: more could
/// exhaust the stack where the tree is evaluated.
const MAX_OPERATORS: usize = 640;

/// Parses an expression.
///
/// # Errors
/// If the text is not an expression; the message quotes the offending part.
pub fn parse(text: &str) -> Result<Expr, ExprError> {
    let mut p = Parser { rest: text, depth: 0, operators: 0 };
    let e = p.sum()?;
    p.skip_space();
    if p.rest.is_empty() { Ok(e) } else { Err(p.unexpected("an operator")) }
}

struct Parser<'a> {
    rest: &'a str,
    depth: usize,
    /// Operators `+ - * /` so far.
    operators: usize,
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self, wanted: &str) -> ExprError {
        if self.rest.is_empty() {
            return ExprError::new(format!("the expression ends where {wanted} is expected"));
        }
        let part: String = self.rest.chars().take(12).collect();
        ExprError::new(format!("expected {wanted} at `{part}`"))
    }

    fn take(&mut self, wanted: char) -> bool {
        self.skip_space();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn need(&mut self, wanted: char) -> Result<(), ExprError> {
        if self.take(wanted) { Ok(()) } else { Err(self.unexpected(&format!("`{wanted}`"))) }
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        self.chain(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        self.chain(&['*', '/'], Self::unary)
    }

    fn chain(
        &mut self,
        operators: &[char],
        part: fn(&mut Self) -> Result<Expr, ExprError>,
    ) -> Result<Expr, ExprError> {
        let mut left = part(self)?;
        while let Some(op) = operators.iter().copied().find(|op| self.take(*op)) {
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return Err(ExprError::new("the expression is too long"));
            }
            left = Expr::Binary(op, Box::new(left), Box::new(part(self)?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(ExprError::new("the expression is nested too deeply"));
        }
        let e = if self.take('-') {
            Expr::Negate(Box::new(self.unary()?))
        } else {
            let base = self.atom()?;
            if self.take('^') { Expr::Binary('^', Box::new(base), Box::new(self.unary()?)) } else { base }
        };
        self.depth -= 1;
        Ok(e)
    }

    fn atom(&mut self) -> Result<Expr, ExprError> {
        self.skip_space();
        if self.take('(') {
            let e = self.sum()?;
            self.need(')')?;
            return Ok(e);
        }
        match self.rest.chars().next() {
            Some(c) if c.is_ascii_digit() || c == '.' => self.number(),
            Some(c) if c.is_ascii_alphabetic() => self.word(),
            _ => Err(self.unexpected("a number, a name or `(`")),
        }
    }

    fn number(&mut self) -> Result<Expr, ExprError> {
        let bytes = self.rest.as_bytes();
        let mut end = 0;
        while end < bytes.len() {
            let exponent_sign = matches!(bytes[end], b'+' | b'-') && matches!(bytes[end - 1], b'e' | b'E');
            if !(bytes[end].is_ascii_digit() || matches!(bytes[end], b'.' | b'e' | b'E') || exponent_sign) {
                break;
            }
            end += 1;
        }
        let (digits, rest) = self.rest.split_at(end);
        let x: f64 = digits.parse().map_err(|_| ExprError::new(format!("`{digits}` is not a number")))?;
        if !x.is_finite() {
            return Err(ExprError::new(format!("`{digits}` is too large")));
        }
        self.rest = rest;
        Ok(Expr::Number(x))
    }

    /// Letters, digits, `_` and, inside a name, `-`: a name of the scenario may contain it, so subtraction of
    /// names needs a space before the sign.
    fn identifier(&mut self) -> Result<String, ExprError> {
        let ok = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let end = self.rest.find(|c| !ok(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.unexpected("a name"));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.to_owned())
    }

    fn word(&mut self) -> Result<Expr, ExprError> {
        let start = self.rest;
        let first = self.identifier()?;
        if self.rest.starts_with('(') {
            return self.call(first);
        }
        let group = match self.rest.strip_prefix('[') {
            Some(rest) => {
                self.rest = rest;
                let group = self.identifier()?;
                self.need(']')?;
                Some(group)
            }
            None => None,
        };
        let mut parts = Vec::new();
        while let Some(rest) = self.rest.strip_prefix('.') {
            self.rest = rest;
            parts.push(self.identifier()?);
        }
        let name = match (first.as_str(), group, &mut parts[..]) {
            ("flow", group, [q]) => Name::Flow { group, quantity: std::mem::take(q) },
            ("series", group, [s]) => Name::Series { group, series: std::mem::take(s) },
            ("run", None, [q]) => Name::Run(std::mem::take(q)),
            ("let", None, [c]) => Name::Constant(std::mem::take(c)),
            ("metric", None, [_, ..]) => Name::Metric(parts.join(".")),
            ("base", None, [_, ..]) => Name::Base(parts.join(".")),
            ("link", None, [link, q @ ..]) if !q.is_empty() => {
                Name::Link { link: std::mem::take(link), quantity: q.join(".") }
            }
            _ => {
                let length = start.len() - self.rest.len();
                return Err(ExprError::or(
                    format!("`{}` is not a quantity", &start[..length]),
                    [
                        "flow.<quantity>",
                        "flow[group].<quantity>",
                        "link.<name>.<quantity>",
                        "run.<quantity>",
                        "series.<name>",
                        "let.<constant>",
                        "metric.<name>",
                        "base.<metric>",
                    ],
                ));
            }
        };
        Ok(Expr::Name(name))
    }

    fn call(&mut self, function: String) -> Result<Expr, ExprError> {
        self.need('(')?;
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        self.need(')')?;
        Ok(Expr::Call(function, arguments))
    }
}
