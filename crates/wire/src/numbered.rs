//! Codes and statuses: numbers with a name and the wording of their specification.

/// Defines an enum of numbers with a meaning, in which every other number is `Unknown`, and lets `Display` give the wording.
macro_rules! numbered {
    (
        $(#[$enum_doc:meta])*
        $enum:ident, unknown: $unknown:literal;
        $($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*
    ) => {
        $(#[$enum_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $enum {
            $($(#[$doc])* $name,)*
            /// A number without a meaning here. `from_number` never puts a number with a meaning here.
            Unknown(u8),
        }

        impl $enum {
            /// Every value with a meaning.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The value with this number.
            #[must_use]
            pub const fn from_number(number: u8) -> Self {
                match number {
                    $($number => Self::$name,)*
                    other => Self::Unknown(other),
                }
            }

            /// The number on the wire.
            #[must_use]
            pub const fn number(self) -> u8 {
                match self {
                    $(Self::$name => $number,)*
                    Self::Unknown(number) => number,
                }
            }
        }

        impl core::fmt::Display for $enum {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)*
                    Self::Unknown(number) => write!(f, concat!($unknown, " {}"), number),
                }
            }
        }
    };
}

pub(crate) use numbered;
