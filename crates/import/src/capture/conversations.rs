//! [`Conversations`]: those under way, in two generations: when the younger is full, the older is ended.

use hashbrown::HashMap;

use super::classes::ClassOf;
use super::collected::Collected;
use super::conversation::Conversation;
use super::ends::Endpoints;

/// The conversations under way.
pub(super) struct Conversations {
    young: HashMap<Endpoints, Conversation>,
    old: HashMap<Endpoints, Conversation>,
    most: usize,
    peak: usize,
}

impl Conversations {
    pub(super) fn new(most: usize) -> Conversations {
        Conversations { young: HashMap::new(), old: HashMap::new(), most: most.max(1), peak: 0 }
    }

    /// Returns the conversation of these ends; `None` if there is none and the packet does not open one.
    pub(super) fn get(
        &mut self,
        ends: Endpoints,
        opens: bool,
        class: impl FnOnce() -> ClassOf,
        collected: &mut Collected,
    ) -> Option<&mut Conversation> {
        if !self.young.contains_key(&ends) {
            let known = self.old.remove(&ends);
            if known.is_none() && !opens {
                return None;
            }
            if self.young.len() >= self.most {
                end_all(&mut self.old, &mut |conversation| conversation.end(collected));
                self.old = std::mem::take(&mut self.young);
            }
            let conversation = known.unwrap_or_else(|| Conversation::new(class(), collected));
            self.young.insert(ends, conversation);
            self.peak = self.peak.max(self.young.len() + self.old.len());
        }
        self.young.get_mut(&ends)
    }

    /// Ends all conversations.
    pub(super) fn finish(&mut self, mut end: impl FnMut(&mut Conversation)) {
        end_all(&mut self.old, &mut end);
        end_all(&mut self.young, &mut end);
    }

    /// Returns the most conversations that were kept at once.
    pub(super) fn peak(&self) -> usize {
        self.peak
    }
}

/// Ends the conversations of a generation, in the order of their ends.
fn end_all(generation: &mut HashMap<Endpoints, Conversation>, end: &mut dyn FnMut(&mut Conversation)) {
    let mut all: Vec<(Endpoints, Conversation)> = generation.drain().collect();
    all.sort_by_key(|(ends, _)| *ends);
    all.iter_mut().for_each(|(_, conversation)| end(conversation));
}
