//! The keys of `[media]`.

use careof_document::section::{Section, key};

pub(crate) static MEDIUM: Section = Section {
    heading: "`[media]`",
    noun: "a medium",
    intro: "Each key of this table is the name of a medium that links share: half-duplex Ethernet, a cable on which one station at a \
time is heard, or a radio channel of 802.11. Links are on it by `medium`:\n\n\
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
directions of all of them compete. What follows is about cables. Stations hear each other: a packet that the routes would lead over several links of one \
medium crosses it once, straight to the last of these nodes, unless one on the way has to see to it, as a home agent does with \
what is for a mobile node that is away. Two stations that no link of the file joins have one of their own for that, \
`MEDIUM-FIRST-SECOND`, over which no route leads. On Linux hosts, which have an interface for each link of the file, it is the link \
emulator that brings packets there, as address resolution would.\n\n\
Stations of a cable follow IEEE 802.3: preamble, frames of 64 to 1518 bytes, a gap of 96 bit times, a jam of 32, slots of 512, back-off over \
at most 1024 of them. A frame that has collided 16 times is dropped as `excessive-collisions`. Every station is `delay` away \
from every other.\n\n\
With `kind = \"802.11b\"` or `\"802.11g\"` a medium is one cell of IEEE 802.11 on a channel of its own, and its stations follow the \
distributed coordination function (DCF):\n\n\
```\n\
[media.cell-1]\n\
kind = \"802.11g\"\n\
rate = \"54 Mbit/s\"\n\
\n\
[links]\n\
wifi = { medium = \"cell-1\" }\n\
```\n\n\
Packets go by the links of the file, and by no others: what one station sends to another by way of the access point is on the air twice. All \
stations hear each other and send at the same rate. Frames that collide are all lost; frames that are not acknowledged are sent again, \
after a back-off from a window that doubles, and dropped as `retry-limit` when the limit is reached. What is sent to a mobile node that \
has left the cell is sent as often, and then dropped as `link-down`. A packet takes 36 bytes of header, LLC and check sequence with it. \
Beacons and associations are not on the air; how long a handover takes says `link_layer` of `[[handover]]`. In a domain of micro-mobility \
the radio of many mobile nodes can be on a channel, `radio = { medium = \"cell-1\", between = [\"station-*\", \"mobile-*\"] }`: all base stations and \
mobile nodes are then its stations, a second radio one more. A base station drops what waits for a radio that leaves it, and repeats a frame that it \
has begun until the limit.\n\n\
| | 802.11b | 802.11g | 802.11g, `protection` |\n\
|---|---|---|---|\n\
| IEEE 802.11-2012 | clause 17, table 17-5 | clause 19, table 19-8 | clauses 19 and 9.23 |\n\
| rates, Mbit/s | 1, 2, 5.5, 11 | 6, 9, 12, 18, 24, 36, 48, 54 | the same |\n\
| slot, SIFS, DIFS | 20, 10, 50 us | 9, 10, 28 us | 20, 10, 50 us |\n\
| contention window | 31 to 1023 | 15 to 1023 | 15 to 1023 |\n\
| preamble and header | 192 us, short 96 us | 20 us, and 6 us of extension | the same; announced at 2 Mbit/s behind 192 us |\n\
| EIFS | 364 us | 88 us | 364 us |",
    keys: &[
        key(
            "kind",
            "word",
            "`\"csma-cd\"`",
            "`\"csma-cd\"`: half-duplex Ethernet. `\"802.11b\"` and `\"802.11g\"`: a radio channel.",
        ),
        key(
            "rate",
            "rate",
            "required; 802.11: its highest",
            "Of the cable, up to 1 Gbit/s; of 802.11 that of data frames, one of those in the table above.",
        ),
        key(
            "delay",
            "duration",
            "required; 802.11: `\"1 us\"`",
            "One way, between those that are furthest apart. On a cable at most 240 bit times, which is 24 us at 10 Mbit/s; on the air below \
5 us, so that who sends is heard within a slot (`aSlotTime` - `aCCATime`).",
        ),
        key(
            "queue",
            "packets, size or table",
            "`\"100 packets\"`",
            "Room at each station, as that of a link. The frame that a station is about to send, or sends, is not in it.",
        ),
        key(
            "preamble",
            "word",
            "`\"long\"`",
            "802.11b: `\"long\"`, or `\"short\"`, which 1 Mbit/s does not have.",
        ),
        key(
            "protection",
            "true or false",
            "`false`",
            "802.11g: stations of 802.11b are in the cell. Slots are long, and each frame is announced by a clear to send to oneself, or by \
its request to send, at 2 Mbit/s.",
        ),
        key(
            "control_rate",
            "rate",
            "see right",
            "Of acknowledgements, requests and clearances to send, not above `rate`. Without it the highest mandatory rate that is not above \
`rate`: of 1 and 2 Mbit/s with 802.11b, of 6, 12 and 24 Mbit/s with 802.11g.",
        ),
        key(
            "rts_threshold",
            "size",
            "none",
            "802.11: frames of more bytes, with the 36 around the packet, are preceded by a request to send (RTS) and its clearance (CTS). \
`0` is all of them; without it none is.",
        ),
        key(
            "short_retry_limit",
            "whole number",
            "`7`",
            "802.11: transmissions of a frame not longer than `rts_threshold`, or of a request to send, after which it is given up \
(`dot11ShortRetryLimit`).",
        ),
        key(
            "long_retry_limit",
            "whole number",
            "`4`",
            "802.11: transmissions of a longer frame after which it is given up (`dot11LongRetryLimit`).",
        ),
        key(
            "loss",
            "probability or table",
            "`\"none\"`",
            "802.11: which data frames that do not collide are damaged on the air, repetitions included; written as that of a link.",
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
