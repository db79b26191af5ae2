//! What the operating system refused, and what would make it agree.

use careof_link::ConfigError;
use nix::errno::Errno;

/// Why the lab could not do something.
///
/// The message names what was asked for and the system call that failed; [`Error::remedy`] is the line a
/// command prints below it as a hint.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    /// The kernel or its administrator allows no user namespace to this user.
    #[error("cannot make a user namespace: unshare(CLONE_NEWUSER): {}", .errno.desc())]
    NoUserNamespace {
        /// What the system call returned.
        errno: Errno,
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
    /// There is no TUN device in this system.
    #[error("cannot make the interface {interface:?}: open(/dev/net/tun): {}", .errno.desc())]
    NoTunDevice {
        /// Name of the interface it was for.
        interface: String,
        /// What the system call returned: `ENOENT`, or `ENODEV` when the kernel has no driver behind the file.
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
}

impl Error {
    pub(crate) fn system(doing: impl Into<String>, call: &'static str, errno: Errno) -> Self {
        Self::System { doing: doing.into(), call, errno }
    }

    /// The command, or the change, that would make it work; `None` where there is none to name.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::NoUserNamespace { errno: Errno::ENOSPC } => {
                Some("sudo sysctl -w user.max_user_namespaces=10000, or run as root")
            }
            Self::NoUserNamespace { errno: Errno::EINVAL } => {
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
            Self::NoTunDevice { errno: Errno::ENOENT, .. } => Some(
                "sudo sh -c 'modprobe tun; mkdir -p /dev/net; mknod -m 0666 /dev/net/tun c 10 200'; \
                 in a container, --device /dev/net/tun",
            ),
            Self::NoTunDevice { .. } => Some("sudo modprobe tun, or a kernel with CONFIG_TUN=y"),
            Self::TunDeviceMode { .. } => Some("sudo chmod 0666 /dev/net/tun"),
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
}
