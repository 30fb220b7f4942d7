//! The clock that is not believed blindly: the trusted time, and when the wall clock counts.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crate::audit::Draft;
use crate::backend::Batch;
use crate::clock::UnixMillis;
use crate::record::Jumps;

use super::StoreError;
use super::core::{Core, Extra};

/// A wall clock further ahead of the trusted time than this is not believed: 400 days.
const CLOCK_AHEAD_MAX: UnixMillis = 400 * 24 * 3_600 * 1_000;

/// A wall clock further behind the trusted time than this is not believed: 5 minutes.
const CLOCK_BEHIND_MAX: UnixMillis = 5 * 60 * 1_000;

/// Whether the wall clock is believed. The trusted time is the newest at which a write or a
/// sweep was made; it lies in the root record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClockState {
    /// It is.
    Trusted,
    /// It stands more than 5 minutes behind the trusted time. In milliseconds since 1970.
    Behind {
        /// What it shows.
        wall: UnixMillis,
        /// The trusted time.
        trusted: UnixMillis,
    },
    /// It stands more than 400 days ahead of the trusted time.
    Ahead {
        /// What it shows.
        wall: UnixMillis,
        /// The trusted time.
        trusted: UnixMillis,
    },
}

impl Core {
    /// The time that counts: the wall clock's, unless that cannot be right. Then it stands
    /// still a millisecond after the trusted time, so that what is stamped meanwhile can be
    /// told from what came before, see [`crate::record::Jumps`].
    pub(super) fn now(&self) -> UnixMillis {
        let trusted = self.trusted.load(Ordering::Acquire);
        match self.clock_state() {
            ClockState::Trusted => trusted.max(self.clock.now()),
            ClockState::Behind { .. } | ClockState::Ahead { .. } => trusted.saturating_add(1),
        }
    }

    /// Whether the wall clock is believed.
    pub(super) fn clock_state(&self) -> ClockState {
        let trusted = self.trusted.load(Ordering::Acquire);
        let wall = self.clock.now();
        if wall.saturating_add(CLOCK_BEHIND_MAX) < trusted {
            ClockState::Behind { wall, trusted }
        } else if wall > trusted.saturating_add(CLOCK_AHEAD_MAX) && trusted != 0 {
            ClockState::Ahead { wall, trusted }
        } else {
            ClockState::Trusted
        }
    }

    /// Where the trusted time was moved forward.
    pub(super) fn jumps(&self) -> Jumps {
        *self.jumps.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Believes the wall clock from here on, wherever it stands.
    pub(super) fn confirm_clock(&self) -> Result<(), StoreError> {
        let extra = Extra {
            confirmed_time: Some(self.clock.now()),
            drafts: vec![Draft::new("confirm clock")],
            ..Extra::default()
        };
        let seq = self.commit_with(extra, Batch::default(), Vec::new())?;
        self.wait_durable(seq)
    }
}
