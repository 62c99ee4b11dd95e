//! [`ProcessorSampler`] samples the code that the processors run for a live server.

use plimsoll_bpf::Profile;

use crate::profile::{HERTZ, ProfileReport, SampledPlace};
use crate::symbols::Symbols;
use crate::{Error, Target};

/// A server whose processor use is sampled as long as this value exists.
#[derive(Debug)]
pub struct ProcessorSampler(Profile);

impl ProcessorSampler {
    /// Samples every processor on which a thread of the server runs, [`HERTZ`] times a second.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the program cannot be loaded, or the kernel has no clock for it.
    pub fn begin(target: &Target) -> Result<ProcessorSampler, Error> {
        let mut profile = Profile::load()?;
        target.processes.iter().try_for_each(|process| profile.add_process(*process))?;
        profile.attach(HERTZ)?;
        Ok(ProcessorSampler(profile))
    }

    /// Ends the sampling, and names the functions with the most samples. The processes must still run for their names.
    ///
    /// # Errors
    /// Returns [`Error::Programs`] if the samples cannot be read.
    pub fn end(mut self, most: usize, symbols: &mut Symbols) -> Result<ProfileReport, Error> {
        self.0.detach();
        let stack =
            |number: u64| number.checked_sub(1).map_or(Ok(Vec::new()), |number| self.0.stack(number as u32));
        let mut places = Vec::new();
        for (place, samples) in self.0.samples()? {
            places.push(SampledPlace {
                process: place.process as u32,
                address: place.address,
                user_stack: stack(place.user_stack)?,
                kernel_stack: stack(place.kernel_stack)?,
                samples,
            });
        }
        Ok(ProfileReport::new(&places, self.0.lost()?, most, symbols))
    }
}
