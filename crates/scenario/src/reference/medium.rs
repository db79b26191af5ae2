//! The keys of `[media]`.

use careof_document::section::{Section, key};

pub(crate) static MEDIUM: Section = Section {
    heading: "`[media]`",
    noun: "a medium",
    intro: "Each key of this table is the name of a medium: half-duplex Ethernet, a cable on which one station at a time is \
heard. Links are on it by `medium`:\n\n\
```\n\
[media.lan]\n\
rate = \"10 Mbit/s\"\n\
delay = \"1 us\"\n\
\n\
[links]\n\
ethernet = { medium = \"lan\" }\n\
home = { medium = \"lan\" }\n\
```\n\n\
Every node at an end of such a link is one station, with one queue, however many of its links are on the medium; and both \
directions of all of them compete. Stations hear each other: a packet that the routes would lead over several links of one \
medium crosses it once, straight to the last of these nodes, unless one on the way has to see to it, as a home agent does with \
what is for a mobile node that is away. Two stations that no link of the file joins have one of their own for that, \
`MEDIUM-FIRST-SECOND`, over which no route leads. On Linux hosts, which have an interface for each link of the file, it is the link \
emulator that brings packets there, as address resolution would.\n\n\
Stations follow IEEE 802.3: preamble, frames of 64 to 1518 bytes, a gap of 96 bit times, a jam of 32, slots of 512, back-off over \
at most 1024 of them. A frame that has collided 16 times is dropped as `excessive-collisions`. Every station is `delay` away \
from every other.",
    keys: &[
        key("kind", "word", "`\"csma-cd\"`", "`\"csma-cd\"`: half-duplex Ethernet."),
        key("rate", "rate", "required", "Of the cable, up to 1 Gbit/s."),
        key(
            "delay",
            "duration",
            "required",
            "One way, between those that are furthest apart; at most 240 bit times, which is 24 us at 10 Mbit/s.",
        ),
        key(
            "queue",
            "packets, size or table",
            "`\"100 packets\"`",
            "Room at each station, as that of a link. The frame that a station is about to send, or sends, is not in it.",
        ),
    ],
    elsewhere: &[
        ("mtu", "write it in the table of a link"),
        ("links", "write `medium` in the table of each link"),
        ("stations", "write `medium` in the table of each link"),
        ("between", "write `medium` in the table of each link"),
        ("slot", "a slot is 512 bit times"),
    ],
};
