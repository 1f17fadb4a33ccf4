//! One list of kinds, from which everything that depends on the list is made.

/// Expands one list of kinds into an enum of their configurations, their names in files, and a macro that calls the
/// kind at hand, so that a new kind is a file and one line.
///
/// ```
/// mod square {
///     #[derive(Debug)]
///     #[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
///     #[cfg_attr(feature = "serde", derive(serde::Serialize))]
///     pub enum Config { "square" Square(square::Config) }
///     /// Why a shape is refused.
///     #[derive(Debug)]
///     pub error Invalid = Shape::Invalid;
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
///     assert_eq!(Invalid::Square("not a square").to_string(), "not a square");
/// }
/// ```
///
/// * `NAMES` lists the names. With the feature `serde` of the calling crate, or after `always serde;`, each variant has its name in
///   files; the tag, the derives and the schema are attributes of the enum.
/// * `+ { skip Series(Series) }` after the list adds kinds that are not in `NAMES`. `skip`: it has no form in files.
///   `rename = "user" User(user::Config)`: it has that name in files, but no defaults.
/// * `enum Invalid = Shape::Invalid;` is an enum with the same variants, which hold that associated type of each kind;
///   `enum Order<P> = Shape::Order;` one of a generic associated type. `error Invalid = Shape::Invalid;` also is an error that
///   displays as the one it holds.
/// * `kind Kind;` is an enum of the kinds without their configurations, in order in `Kind::ALL`; `Config::kind` returns it.
/// * The macro, here `each`, is a `match` over all kinds:
///   - `each!(self, Config(c) => …)` uses the content of the variant as `c`;
///   - `each!(self, Config(c), Invalid(refuse) => …)` also has the constructor of the same variant of another enum;
///   - `each!(self, Config as C => …)` has the type of the content as `C`;
///   - `each!(self, Config => name)` is the name in files, `each!(self, Config => doc)` the text of the doc comment in the list;
///   - `each!(named name, Config)` is `Some` kind of that name with its defaults, or `None`.
#[macro_export]
macro_rules! kinds {
    // The configurations.
    (@enum ($serde:meta) [$($meta:tt)*] [$vis:vis] $Enum:ident
        { $($(#[doc = $doc:literal])* $name:literal $variant:ident($kind:ty)),* $(,)? }
        { $($(#[doc = $more_doc:literal])* $attr:ident $(= $more_name:literal)? $more:ident($more_kind:ty)),* $(,)? }
    ) => {
        $($meta)*
        $vis enum $Enum {
            $(
                $(#[doc = $doc])*
                #[cfg_attr($serde, serde(rename = $name))]
                $variant($kind),
            )*
            $(
                $(#[doc = $more_doc])*
                #[cfg_attr($serde, serde($attr $(= $more_name)?))]
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
    // What follows the list.
    (@more $serde:tt $Enum:ident $list:tt $more:tt) => {};
    // An enum with an associated type of each.
    (@more $serde:tt $Enum:ident $list:tt $more:tt
        $(#[$meta:meta])* $vis:vis enum $Same:ident$(<$P:ident>)? = $Trait:ident::$assoc:ident;
        $($rest:tt)*
    ) => {
        $crate::kinds!(@same [$(#[$meta])*] [$vis] $Same [$($P)?] $Trait $assoc $list $more);
        $crate::kinds!(@more $serde $Enum $list $more $($rest)*);
    };
    (@more $serde:tt $Enum:ident $list:tt $more:tt
        $(#[$meta:meta])* $vis:vis error $Same:ident = $Trait:ident::$assoc:ident;
        $($rest:tt)*
    ) => {
        $crate::kinds!(@same [$(#[$meta])*] [$vis] $Same [] $Trait $assoc $list $more);
        $crate::kinds!(@error $Same $list $more);
        $crate::kinds!(@more $serde $Enum $list $more $($rest)*);
    };
    (@more $serde:tt $Enum:ident $list:tt $more:tt
        $(#[$meta:meta])* $vis:vis kind $Kind:ident;
        $($rest:tt)*
    ) => {
        $crate::kinds!(@kind $serde [$(#[$meta])*] [$vis] $Enum $Kind $list);
        $crate::kinds!(@more $serde $Enum $list $more $($rest)*);
    };
    (@same [$($meta:tt)*] [$vis:vis] $Same:ident [] $Trait:ident $assoc:ident
        { $($(#[doc = $doc:literal])* $name:literal $variant:ident($kind:ty)),* $(,)? }
        { $($(#[doc = $more_doc:literal])* $attr:ident $(= $more_name:literal)? $more:ident($more_kind:ty)),* $(,)? }
    ) => {
        $($meta)*
        $vis enum $Same {
            $($variant(<$kind as $Trait>::$assoc),)*
            $($more(<$more_kind as $Trait>::$assoc),)*
        }
    };
    (@same [$($meta:tt)*] [$vis:vis] $Same:ident [$P:ident] $Trait:ident $assoc:ident
        { $($(#[doc = $doc:literal])* $name:literal $variant:ident($kind:ty)),* $(,)? }
        { $($(#[doc = $more_doc:literal])* $attr:ident $(= $more_name:literal)? $more:ident($more_kind:ty)),* $(,)? }
    ) => {
        $($meta)*
        $vis enum $Same<$P> {
            $($variant(<$kind as $Trait>::$assoc<$P>),)*
            $($more(<$more_kind as $Trait>::$assoc<$P>),)*
        }
    };
    (@error $Error:ident
        { $($(#[doc = $doc:literal])* $name:literal $variant:ident($kind:ty)),* $(,)? }
        { $($(#[doc = $more_doc:literal])* $attr:ident $(= $more_name:literal)? $more:ident($more_kind:ty)),* $(,)? }
    ) => {
        impl core::fmt::Display for $Error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self { $(Self::$variant(e) => e.fmt(f),)* $(Self::$more(e) => e.fmt(f),)* }
            }
        }

        impl core::error::Error for $Error {}
    };
    // The kinds without their configurations.
    (@kind ($serde:meta) [$($meta:tt)*] [$vis:vis] $Enum:ident $Kind:ident
        { $($(#[doc = $doc:literal])* $name:literal $variant:ident($kind:ty)),* $(,)? }
    ) => {
        $($meta)*
        $vis enum $Kind {
            $(#[cfg_attr($serde, serde(rename = $name))] $variant,)*
        }

        impl $Kind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in files and results.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }

        impl $Enum {
            /// The kind, without its configuration.
            #[must_use]
            pub const fn kind(&self) -> $Kind {
                match self { $(Self::$variant(_) => $Kind::$variant,)* }
            }
        }
    };
    (@each $each:ident
        { $($(#[doc = $doc:literal])* $name:literal $variant:ident($kind:ty)),* $(,)? }
        { $($(#[doc = $more_doc:literal])* $attr:ident $(= $more_name:literal)? $more:ident($more_kind:ty)),* $(,)? }
    ) => {
        /// A `match` over all kinds.
        #[allow(unused_macros, unused_macro_rules, reason = "a list need not use every form")]
        macro_rules! $each {
            (named $wanted:expr, $Enum:ident) => {
                match $wanted { $($name => Some($Enum::$variant(Default::default())),)* _ => None }
            };
            ($self_:expr, $Enum:ident => name) => {
                match $self_ { $($Enum::$variant(_) => $name,)* $($Enum::$more(_) => $($more_name)?,)* }
            };
            ($self_:expr, $Enum:ident => doc) => {
                match $self_ {
                    $($Enum::$variant(_) => concat!($($doc),*),)*
                    $($Enum::$more(_) => concat!($($more_doc),*),)*
                }
            };
            ($self_:expr, $Enum:ident as $C:ident => $call:expr) => {
                match $self_ { $($Enum::$variant { .. } => { type $C = $kind; $call })* }
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
                    $($Enum::$more($c) => { let $of = $Other::$more; $call })*
                }
            };
        }
    };
    (@all $serde:tt $each:ident
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident $list:tt + $more:tt
        $($rest:tt)*
    ) => {
        $crate::kinds!(@enum $serde [$(#[$meta])*] [$vis] $Enum $list $more);
        $crate::kinds!(@more $serde $Enum $list $more $($rest)*);
        $crate::kinds!(@each $each $list $more);
    };
    (@all $serde:tt $each:ident
        $(#[$meta:meta])*
        $vis:vis enum $Enum:ident $list:tt
        $($rest:tt)*
    ) => {
        $crate::kinds!(@all $serde $each $(#[$meta])* $vis enum $Enum $list + {} $($rest)*);
    };
    ($each:ident; always serde; $($rest:tt)*) => {
        $crate::kinds!(@all (all()) $each $($rest)*);
    };
    ($each:ident; $($rest:tt)*) => {
        $crate::kinds!(@all (feature = "serde") $each $($rest)*);
    };
}
