//! Commands in the words of the three protocols, and the meaning of their answers.

/// The protocol of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Text,
    Meta,
    Binary,
}

/// The way in which a value is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
    Cas(u64),
}

/// A command; keys are text without spaces.
#[derive(Clone, Debug)]
pub enum Words {
    Store {
        mode: Mode,
        key: String,
        flags: u32,
        expired: bool,
        value: Vec<u8>,
    },
    Get(String),
    /// Quiet gets of many keys, or one get of them all.
    GetMany(Vec<String>),
    Delete(String),
    Touch(String),
    /// Adds one; meta and binary begin with 1 if the number is missing.
    Increment(String),
}

/// An item that was fetched.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    pub key: String,
    pub flags: u32,
    pub cas: u64,
    pub value: Vec<u8>,
}

/// An answer of the server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Stored, deleted, touched.
    Done,
    NotStored,
    Exists,
    NotFound,
    Items(Vec<Item>),
    Number(u64),
    /// The budget had no memory for it.
    NoMemory,
}

impl Protocol {
    /// Appends the command `words`.
    pub fn write(self, words: &Words, out: &mut Vec<u8>) {
        match self {
            Protocol::Text => write_text(words, out),
            Protocol::Meta => write_meta(words, out),
            Protocol::Binary => write_binary(words, out),
        }
    }

    /// Reads the answer to `words` at the head of `input`, and its bytes; None if it is not complete.
    ///
    /// # Errors
    /// If the input is not an answer to them; the error has the input.
    pub fn read(self, words: &Words, input: &[u8]) -> Result<Option<(Answer, usize)>, String> {
        let mut rest = Rest { input, used: 0 };
        let answer = match self {
            Protocol::Text => read_text(words, &mut rest),
            Protocol::Meta => read_meta(words, &mut rest),
            Protocol::Binary => read_binary(words, &mut rest),
        };
        match answer {
            Ok(answer) => Ok(Some((answer, rest.used))),
            Err(Stop::NotWhole) => Ok(None),
            Err(Stop::Wrong(what)) => Err(format!("{self:?}: {what}")),
        }
    }
}

/// The reason that no answer was read.
enum Stop {
    NotWhole,
    Wrong(String),
}

/// The rest of the input.
struct Rest<'a> {
    input: &'a [u8],
    used: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], Stop> {
        let taken = self.input[self.used..].get(..bytes).ok_or(Stop::NotWhole)?;
        self.used += bytes;
        Ok(taken)
    }

    fn line(&mut self) -> Result<&'a str, Stop> {
        let rest = &self.input[self.used..];
        let end = rest.iter().position(|&byte| byte == b'\n').ok_or(Stop::NotWhole)?;
        self.used += end + 1;
        let line = rest[..end].strip_suffix(b"\r").ok_or_else(|| wrong("a line without CR"))?;
        std::str::from_utf8(line).map_err(|_| wrong(line.escape_ascii()))
    }

    /// A value and its line end.
    fn value(&mut self, bytes: usize) -> Result<Vec<u8>, Stop> {
        match self.take(bytes + 2)?.split_at(bytes) {
            (value, b"\r\n") => Ok(value.to_vec()),
            _ => Err(wrong("a value without a line end")),
        }
    }
}

fn wrong(what: impl ToString) -> Stop {
    Stop::Wrong(what.to_string())
}

fn number<N: std::str::FromStr>(word: Option<&str>, line: &str) -> Result<N, Stop> {
    word.and_then(|word| word.parse().ok()).ok_or_else(|| wrong(line))
}

fn write_text(words: &Words, out: &mut Vec<u8>) {
    let line = match words {
        Words::Store { mode, key, flags, expired, value } => {
            let verb = match mode {
                Mode::Set => "set",
                Mode::Add => "add",
                Mode::Replace => "replace",
                Mode::Append => "append",
                Mode::Prepend => "prepend",
                Mode::Cas(_) => "cas",
            };
            let cas = if let Mode::Cas(cas) = mode { format!(" {cas}") } else { String::new() };
            let expiry = if *expired { -1 } else { 0 };
            out.extend_from_slice(
                format!("{verb} {key} {flags} {expiry} {}{cas}\r\n", value.len()).as_bytes(),
            );
            out.extend_from_slice(value);
            String::new()
        }
        Words::Get(key) => format!("gets {key}"),
        Words::GetMany(keys) => format!("gets {}", keys.join(" ")),
        Words::Delete(key) => format!("delete {key}"),
        Words::Touch(key) => format!("touch {key} 0"),
        Words::Increment(key) => format!("incr {key} 1"),
    };
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn read_text(words: &Words, rest: &mut Rest<'_>) -> Result<Answer, Stop> {
    let mut items = Vec::new();
    loop {
        let line = rest.line()?;
        let is_get = matches!(words, Words::Get(_) | Words::GetMany(_));
        return Ok(match line {
            "END" if is_get => Answer::Items(items),
            "STORED" | "DELETED" | "TOUCHED" if !is_get => Answer::Done,
            "NOT_STORED" => Answer::NotStored,
            "EXISTS" => Answer::Exists,
            "NOT_FOUND" => Answer::NotFound,
            _ if line.starts_with("SERVER_ERROR out of memory") => Answer::NoMemory,
            _ if line.starts_with("VALUE ") && is_get => {
                let mut parts = line.split(' ').skip(1);
                let key = parts.next().ok_or_else(|| wrong(line))?.to_owned();
                let (flags, bytes) = (number(parts.next(), line)?, number(parts.next(), line)?);
                let cas = number(parts.next(), line)?;
                items.push(Item { key, flags, cas, value: rest.value(bytes)? });
                continue;
            }
            _ if matches!(words, Words::Increment(_)) => Answer::Number(number(Some(line), line)?),
            _ => return Err(wrong(line)),
        });
    }
}

fn write_meta(words: &Words, out: &mut Vec<u8>) {
    let line = match words {
        Words::Store { mode, key, flags, expired, value } => {
            let mode = match mode {
                Mode::Set => "MS".to_owned(),
                Mode::Add => "ME".to_owned(),
                Mode::Replace => "MR".to_owned(),
                Mode::Append => "MA".to_owned(),
                Mode::Prepend => "MP".to_owned(),
                Mode::Cas(cas) => format!("C{cas}"),
            };
            let expiry = if *expired { -1 } else { 0 };
            out.extend_from_slice(
                format!("ms {key} {} F{flags} T{expiry} {mode}\r\n", value.len()).as_bytes(),
            );
            out.extend_from_slice(value);
            String::new()
        }
        Words::Get(key) => format!("mg {key} k f c v"),
        Words::GetMany(keys) => {
            let lines: String = keys.iter().map(|key| format!("mg {key} k f c v q\r\n")).collect();
            format!("{lines}mn")
        }
        Words::Delete(key) => format!("md {key}"),
        Words::Touch(key) => format!("mg {key} T0"),
        Words::Increment(key) => format!("ma {key} N0 J1 v"),
    };
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn read_meta(words: &Words, rest: &mut Rest<'_>) -> Result<Answer, Stop> {
    let mut items = Vec::new();
    loop {
        let line = rest.line()?;
        return Ok(match (line.split(' ').next().unwrap_or_default(), words) {
            ("HD", Words::Store { .. } | Words::Delete(_) | Words::Touch(_)) => Answer::Done,
            ("NS", _) => Answer::NotStored,
            ("EX", _) => Answer::Exists,
            ("NF", _) | ("EN", Words::Touch(_)) => Answer::NotFound,
            ("EN", Words::Get(_)) | ("MN", Words::GetMany(_)) => Answer::Items(items),
            ("SERVER_ERROR", _) if line.contains("out of memory") => Answer::NoMemory,
            ("VA", Words::Increment(_)) => {
                let value = rest.value(number(line.split(' ').nth(1), line)?)?;
                Answer::Number(number(std::str::from_utf8(&value).ok(), line)?)
            }
            ("VA", Words::Get(_) | Words::GetMany(_)) => {
                let mut parts = line.split(' ').skip(1);
                let bytes = number(parts.next(), line)?;
                let mut item = Item { key: String::new(), flags: 0, cas: 0, value: Vec::new() };
                for part in parts {
                    match part.split_at(1) {
                        ("k", key) => item.key = key.to_owned(),
                        ("f", flags) => item.flags = number(Some(flags), line)?,
                        ("c", cas) => item.cas = number(Some(cas), line)?,
                        _ => return Err(wrong(line)),
                    }
                }
                item.value = rest.value(bytes)?;
                items.push(item);
                if matches!(words, Words::GetMany(_)) {
                    continue;
                }
                Answer::Items(items)
            }
            _ => return Err(wrong(line)),
        });
    }
}

const NOOP: u8 = 0x0a;
const GETK: u8 = 0x0c;
const GETKQ: u8 = 0x0d;

fn packet(opcode: u8, key: &str, extras: &[u8], value: &[u8], cas: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x80, opcode]);
    out.extend_from_slice(&(key.len() as u16).to_be_bytes());
    out.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    out.extend_from_slice(&((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    out.extend_from_slice(b"soak");
    out.extend_from_slice(&cas.to_be_bytes());
    for part in [extras, key.as_bytes(), value] {
        out.extend_from_slice(part);
    }
}

fn write_binary(words: &Words, out: &mut Vec<u8>) {
    match words {
        Words::Store { mode, key, flags, expired, value } => {
            let (opcode, cas) = match mode {
                Mode::Set => (0x01, 0),
                Mode::Add => (0x02, 0),
                Mode::Replace => (0x03, 0),
                Mode::Append => (0x0e, 0),
                Mode::Prepend => (0x0f, 0),
                Mode::Cas(cas) => (0x01, *cas),
            };
            // An expiry time in the past is a date of 1970 or later in this protocol.
            let expiry: u32 = if *expired { 1_000_000_000 } else { 0 };
            let extras = [flags.to_be_bytes(), expiry.to_be_bytes()].concat();
            let extras = if matches!(mode, Mode::Append | Mode::Prepend) { &[][..] } else { &extras };
            packet(opcode, key, extras, value, cas, out);
        }
        Words::Get(key) => packet(GETK, key, b"", b"", 0, out),
        Words::GetMany(keys) => {
            keys.iter().for_each(|key| packet(GETKQ, key, b"", b"", 0, out));
            packet(NOOP, "", b"", b"", 0, out);
        }
        Words::Delete(key) => packet(0x04, key, b"", b"", 0, out),
        Words::Touch(key) => packet(0x1c, key, &[0; 4], b"", 0, out),
        Words::Increment(key) => {
            let extras = [&1_u64.to_be_bytes()[..], &1_u64.to_be_bytes(), &[0; 4]].concat();
            packet(0x05, key, &extras, b"", 0, out);
        }
    }
}

fn read_binary(words: &Words, rest: &mut Rest<'_>) -> Result<Answer, Stop> {
    let mut items = Vec::new();
    loop {
        let header = rest.take(24)?;
        let u16_at = |place: usize| u16::from_be_bytes([header[place], header[place + 1]]);
        let extras_bytes = usize::from(header[4]);
        let key_bytes = usize::from(u16_at(2));
        let body_bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let cas = u64::from_be_bytes(header[16..].try_into().map_err(|_| wrong("a cas value"))?);
        if header[0] != 0x81 || header[12..16] != *b"soak" || body_bytes < extras_bytes + key_bytes {
            return Err(wrong(header.escape_ascii()));
        }
        let body = rest.take(body_bytes)?;
        let (extras, body) = body.split_at(extras_bytes);
        let (key, value) = body.split_at(key_bytes);
        return Ok(match (u16_at(6), header[1], words) {
            (0, NOOP, Words::GetMany(_)) => Answer::Items(items),
            (0, GETK | GETKQ, Words::Get(_) | Words::GetMany(_)) => {
                let flags = extras.try_into().map_err(|_| wrong("a value without flags"))?;
                items.push(Item {
                    key: String::from_utf8_lossy(key).into_owned(),
                    flags: u32::from_be_bytes(flags),
                    cas,
                    value: value.to_vec(),
                });
                if header[1] == GETKQ {
                    continue;
                }
                Answer::Items(items)
            }
            (1, GETK, Words::Get(_)) => Answer::Items(items),
            (0, _, Words::Increment(_)) => {
                Answer::Number(u64::from_be_bytes(value.try_into().map_err(|_| wrong("a number"))?))
            }
            (0, _, Words::Store { .. } | Words::Delete(_) | Words::Touch(_)) => Answer::Done,
            // An add of an existing item, and a replace of a missing one, have names of their own here.
            (1, _, Words::Store { mode: Mode::Replace, .. }) => Answer::NotStored,
            (2, _, Words::Store { mode: Mode::Add, .. }) => Answer::NotStored,
            (1, ..) => Answer::NotFound,
            (2, ..) => Answer::Exists,
            (5, ..) => Answer::NotStored,
            (0x82, ..) => Answer::NoMemory,
            (status, opcode, _) => {
                return Err(wrong(format_args!("status {status} of {opcode:#x}: {}", value.escape_ascii())));
            }
        });
    }
}
