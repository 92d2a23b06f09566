//! Lower-case hexadecimal, for hashes shown to people.

/// Two digits a byte.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
