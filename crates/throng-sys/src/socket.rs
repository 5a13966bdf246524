//! Socket options without support in `rustix`.

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::io::Errno;

/// Makes bind(2) with port 0 choose the address only. connect(2) chooses the port, so that it is in
/// use for one destination only, not for all (`IP_BIND_ADDRESS_NO_PORT`, Linux 4.2;
/// for IPv6 too).
///
/// # Errors
/// As setsockopt(2).
pub fn leave_port_to_connect(socket: impl AsFd) -> Result<(), Errno> {
    set(socket, libc::SOL_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)
}

/// Sets the number of SYN retries before connect(2) fails (`TCP_SYNCNT`), from 1 to 127.
///
/// # Errors
/// As setsockopt(2).
pub fn set_syn_retries(socket: impl AsFd, retries: u8) -> Result<(), Errno> {
    set(
        socket,
        libc::SOL_TCP,
        libc::TCP_SYNCNT,
        libc::c_int::from(retries),
    )
}

fn set(
    socket: impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> Result<(), Errno> {
    let fd = socket.as_fd().as_raw_fd();
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes from `value`, which lives through the call.
    let outcome = unsafe { libc::setsockopt(fd, level, option, (&raw const value).cast(), length) };
    if outcome == 0 {
        Ok(())
    } else {
        let error = std::io::Error::last_os_error();
        Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    use std::net::SocketAddr;

    use super::*;

    fn bound_port(family: AddressFamily, address: &str) -> u16 {
        let socket = socket(family, SocketType::STREAM, None).unwrap();
        leave_port_to_connect(&socket).unwrap();
        bind(&socket, &address.parse::<SocketAddr>().unwrap()).unwrap();
        let name: SocketAddr = getsockname(&socket).unwrap().try_into().unwrap();
        name.port()
    }

    #[test]
    fn bind_chooses_no_port() {
        assert_eq!(bound_port(AddressFamily::INET, "127.0.0.9:0"), 0);
        if std::fs::exists("/proc/net/if_inet6").unwrap_or(false) {
            assert_eq!(bound_port(AddressFamily::INET6, "[::1]:0"), 0);
        }
    }

    #[test]
    fn the_kernel_bounds_retries() {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        assert_eq!(set_syn_retries(&socket, 1), Ok(()));
        assert_eq!(set_syn_retries(&socket, 0), Err(Errno::INVAL));
    }
}
