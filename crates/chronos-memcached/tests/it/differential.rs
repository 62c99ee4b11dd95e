//! The same bytes to memcached 1.6.18 and to this server: the answers must be the same.

mod binary;
mod conversation;
mod counters;
mod dump;
mod flags;
mod http;
mod logins;
mod meta;
mod numbers;
mod program;
mod random;
mod silent;
mod sizes;
mod text;
