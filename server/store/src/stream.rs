//! Stored content as a stream of JSON lines, one whole tenant after another, for export from one store and import
//! into another. A reader detects a stream that was cut off.

use serde::{Deserialize, Serialize};

use super::content::{Counters, Part, TenantContent};
use toolgate_core::identity::TenantId;

/// Version of the stream's format. Format 1 had no tool status: all tools were shown. Formats 1 and 2 had no records
/// of removed tools.
const FORM: u32 = 3;

/// Oldest format that can be read. Fields that only later formats have are absent from older streams.
const OLDEST: u32 = 1;

/// Line of a stream.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// First line of the stream.
    ToolgateStore {
        /// Version of the format.
        form: u32,
    },
    /// First line of a tenant.
    Tenant {
        /// Name of the tenant.
        name: String,
        #[serde(flatten)]
        counters: Counters,
    },
    /// Part of the tenant that was begun.
    Part(Part),
    /// Last line of a tenant.
    EndOfTenant {
        /// Number of parts of the tenant.
        parts: u64,
    },
    /// Last line of the stream.
    End {
        /// Number of tenants in the stream.
        tenants: u64,
    },
}

/// Reason that a stream can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// A line is invalid.
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// Description of the problem.
        problem: String,
    },
    /// The stream ends after this number of lines, without its last line.
    #[error("it was cut off after line {0}: what it began last is not all there")]
    CutOff(u64),
}

/// Returns the first line of a stream.
#[must_use]
pub fn head() -> String {
    text(&Line::ToolgateStore { form: FORM })
}

/// Returns the lines of a tenant.
pub fn lines(tenant: &TenantId, content: TenantContent) -> impl Iterator<Item = String> {
    let name = tenant.as_str().to_owned();
    let counters = content.counters();
    let first = text(&Line::Tenant { name, counters });
    let mut parts = 0;
    let mut between = content.into_parts();
    let mut is_over = false;
    std::iter::once(first).chain(std::iter::from_fn(move || {
        if let Some(part) = between.next() {
            parts += 1;
            return Some(text(&Line::Part(part)));
        }
        (!std::mem::replace(&mut is_over, true)).then(|| text(&Line::EndOfTenant { parts }))
    }))
}

/// Returns the last line of a stream with this number of tenants.
#[must_use]
pub fn end(tenants: u64) -> String {
    text(&Line::End { tenants })
}

fn text(line: &Line) -> String {
    let mut text = serde_json::to_string(line).expect("texts, numbers and lists are JSON");
    text.push('\n');
    text
}

/// Reader of a stream, line by line.
#[derive(Debug, Default)]
pub struct Reader {
    line: u64,
    has_begun: bool,
    is_over: bool,
    tenants: u64,
    open: Option<(TenantId, TenantContent, u64)>,
}

impl Reader {
    /// Reads the next line. Returns the tenant if the line was its last.
    ///
    /// # Errors
    /// The line is invalid at this position.
    pub fn take(&mut self, line: &str) -> Result<Option<(TenantId, TenantContent)>, StreamError> {
        self.line += 1;
        self.read(line).map_err(|problem| StreamError::Line { line: self.line, problem })
    }

    /// Checks that the stream was complete.
    ///
    /// # Errors
    /// [`StreamError::CutOff`] if the last line is missing.
    pub fn finish(&self) -> Result<(), StreamError> {
        if self.is_over { Ok(()) } else { Err(StreamError::CutOff(self.line)) }
    }

    fn read(&mut self, line: &str) -> Result<Option<(TenantId, TenantContent)>, String> {
        if self.is_over {
            return Err("there is more after the end".to_owned());
        }
        let line: Line = serde_json::from_str(line).map_err(|error| self.complaint(&error))?;
        match (line, &mut self.open) {
            (Line::ToolgateStore { form }, None) if !self.has_begun => {
                self.has_begun = true;
                let other =
                    format!("form {form} of exports; this version reads forms {OLDEST} to {FORM}");
                if (OLDEST..=FORM).contains(&form) { Ok(None) } else { Err(other) }
            }
            (_, _) if !self.has_begun => Err("not the beginning of an export".to_owned()),
            (Line::Tenant { name, counters }, None) => {
                let tenant = TenantId::parse(&name).map_err(|error| error.to_string())?;
                self.open = Some((tenant, TenantContent::begun(counters), 0));
                Ok(None)
            }
            (Line::Part(part), Some((_, content, parts))) => {
                *parts += 1;
                content.take(part).map(|()| None).map_err(str::to_owned)
            }
            (Line::EndOfTenant { parts }, Some((_, _, found))) if parts == *found => {
                self.tenants += 1;
                Ok(self.open.take().map(|(tenant, content, _)| (tenant, content)))
            }
            (Line::EndOfTenant { parts }, Some((_, _, found))) => {
                Err(format!("the tenant had {parts} parts, {found} are there"))
            }
            (Line::End { tenants }, None) if tenants == self.tenants => {
                self.is_over = true;
                Ok(None)
            }
            (Line::End { tenants }, None) => {
                Err(format!("there were {tenants} tenants, {} are there", self.tenants))
            }
            _ => Err("it does not belong here".to_owned()),
        }
    }

    fn complaint(&self, error: &serde_json::Error) -> String {
        match self.has_begun {
            true => error.to_string(),
            false => "not an export of a store (`toolgate store export` makes one)".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{embedding, server_name, tenant, tool};
    use crate::{ServerRecord, StoredCatalog, StoredServer, StoredTool, ToolRecord, ToolStatus};

    fn content() -> TenantContent {
        let record = ServerRecord::new(server_name("s"));
        let shown =
            StoredTool { record: tool("s", "t", "\0 \"line\"\nbreak"), summary_revision: 1 };
        let waiting = ToolRecord { status: ToolStatus::Quarantined, ..tool("s", "u", "U") };
        let waiting = StoredTool { record: waiting, summary_revision: 2 };
        let catalog = StoredCatalog {
            revision: 7,
            servers: vec![StoredServer { record, revision: 7, updated_ms: 5, tool_count: 1 }],
            tools: vec![shown],
            quarantined: vec![waiting],
            pool_floor: 2,
            ..StoredCatalog::default()
        };
        let embeddings = vec![("e".to_owned(), embedding("x", &[0.1, -0.0, f32::MIN]))];
        TenantContent { catalog, embeddings, changes_floor: 3, ..TenantContent::default() }
    }

    fn whole() -> Vec<String> {
        let mut all = vec![head()];
        all.extend(lines(&tenant("a"), content()));
        all.extend(lines(&tenant("b"), TenantContent::default()));
        all.push(end(2));
        all
    }

    fn read(lines: &[String]) -> Result<Vec<(TenantId, TenantContent)>, StreamError> {
        let mut reader = Reader::default();
        let mut found = Vec::new();
        for line in lines {
            found.extend(reader.take(line)?);
        }
        reader.finish().map(|()| found)
    }

    #[test]
    fn what_is_written_is_read() {
        let wanted = vec![(tenant("a"), content()), (tenant("b"), TenantContent::default())];
        assert_eq!(read(&whole()), Ok(wanted));
    }

    #[test]
    fn tools_of_the_first_form_are_shown() {
        let old = |line: String| {
            let line = line.replace("\"form\":3", "\"form\":1");
            line.replace(",\"status\":\"active\"", "").replace(",\"status\":\"quarantined\"", "")
        };
        let lines: Vec<String> = whole().into_iter().map(old).collect();
        assert!(lines.iter().all(|line| !line.contains("status")), "as form 1 was written");
        let mut all = content();
        let shown = |mut tool: StoredTool| {
            tool.record.status = ToolStatus::Active;
            tool
        };
        let waiting = std::mem::take(&mut all.catalog.quarantined);
        all.catalog.tools.extend(waiting.into_iter().map(shown));
        let wanted = vec![(tenant("a"), all), (tenant("b"), TenantContent::default())];
        assert_eq!(read(&lines), Ok(wanted));
    }

    #[test]
    fn a_stream_that_lacks_a_line_is_refused() {
        let whole = whole();
        for missing in 0..whole.len() {
            let mut lines = whole.clone();
            lines.remove(missing);
            assert!(read(&lines).is_err(), "without line {}", missing + 1);
        }
        for kept in 0..whole.len() {
            assert_eq!(read(&whole[..kept]), Err(StreamError::CutOff(kept as u64)));
        }
        let mut more = whole.clone();
        more.push(head());
        assert!(read(&more).is_err());
    }

    #[test]
    fn what_is_no_export_is_refused_in_words() {
        for (line, why) in [
            ("hello", "not an export of a store"),
            ("{\"toolgate_store\":{\"form\":9}}", "form 9 of exports"),
            ("{\"end\":{\"tenants\":0}}", "not the beginning"),
        ] {
            let error = read(&[line.to_owned()]).expect_err("a refusal").to_string();
            assert!(error.starts_with("line 1: ") && error.contains(why), "{error}");
        }
    }
}
