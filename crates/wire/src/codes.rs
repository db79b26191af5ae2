//! Numbers that stand for a meaning.

/// Makes an enum of the codes of a message, which also keeps the numbers that have no meaning here.
macro_rules! codes {
    ($(#[$outer:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $type {
            $($(#[$doc])* $name,)*
            /// A number without a meaning here; [`Self::from_number`] puts no other there.
            Unknown(u8),
        }

        impl $type {
            /// The code with this number.
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

        impl core::fmt::Display for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match self {
                    $(Self::$name => f.write_str($text),)*
                    Self::Unknown(number) => write!(f, "unknown code {number}"),
                }
            }
        }
    };
}

pub(crate) use codes;
