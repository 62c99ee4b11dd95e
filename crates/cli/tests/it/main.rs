//! The tests of `plimsoll-cli`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod browser;
mod bursts;
mod calibrate;
mod capture;
mod circuits;
mod columns;
mod commands;
mod common;
mod compare;
mod damage;
mod exchange;
mod explore;
mod figures;
mod hostile;
mod import;
mod install;
mod kept;
mod limits;
mod line;
mod models;
mod pages;
mod parity;
mod replay;
mod run;
mod sbatch;
mod stopped;
mod streams;
mod workers;
