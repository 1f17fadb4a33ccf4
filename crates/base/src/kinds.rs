//! One list of kinds, from which everything that depends on the list is made.

/// Expands one list of kinds into an enum of their configurations, their names in files, and a macro that calls the
/// kind at hand, so that a new kind is a file and one line.
///
/// ```
/// mod square {
///     #[derive(Debug)]
///     pub struct Config { pub side: f64 }
///     impl super::Shape for Config {
///         type Invalid = &'static str;
///         fn area(&self) -> Result<f64, &'static str> { Ok(self.side * self.side) }
///     }
/// }
/// pub trait Shape {
///     type Invalid;
///     fn area(&self) -> Result<f64, Self::Invalid>;
/// }
///
/// skyhaul_base::kinds! {
///     each;
///     /// A shape.
///     #[derive(Debug)]
///     pub enum Config { "square" Square(square::Config) }
///     /// Why a shape is refused.
///     #[derive(Debug)]
///     pub enum Invalid = Shape::Invalid;
/// }
///
/// impl Config {
///     fn name(&self) -> &'static str { each!(self, Config => name) }
///     fn area(&self) -> Result<f64, Invalid> {
///         each!(self, Config(c), Invalid(refuse) => c.area().map_err(refuse))
///     }
/// }
/// fn main() {
///     let square = Config::from(square::Config { side: 2.0 });
///     assert_eq!((square.name(), NAMES), ("square", &["square"][..]));
///     assert_eq!(square.area().unwrap(), 4.0);
/// }
/// ```
///
/// * `NAMES` lists the names. With the feature `serde` of the calling crate, each variant has its name in files; the tag, the
///   derives and the schema are attributes of the enum.
/// * `+ { Series(Series) }` after the list adds kinds without a form in files.
/// * `enum Invalid = Shape::Invalid;` is an enum with the same variants, which hold that associated type of each kind.
/// * The macro, here `each`, is a `match` over all kinds:
///   - `each!(self, Config(c) => …)` uses the content of the variant as `c`;
///   - `each!(self, Config(c), Invalid(refuse) => …)` also has the constructor of the same variant of another enum;
///   - `each!(self, Config => name)` is the name in files, `each!(named name, Config)` the kind of that name with its defaults.
#[macro_export]
macro_rules! kinds {
    // The configurations.
    (@enum [$($meta:tt)*] [$vis:vis] $Enum:ident
        { $($(#[$doc:meta])* $name:literal $variant:ident($kind:ty)),* $(,)? }
        { $($(#[$more_doc:meta])* $more:ident($more_kind:ty)),* $(,)? }
    ) => {
        $($meta)*
        $vis enum $Enum {
            $(
                $(#[$doc])*
                #[cfg_attr(feature = "serde", serde(rename = $name))]
                $variant($kind),
            )*
            $(
                $(#[$more_doc])*
                #[cfg_attr(feature = "serde", serde(skip))]
                $more($more_kind),
            )*
        }

        /// The names of all kinds in files.
        $vis const NAMES: &[&str] = &[$($name),*];

        $(impl From<$kind> for $Enum {
            fn from(kind: $kind) -> Self {
                Self::$variant(kind)
            }
        })*
        $(impl From<$more_kind> for $Enum {
            fn from(kind: $more_kind) -> Self {
                Self::$more(kind)
            }
        })*
    };
    // An enum with an associated type of each.
    (@same [$($meta:tt)*] [$vis:vis] $Enum:ident $Trait:ident $assoc:ident
        { $($(#[$doc:meta])* $name:literal $variant:ident($kind:ty)),* $(,)? }
    ) => {
        $($meta)*
        $vis enum $Enum {
            $($variant(<$kind as $Trait>::$assoc),)*
        }
    };
    (@each $each:ident
        { $($(#[$doc:meta])* $name:literal $variant:ident($kind:ty)),* $(,)? }
        { $($(#[$more_doc:meta])* $more:ident($more_kind:ty)),* $(,)? }
    ) => {
        /// A `match` over all kinds.
        #[allow(unused_macros, unused_macro_rules, reason = "a list need not use every form")]
        macro_rules! $each {
            (named $wanted:expr, $Enum:ident) => {
                match $wanted { $($name => Some($Enum::$variant(Default::default())),)* _ => None }
            };
            ($self_:expr, $Enum:ident => name) => {
                match $self_ { $($Enum::$variant(_) => $name,)* }
            };
            ($self_:expr, $Enum:ident($c:ident) => $call:expr) => {
                match $self_ {
                    $($Enum::$variant($c) => $call,)*
                    $($Enum::$more($c) => $call,)*
                }
            };
            ($self_:expr, $Enum:ident($c:ident), $Other:ident($of:ident) => $call:expr) => {
                match $self_ {
                    $($Enum::$variant($c) => { let $of = $Other::$variant; $call })*
                }
            };
        }
    };
    (
        $each:ident;
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident $list:tt $(+ { $($more:tt)* })?
        $($(#[$same_meta:meta])* $same_vis:vis enum $Same:ident = $Trait:ident::$assoc:ident;)*
    ) => {
        $crate::kinds!(@enum [$(#[$meta])*] [$vis] $Enum $list { $($($more)*)? });
        $($crate::kinds!(
            @same [$(#[$same_meta])*] [$same_vis] $Same $Trait $assoc $list
        );)*
        $crate::kinds!(@each $each $list { $($($more)*)? });
    };
}
