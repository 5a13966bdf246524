//! Clients on made-up time.
