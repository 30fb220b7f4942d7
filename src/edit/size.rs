//! Sizes as a listing shows them.

/// `bytes` as `0B` to `1023B`, then with one decimal in K, M or G of 1,024,
/// rounded half up; what would round to `1024.0K` is `1.0M`.
///
/// ```
/// use strongroom::edit::size_text;
///
/// assert_eq!(size_text(1023), "1023B");
/// assert_eq!(size_text(4096), "4.0K");
/// assert_eq!(size_text(5_632), "5.5K");
/// ```
#[must_use]
pub fn size_text(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let tenths = |unit_bits: u32| {
        let half = 1_u128 << (unit_bits - 1);
        (u128::from(bytes) * 10 + half) >> unit_bits
    };
    let (tenths, unit) = match (tenths(10), tenths(20)) {
        (kibi, _) if kibi < 10_240 => (kibi, 'K'),
        (_, mebi) if mebi < 10_240 => (mebi, 'M'),
        _ => (tenths(30), 'G'),
    };
    format!("{}.{}{unit}", tenths / 10, tenths % 10)
}
