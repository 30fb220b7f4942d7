//! Remembers the answers to writes that came with an `Idempotency-Key`, so that a client that
//! does not know whether its request arrived can send it again.
//!
//! In memory and bounded: an hour, 256 keys a token, 16 MiB in all; and gone when the server
//! ends. docs/HTTP.md says so to clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use sha2::{Digest, Sha256};

const KEPT_FOR: Duration = Duration::from_secs(3_600);
const KEYS_MAX_PER_TOKEN: usize = 256;
const BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// The longest key in bytes.
pub const KEY_BYTES_MAX: usize = 255;

#[derive(Default)]
pub struct Repeats(Mutex<Known>);

#[derive(Default)]
struct Known {
    by_key: HashMap<Key, Entry>,
    bytes: usize,
    next: u64,
}

/// Whose key, and for which tenant.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    token: String,
    tenant: String,
    key: String,
}

struct Entry {
    /// Tells this entry from a later one under the same key.
    number: u64,
    fingerprint: [u8; 32],
    came: Instant,
    /// Status and body; `None` while the request is carried out.
    answer: Option<(u16, Bytes)>,
}

/// What is known of a key.
pub enum Seen {
    /// Nothing: carry it out, and say how it went.
    New(Pending),
    /// The answer that the same request got.
    Before(u16, Bytes),
    /// The same request is being carried out.
    Running,
    /// The key came with another request.
    Other,
}

/// A request that is carried out under a key. Dropped without an answer, the key is free again.
pub struct Pending {
    repeats: Arc<Repeats>,
    key: Key,
    number: u64,
}

impl Repeats {
    pub fn look(
        self: &Arc<Self>,
        token: &str,
        tenant: &str,
        key: &str,
        body: &[u8],
        now: Instant,
    ) -> Seen {
        let key = Key {
            token: token.to_owned(),
            tenant: tenant.to_owned(),
            key: key.to_owned(),
        };
        let fingerprint: [u8; 32] = Sha256::digest(body).into();
        let mut known = self.known();
        known.forget_older(now);
        if let Some(entry) = known.by_key.get(&key) {
            return match &entry.answer {
                _ if entry.fingerprint != fingerprint => Seen::Other,
                Some((status, body)) => Seen::Before(*status, body.clone()),
                None => Seen::Running,
            };
        }
        known.make_room_for(&key.token);
        let number = known.next;
        known.next += 1;
        known.by_key.insert(
            key.clone(),
            Entry {
                number,
                fingerprint,
                came: now,
                answer: None,
            },
        );
        Seen::New(Pending {
            repeats: Arc::clone(self),
            key,
            number,
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn forget_older(&mut self, now: Instant) {
        let mut freed = 0;
        self.by_key.retain(|_, entry| {
            let stays = entry.answer.is_none() || now.duration_since(entry.came) < KEPT_FOR;
            freed += if stays { 0 } else { entry.bytes() };
            stays
        });
        self.bytes = self.bytes.saturating_sub(freed);
    }

    /// One token's keys never push out another's.
    fn make_room_for(&mut self, token: &str) {
        let own = self.by_key.keys().filter(|key| key.token == token).count();
        if own >= KEYS_MAX_PER_TOKEN {
            self.forget_oldest(|key| key.token == token);
        }
    }

    fn forget_oldest(&mut self, of: impl Fn(&Key) -> bool) -> bool {
        let oldest = self
            .by_key
            .iter()
            .filter(|(key, entry)| entry.answer.is_some() && of(key))
            .min_by_key(|(_, entry)| entry.number)
            .map(|(key, _)| key.clone());
        let entry = oldest.and_then(|key| self.by_key.remove(&key));
        self.bytes = self
            .bytes
            .saturating_sub(entry.as_ref().map_or(0, Entry::bytes));
        entry.is_some()
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        self.answer.as_ref().map_or(0, |(_, body)| body.len())
    }
}

impl Pending {
    /// Keeps the answer for whoever asks again.
    pub fn answered(self, status: u16, body: Bytes) {
        let mut known = self.repeats.known();
        let bytes = body.len();
        while known.bytes + bytes > BYTES_MAX && known.forget_oldest(|_| true) {}
        if let Some(entry) = known.by_key.get_mut(&self.key) {
            entry.answer = Some((status, body));
            known.bytes += bytes;
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut known = self.repeats.known();
        if let Some(entry) = known.by_key.get(&self.key)
            && entry.number == self.number
            && entry.answer.is_none()
        {
            known.by_key.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(repeats: &Arc<Repeats>, token: &str, key: &str, body: &[u8], now: Instant) -> Seen {
        repeats.look(token, "t", key, body, now)
    }

    #[test]
    fn a_key_is_new_then_running_then_known_and_never_for_another_body() {
        let repeats = Arc::new(Repeats::default());
        let now = Instant::now();
        let Seen::New(first) = seen(&repeats, "a", "k", b"1", now) else {
            panic!()
        };
        assert!(matches!(seen(&repeats, "a", "k", b"1", now), Seen::Running));
        assert!(matches!(seen(&repeats, "a", "k", b"2", now), Seen::Other));
        assert!(matches!(seen(&repeats, "b", "k", b"2", now), Seen::New(_)));
        first.answered(200, Bytes::from_static(b"done"));
        let Seen::Before(200, body) = seen(&repeats, "a", "k", b"1", now) else {
            panic!()
        };
        assert_eq!(body, "done");
        assert!(matches!(seen(&repeats, "a", "k", b"2", now), Seen::Other));
        let later = now + KEPT_FOR;
        assert!(matches!(
            seen(&repeats, "a", "k", b"2", later),
            Seen::New(_)
        ));
        assert_eq!(repeats.known().bytes, 0);
    }

    #[test]
    fn a_request_that_was_given_up_frees_its_key() {
        let repeats = Arc::new(Repeats::default());
        let now = Instant::now();
        drop(seen(&repeats, "a", "k", b"1", now));
        assert!(matches!(seen(&repeats, "a", "k", b"2", now), Seen::New(_)));
    }

    #[test]
    fn a_token_pushes_out_its_own_keys_only() {
        let repeats = Arc::new(Repeats::default());
        let now = Instant::now();
        let answer = |token: &str, key: &str| match seen(&repeats, token, key, b"1", now) {
            Seen::New(pending) => pending.answered(200, Bytes::from_static(b"x")),
            _ => panic!(),
        };
        answer("other", "k");
        for key in 0..=KEYS_MAX_PER_TOKEN {
            answer("greedy", &key.to_string());
        }
        assert!(matches!(
            seen(&repeats, "other", "k", b"1", now),
            Seen::Before(..)
        ));
        assert!(matches!(
            seen(&repeats, "greedy", "1", b"1", now),
            Seen::Before(..)
        ));
        assert!(matches!(
            seen(&repeats, "greedy", "0", b"1", now),
            Seen::New(_)
        ));
    }

    #[test]
    fn answers_stay_within_their_bytes() {
        let repeats = Arc::new(Repeats::default());
        let now = Instant::now();
        let large = Bytes::from(vec![0; BYTES_MAX / 4]);
        for key in 0..9 {
            let Seen::New(pending) = seen(&repeats, "a", &key.to_string(), b"1", now) else {
                panic!()
            };
            pending.answered(200, large.clone());
        }
        assert_eq!(repeats.known().bytes, BYTES_MAX);
        assert_eq!(repeats.known().by_key.len(), 4);
    }
}
