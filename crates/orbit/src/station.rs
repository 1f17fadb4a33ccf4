//! Ground stations.

use crate::cities::CITIES;
use crate::earth::{RADIUS, Rotation, radians};
use crate::invalid::{Invalid, within};
use crate::vector::Vector;
use alloc::string::String;
use core::fmt;
#[cfg(feature = "schema")]
use skyhaul_base::amount::Angle;

/// A station on the ground, at sea level. Short form: the name of a known city.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
pub struct Station {
    /// Name of the station; empty if only coordinates are given.
    #[cfg_attr(feature = "serde", serde(skip_serializing_if = "String::is_empty"))]
    pub name: String,
    /// Degrees, negative in the South.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle"))]
    pub latitude: f64,
    /// Degrees, negative in the West.
    #[cfg_attr(feature = "serde", serde(with = "skyhaul_base::amount::plain::angle"))]
    pub longitude: f64,
}

/// The name is not that of a known city.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownCity(String);

impl Station {
    /// A station by its coordinates in degrees.
    #[must_use]
    pub fn at(latitude: f64, longitude: f64) -> Self {
        Self { name: String::new(), latitude, longitude }
    }

    /// A known city.
    ///
    /// # Errors
    /// If the city is unknown: what to write instead.
    pub fn city(name: &str) -> Result<Self, UnknownCity> {
        match CITIES.iter().find(|c| c.0.eq_ignore_ascii_case(name.trim())) {
            Some(&(name, latitude, longitude)) => Ok(Self { name: name.into(), latitude, longitude }),
            None => {
                let start = name.trim().get(..1).unwrap_or("");
                let similar = CITIES
                    .iter()
                    .map(|c| c.0)
                    .filter(|c| c.get(..1).is_some_and(|s| s.eq_ignore_ascii_case(start)));
                let similar = similar.collect::<alloc::vec::Vec<_>>().join(", ");
                let known = match similar.as_str() {
                    "" => String::new(),
                    similar => alloc::format!(" (known with this letter: {similar})"),
                };
                Err(UnknownCity(alloc::format!(
                    "the list has no city \"{name}\": write {{ latitude = \"38.12 deg\", longitude = \
                     \"13.36 deg\" }}{known}"
                )))
            }
        }
    }

    /// Names and coordinates in degrees of all known cities.
    pub fn cities() -> impl Iterator<Item = Self> {
        CITIES.iter().map(|c| Self { name: c.0.into(), latitude: c.1, longitude: c.2 })
    }

    /// The unit vector from the centre of the Earth to the station.
    #[must_use]
    pub fn up(&self) -> Vector {
        let (north, east) = (Rotation::of(radians(self.latitude)), Rotation::of(radians(self.longitude)));
        Vector::new(north.cos * east.cos, north.cos * east.sin, north.sin)
    }

    /// Position in the Earth-fixed frame.
    #[must_use]
    pub fn place(&self) -> Vector {
        self.up() * RADIUS
    }

    pub(crate) fn validate(&self) -> Result<(), Invalid> {
        within("latitude", self.latitude, -90.0, 90.0, "deg")?;
        within("longitude", self.longitude, -180.0, 360.0, "deg")
    }
}

impl fmt::Display for Station {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() {
            write!(f, "{} deg, {} deg", self.latitude, self.longitude)
        } else {
            f.write_str(&self.name)
        }
    }
}

#[cfg(feature = "serde")]
mod file {
    use super::*;
    use serde::{Deserialize, Deserializer};
    use skyhaul_base::amount::text_or_table;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Table {
        #[serde(default)]
        name: String,
        #[serde(with = "skyhaul_base::amount::plain::angle")]
        latitude: f64,
        #[serde(with = "skyhaul_base::amount::plain::angle")]
        longitude: f64,
    }

    impl<'de> Deserialize<'de> for Station {
        fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
            let bare = |n: &str| alloc::format!("{n} is not a place: write a city or its coordinates");
            let expected =
                "a city, such as \"Palermo\", or { latitude = \"38.12 deg\", longitude = \"13.36 deg\" }";
            let city = |text: &str| {
                Station::city(text).map(|Station { name, latitude, longitude }| Table {
                    name,
                    latitude,
                    longitude,
                })
            };
            text_or_table(d, expected, city, bare).map(|Table { name, latitude, longitude }| Station {
                name,
                latitude,
                longitude,
            })
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Station {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "Station".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let names: alloc::vec::Vec<&str> = CITIES.iter().map(|c| c.0).collect();
        let mut angle = |description: &str| {
            let mut schema = generator.subschema_for::<Angle>();
            schema.insert("description".into(), description.into());
            schema
        };
        let latitude = angle("Latitude, negative in the South.");
        let longitude = angle("Longitude, negative in the West.");
        schemars::json_schema!({
            "description": "A station on the ground. Short form: the name of a known city.",
            "anyOf": [
                { "type": "string", "examples": names },
                {
                    "type": "object",
                    "properties": {
                        "name": { "type": "string", "description": "Its name in tables." },
                        "latitude": latitude,
                        "longitude": longitude,
                    },
                    "required": ["latitude", "longitude"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constellation::{Model, Motion, stationary};
    use crate::earth::LIGHT;
    use crate::geometry::look_angles;
    use crate::moment::Moment;
    use alloc::string::ToString;
    use skyhaul_base::Duration;

    #[test]
    fn two_cities_see_a_satellite_at_34_5_degrees_west() {
        let satellite = stationary::Config { longitude: -34.5, elevation: 5.0 };
        let place = satellite.build(None, Duration::ZERO).unwrap().place(0, &Moment::new(0.0, 0.0)).unwrap();
        let angles = |city| look_angles(Station::city(city).unwrap().place(), place);
        let (palermo, houston) = (angles("Palermo"), angles("houston"));
        assert!((palermo.range - 39_173.9).abs() < 0.1 && (palermo.elevation() - 23.91).abs() < 0.01);
        assert!((houston.range - 39_889.9).abs() < 0.1 && (houston.elevation() - 16.67).abs() < 0.01);
        let one_way = (palermo.range + houston.range) / LIGHT * 1e3;
        assert!((one_way - 263.73).abs() < 0.01 && (2.0 * one_way - 527.46).abs() < 0.01, "{one_way}");
    }

    #[test]
    fn the_list_is_sorted_and_of_this_earth() {
        assert!(CITIES.windows(2).all(|w| w[0].0 < w[1].0));
        assert!(Station::cities().all(|s| s.validate().is_ok() && Station::city(&s.name) == Ok(s.clone())));
        let e = Station::city("Palerm").unwrap_err().to_string();
        assert!(e.contains("latitude = ") && e.contains("Palermo") && !e.contains("Rome"), "{e}");
        assert!(Station::city("").is_err() && Station::city("Ärmel").is_err());
    }
}
