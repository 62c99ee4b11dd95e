//! [`Request`]: one command on one key, of any of the protocols.
//!
//! A request is flat, because it travels: its [`RequestHead`] is copied unchanged into the message to another thread,
//! and the key, the meta tokens and the value follow.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, TryFromBytes};

/// A command on a key, which a name in text or an opcode of the binary protocol selects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The operation on the key.
    pub verb: Verb,
    /// The arguments that follow.
    pub arguments: Arguments,
    /// The flags of its requests, from [`Bits`].
    pub bits: u32,
}

/// Arguments of a command besides its key: words in text, extras and a value in the binary protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arguments {
    /// No arguments; text takes several keys.
    Keys,
    /// An expiry time; text takes several keys behind it.
    ExpiryAndKeys,
    /// No arguments; text takes one key.
    Key,
    /// An expiry time; text takes one key.
    Expiry,
    /// A number to add or to subtract; in binary also the number to create on a miss, and its expiry time.
    Number,
    /// The client's flags, an expiry time and a value.
    Value,
    /// As `Value` in text, and a value alone in binary.
    Piece,
}

/// Declares [`Verb`], and the commands of text and binary on a key. A row has the verb, its arguments, its names in
/// text and its opcodes, each with the bits of its requests, and the reply of text to a success, if that is a word.
/// Verbs of other requests follow.
macro_rules! commands {
    (
        $($(#[$doc:meta])* $verb:ident: $arguments:ident,
            [$($name:literal => $name_bits:expr),*], [$($opcode:literal => $opcode_bits:expr),*], $success:literal;)*
        ---
        $($(#[$other_doc:meta])* $other:ident,)*
    ) => {
        /// The operation on the key.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
        #[repr(u8)]
        pub enum Verb {
            $($(#[$doc])* $verb,)*
            $($(#[$other_doc])* $other,)*
        }

        impl Verb {
            /// Returns the line with which the text protocol reports a success.
            #[inline]
            pub fn success(self) -> &'static [u8] {
                match self {
                    $(Verb::$verb => concat!($success, "\r\n").as_bytes(),)*
                    $(Verb::$other => b"",)*
                }
            }
        }

        impl Command {
            fn new(verb: Verb, arguments: Arguments, bits: u32) -> Option<Command> {
                Some(Command { verb, arguments, bits })
            }

            /// Returns the command of text with this name.
            #[inline]
            pub fn of_name(name: &[u8]) -> Option<Command> {
                match name {
                    $($($name => Command::new(Verb::$verb, Arguments::$arguments, $name_bits),)*)*
                    _ => None,
                }
            }

            /// Returns the command of the binary protocol with this opcode.
            #[inline]
            pub fn of_opcode(opcode: u8) -> Option<Command> {
                match opcode {
                    $($($opcode => Command::new(Verb::$verb, Arguments::$arguments, $opcode_bits),)*)*
                    _ => None,
                }
            }
        }
    };
}

commands! {
    /// Fetches the key's item.
    Get: Keys, [b"get" => 0, b"bget" => 0, b"gets" => Bits::CAS],
        [0x00 => 0, 0x09 => Bits::QUIET, 0x0c => Bits::VALUE, 0x0d => Bits::VALUE | Bits::QUIET], "";
    /// Fetches an item and sets its expiry time.
    GetTouch: ExpiryAndKeys, [b"gat" => 0, b"gats" => Bits::CAS],
        [0x1d => 0, 0x1e => Bits::QUIET, 0x23 => Bits::VALUE, 0x24 => Bits::VALUE | Bits::QUIET], "";
    /// Sets the expiry time of an item.
    Touch: Expiry, [b"touch" => 0], [0x1c => 0], "TOUCHED";
    /// Stores an item in any case.
    Set: Value, [b"set" => 0], [0x01 => 0, 0x11 => Bits::QUIET], "STORED";
    /// Stores an item if there is none.
    Add: Value, [b"add" => 0], [0x02 => 0, 0x12 => Bits::QUIET], "STORED";
    /// Stores an item if there is one.
    Replace: Value, [b"replace" => 0], [0x03 => 0, 0x13 => Bits::QUIET], "STORED";
    /// Appends to the value of an item.
    Append: Piece, [b"append" => 0], [0x0e => 0, 0x19 => Bits::QUIET], "STORED";
    /// Prepends to the value of an item.
    Prepend: Piece, [b"prepend" => 0], [0x0f => 0, 0x1a => Bits::QUIET], "STORED";
    /// Stores an item if the cas value is the request's.
    Cas: Value, [b"cas" => 0], [], "STORED";
    /// Adds to the number in an item.
    Increment: Number, [b"incr" => 0], [0x05 => 0, 0x15 => Bits::QUIET], "";
    /// Subtracts from the number in an item, not below 0.
    Decrement: Number, [b"decr" => 0], [0x06 => 0, 0x16 => Bits::QUIET], "";
    /// Deletes the key's item.
    Delete: Key, [b"delete" => 0], [0x04 => 0, 0x14 => Bits::QUIET], "DELETED";
    ---
    /// Removes the item, because the new value was too large to take; nothing is answered.
    Evict,
    /// Meta: reports the state of an item, for debugging.
    Inspect,
    /// Reports a page of items, one line each.
    Dump,
    /// Everywhere: starts the search for expired items in the next idle moment.
    Crawl,
    /// Everywhere: reports items of a class, one line each.
    Cachedump,
    /// Everywhere: removes all items.
    Flush,
    /// Everywhere: reports counters of one kind, see `mode` and [`crate::stats::Report`].
    Stats,
    /// Everywhere: sets the counters to zero.
    ResetStats,
}

impl Verb {
    /// Returns whether a request is answered with the value of an item.
    #[inline]
    pub fn is_fetch(self) -> bool {
        matches!(self, Verb::Get | Verb::GetTouch)
    }
}

/// The style of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(u8)]
pub enum ReplyStyle {
    /// The text protocol: get, set, ...
    Text,
    /// The meta commands: mg, ms, ...
    Meta,
    /// The binary protocol, with a header of 24 bytes.
    Binary,
}

/// Bits of `Head::bits`.
pub struct Bits;

impl Bits {
    /// Do not answer (text), or not on success (meta, binary).
    pub const QUIET: u32 = 1;
    /// Text: answer with the cas value. Meta set: compare it.
    pub const CAS: u32 = 1 << 1;
    /// Text get: the last key, after which END is written.
    pub const END: u32 = 1 << 2;
    /// Meta: answer with the value. Binary: answer with the key.
    pub const VALUE: u32 = 1 << 3;
    /// Meta: do not count this as a fetch.
    pub const NO_UPDATE: u32 = 1 << 4;
    /// Meta: create it on a miss.
    pub const VIVIFY: u32 = 1 << 5;
    /// Meta: mark as stale; take an older cas value.
    pub const STALE: u32 = 1 << 6;
    /// Meta: there is a new expiry time.
    pub const EXPIRY: u32 = 1 << 7;
    /// The key is in base64.
    pub const KEY_BINARY: u32 = 1 << 8;
    /// Binary: create on a miss (arithmetic).
    pub const CREATE: u32 = 1 << 9;
    /// Meta get: there is a recache time.
    pub const RECACHE: u32 = 1 << 10;
    /// The request counts for `stats detail`.
    pub const DETAIL: u32 = 1 << 11;
}

/// The fields of fixed size of a request. The verb decides which fields have a meaning; the others are 0.
#[derive(Clone, Copy, Debug, TryFromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct RequestHead {
    /// The hash of the key's bytes.
    pub hash: u64,
    /// The cas value that the item must have.
    pub cas: u64,
    /// The number to add or to subtract.
    pub delta: u64,
    /// The initial number of an item that is created.
    pub initial: u64,
    /// The flags of the request, from [`Bits`].
    pub bits: u32,
    /// The flags that the client stores with the item.
    pub client_flags: u32,
    /// Second of expiry, 0 for never.
    pub expiry: u32,
    /// Second of expiry of an item that is created on a miss.
    pub vivify_expiry: u32,
    /// Meta get: a client has to bring a fresh value if the item expires before this second.
    pub recache: u32,
    /// Binary: the client's opaque value, unchanged.
    pub opaque: [u8; 4],
    /// The operation on the key.
    pub verb: Verb,
    /// The protocol of the answer.
    pub style: ReplyStyle,
    /// Binary: the opcode. Stats: the kind of report.
    pub mode: u8,
    /// Padding, which is always 0.
    pub padding: [u8; 5],
}

impl RequestHead {
    /// Creates a head with the operation and the style of the answer only.
    pub const fn new(verb: Verb, style: ReplyStyle) -> RequestHead {
        RequestHead {
            hash: 0,
            cas: 0,
            delta: 0,
            initial: 0,
            bits: 0,
            client_flags: 0,
            expiry: 0,
            vivify_expiry: 0,
            recache: 0,
            opaque: [0; 4],
            verb,
            style,
            mode: 0,
            padding: [0; 5],
        }
    }

    /// True if `bit` is set.
    pub fn has(&self, bit: u32) -> bool {
        self.bits & bit != 0
    }
}

/// One command on one key.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The fields of fixed size.
    pub head: RequestHead,
    /// The key as the client wrote it (base64 included).
    pub key: &'a [u8],
    /// The tokens after the key of a meta command.
    pub tokens: &'a [u8],
    /// The value, without its line end.
    pub value: &'a [u8],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
struct ArgumentLengths {
    key: u32,
    tokens: u32,
}

impl<'a> Request<'a> {
    /// Creates a request without tokens or value.
    pub fn new(head: RequestHead, key: &'a [u8]) -> Request<'a> {
        Request { head, key, tokens: &[], value: &[] }
    }

    /// Appends the encoded request to a message for another thread.
    pub fn encode(&self, message: &mut Vec<u8>) {
        let lengths = ArgumentLengths { key: self.key.len() as u32, tokens: self.tokens.len() as u32 };
        message.extend_from_slice(self.head.as_bytes());
        message.extend_from_slice(lengths.as_bytes());
        for part in [self.key, self.tokens, self.value] {
            message.extend_from_slice(part);
        }
    }

    /// Returns the request that [`Request::encode`] wrote.
    pub fn decode(message: &'a [u8]) -> Request<'a> {
        const OURS: &str = "a message of this program's own";
        let (head, rest) = RequestHead::try_read_from_prefix(message).expect(OURS);
        let (lengths, rest) = ArgumentLengths::read_from_prefix(rest).expect(OURS);
        let (key, rest) = rest.split_at(lengths.key as usize);
        let (tokens, value) = rest.split_at(lengths.tokens as usize);
        Request { head, key, tokens, value }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_travels() {
        let mut head = RequestHead::new(Verb::Cas, ReplyStyle::Meta);
        (head.hash, head.bits, head.opaque) = (77, Bits::QUIET | Bits::CAS, [1, 2, 3, 4]);
        let request = Request { head, key: b"key", tokens: b"v q O1", value: b"value" };
        let mut message = Vec::new();
        request.encode(&mut message);
        assert_eq!(format!("{:?}", Request::decode(&message)), format!("{request:?}"));
    }
}
