//! Reader of little-endian values from the front of a file. Truncated input is an error, and nothing is allocated here.

/// Description of a file's defect.
pub(super) type Problem = String;

/// Bytes of a file and the current position.
pub(super) struct Reader<'a> {
    content: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(content: &'a [u8]) -> Self {
        Self { content, at: 0 }
    }

    /// Takes the next `count` bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Problem> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.content.len());
        let Some(end) = end else {
            let left = self.content.len() - self.at;
            return Err(format!("it ends at byte {}: {count} wanted, {left} left", self.at));
        };
        let taken = &self.content[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Problem> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Problem> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Problem> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Problem> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn f32(&mut self) -> Result<f32, Problem> {
        self.array().map(f32::from_le_bytes)
    }

    /// Reads a signed number of four bytes that must be `least` to `most`; `what` names it in errors.
    pub(super) fn count(
        &mut self,
        what: &str,
        least: usize,
        most: usize,
    ) -> Result<usize, Problem> {
        let number = self.array().map(i32::from_le_bytes)?;
        let count = usize::try_from(number).ok().filter(|count| (least..=most).contains(count));
        count.ok_or_else(|| format!("{what} is {number}, not {least} to {most}"))
    }

    /// Reads `count` numbers of four bytes, each with `number`.
    pub(super) fn words<T>(
        &mut self,
        count: usize,
        number: fn([u8; 4]) -> T,
    ) -> Result<Vec<T>, Problem> {
        let bytes = self.bytes(count.saturating_mul(4))?;
        // The length follows from the bytes that exist, so a hostile count allocates nothing.
        Ok(bytes.as_chunks().0.iter().map(|word| number(*word)).collect())
    }

    /// Returns `size` bytes from `start`, anywhere in the file.
    pub(super) fn slice(&self, start: u64, size: u64) -> Result<&'a [u8], Problem> {
        let bounds = || {
            let start = usize::try_from(start).ok()?;
            let end = start.checked_add(usize::try_from(size).ok()?)?;
            self.content.get(start..end)
        };
        let length = self.content.len();
        bounds().ok_or_else(|| format!("{size} bytes at {start} are beyond its {length}"))
    }
}
