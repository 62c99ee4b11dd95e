//! Puts mechanisms on a real Linux host, and takes them away again.
