//! What holds of the repository's files: the English of its prose, its links, the recipes of CONTRIBUTING, and the
//! directions between crates and between files. All of it is tests, which `make lint` runs in seconds; nothing else of
//! the repository is compiled for them.

#![forbid(unsafe_code)]
