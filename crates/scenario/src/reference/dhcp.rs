//! The keys of `[mobility.dhcp]`.

use careof_document::section::{Section, key};

pub(crate) static DHCP: Section = Section {
    heading: "`[mobility.dhcp]`",
    noun: "the DHCP",
    intro: "How the mobile node comes by its care-of address with `care_of = \"dhcp\"`. The node at the other end of each \
access link leases the addresses of that link (RFC 2131); on a `home` link the mobile node has its home address. Whenever a \
link comes up the mobile node asks there for an address - for the one it had before, if its lease still runs - and registers \
when it has one. The messages cross the link as any others; the event `handover` with the phase `address-acquired` says when \
the address can be used.\n\n\
Most of the time goes into looking whether somebody uses the address already, which each end may do:\n\n\
- the server sends an ICMP echo to the address and waits for an answer before it offers it (`server_check`), unless the client \
holds it already;\n\
- the client sends ARP probes and waits for an answer before it uses the address (`client_check`; RFC 5227: 4 to 7 s), or \
while it uses it. Links carry IP here, so the probes are in the trace but not on the link, where nobody but the server would \
hear them.",
    keys: &[
        key(
            "client_check",
            "word",
            "`\"before-use\"`",
            "When the client looks by ARP if the address is free: `\"before-use\"`, `\"background\"` (the address is used \
meanwhile) or `\"none\"`.",
        ),
        key("probes", "whole number", "`3`", "How many probes the client sends, 1 to 20."),
        key(
            "server_check",
            "duration or `\"none\"`",
            "`\"1 s\"`",
            "How long the server's echo waits for an answer. The default is that of ISC's `dhcpd`.",
        ),
        key(
            "start_delay",
            "duration or `\"rfc-2131\"`",
            "`\"0 s\"`",
            "From the link to the client's first message; `\"rfc-2131\"` is a random time from 1 to 10 s, meant for hosts that \
are switched on together.",
        ),
        key("lease", "duration or `\"infinity\"`", "`\"12 h\"`", "What the server grants; whole seconds."),
        key("processing", "duration", "`\"0 s\"`", "What the server takes for each reply."),
    ],
    elsewhere: &[
        ("conflict_check", "write `client_check` and `server_check`"),
        ("ping_check", "write `server_check`"),
        ("ping_timeout", "write `server_check`"),
        ("lifetime", "write `lease`; `lifetime` in [mobility] is that of registrations"),
        ("lease_time", "write `lease`"),
        ("delay", "write `start_delay` or `processing`"),
    ],
};
