//! [`ProfileReport`]: which functions the processors ran for the server, by samples.

use hashbrown::HashMap;
use serde::Serialize;

use crate::symbols::{Symbol, Symbols};

/// The functions that the server's processors ran, by samples of their clocks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ProfileReport {
    /// The samples in all threads of the server.
    pub samples: u64,
    /// The share of them in the kernel, 0 to 1.
    pub kernel_share: f64,
    /// The samples that found no room, and are in no function.
    pub lost: u64,
    /// The functions with the most samples, the first the most.
    pub hottest: Vec<HotFunction>,
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
}

/// A place at which samples were taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SampledPlace {
    /// The process whose code it is; none for the kernel.
    pub process: Option<u32>,
    /// The address of the instruction.
    pub address: u64,
    /// The number of samples there.
    pub samples: u64,
}

impl ProfileReport {
    /// Sums the samples by function, and keeps the `most` with the most of them.
    pub fn new(places: &[SampledPlace], lost: u64, most: usize, symbols: &mut Symbols) -> ProfileReport {
        let samples: u64 = places.iter().map(|place| place.samples).sum();
        let share = |part: u64| part as f64 / samples.max(1) as f64;
        let mut by_function: HashMap<Symbol, u64> = HashMap::new();
        for place in places {
            let mut symbol = match place.process {
                None => symbols.of_kernel(place.address),
                Some(process) => symbols.of_process(process, place.address),
            };
            if !symbol.is_named() {
                UNNAMED.clone_into(&mut symbol.function);
            }
            *by_function.entry(symbol).or_default() += place.samples;
        }
        let mut hottest: Vec<HotFunction> = by_function
            .into_iter()
            .map(|(symbol, samples)| HotFunction { symbol, samples, share: share(samples) })
            .collect();
        hottest.sort_by(|a, b| (b.samples, &a.symbol).cmp(&(a.samples, &b.symbol)));
        hottest.truncate(most);
        let in_kernel = places.iter().filter(|place| place.process.is_none());
        let kernel_share = share(in_kernel.map(|place| place.samples).sum());
        ProfileReport { samples, kernel_share, lost, hottest }
    }
}

/// Name for all functions of a file that it does not name.
const UNNAMED: &str = "(no symbol)";

/// Samples a second of a processor's time. It is no multiple of what timers are set to, so that samples do not fall in
/// step with the work.
pub const HERTZ: u64 = 499;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_by_function_and_the_most_come_first() {
        let own = (samples_are_summed_by_function_and_the_most_come_first as fn()) as usize as u64;
        let at = |process, address, samples| SampledPlace { process, address, samples };
        let this = Some(std::process::id());
        let places = [at(this, 1, 5), at(this, own, 2), at(this, own + 1, 4), at(None, u64::MAX, 9)];
        let report = ProfileReport::new(&places, 3, 3, &mut Symbols::default());
        assert_eq!((report.samples, report.lost), (20, 3));
        assert!((report.kernel_share - 0.45).abs() < 1e-12);
        let found: Vec<u64> = report.hottest.iter().map(|hot| hot.samples).collect();
        assert_eq!(found, [9, 6, 5]);
        assert_eq!(report.hottest[0].symbol.module, "kernel");
        assert!(report.hottest[1].symbol.function.ends_with("the_most_come_first"), "{report:?}");
        assert_eq!(report.hottest[2].symbol.function, UNNAMED);
    }
}
