//! One form for a table of options, from which everything that files need of it is made.

/// Expands a table of options into a struct with public fields, its defaults, its form in files and its schema.
///
/// ```
/// skyhaul_base::options! {
///     /// Options of a filter.
///     #[derive(Clone, Debug, PartialEq)]
///     pub struct Config {
///         /// Weight of the previous value; 0.9 by default.
///         pole: f64 = 0.9,
///         /// Number of samples; without a limit by default.
///         most_samples: Option<u32> = None,
///     }
/// }
/// assert_eq!(Config::default(), Config { pole: 0.9, most_samples: None });
/// ```
///
/// * With the feature `serde` of the calling crate, the table is read and written with keys in kebab case; a key that is left out has
///   its default, and an unknown one is refused. An `Option` that is `None` is not written.
/// * With the feature `schema`, it has a schema with the documentation of its fields.
/// * `field: u64 as Size = 1000` is written as an [amount](crate::amount): `Count`, `Frequency`, `Probability`, `Size` or `Time`;
///   `Option<u64> as Count` and `Option<Rate> as Rate` are amounts that may be left out.
#[macro_export]
macro_rules! options {
    // A field, by its type: what serde and schemars are told of it. An amount is looked up by its name.
    (@field $at:tt $meta:tt $field:ident: Option<$of:ty> as Count = $($rest:tt)*) => {
        $crate::options!(@add [
            skip_serializing_if = "Option::is_none",
            with = "skyhaul_base::amount::plain::optional_count"
        ] [with = "skyhaul_base::amount::Count"] $at $meta $field: Option<$of> = $($rest)*);
    };
    (@field $at:tt $meta:tt $field:ident: Option<$of:ty> as Rate = $($rest:tt)*) => {
        $crate::options!(@add [
            skip_serializing_if = "Option::is_none",
            with = "skyhaul_base::amount::plain::optional_rate"
        ] [with = "skyhaul_base::amount::RateSpec"] $at $meta $field: Option<$of> = $($rest)*);
    };
    (@field $at:tt $meta:tt $field:ident: Option<$of:ty> = $($rest:tt)*) => {
        $crate::options!(@add [skip_serializing_if = "Option::is_none"] [] $at $meta $field: Option<$of> = $($rest)*);
    };
    (@field $at:tt $meta:tt $field:ident: $of:ty as $Amount:ident = $($rest:tt)*) => {
        $crate::options!(@$Amount $at $meta $field: $of = $($rest)*);
    };
    (@field $at:tt $meta:tt $field:ident: $of:ty = $($rest:tt)*) => {
        $crate::options!(@add [] [] $at $meta $field: $of = $($rest)*);
    };
    (@Count $($field:tt)*) => {
        $crate::options!(
            @add [with = "skyhaul_base::amount::plain::count"] [with = "skyhaul_base::amount::Count"] $($field)*
        );
    };
    (@Frequency $($field:tt)*) => {
        $crate::options!(
            @add [with = "skyhaul_base::amount::plain::frequency"] [with = "skyhaul_base::amount::Frequency"] $($field)*
        );
    };
    (@Probability $($field:tt)*) => {
        $crate::options!(
            @add [with = "skyhaul_base::amount::plain::probability"] [with = "skyhaul_base::amount::Probability"] $($field)*
        );
    };
    (@Size $($field:tt)*) => {
        $crate::options!(
            @add [with = "skyhaul_base::amount::plain::size"] [with = "skyhaul_base::amount::Size"] $($field)*
        );
    };
    (@Time $($field:tt)*) => {
        $crate::options!(
            @add [with = "skyhaul_base::amount::plain::time"] [with = "skyhaul_base::amount::Time"] $($field)*
        );
    };
    (@add [$($serde:tt)*] [$($schema:tt)*] [$table:tt [$($fields:tt)*] [$($defaults:tt)*]]
        [$(#[$meta:meta])*] $field:ident: $of:ty = $default:expr, $($rest:tt)*
    ) => {
        $crate::options!(@next $table [
            $($fields)*
            $(#[$meta])*
            #[cfg_attr(feature = "serde", serde($($serde)*))]
            #[cfg_attr(feature = "schema", schemars($($schema)*))]
            pub $field: $of,
        ] [$($defaults)* $field: $default,] $($rest)*);
    };
    (@next [$Name:ident $($meta:tt)*] [$($fields:tt)*] [$($defaults:tt)*]) => {
        #[cfg_attr(
            feature = "serde",
            derive(serde::Serialize, serde::Deserialize),
            serde(default, rename_all = "kebab-case", deny_unknown_fields)
        )]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        $($meta)*
        pub struct $Name { $($fields)* }

        impl Default for $Name {
            fn default() -> Self {
                Self { $($defaults)* }
            }
        }
    };
    (@next $table:tt $fields:tt $defaults:tt $(#[$meta:meta])* $field:ident: $($rest:tt)*) => {
        $crate::options!(@field [$table $fields $defaults] [$(#[$meta])*] $field: $($rest)*);
    };
    ($(#[$meta:meta])* pub struct $Name:ident { $($rest:tt)* }) => {
        $crate::options!(@next [$Name $(#[$meta])*] [] [] $($rest)*);
    };
}
