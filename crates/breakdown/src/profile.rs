//! [`ProfileReport`]: which functions the processors ran for the server, by samples.

use std::collections::BTreeSet;

use hashbrown::HashMap;
use serde::Serialize;

use crate::symbols::{KERNEL, Symbol, Symbols};

/// The functions that the server's processors ran, by samples of their clocks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProfileReport {
    /// The samples in all threads of the server.
    pub samples: u64,
    /// The share of them in the kernel, 0 to 1.
    pub kernel_share: f64,
    /// The samples that found no room, and are in no function.
    pub lost: u64,
    /// The share of the samples at which no caller of the server's innermost function is known, since that has no frame
    /// pointer, 0 to 1.
    pub share_without_callers: f64,
    /// The functions with the most samples, the first the most.
    pub hottest: Vec<HotFunction>,
    /// The call stacks of all samples, the commonest first.
    #[serde(skip)]
    pub stacks: Vec<CallStack>,
}

/// Functions that called each other, with their samples.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallStack {
    /// The functions, the outermost first.
    pub functions: Vec<Symbol>,
    /// The samples in the innermost one.
    pub samples: u64,
}

/// A function with its share of the samples.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HotFunction {
    /// The function; its name is that of the innermost one that was not inlined.
    #[serde(flatten)]
    pub symbol: Symbol,
    /// The samples in it, without the functions that it calls.
    pub samples: u64,
    /// Their share of all samples, 0 to 1.
    pub share: f64,
    /// The share of the samples in it and in the functions that it calls, as far as these have frame pointers, 0 to 1.
    pub share_with_callees: f64,
}

/// A place at which samples were taken, with the addresses that led to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SampledPlace {
    /// The process that the processor worked for.
    pub process: u32,
    /// The address of the instruction.
    pub address: u64,
    /// Addresses of the process's code, the innermost first: an instruction, then one behind each call. The chain of
    /// frames ends at an address outside code.
    pub user_stack: Vec<u64>,
    /// The same of the kernel's code.
    pub kernel_stack: Vec<u64>,
    /// The number of samples there.
    pub samples: u64,
}

impl SampledPlace {
    /// Returns whether the instruction is the kernel's, whose addresses are in the upper half.
    fn is_in_kernel(&self) -> bool {
        self.address >> 63 == 1
    }

    /// Returns the functions that called each other, the outermost first.
    fn functions(&self, symbols: &mut Symbols) -> CallStack {
        let mut user = Vec::new();
        let own = if self.is_in_kernel() { None } else { Some(self.address) };
        for address in calls(own, &self.user_stack) {
            if Some(address) != own && !symbols.is_code(self.process, address) {
                break;
            }
            user.push(named(symbols.of_process(self.process, address)));
        }
        let own = self.is_in_kernel().then_some(self.address);
        let kernel = calls(own, &self.kernel_stack).map(|address| named(symbols.of_kernel(address)));
        let mut functions: Vec<Symbol> = kernel.collect();
        functions.append(&mut user);
        functions.reverse();
        CallStack { functions, samples: self.samples }
    }
}

/// Returns the address of an instruction, and one in each call of the stack above it: the address behind a call may be
/// the begin of the next function. Without that instruction, the first of the stack is behind a system call.
fn calls(own: Option<u64>, stack: &[u64]) -> impl Iterator<Item = u64> {
    let above = if own.is_some() { stack.get(1..) } else { Some(stack) };
    own.into_iter().chain(above.unwrap_or_default().iter().map(|address| address.saturating_sub(1)))
}

/// Gives all functions that a file does not name one name.
fn named(mut symbol: Symbol) -> Symbol {
    if !symbol.is_named() {
        UNNAMED.clone_into(&mut symbol.function);
    }
    symbol
}

impl ProfileReport {
    /// Sums the samples by stack and by function, and keeps the `most` functions with the most of them.
    pub fn new(places: &[SampledPlace], lost: u64, most: usize, symbols: &mut Symbols) -> ProfileReport {
        let samples: u64 = places.iter().map(|place| place.samples).sum();
        let share = |part: u64| part as f64 / samples.max(1) as f64;
        let (mut by_stack, mut without_callers) = (HashMap::<Vec<Symbol>, u64>::new(), 0);
        for place in places {
            let CallStack { functions, samples } = place.functions(symbols);
            if functions.iter().filter(|symbol| symbol.module != KERNEL).count() < 2 {
                without_callers += samples;
            }
            *by_stack.entry(functions).or_default() += samples;
        }
        // Samples of each function: in itself, and including its callees.
        let mut by_function: HashMap<&Symbol, (u64, u64)> = HashMap::new();
        for (functions, samples) in &by_stack {
            let distinct: BTreeSet<&Symbol> = functions.iter().collect();
            distinct.into_iter().for_each(|symbol| by_function.entry(symbol).or_default().1 += samples);
            if let Some(innermost) = functions.last() {
                by_function.entry(innermost).or_default().0 += samples;
            }
        }
        let hot = |(symbol, (own, all)): (&Symbol, (u64, u64))| HotFunction {
            symbol: symbol.clone(),
            samples: own,
            share: share(own),
            share_with_callees: share(all),
        };
        let mut hottest: Vec<HotFunction> =
            by_function.into_iter().filter(|(_, (own, _))| *own > 0).map(hot).collect();
        hottest.sort_by(|a, b| (b.samples, &a.symbol).cmp(&(a.samples, &b.symbol)));
        hottest.truncate(most);
        let mut stacks: Vec<CallStack> =
            by_stack.into_iter().map(|(functions, samples)| CallStack { functions, samples }).collect();
        stacks.sort_by(|a, b| (b.samples, &a.functions).cmp(&(a.samples, &b.functions)));
        let in_kernel = places.iter().filter(|place| place.is_in_kernel());
        let kernel_share = share(in_kernel.map(|place| place.samples).sum());
        let share_without_callers = share(without_callers);
        ProfileReport { samples, kernel_share, lost, share_without_callers, hottest, stacks }
    }

    /// Returns the stacks as lines of text for programs that draw flame graphs: functions, the outermost first, with
    /// semicolons between, and the number of samples. The kernel's functions end in `_[k]`.
    pub fn folded(&self, server: &str) -> String {
        let mut text = String::new();
        let word = |name: &str| name.replace([';', '\n'], ":");
        for CallStack { functions, samples } in &self.stacks {
            text += &word(server);
            for Symbol { function, module } in functions {
                text += ";";
                text += &match function.as_str() {
                    UNNAMED => format!("[{}]", word(module)),
                    function if module == KERNEL => format!("{}_[k]", word(function)),
                    function => word(function),
                };
            }
            text += &format!(" {samples}\n");
        }
        text
    }
}

/// Name for all functions of a file that it does not name.
const UNNAMED: &str = "(no symbol)";

/// Samples a second of a processor's time. It is not a multiple of usual timer rates, so that samples do not fall in
/// step with the work.
pub const HERTZ: u64 = 499;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_by_function_and_the_most_come_first() {
        let own = (samples_are_summed_by_function_and_the_most_come_first as fn()) as usize as u64;
        let caller = (folded_stacks_are_lines as fn()) as usize as u64;
        let at = |address, samples, user_stack: &[u64], kernel_stack: &[u64]| SampledPlace {
            process: std::process::id(),
            address,
            samples,
            user_stack: user_stack.to_vec(),
            kernel_stack: kernel_stack.to_vec(),
        };
        let places = [
            at(1, 5, &[], &[]),
            // An address outside code ends the chain.
            at(own, 2, &[own, caller + 1, 1, caller + 1], &[]),
            at(own + 1, 4, &[own + 1], &[]),
            at(u64::MAX, 9, &[own + 1, caller + 1], &[u64::MAX, u64::MAX]),
        ];
        let report = ProfileReport::new(&places, 3, 3, &mut Symbols::default());
        assert_eq!((report.samples, report.lost), (20, 3));
        assert!((report.kernel_share - 0.45).abs() < 1e-12);
        let found: Vec<u64> = report.hottest.iter().map(|hot| hot.samples).collect();
        assert_eq!(found, [9, 6, 5]);
        assert_eq!(report.hottest[0].symbol.module, "kernel");
        assert!(report.hottest[1].symbol.function.ends_with("the_most_come_first"), "{report:?}");
        assert_eq!(report.hottest[2].symbol.function, UNNAMED);
        let with_callees: Vec<f64> = report.hottest.iter().map(|hot| hot.share_with_callees).collect();
        assert_eq!(with_callees, [0.45, 0.75, 0.25]);
        assert!((report.share_without_callers - 0.45).abs() < 1e-12, "{report:?}");
        let longest = report.stacks.iter().find(|stack| stack.samples == 9).expect("the stack is there");
        let modules: Vec<bool> = longest.functions.iter().map(|symbol| symbol.module == KERNEL).collect();
        assert_eq!(modules, [false, false, true, true], "{longest:?}");
    }

    #[test]
    fn folded_stacks_are_lines() {
        let symbol =
            |function: &str, module: &str| Symbol { function: function.into(), module: module.into() };
        let functions =
            vec![symbol("main", "server"), symbol(UNNAMED, "lib.so"), symbol("a::<b; 2>", "server")];
        let mut in_kernel = functions.clone();
        in_kernel.push(symbol("tcp_sendmsg", KERNEL));
        let report = ProfileReport {
            samples: 10,
            kernel_share: 0.7,
            lost: 0,
            share_without_callers: 0.0,
            hottest: Vec::new(),
            stacks: vec![CallStack { functions: in_kernel, samples: 7 }, CallStack { functions, samples: 3 }],
        };
        let expected = "x;main;[lib.so];a::<b: 2>;tcp_sendmsg_[k] 7\nx;main;[lib.so];a::<b: 2> 3\n";
        assert_eq!(report.folded("x"), expected);
    }
}
