//! `mptcp` of a flow.

use super::{Section, key};

pub(crate) static MPTCP: Section = Section {
    heading: "`mptcp`",
    noun: "a Multipath TCP",
    intro: "Multipath TCP (RFC 8684) of a flow, as the kernel of this machine has it: `mptcp = true` or a table (`mptcp = { backup = [\"lte\"] }`). \
Its subflows are TCP as `tcp` says. **Only on Linux hosts**: the simulator has no model of it and refuses such a flow.\n\n\
The mobile node opens the connection, past Mobile IP: from its own address on the link that it is on. With each access link that comes up and has \
an address it gets a subflow there, and with each that goes down the subflow and the address are taken back, as a network manager does. With make-before-break the \
connection has two subflows during `overlap`; with break-before-make it waits without one until the new link is up. Assists leave it \
alone. It needs Mobile IPv4 with `care_of = \"co-located\"`. Flows with Multipath TCP that share a host share these settings.",
    keys: &[
        key(
            "enabled",
            "true or false",
            "true",
            "Without it the flow is TCP, with Mobile IP: `--vary flow.mptcp.enabled=true,false` compares both.",
        ),
        key(
            "scheduler",
            "text",
            "`\"default\"`",
            "Which subflow carries the next data (`net.mptcp.scheduler`): `\"default\"`, which takes the one that will have sent what it holds \
first, or another one that the kernel has.",
        ),
        key(
            "subflows",
            "whole number",
            "2",
            "How many subflows the connection may have beside its first, 0 to 8 (the limit of the kernel's path manager).",
        ),
        key(
            "backup",
            "link name or array of link names",
            "none",
            "Access links whose subflows carry data only while no other one can.",
        ),
        key(
            "fullmesh",
            "true or false",
            "false",
            "Whether there are subflows to each address of the peer that the connection knows, not only to the one it was opened to.",
        ),
        key(
            "stale_loss_count",
            "whole number",
            "4",
            "After so many retransmission intervals without a sign of life a subflow's data goes to the others, 1 to 255 \
(`net.mptcp.stale_loss_cnt`).",
        ),
    ],
    elsewhere: &[
        ("congestion", "write it in the table of `tcp`: `tcp = { congestion = \"cubic\" }`"),
        ("max_subflows", "write `subflows`"),
        ("path_manager", "write `subflows`, `backup` and `fullmesh`"),
        ("stale_loss_cnt", "write `stale_loss_count`"),
        ("links", "each access link that is up has a subflow; `backup` names those that wait"),
    ],
};
