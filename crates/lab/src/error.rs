//! What the operating system refused, and what would make it agree.

use std::{fmt, fs};

use careof_link::ConfigError;
use nix::errno::Errno;

/// A setting of the machine that keeps ordinary users from making namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Barrier {
    /// `kernel.unprivileged_userns_clone = 0` (Debian).
    UnprivilegedUserNamespaces,
    /// `kernel.apparmor_restrict_unprivileged_userns = 1` (Ubuntu): the namespace is made, but gives no capabilities.
    AppArmor,
    /// `user.max_user_namespaces = 0` (Red Hat, hardened systems).
    NoUserNamespaces,
}

impl Barrier {
    const ALL: [(Self, &str, &str); 3] = [
        (Self::UnprivilegedUserNamespaces, "/proc/sys/kernel/unprivileged_userns_clone", "0"),
        (Self::AppArmor, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
        (Self::NoUserNamespaces, "/proc/sys/user/max_user_namespaces", "0"),
    ];

    /// The first one that this machine has.
    pub(crate) fn find() -> Option<Self> {
        let has = |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|found| found.trim() == value);
        Self::ALL.into_iter().find(|(_, path, value)| has(path, value)).map(|(barrier, ..)| barrier)
    }

    /// The setting, as `sysctl` shows it.
    #[must_use]
    pub const fn setting(self) -> &'static str {
        match self {
            Self::UnprivilegedUserNamespaces => "kernel.unprivileged_userns_clone = 0",
            Self::AppArmor => "kernel.apparmor_restrict_unprivileged_userns = 1",
            Self::NoUserNamespaces => "user.max_user_namespaces = 0",
        }
    }

    const fn remedy(self) -> &'static str {
        match self {
            Self::UnprivilegedUserNamespaces => {
                "sudo sysctl -w kernel.unprivileged_userns_clone=1, or run as root"
            }
            Self::AppArmor => "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or run as root",
            Self::NoUserNamespaces => "sudo sysctl -w user.max_user_namespaces=10000, or run as root",
        }
    }
}

/// What keeps a congestion control that can be told of handovers from this kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BpfLack {
    /// This user may not load programs into the kernel.
    Permission {
        /// The system call that failed.
        call: &'static str,
        /// What it returned.
        errno: Errno,
    },
    /// The kernel does not describe its types.
    Types,
    /// It has no such type or function, or another one by that name.
    Type {
        /// Its name.
        name: &'static str,
    },
    /// It refuses a map or a program.
    Refused {
        /// The system call that failed.
        call: &'static str,
        /// What it returned.
        errno: Errno,
        /// What it says about it, in brackets, or nothing.
        reason: String,
    },
}

impl fmt::Display for BpfLack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission { call, errno } => write!(f, "{call}: {}", errno.desc()),
            Self::Types => write!(f, "the kernel does not describe its types in /sys/kernel/btf/vmlinux"),
            Self::Type { name } => write!(f, "the kernel has no {name} that a program could use"),
            Self::Refused { call, errno, reason } => write!(f, "{call}: {}{reason}", errno.desc()),
        }
    }
}

/// The end of a message that names what stands in the way.
fn because(barrier: Option<Barrier>) -> String {
    barrier.map_or_else(String::new, |barrier| format!(" ({})", barrier.setting()))
}

/// Why the lab could not do something.
///
/// The message names what was asked for and the system call that failed; [`Error::remedy`] is the line a
/// command prints below it as a hint.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The kernel or its administrator allows no user namespace to this user.
    #[error("cannot make a user namespace: {call}: {}{}", .errno.desc(), because(*.barrier))]
    NoUserNamespace {
        /// The system call that failed.
        call: &'static str,
        /// What it returned.
        errno: Errno,
        /// The setting that stands in the way, where one was found.
        barrier: Option<Barrier>,
    },
    /// An ordinary user's process must make its user namespace before it starts threads.
    #[error(
        "cannot make a user namespace: unshare(CLONE_NEWUSER) needs a process of one thread, this one has {threads}"
    )]
    SeveralThreads {
        /// Threads of this process.
        threads: usize,
    },
    /// A network namespace was refused.
    #[error("cannot make a network namespace for {host:?}: unshare(CLONE_NEWNET): {}", .errno.desc())]
    NoNetworkNamespace {
        /// Name of the host it was for.
        host: String,
        /// What the system call returned.
        errno: Errno,
    },
    /// A namespace for a host's programs was refused.
    #[error("cannot start programs in {host:?}: {call}: {}", .errno.desc())]
    NoProcessNamespace {
        /// Name of the host.
        host: String,
        /// The system call that failed.
        call: &'static str,
        /// What it returned.
        errno: Errno,
    },
    /// A capability is not there to be kept.
    #[error("the capability {capability} is missing")]
    MissingCapability {
        /// Its name.
        capability: &'static str,
    },
    /// Capabilities belong to threads, and giving them up would leave them to the other ones.
    #[error("cannot give up capabilities: capset reaches one thread, this process has {threads}")]
    CapabilitiesOfThreads {
        /// Threads of this process.
        threads: usize,
    },
    /// The kernel has no such congestion control.
    #[error("there is no congestion control {name:?}: this kernel has {available}")]
    NoCongestionControl {
        /// The name.
        name: String,
        /// The names it has.
        available: String,
    },
    /// The kernel has it, but its administrator keeps it from others than root.
    #[error("the congestion control {name:?} is not allowed here: allowed are {allowed}")]
    CongestionControlNotAllowed {
        /// The name.
        name: String,
        /// The names that are allowed.
        allowed: String,
    },
    /// The kernel, or its administrator, gives no congestion control that can be told of handovers.
    #[error("cannot tell the kernel's TCP of handovers ({base}): {lack}")]
    NoToldCongestion {
        /// The congestion control that was to be told.
        base: &'static str,
        /// What is missing.
        lack: BpfLack,
    },
    /// The kernel has no Multipath TCP, or it is off.
    #[error("there is no Multipath TCP here: {call}: {}", .errno.desc())]
    NoMptcp {
        /// What failed.
        call: &'static str,
        /// What it returned.
        errno: Errno,
    },
    /// There is no TUN device in this system.
    #[error("cannot make the interface {interface:?}: open(/dev/net/tun): {}", .errno.desc())]
    NoTunDevice {
        /// Name of the interface it was for.
        interface: String,
        /// What the system call returned: `ENOENT`, `ENODEV` when the kernel has no driver behind the file, `EPERM`
        /// in a container without the device.
        errno: Errno,
    },
    /// This user may not open the TUN device.
    #[error(
        "cannot make the interface {interface:?}: open(/dev/net/tun): {}; its mode is {mode:04o}, an ordinary user needs 0666",
        Errno::EACCES.desc()
    )]
    TunDeviceMode {
        /// Name of the interface it was for.
        interface: String,
        /// The permission bits of `/dev/net/tun`.
        mode: u32,
    },
    /// A name that no interface can have.
    #[error("{name:?} cannot name an interface: 1 to 15 bytes, without '/', spaces and zeros")]
    InterfaceName {
        /// The name.
        name: String,
    },
    /// Any other system call that failed.
    #[error("cannot {doing}: {call}: {}", .errno.desc())]
    System {
        /// What it was for, to follow "cannot".
        doing: String,
        /// The system call, or the netlink request.
        call: &'static str,
        /// What it returned.
        errno: Errno,
    },
    /// The kernel's answer to a netlink request could not be read.
    #[error("cannot {doing}: netlink: {problem}")]
    Netlink {
        /// What it was for, to follow "cannot".
        doing: String,
        /// What was found.
        problem: String,
    },
    /// The thread that held a host has ended.
    #[error("the host {host:?} is gone")]
    HostGone {
        /// Its name.
        host: String,
    },
    /// The emulator's thread has ended.
    #[error("the link emulator has ended")]
    EmulatorGone,
    /// A link that this emulator does not have.
    #[error("the emulator has no such link")]
    NoSuchLink,
    /// A link configuration that states no law.
    #[error("the link {link:?} cannot be made: {problem}")]
    LinkConfig {
        /// Name of the link.
        link: String,
        /// What is wrong.
        problem: ConfigError,
    },
    /// A medium configuration that states no law.
    #[error("the medium {medium:?} cannot be made: {problem}")]
    MediumConfig {
        /// Name of the medium.
        medium: String,
        /// What is wrong.
        problem: ConfigError,
    },
    /// A link between stations that are not two stations of its medium.
    #[error("the link {link:?} does not join two stations of a medium of this emulator")]
    NoSuchStation {
        /// Name of the link.
        link: String,
    },
    /// Other laws for one link of a medium.
    #[error("a link on a medium has no laws of its own")]
    LawsOfMedium,
    /// A shortcut between links that do not begin at one station of one medium, or for more bits than an address has.
    #[error("a shortcut leads from a link on a medium to another one of the same station there")]
    NoShortcut,
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>, call: &'static str, errno: Errno) -> Self {
        Self::System { doing: doing.into(), call, errno }
    }

    /// The command, or the change, that would make it work; `None` where there is none to name.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NoUserNamespace { barrier: Some(barrier), .. } => Some(barrier.remedy()),
            Self::NoUserNamespace { errno: Errno::ENOSPC, .. } => {
                Some("sudo sysctl -w user.max_user_namespaces=10000, or run as root")
            }
            Self::NoUserNamespace { errno: Errno::EINVAL, .. } => {
                Some("run as root, or a kernel with CONFIG_USER_NS=y")
            }
            Self::NoUserNamespace { .. } => Some(
                "sudo sysctl -w kernel.unprivileged_userns_clone=1 (Debian) or \
                 kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), or run as root",
            ),
            Self::SeveralThreads { .. } => Some(
                "call Realm::enter at the start of the program, or start it with `unshare --user --map-root-user`",
            ),
            Self::NoNetworkNamespace { errno: Errno::ENOSPC, .. } => {
                Some("sudo sysctl -w user.max_net_namespaces=10000")
            }
            Self::NoNetworkNamespace { errno: Errno::EINVAL, .. } => Some("a kernel with CONFIG_NET_NS=y"),
            Self::NoNetworkNamespace { .. } => {
                Some("in a container, give it CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN)")
            }
            Self::NoProcessNamespace { errno: Errno::ENOSPC, .. } => {
                Some("sudo sysctl -w user.max_pid_namespaces=10000 user.max_mnt_namespaces=10000")
            }
            Self::NoProcessNamespace { errno: Errno::EINVAL, .. } => Some("a kernel with CONFIG_PID_NS=y"),
            Self::NoProcessNamespace { errno: Errno::EPERM, .. } => {
                Some("in a container, give it CAP_SYS_ADMIN (docker run --cap-add SYS_ADMIN)")
            }
            Self::MissingCapability { .. } => Some(
                "run as root, or sudo setcap cap_net_admin,cap_net_raw+ep on the program, or AmbientCapabilities= \
                 in its systemd unit",
            ),
            Self::CapabilitiesOfThreads { .. } => Some("give them up at the start of the program"),
            Self::NoToldCongestion { lack: BpfLack::Permission { .. }, .. } => Some(
                "run as root (this takes CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, not those of a user namespace), or use the \
                 simulator",
            ),
            Self::NoToldCongestion { .. } => Some(
                "a kernel since 6.4 with CONFIG_DEBUG_INFO_BTF=y, CONFIG_BPF_JIT=y and this congestion control built in, or use \
                 the simulator",
            ),
            Self::NoCongestionControl { name, .. } => Some(match name.as_str() {
                "bbr" => "sudo modprobe tcp_bbr",
                "cubic" => "sudo modprobe tcp_cubic",
                "dctcp" => "sudo modprobe tcp_dctcp",
                "htcp" => "sudo modprobe tcp_htcp",
                "hybla" => "sudo modprobe tcp_hybla",
                "illinois" => "sudo modprobe tcp_illinois",
                "vegas" => "sudo modprobe tcp_vegas",
                "veno" => "sudo modprobe tcp_veno",
                "westwood" => "sudo modprobe tcp_westwood",
                _ => "sudo modprobe tcp_NAME, where the kernel has it as a module; reno is always there",
            }),
            Self::CongestionControlNotAllowed { .. } => Some(
                "sudo sysctl -w net.ipv4.tcp_allowed_congestion_control=\
                 \"$(sysctl -n net.ipv4.tcp_available_congestion_control)\"",
            ),
            Self::NoMptcp { .. } => Some(
                "a kernel since 5.17 with CONFIG_MPTCP=y and net.mptcp.enabled = 1, or leave `mptcp` out: TCP then, with Mobile IP",
            ),
            Self::NoTunDevice { errno: Errno::ENOENT, .. } => Some(
                "sudo sh -c 'modprobe tun; mkdir -p /dev/net; mknod -m 0666 /dev/net/tun c 10 200'; \
                 in a container, --device /dev/net/tun",
            ),
            Self::NoTunDevice { errno: Errno::EPERM, .. } => {
                Some("the container's devices do not include it: docker run --device /dev/net/tun")
            }
            Self::NoTunDevice { .. } => Some("sudo modprobe tun, or a kernel with CONFIG_TUN=y"),
            Self::TunDeviceMode { .. } => Some("sudo chmod 0666 /dev/net/tun"),
            Self::System { call, errno: Errno::EPERM | Errno::EACCES, .. }
                if call.starts_with("RTM_") || *call == "ioctl(TUNSETIFF)" =>
            {
                Some("this takes CAP_NET_ADMIN: run as root, or sudo setcap cap_net_admin+ep on the program")
            }
            Self::System { call: "RTM_NEWLINK(veth)", errno: Errno::EOPNOTSUPP, .. } => {
                Some("sudo modprobe veth, or a kernel with CONFIG_VETH=y")
            }
            Self::System { call: "socket(NETLINK_SOCK_DIAG)" | "SOCK_DIAG_BY_FAMILY", .. } => {
                Some("sudo modprobe tcp_diag, or a kernel with CONFIG_INET_TCP_DIAG=y")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_call_and_a_remedy() {
        let error = Error::TunDeviceMode { interface: "up0".to_owned(), mode: 0o600 };
        assert_eq!(
            error.to_string(),
            "cannot make the interface \"up0\": open(/dev/net/tun): Permission denied; its mode is 0600, \
             an ordinary user needs 0666"
        );
        assert_eq!(error.remedy(), Some("sudo chmod 0666 /dev/net/tun"));
    }

    #[test]
    fn a_setting_that_stands_in_the_way_is_named_with_its_opposite() {
        let error = Error::NoUserNamespace {
            call: "write(/proc/self/uid_map)",
            errno: Errno::EPERM,
            barrier: Some(Barrier::AppArmor),
        };
        assert_eq!(
            error.to_string(),
            "cannot make a user namespace: write(/proc/self/uid_map): Operation not permitted \
             (kernel.apparmor_restrict_unprivileged_userns = 1)"
        );
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("unprivileged_userns=0")));
    }

    #[test]
    fn what_takes_a_privilege_says_which() {
        let error = Error::system("add a route", "RTM_NEWROUTE", Errno::EPERM);
        assert!(error.remedy().is_some_and(|remedy| remedy.contains("CAP_NET_ADMIN")));
        assert_eq!(Error::system("add a route", "RTM_NEWROUTE", Errno::EINVAL).remedy(), None);
    }
}
