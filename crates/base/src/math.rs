//! Real-valued functions beyond `+ - * /` for everything on which the result of a run depends.
//!
//! Every function is a pure-Rust implementation, so that results are the same bits on every target. The functions of `std`
//! that are not exact, such as `exp` and `sin`, differ between platforms and versions; `abs` and `round` do not.

/// Square root (correctly rounded by IEEE 754).
#[must_use]
pub fn sqrt(x: f64) -> f64 {
    libm::sqrt(x)
}
/// Natural exponential.
#[must_use]
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}
/// `exp(x) - 1`, accurate near zero.
#[must_use]
pub fn expm1(x: f64) -> f64 {
    libm::expm1(x)
}
/// Natural logarithm.
#[must_use]
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}
/// `ln(1 + x)`, accurate near zero.
#[must_use]
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}
/// Base-2 logarithm.
#[must_use]
pub fn log2(x: f64) -> f64 {
    libm::log2(x)
}
/// `x` to the power `y`.
#[must_use]
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}
/// Cube root.
#[must_use]
pub fn cbrt(x: f64) -> f64 {
    libm::cbrt(x)
}
/// Largest integer not above `x`.
#[must_use]
pub fn floor(x: f64) -> f64 {
    libm::floor(x)
}
/// Smallest integer not below `x`.
#[must_use]
pub fn ceil(x: f64) -> f64 {
    libm::ceil(x)
}
/// Cosine of `x` radians.
#[must_use]
pub fn cos(x: f64) -> f64 {
    libm::cos(x)
}
/// Sine of `x` radians.
#[must_use]
pub fn sin(x: f64) -> f64 {
    libm::sin(x)
}
/// Complementary error function.
#[must_use]
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}
/// Angle in radians, from 0 to pi, whose cosine is `x`; NaN beyond [-1, 1].
#[must_use]
pub fn acos(x: f64) -> f64 {
    libm::acos(x)
}
/// Angle in radians, from -pi/2 to pi/2, whose sine is `x`; NaN beyond [-1, 1].
#[must_use]
pub fn asin(x: f64) -> f64 {
    libm::asin(x)
}
/// Natural logarithm of the absolute value of the gamma function.
#[must_use]
pub fn ln_gamma(x: f64) -> f64 {
    libm::lgamma(x)
}
/// Absolute value.
#[must_use]
pub fn abs(x: f64) -> f64 {
    libm::fabs(x)
}
